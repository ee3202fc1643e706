"""The scores of one method, and two methods compared row by row: the mean of a paired difference, its error.

A binned calibration error is also a mean over rows: with g_b the mean residual of bin b, it is the mean of
sign(g_b) (correct - confidence). So two methods can be compared by it as well.

References
----------
.. [1] Nadeau and Bengio (2003). Inference for the generalization error. doi:10.1023/A:1024068626366
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Vector
from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.inputs.containers import LabelledRows
from temperance.metrics import Evaluation, Reliability
from temperance.metrics.bins import binned
from temperance.metrics.intervals import Estimate, PseudoRow, distances, spread

MAX_CLASSES = 10  # whose reliability is kept: a page has room for a few
MIN_ROWS = 30  # of a class: a diagram of fewer rows is mostly noise
MAX_BINS = 10


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method: the calibrator fitted to all validation rows, and its scores.

    No (N, K) array is kept: figures and paired comparisons need a few numbers per test row.

    Attributes
    ----------
    method : str
        Its name.
    calibrator : Calibrator, or None
        Fitted to all validation rows; None for the classifier itself.
    n_parameters : float
        How many parameters the rows have determined.
    scores : Evaluation
        All metrics on the test rows, or out of fold.
    row_nll, confidence, correct : arrays of shape (N,)
        NLL and confidence of each of these rows, and whether its prediction is correct.
    share : array of shape (N,)
        The weights of these rows, which sum to 1.
    changed_share : float
        Share of these rows, by weight, whose predicted class differs from the classifier's.
    seconds : float
        Time of the fit.
    warnings : tuple of str
        Warnings of the fit.
    class_reliability : mapping from column to Reliability
        Bins of a few classes: the frequency of the class by its predicted probability.
    pseudo_nll : two arrays of shape (N,), or None
        NLL of a wrong label of each of these rows, the same for all methods, and the chance of the row.
    groups : array of shape (N,), or None
        The group of each of these rows.
    folds : int or None
        The number of folds, if these rows are out of fold.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> result = comparison.results["ts"]
    >>> result.changes_decisions, result.row_nll.shape
    (False, (400,))
    """

    method: str
    calibrator: Any
    n_parameters: float
    scores: Evaluation
    row_nll: Vector
    confidence: Vector
    correct: NDArray[np.bool_]
    share: Vector
    changed_share: float
    seconds: float
    warnings: tuple[str, ...]
    class_reliability: Mapping[int, Reliability] = field(default_factory=dict)
    pseudo_nll: PseudoRow | None = None
    groups: Indices | None = None
    folds: int | None = None

    @property
    def nll(self) -> float:
        """The mean NLL of these rows, by weight."""
        return float(self.row_nll @ self.share)

    @property
    def accuracy(self) -> float:
        """The share of the test rows, by weight, whose predicted class is the label."""
        return self.scores["accuracy"].value

    @property
    def changes_decisions(self) -> bool:
        """Whether the predicted class of any test row differs from the classifier's."""
        return self.changed_share > 0


def class_reliability(probs: Vector, rows: LabelledRows, bins: int) -> dict[int, Reliability]:
    """Bin the probabilities of single classes, by column: among rows with probability p, a share p is of it.

    The top label says nothing about the other probabilities. Only the classes with the most rows are binned,
    and none with few rows. Of two classes, the positive one is, in bins with about the same number of rows:
    it might be rare.
    """
    n_rows, n_classes = probs.shape
    weights = np.ones(n_rows) if rows.weights is None else rows.weights
    counts = np.bincount(rows.labels[weights > 0], minlength=n_classes)
    most = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    shown = sorted(int(k) for k in most if counts[k] >= MIN_ROWS)
    if n_classes == 2:
        shown = [1 if rows.positive is None else rows.positive]
    bins, strategy = min(bins, MAX_BINS), "mass" if n_classes == 2 else "width"
    return {
        column: binned(
            probs[:, column],
            (rows.labels == column).astype(np.float64),
            weights,
            bins,
            strategy,
            groups=rows.groups,
        )
        for column in shown
    }


@dataclass(frozen=True)
class Difference:
    """A mean difference of two methods over the same rows, and its standard error.

    Attributes
    ----------
    value : float
        The mean difference.
    error : float
        Its standard error.
    skewness : float
        Its skewness: rows with large gains or losses make one end of the interval further away.
    rows : float
        How many rows, or groups, of equal weight would have this error.

    Examples
    --------
    >>> gain = Difference(0.10, 0.02).interval(0.95)
    >>> round(gain.low, 2), round(gain.high, 2)
    (0.06, 0.14)
    """

    value: float
    error: float
    skewness: float = field(default=0.0, compare=False)
    rows: float = field(default=np.inf, compare=False)

    @classmethod
    def of(
        cls, rows: Vector, share: Vector, pseudo: PseudoRow | None = None, groups: Indices | None = None
    ) -> Difference:
        """Return the mean of `rows` with weights that sum to 1; a single row or group has no finite error.

        `pseudo` has the differences at a pseudo-error, see `metrics.intervals`.
        """
        value = float(rows @ share)
        centred = None if pseudo is None else (pseudo[0] - value, pseudo[1])
        return cls(value, *spread(rows - value, share, centred, groups))

    @classmethod
    def of_nll(cls, before: MethodResult, after: MethodResult) -> Difference:
        """Return how much lower the NLL of the second method is.

        If the rows are out of fold, the fits of a cross-validation differ from the fit to all
        rows, and share rows: the variance of a gain is 1 + folds / (folds - 1) times the variance that its
        rows show (Nadeau and Bengio, 2003).
        """
        pseudo = None
        if before.pseudo_nll is not None and after.pseudo_nll is not None:
            pseudo = before.pseudo_nll[0] - after.pseudo_nll[0], before.pseudo_nll[1]
        found = cls.of(before.row_nll - after.row_nll, before.share, pseudo, before.groups)
        if before.folds is None:
            return found
        return replace(found, error=found.error * np.sqrt(2 + 1 / (before.folds - 1)))

    def interval(self, confidence: float) -> Estimate:
        """Return the interval, with the skewness of the rows taken into account."""
        below, above = distances(self.skewness, self.rows, confidence)
        return Estimate(self.value, self.value - below * self.error, self.value + above * self.error)


def ece_gain(before: MethodResult, after: MethodResult) -> Difference:
    """Return how much lower the calibration error of the second method is."""
    return Difference.of(_gaps(before) - _gaps(after), before.share, groups=before.groups)


def _gaps(result: MethodResult) -> Vector:
    """Return one number per row, whose mean is the calibration error in bins of equal width."""
    bins = result.scores.bins
    residual = result.correct - result.confidence
    index = assign_bins(result.confidence, equal_width_edges(bins, result.confidence.dtype))
    sums = np.bincount(index, residual * result.share, bins)
    gaps: Vector = np.sign(sums)[index] * residual
    return gaps
