"""The result of one method of a comparison, and the difference of two methods on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.comparison.rows import LabelledRows
from temperance.core.arrays import Vector
from temperance.metrics import Evaluation, Reliability
from temperance.metrics.bins import binned
from temperance.metrics.intervals import Estimate, distances, skewness_of

MAX_CLASSES = 10  # whose reliability is kept: a page has room for a few
MIN_ROWS = 30  # of a class: a diagram of fewer rows is mostly noise
MAX_BINS = 10


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method: the calibrator fitted to all validation rows, and its scores.

    No (N, K) array is kept: figures and paired comparisons need three numbers for each test row.

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
        NLL, confidence, and whether the prediction is right, for each of these rows.
    changed_share : float
        Share of these rows, by weight, whose predicted class differs from the classifier's.
    seconds : float
        Time of the fit.
    warnings : tuple of str
        Warnings of the fit.
    class_reliability : mapping from column to Reliability
        Bins of a few classes: the frequency of the class by its predicted probability.

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
    changed_share: float
    seconds: float
    warnings: tuple[str, ...]
    class_reliability: Mapping[int, Reliability] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The share of the test rows, by weight, whose predicted class is the label."""
        return self.scores["accuracy"].value

    @property
    def changes_decisions(self) -> bool:
        """Whether the predicted class of any test row differs from the classifier's."""
        return self.changed_share > 0


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
        How many rows of equal weight would have this error.

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
    def of(cls, rows: Vector, share: Vector) -> Difference:
        """Return the mean of `rows` with weights that sum to 1; a single row has no finite error."""
        value, concentration = float(rows @ share), float(share @ share)
        if concentration >= 1 - 1e-12:
            return cls(value, np.inf)
        variance = float((rows - value) ** 2 @ share) * concentration / (1 - concentration)
        moves = share * (rows - value)
        return cls(value, float(np.sqrt(variance)), skewness_of(moves), 1 / concentration)

    def interval(self, confidence: float) -> Estimate:
        """Return the interval, with the skewness of the rows taken into account."""
        below, above = distances(self.skewness, self.rows, confidence)
        return Estimate(self.value, self.value - below * self.error, self.value + above * self.error)


def class_reliability(probs: Vector, rows: LabelledRows, bins: int) -> dict[int, Reliability]:
    """Bin the probabilities of single classes, by column: among rows with probability p, a share p is of it.

    The top label says nothing about the other probabilities. Only the classes with the most rows are binned,
    and none with few rows. Of two classes, the second one, the positive, is.
    """
    n_rows, n_classes = probs.shape
    weights = np.ones(n_rows) if rows.weights is None else rows.weights
    counts = np.bincount(rows.labels[weights > 0], minlength=n_classes)
    most = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    shown = [1] if n_classes == 2 else sorted(int(k) for k in most if counts[k] >= MIN_ROWS)
    bins = min(bins, MAX_BINS)
    return {
        column: binned(probs[:, column], (rows.labels == column).astype(np.float64), weights, bins)
        for column in shown
    }
