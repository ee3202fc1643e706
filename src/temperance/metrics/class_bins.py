"""The residual of each class in each bin, and its noise, without an array of N K bin numbers.

For class k and bin b, with bins over p_k:

    R_kb = sum_i w_i (1[y_i = k] - p_ik) over the rows i with p_ik in bin b
    classwise ECE = sum_kb |R_kb| / (K sum_i w_i)

Three facts keep this to one pass over the probabilities, whatever the number of classes:

1. Rows sum to 1, so few of the K probabilities of a row are above 1/15. These are kept one by one; the
   first bin is the rest of the total of a class.
2. A class that is not the label of any row has R_kb <= 0 in every bin. All such classes together add their
   probability, sum_i w_i sum_k p_ik: one number for each row.
3. The noise of the first bin comes from labels: its small probabilities vary far less than 0 and 1 do. So
   resamples use the mean small probability of each class instead of each row's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Vector
from temperance.metrics.bins import assign, bin_edges
from temperance.metrics.bootstrap import Residuals, expected_noise
from temperance.metrics.diagram import binned
from temperance.metrics.predictions import Predictions, cached_slices
from temperance.metrics.recalibration import Recalibrated
from temperance.metrics.sums import group_sums

_SMALL = 1 / 15  # probabilities up to this, and within the first bin, are summed and not kept


def classwise_error(rows: Predictions, bins: int, strategy: str) -> float:
    """Return the classwise calibration error of the rows."""
    n_classes = rows.probs.shape[1]
    if strategy == "width":
        return float(np.abs(ClassBins(rows, bins).mean).sum())
    return float(np.mean([_class_error(rows, k, bins, strategy) for k in range(n_classes)]))


def _class_error(rows: Predictions, k: int, bins: int, strategy: str) -> float:
    """Return the calibration error of the probability of class k."""
    event = (rows.labels == k).astype(np.float64)
    diagram = binned(np.ascontiguousarray(rows.probs[:, k]), event, rows.weight, bins, strategy)
    return diagram.error


class ClassBins:
    """Mean residuals of the classes that occur, in bins of equal width, and one for all other classes.

    Only bins with rows are stored. All numbers are divided by K, so the sum of their absolute values is the
    classwise calibration error.
    """

    def __init__(self, rows: Predictions, bins: int) -> None:
        self.rows, self.bins = rows, bins
        self.n_classes = rows.probs.shape[1]
        self.occurring, self._place = np.unique(rows.labels, return_inverse=True)
        self.edges = bin_edges(rows.confidence, rows.weight, bins, "width")
        self._read()
        self._upper: Vector = self._is_label - self._large.astype(np.float64)
        self._bin = assign(self._large, self.edges)
        self.mean = self._sum_up() / (self.n_classes * rows.total)

    def _read(self) -> None:
        """Read the probabilities once: large ones, the total of each class, and that of unused classes."""
        rows, place = self.rows, np.full(self.n_classes, -1)
        place[self.occurring] = np.arange(len(self.occurring))
        self._totals, self._others = rows.class_totals, np.zeros(len(rows.probs))
        unclaimed = (place < 0).astype(rows.probs.dtype)
        cut = np.minimum(self.edges[1], self.edges.dtype.type(_SMALL))
        found: list[tuple[Indices, Indices]] = []
        for block in cached_slices(*rows.probs.shape):
            part = rows.probs[block]
            row, column = np.nonzero(part > cut)
            kept = place[column] >= 0
            found.append((row[kept] + block.start, column[kept]))
            if unclaimed.any():
                self._others[block] = np.einsum("ij,j->i", part, unclaimed)
        self._row = np.concatenate([row for row, _ in found])
        column = np.concatenate([column for _, column in found])
        self._large: NDArray[np.floating[Any]] = rows.probs[self._row, column]
        self._is_label = rows.labels[self._row] == column
        self._column = place[column]

    def _sum_up(self) -> Vector:
        """Return the residuals: of large probabilities by bin, of small ones by class, of other classes."""
        rows, n = self.rows, len(self.occurring)
        weight, count = rows.weight[self._row], np.bincount(self._place, weights=rows.weight, minlength=n)
        first = count - self._totals[self.occurring]
        large = np.bincount(self._column, weights=weight * self._upper, minlength=n)
        self._small_mean = self._mean_of_small(weight)
        position = self._column * self.bins + self._bin
        # NumPy returns integers if nothing is summed.
        residual: Vector = np.bincount(
            position, weights=weight * self._upper, minlength=n * self.bins
        ).astype(np.float64)
        residual[:: self.bins] += first - large
        self._kept = np.union1d(position, np.arange(n) * self.bins)
        return np.append(residual[self._kept], -float(rows.weight @ self._others))

    def _mean_of_small(self, weight: Vector) -> Vector:
        """Return the mean small probability of each class that occurs; 0 where it has none."""
        n = len(self.occurring)
        rest = self.rows.total - np.bincount(self._column, weights=weight, minlength=n)
        large = np.bincount(self._column, weights=weight * self._large, minlength=n)
        sums = np.maximum(self._totals[self.occurring] - large, 0)
        return np.divide(sums, rest, out=np.zeros(n), where=rest > 1e-9 * self.rows.total)

    def residuals(self, recalibrated: Recalibrated) -> Residuals:
        """Return the residuals with their noise, and what recalibration would remove from them."""
        n_rows, n_kept = len(self.rows.probs), len(self._kept)
        first = np.searchsorted(self._kept, np.arange(len(self.occurring)) * self.bins)
        small = np.ones(n_rows, bool)
        small[self._row[self._is_label]] = False
        label = np.flatnonzero(small)
        values = np.concatenate(
            [self._upper, self._small_mean[self._column], np.ones(len(label)), -self._others]
        )
        group = np.concatenate(
            [
                np.searchsorted(self._kept, self._column * self.bins + self._bin),
                first[self._column],
                first[self._place[label]],
                np.full(n_rows, n_kept),
            ]
        )
        row = np.concatenate([self._row, self._row, label, np.arange(n_rows)])
        shift = np.zeros(n_kept + 1)
        shift[first] = self._small_mean / self.n_classes
        sums = group_sums(values / self.n_classes, group, row, (n_kept + 1, n_rows))
        fitted = self._fitted(recalibrated)
        return Residuals(self.mean, sums, fitted, shift, self._expected(fitted))

    def _fitted(self, recalibrated: Recalibrated) -> Vector:
        """Return the mean changes of the probabilities, as `mean` has the mean residuals."""
        n, rows = len(self.occurring), self.rows
        new = recalibrated.at(self._row, self.occurring[self._column])
        change = rows.weight[self._row] * (new - self._large)
        fitted: Vector = np.bincount(
            self._column * self.bins + self._bin, weights=change, minlength=n * self.bins
        ).astype(np.float64)
        of_class = (recalibrated.totals - self._totals)[self.occurring]
        fitted[:: self.bins] += of_class - np.bincount(self._column, weights=change, minlength=n)
        # Rows sum to 1: what the classes that occur gain, the others lose.
        others = -float(of_class.sum()) if n < self.n_classes else 0.0
        return np.append(fitted[self._kept], others) / (self.n_classes * rows.total)

    def _expected(self, fitted: Vector) -> Vector:
        """Return the mean absolute noise in each bin of a class; 0 for the other classes."""
        n, rows = len(self.occurring), self.rows
        position, weight = self._column * self.bins + self._bin, rows.weight[self._row]
        count, total = (
            np.bincount(position, weights=values, minlength=n * self.bins).reshape(n, -1).astype(np.float64)
            for values in (weight, weight * self._large)
        )
        count[:, 0] = rows.total - count[:, 1:].sum(axis=1)
        total[:, 0] = np.maximum(self._totals[self.occurring] - total[:, 1:].sum(axis=1), 0)
        kept = self._kept
        change = fitted[:-1] * (self.n_classes * rows.total)
        found = expected_noise(count.ravel()[kept], total.ravel()[kept], change, rows.weight)
        return np.append(found, 0.0) / self.n_classes
