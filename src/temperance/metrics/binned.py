"""Calibration errors from bins.

With the bins of `reliability`, share s_b = n_b / n and gap g_b = accuracy_b - confidence_b:

    ece            sum_b s_b |g_b|
    mce            max_b |g_b|                       over the bins that hold rows
    classwise_ece  1/K sum_k ece of the event y = k with probability p_k
    debiased_ece   max(0, sum_b s_b (2 |g_b| - E|N(g_b, v_b)|)),   v_b = accuracy_b (1 - accuracy_b) / n_b

where E|N(g, v)| = sqrt(2 v / pi) exp(-g^2 / 2v) + g erf(g / sqrt(2v)) is the mean of a folded normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.inputs.labels import Names
from temperance.metrics.bins import check_bins
from temperance.metrics.bootstrap import kept_scales, plausible_shapes
from temperance.metrics.class_bins import classwise_error
from temperance.metrics.diagram import Reliability, reliability
from temperance.metrics.estimates import Estimate
from temperance.metrics.predictions import check_rows


def ece(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Top-label expected calibration error: mean over rows of the absolute gap of their bin.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    bins : int
        Number of bins. More bins resolve finer miscalibration, and add more noise.
    strategy : {"width", "mass"}
        Bins of equal width, or of equal weight; rows of equal confidence stay together.
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.

    Returns
    -------
    float
        From 0 to 1. The noise of the bins makes it too large on average, see `debiased_ece`.

    References
    ----------
    .. [1] Naeini et al. (2015). Obtaining well calibrated probabilities using Bayesian binning.
       doi:10.1609/aaai.v29i1.9602
    .. [2] Guo et al. (2017). On calibration of modern neural networks. arXiv:1706.04599

    Examples
    --------
    >>> round(ece([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=5), 4)
    0.4333
    """
    diagram = reliability(
        probs, labels, bins=bins, strategy=strategy, sample_weight=sample_weight, classes=classes
    )
    return diagram.error


def mce(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Maximum calibration error of the top label: the absolute gap of the worst bin.

    Parameters
    ----------
    probs, labels, bins, strategy, sample_weight, classes
        As for `ece`.

    Returns
    -------
    float
        From 0 to 1. It is often that of a bin with few rows; with `strategy="mass"` no bin is nearly empty.
        `evaluate` gives no interval for it: resampling cannot show the noise of a bin with one row, so no
        interval would have the right coverage.

    References
    ----------
    .. [1] Naeini et al. (2015). Obtaining well calibrated probabilities using Bayesian binning.
       doi:10.1609/aaai.v29i1.9602

    Examples
    --------
    >>> round(mce([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=5), 4)
    0.8
    """
    diagram = reliability(
        probs, labels, bins=bins, strategy=strategy, sample_weight=sample_weight, classes=classes
    )
    return float(np.abs(diagram.gap).max())


def classwise_ece(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Mean over classes of the calibration error of each class's probability.

    Parameters
    ----------
    probs, labels, bins, strategy, sample_weight, classes
        As for `ece`; the bins are made for each class.

    Returns
    -------
    float
        From 0 to 1. With many classes most probabilities are near 0, and the value is small for that reason
        alone. Compare it only between classifiers of the same classes.

    References
    ----------
    .. [1] Kull et al. (2019). Beyond temperature scaling: Obtaining well-calibrated multi-class probabilities
       with Dirichlet calibration. arXiv:1910.12656
    .. [2] Nixon et al. (2019). Measuring calibration in deep learning. arXiv:1904.01685

    Examples
    --------
    >>> round(classwise_ece([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=5), 4)
    0.4
    """
    bins = check_bins(bins, strategy)
    return classwise_error(check_rows(probs, labels, sample_weight, classes), bins, strategy)


def debiased_ece(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Top-label expected calibration error minus its finite-sample bias, in closed form.

    The absolute value turns the noise of a bin's accuracy into error: a perfectly calibrated classifier has
    an ECE above 0. Bröcker (2012) showed that binned estimates of reliability have this bias. Kumar, Liang
    and Ma (2019) proposed to subtract the bias that a normal approximation of each bin's accuracy predicts.
    They simulate it; here it is the mean of the folded normal.

    Parameters
    ----------
    probs, labels, bins, strategy, sample_weight, classes
        As for `ece`.

    Returns
    -------
    float
        From 0 to 1, never above `ece`. Part of the bias remains where the true gap is near 0, because the
        observed gap is used in its place. A bin with one row, or whose rows are all right or all wrong, has
        an estimated variance of 0 and is not corrected at all: with many such bins the result is unreliable,
        and fewer bins, or `strategy="mass"`, are better. Empty bins add nothing. Weights count as numbers of
        rows; other weights misstate the noise.

    References
    ----------
    .. [1] Bröcker (2012). Estimating reliability and resolution of probability forecasts through
       decomposition of the empirical score. doi:10.1007/s00382-011-1191-1
    .. [2] Kumar et al. (2019). Verified uncertainty calibration. arXiv:1909.10155

    Examples
    --------
    >>> probs, labels = [[0.7, 0.3]] * 4, [0, 0, 1, 1]
    >>> round(ece(probs, labels), 4), round(debiased_ece(probs, labels), 4)
    (0.2, 0.1399)
    """
    diagram = reliability(
        probs, labels, bins=bins, strategy=strategy, sample_weight=sample_weight, classes=classes
    )
    return debiased(diagram)


def debiased(diagram: Reliability) -> float:
    """Return the debiased error of a reliability diagram."""
    gaps, deviations = diagram.share * diagram.gap, diagram.share * _deviation(diagram)
    return max(0.0, float(_debiased_sum(gaps[:, None], deviations[:, None])[0]))


def debiased_interval(diagram: Reliability, fitted: Vector, noise: Any, confidence: float) -> Estimate:
    """Return the debiased error with its interval, given the fit and the noise of share times gap."""
    gaps, deviations = diagram.share * diagram.gap, (diagram.share * _deviation(diagram))[:, None]
    observed = float(_debiased_sum(gaps[:, None], deviations)[0])
    deviations = deviations.astype(np.float32)  # as the noise
    norm, value = float(np.abs(gaps).sum()), max(0.0, observed)
    shapes = plausible_shapes(gaps, fitted, noise)
    low, high = kept_scales(
        observed, gaps, shapes, noise, confidence, lambda moved: _debiased_sum(moved, deviations)
    )
    return Estimate(value, min(low * norm, value), min(max(high * norm, value), 1.0))


def _deviation(diagram: Reliability) -> Vector:
    """Return the standard error of the accuracy in each bin; 0 in empty ones."""
    rate = np.clip(np.nan_to_num(diagram.accuracy), 0, 1)
    deviation: Vector = np.sqrt(rate * (1 - rate) / np.maximum(diagram.count, np.finfo(np.float64).tiny))
    return deviation


def _debiased_sum(gaps: Vector, deviations: Vector) -> Vector:
    """Return the sum of 2 |g| - E|N(g, v)| of each column."""
    size = np.abs(gaps)
    total: Vector = (2 * size - _folded_mean(size, np.broadcast_to(deviations, size.shape))).sum(axis=0)
    return total


def _folded_mean(size: Vector, deviation: Vector) -> Vector:
    """Return E|N(size, deviation^2)|."""
    from scipy.special import erf

    noisy = deviation > 0
    ratio = np.divide(size, deviation, out=np.zeros_like(size), where=noisy)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + size * erf(ratio / np.sqrt(2))
    return np.where(noisy, folded, size)
