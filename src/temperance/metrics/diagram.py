"""The bins of a reliability diagram.

In bin b, with weights w, confidences c and h = 1 where the prediction is right:

    count_b       n = sum w                        (of the rows in the bin)
    confidence_b  sum w c / n
    accuracy_b    a = sum w h / n
    low_b, high_b (a + z^2/2n -+ z sqrt(a (1 - a) / n + z^2/4n^2)) / (1 + z^2/n)     (Wilson, 1927)

with z the normal quantile of the level. `ece`, `mce`, `debiased_ece` and the figures use these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.core.arrays import Vector
from temperance.inputs.labels import Names
from temperance.metrics.bins import assign, bin_edges, check_bins
from temperance.metrics.predictions import Predictions, check_fraction, check_rows


@dataclass(frozen=True, eq=False)
class Reliability:
    """Accuracy against confidence, bin by bin; empty bins hold nan.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        Bin b holds confidences above `edges[b]`, up to and including `edges[b + 1]`.
    count : array of shape (bins,)
        Number of rows, or the sum of their weights.
    confidence, accuracy : arrays of shape (bins,)
        Means over the rows of the bin.
    low, high : arrays of shape (bins,)
        Wilson interval of the accuracy.

    Examples
    --------
    >>> diagram = reliability([[0.9, 0.1], [0.2, 0.8]], [0, 0], bins=2)
    >>> diagram.count.tolist(), diagram.accuracy.tolist()
    ([0.0, 2.0], [nan, 0.5])
    """

    edges: Vector
    count: Vector
    confidence: Vector
    accuracy: Vector
    low: Vector
    high: Vector

    @property
    def gap(self) -> Vector:
        """Accuracy minus confidence: below 0 where the classifier is overconfident; 0 in empty bins."""
        return np.nan_to_num(self.accuracy - self.confidence)

    @property
    def share(self) -> Vector:
        """Fraction of the rows in each bin."""
        share: Vector = self.count / self.count.sum()
        return share

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over rows of the absolute gap of their bin."""
        return float(self.share @ np.abs(self.gap))


def reliability(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> Reliability:
    """Bin the rows by confidence: what a reliability diagram shows.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    bins : int
        Number of bins.
    strategy : {"width", "mass"}
        Bins of equal width, or of equal weight; rows of equal confidence stay together.
    level : float
        Level of the Wilson intervals, for each bin separately.
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows, also in the intervals.
    classes : sequence, optional
        Names of the columns, if labels are names.

    Returns
    -------
    Reliability

    References
    ----------
    .. [1] DeGroot and Fienberg (1983). The comparison and evaluation of forecasters. doi:10.2307/2987588
    .. [2] Wilson (1927). Probable inference, the law of succession, and statistical inference.
       doi:10.1080/01621459.1927.10502953

    Examples
    --------
    >>> diagram = reliability([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=2)
    >>> diagram.count, diagram.accuracy.round(3), diagram.confidence.round(3)
    (array([0., 3.]), array([  nan, 0.667]), array([  nan, 0.767]))
    """
    bins, level = check_bins(bins, strategy), check_fraction("level", level)
    return bin_rows(check_rows(probs, labels, sample_weight, classes), bins, strategy, level)


def bin_rows(rows: Predictions, bins: int, strategy: str = "width", level: float = 0.95) -> Reliability:
    """Bin the rows by the confidence of the top label."""
    return binned(rows.confidence, rows.correct, rows.weight, bins, strategy, level)


def binned(
    confidence: NDArray[np.floating[Any]],
    outcome: Vector,
    weight: Vector,
    bins: int,
    strategy: str,
    level: float = 0.95,
) -> Reliability:
    """Bin any probabilities of an event against its outcomes, 0 or 1."""
    edges = bin_edges(confidence, weight, bins, strategy)
    index = assign(confidence, edges)
    count = np.bincount(index, weights=weight, minlength=bins).astype(np.float64)
    with np.errstate(invalid="ignore"):  # 0 / 0 is nan, which marks an empty bin
        mean = np.bincount(index, weights=weight * confidence, minlength=bins) / count
        rate = np.bincount(index, weights=weight * outcome, minlength=bins) / count
    low, high = wilson_interval(rate, count, level)
    return Reliability(edges.astype(np.float64), count, mean, rate, low, high)


def wilson_interval(rate: Vector, count: Vector, level: float) -> tuple[Vector, Vector]:
    """Return the ends of the Wilson score interval of a proportion."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = z**2 / np.where(count > 0, count, np.nan)
    centre = rate + share / 2
    # With fractional weights, a rate of 1 may be rounded to 1 + 1e-16.
    spread = z * np.sqrt((np.maximum(rate * (1 - rate), 0) + share / 4) * share / z**2)
    return np.maximum((centre - spread) / (1 + share), 0), np.minimum((centre + spread) / (1 + share), 1)
