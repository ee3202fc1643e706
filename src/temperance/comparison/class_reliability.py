"""The reliability of single classes: among rows with probability p of class k, a share p should be of it.

The top label says nothing about the other probabilities. A page has room for a few classes, so only those
with the most test rows are binned, and none with few rows. Of two classes, the second one, the positive, is
shown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.comparison.rows import LabelledRows
from temperance.core.arrays import Vector
from temperance.metrics import Reliability
from temperance.metrics.bins import binned

MOST_CLASSES = 10
LEAST_ROWS = 30  # of a class: a diagram of fewer rows is mostly noise
_MOST_BINS = 10


def class_reliability(probs: Vector, judged: LabelledRows, bins: int) -> dict[int, Reliability]:
    """Bin the probabilities of the classes with the most rows, by column and in the order of the columns."""
    n_rows, n_classes = probs.shape
    weights = np.ones(n_rows) if judged.weights is None else judged.weights
    bins = min(bins, _MOST_BINS)
    return {
        column: binned(probs[:, column], (judged.labels == column).astype(np.float64), weights, bins)
        for column in _shown_classes(judged.labels[weights > 0], n_classes)
    }


def _shown_classes(labels: NDArray[np.intp], n_classes: int) -> list[int]:
    if n_classes == 2:
        return [1]
    rows = np.bincount(labels, minlength=n_classes)
    most = np.argsort(-rows, kind="stable")[:MOST_CLASSES]
    return sorted(int(column) for column in most if rows[column] >= LEAST_ROWS)
