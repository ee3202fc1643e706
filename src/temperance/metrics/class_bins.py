"""The calibration error of every class, without an array of N K bin numbers.

For class k and bin b, with bins over p_k:

    R_kb = sum_i w_i (1[y_i = k] - p_ik) over the rows i with p_ik in bin b
    classwise ECE = sum_kb |R_kb| / (K sum_i w_i)

Two facts keep this to one pass over the probabilities, whatever the number of classes:

1. Rows sum to 1, so few of the K probabilities of a row are above 1/15. These are kept one by one; the
   first bin is the rest of the total of a class.
2. A class that is not the label of any row has R_kb <= 0 in every bin. All such classes together add their
   probability, sum_i w_i sum_k p_ik.
"""

from __future__ import annotations

import numpy as np

from temperance.core.arrays import Floats, Indices, Vector
from temperance.metrics.bins import assign, bin_edges
from temperance.metrics.diagram import binned
from temperance.metrics.predictions import Predictions, cached_slices

_SMALL = 1 / 15  # probabilities up to this, and within the first bin, are summed and not kept


def classwise_error(rows: Predictions, bins: int, strategy: str = "width") -> float:
    """Return the classwise calibration error of the rows."""
    n_classes = rows.probs.shape[1]
    if strategy == "width":
        return float(np.abs(_residuals(rows, bins)).sum()) / (n_classes * rows.total)
    return float(np.mean([_class_error(rows, k, bins, strategy) for k in range(n_classes)]))


def _class_error(rows: Predictions, k: int, bins: int, strategy: str) -> float:
    """Return the calibration error of the probability of class k."""
    event = (rows.labels == k).astype(np.float64)
    diagram = binned(np.ascontiguousarray(rows.probs[:, k]), event, rows.weight, bins, strategy)
    return diagram.error


def _residuals(rows: Predictions, bins: int) -> Vector:
    """Return R of each class that occurs, in bins of equal width, and one R for all other classes."""
    occurring, place = np.unique(rows.labels, return_inverse=True)
    n = len(occurring)
    edges = bin_edges(rows.confidence, rows.weight, bins, "width")
    row, column, others = _large_probabilities(rows, occurring, edges)
    large, weight = rows.probs[row, occurring[column]], rows.weight[row]
    residual = weight * ((rows.labels[row] == occurring[column]) - large.astype(np.float64))
    in_bins: Vector = np.bincount(
        column * bins + assign(large, edges), weights=residual, minlength=n * bins
    ).astype(np.float64)  # NumPy returns integers if nothing is summed
    of_class = np.bincount(place, weights=rows.weight, minlength=n) - rows.class_totals[occurring]
    in_bins[::bins] += of_class - np.bincount(column, weights=residual, minlength=n)
    return np.append(in_bins, -others)


def _large_probabilities(
    rows: Predictions, occurring: Indices, edges: Floats
) -> tuple[Indices, Indices, float]:
    """Return rows and places of the large probabilities of classes that occur, and the sum of other classes.

    This reads the probabilities once.
    """
    place = np.full(rows.probs.shape[1], -1)
    place[occurring] = np.arange(len(occurring))
    unclaimed = (place < 0).astype(rows.probs.dtype)
    cut = np.minimum(edges[1], edges.dtype.type(_SMALL))
    found, others = [], np.zeros(len(rows.probs))
    for block in cached_slices(*rows.probs.shape):
        part = rows.probs[block]
        row, column = np.nonzero(part > cut)
        kept = place[column] >= 0
        found.append((row[kept] + block.start, place[column[kept]]))
        if unclaimed.any():
            others[block] = np.einsum("ij,j->i", part, unclaimed)
    row, column = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return row, column, float(rows.weight @ others)
