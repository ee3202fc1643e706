"""The residual of each class in each bin, for one set of weights or for many.

For class k and bin b, with bins over p_k:

    R_kb = sum_i w_i (1[y_i = k] - p_ik) over the rows i with p_ik in bin b
    classwise ECE = sum_kb |R_kb| / (K sum_i w_i)

Rows sum to 1, so that fewer than M of the K probabilities of a row lie above 1/M. With bins of equal width
those few go into a sparse matrix, and the first bin is what remains of the class's total,

    R_k1 = sum_i w_i (1[y_i = k] - p_ik) - sum_{b > 1} R_kb,

one dense product. It costs N K multiplications for each set of weights and never stores N K bin numbers:
this makes a bootstrap practical for 1000 classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Vector
from temperance.metrics.bins import assign, bin_edges
from temperance.metrics.diagram import binned
from temperance.metrics.predictions import Predictions, cached_slices
from temperance.metrics.sums import group_sums


def classwise_error(rows: Predictions, bins: int, strategy: str) -> float:
    """Return the classwise calibration error of the rows."""
    n_classes = rows.probs.shape[1]
    if strategy == "width":
        residual = ClassBins(rows, bins).residuals(rows.weight[:, None])
        return float(np.abs(residual).sum() / (n_classes * rows.total))
    return float(np.mean([_class_error(rows, k, bins, strategy) for k in range(n_classes)]))


def _class_error(rows: Predictions, k: int, bins: int, strategy: str) -> float:
    """Return the calibration error of the probability of class k."""
    event = (rows.labels == k).astype(np.float64)
    diagram = binned(np.ascontiguousarray(rows.probs[:, k]), event, rows.weight, bins, strategy)
    return float(diagram.share @ np.abs(diagram.gap))


def _above(probs: NDArray[np.floating[Any]], edge: np.floating[Any]) -> tuple[Indices, Indices]:
    """Return rows and columns of the probabilities above the edge, block by block: they are few."""
    found = [np.nonzero(probs[block] > edge) for block in cached_slices(*probs.shape)]
    rows = [row + block.start for (row, _), block in zip(found, cached_slices(*probs.shape), strict=True)]
    return np.concatenate(rows), np.concatenate([column for _, column in found])


class ClassBins:
    """Residuals of all classes in bins of equal width, as a linear function of the weights."""

    def __init__(self, rows: Predictions, bins: int) -> None:
        self.rows, self.bins = rows, bins
        edges = bin_edges(rows.confidence, rows.weight, bins, "width")
        row, column = _above(rows.probs, edges[1])
        probs = rows.probs[row, column]
        values: Vector = (rows.labels[row] == column) - probs.astype(np.float64)
        n_rows, n_classes = rows.probs.shape
        position = column * bins + assign(probs, edges)
        self._upper = group_sums(values, position, row, (n_classes * bins, n_rows))
        self._label = group_sums(np.ones(n_rows), rows.labels, np.arange(n_rows), (n_classes, n_rows))

    def residuals(self, weights: Vector) -> Vector:
        """Return (K * bins, B) residuals for (N, B) weights."""
        n_classes = self.rows.probs.shape[1]
        residual = self._upper(weights).reshape(n_classes, self.bins, -1)
        residual[:, 0] = self._totals(weights) - residual.sum(axis=1)
        return residual.reshape(n_classes * self.bins, -1)

    def _totals(self, weights: Vector) -> Vector:
        """Return the (K, B) sums of 1[y = k] - p_k, converting the probabilities to float64 by blocks."""
        probs = self.rows.probs
        totals = self._label(weights)
        # Wide blocks: this is one large matrix product, not work that must stay in the cache.
        for block in cached_slices(len(probs), max(1, probs.shape[1] // 32)):
            totals -= probs[block].astype(np.float64).T @ weights[block]
        return totals
