"""Bins of confidences, the reliability diagram that they form, and the calibration errors of the diagram.

Bin i of M holds edge_{i-1} < c <= edge_i, and c = 0 belongs to the first:

    width  edge_i = i / M
    mass   edge_i = the largest confidence whose group of equal confidences has its middle, counted in
           weight from below, at or before i / M of the total; 0 if there is none

Confidences are compared with edges in their own dtype. Rounding is monotone, so a confidence that is i / M up
to the rounding of its dtype equals the edge, and goes to bin i. Computing ceil(c * M) instead errs at some
edges in float64, and at many more edges for float32 confidences converted to float64.

In bin b, with weights w, confidences c and h = 1 where the prediction is correct:

    count_b       n = sum w                        (of the rows in the bin)
    confidence_b  sum w c / n
    accuracy_b    a = sum w h / n
    low_b, high_b (a + z^2/2n -+ z sqrt(a (1 - a) / n + z^2/4n^2)) / (1 + z^2/n)     (Wilson, 1927)

with z the normal quantile of the level. With share s_b = n_b / n and gap g_b = accuracy_b - confidence_b:

    ece            sum_b s_b |g_b|
    mce            max_b |g_b|                       over the bins that hold rows
    classwise_ece  1/K sum_k ece of the event y = k with probability p_k
    debiased_ece   max(0, sum_b s_b (2 |g_b| - E|N(g_b, v_b)|)),   v_b = d accuracy_b (1 - accuracy_b) / n_b

where E|N(g, v)| = sqrt(2 v / pi) exp(-g^2 / 2v) + g erf(g / sqrt(2v)) is the mean of a folded normal, and d
is the design effect of groups within bins, 1 for independent rows. The intervals then count n / d rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.inputs.names import Names
from temperance.inputs.validation import check_choice, check_number
from temperance.metrics.intervals import Units, wilson_interval
from temperance.metrics.predictions import Predictions, cached_slices, check_fraction, check_rows

MAX_BINS = 10_000  # more than any data set needs; memory and time grow with the number


def check_bins(bins: int, strategy: str = "width") -> int:
    """Return the number of bins, after checking it and the strategy."""
    check_choice("strategy", strategy, ("width", "mass"))
    wanted = f"from 1 to {MAX_BINS}"
    check_number("bins", bins, wanted, lambda number: 1 <= number <= MAX_BINS, whole=True)
    return int(bins)


def equal_mass_edges(confidence: Floats, weight: Vector, bins: int) -> Floats:
    """Return edges with about the same weight between them, which never split equal confidences."""
    values, group = np.unique(confidence, return_inverse=True)
    mass = np.bincount(group, weights=weight)
    # Twice the weight up to the middle of each group: whole numbers stay whole, so weights and repeated
    # rows give bit-identical bins.
    middle = 2 * mass.cumsum() - mass
    # Rounded up: a middle exactly at i / M belongs below that edge, as a confidence does.
    index = np.ceil(bins * middle / (2 * mass.sum())).astype(int) - 1
    last = np.searchsorted(index, np.arange(bins - 1), side="right")  # groups in bins 0 to i
    edges = np.concatenate([[0], values])[last]
    return np.concatenate([[0], edges, [1]]).astype(confidence.dtype)


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
    effect : float
        How many rows of a bin are worth one independent row: 1 without groups.

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
    effect: float

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
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> Reliability:
    """Bin the rows by confidence, for a reliability diagram.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    bins : int
        Number of bins.
    strategy : {"width", "mass"}
        Bins of equal width, or of equal weight; rows of equal confidence stay together.
    level : float
        Level of the Wilson intervals, per bin.
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows; intervals count effective rows, (sum w)^2 / sum w^2.
    classes : sequence, optional
        Names of the columns, if labels are names.
    groups, dim, ignore_index
        As for `evaluate`.

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
    rows = check_rows(
        probs, labels, sample_weight, classes, groups=groups, dim=dim, ignore_index=ignore_index, examine=True
    )
    return bin_rows(rows, bins, strategy, level)


def bin_rows(rows: Predictions, bins: int, strategy: str = "width", level: float = 0.95) -> Reliability:
    """Bin the rows by the confidence of the top label."""
    return binned(rows.confidence, rows.correct, rows.weight, bins, strategy, level, rows.groups)


