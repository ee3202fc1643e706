"""Two methods compared row by row: the mean of a paired difference over the same rows, with its error.

A binned calibration error is also a mean over rows: with g_b the mean residual of bin b, it is the mean of
sign(g_b) (correct - confidence). So two methods can be compared by it as well.

References
----------
.. [1] Nadeau and Bengio (2003). Inference for the generalization error. doi:10.1023/A:1024068626366
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from temperance.core.arrays import Indices, Vector
from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.metrics.intervals import Estimate, PseudoRow, distances, spread

if TYPE_CHECKING:
    from temperance.comparison.result import MethodResult


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