def binned(
    confidence: Floats,
    outcome: Vector,
    weight: Vector,
    bins: int,
    strategy: str = "width",
    level: float = 0.95,
    groups: Indices | None = None,
) -> Reliability:
    """Bin any probabilities of an event against its outcomes, 0 or 1."""
    if strategy == "width":
        edges = equal_width_edges(bins, confidence.dtype)
    else:
        edges = equal_mass_edges(confidence, weight, bins)
    index = assign_bins(confidence, edges)
    count = np.bincount(index, weights=weight, minlength=bins).astype(np.float64)
    effect = effect_in_bins(outcome - confidence.astype(np.float64), index, weight, groups)
    with np.errstate(invalid="ignore"):  # 0 / 0 is nan, which marks an empty bin
        mean = np.bincount(index, weights=weight * confidence, minlength=bins) / count
        rate = np.bincount(index, weights=weight * outcome, minlength=bins) / count
        rows = count**2 / np.bincount(index, weights=weight**2, minlength=bins)
    low, high = wilson_interval(rate, np.nan_to_num(rows) / effect, level)
    return Reliability(edges.astype(np.float64), count, mean, rate, low, high, effect)


def effect_in_bins(residual: Vector, index: Indices, weight: Vector, groups: Indices | None) -> float:
    """Return the design effect of the residuals in bins, where few rows of a group share a bin."""
    if groups is None:
        return 1.0
    count, sums = np.bincount(index, weight), np.bincount(index, weight * residual)
    mean = np.divide(sums, count, out=np.zeros_like(sums), where=count > 0)
    share = weight / weight.sum()
    _, in_bin = np.unique(groups * len(count) + index, return_inverse=True)
    return Units.of(share * (residual - mean[index]), share, in_bin).effect


def places_in_bins(rows: Predictions, bins: int) -> Any:
    """Return the sparse matrix (bins, N) that adds up rows in bins of equal width."""
    from scipy.sparse import csr_array

    index, n_rows = (
        assign_bins(rows.confidence, equal_width_edges(bins, rows.confidence.dtype)),
        len(rows.probs),
    )
    return csr_array((np.ones(n_rows), (index, np.arange(n_rows))), shape=(bins, n_rows))


def debiased(diagram: Reliability) -> float:
    """Return the debiased error of a reliability diagram."""
    from scipy.special import erf

    rate, size = np.clip(np.nan_to_num(diagram.accuracy), 0, 1), np.abs(diagram.gap)
    count = np.maximum(diagram.count / diagram.effect, np.finfo(np.float64).tiny)
    deviation = np.sqrt(rate * (1 - rate) / count)
    noisy = deviation > 0
    ratio = np.divide(size, deviation, out=np.zeros_like(size), where=noisy)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + size * erf(ratio / np.sqrt(2))
    return max(0.0, float(diagram.share @ (2 * size - np.where(noisy, folded, size))))


def classwise_error(rows: Predictions, bins: int, strategy: str = "width") -> float:
    """Return the calibration error of every class, without an array of N K bin numbers.

    For class k and bin b, with bins over p_k:

        R_kb = sum_i w_i (1[y_i = k] - p_ik) over the rows i with p_ik in bin b
        classwise ECE = sum_kb |R_kb| / (K sum_i w_i)

    Rows sum to 1, so few of the K probabilities of a row are above the first bin. Only these are read one by
    one; the first bin has the rest of the total of a class.
    """
    n_classes = rows.probs.shape[1]
    if strategy == "mass":
        errors = []
        for k, column in enumerate(rows.probs.T):
            event = (rows.labels == k).astype(np.float64)
            errors.append(binned(np.ascontiguousarray(column), event, rows.weight, bins, strategy).error)
        return float(np.mean(errors))
    edges = equal_width_edges(bins, rows.confidence.dtype)
    found = []
    for block in cached_slices(*rows.probs.shape):
        row, column = np.nonzero(rows.probs[block] >= edges[1])  # `assign_bins` decides about the edge
        place = assign_bins(rows.probs[row + block.start, column], edges)
        found.append(np.stack([row + block.start, column, place])[:, place > 0])
    row, column, place = np.concatenate(found, axis=1)
    residual = (rows.labels[row] == column) - rows.probs[row, column].astype(np.float64)
    residual *= rows.weight[row]
    _, place = np.unique(column * bins + place, return_inverse=True)
    first = np.bincount(rows.labels, rows.weight, n_classes) - rows.class_totals
    first -= np.bincount(column, residual, n_classes)
    total = np.abs(first).sum() + np.abs(np.bincount(place, residual)).sum()
    return float(total / (n_classes * rows.total))
