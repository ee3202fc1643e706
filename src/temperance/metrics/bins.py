"""Bins of confidences: bin i of M holds edge_{i-1} < c <= edge_i, and c = 0 belongs to the first.

    width  edge_i = i / M
    mass   edge_i = the largest confidence whose group of equal confidences has its middle, counted in
           weight from below, at or before i / M of the total; 0 if there is none

Confidences are compared with edges in their own dtype. Rounding is monotone, so a confidence that is i / M up
to the rounding of its dtype equals the edge, and goes to bin i. Computing ceil(c * M) instead errs at some
edges in float64, and at many more edges for float32 confidences that have been widened.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.inputs.validation import check_choice, check_number

MOST_BINS = 10_000  # more than any data set needs; memory and time grow with it


def check_bins(bins: int, strategy: str = "width") -> int:
    """Return the number of bins, after checking it and the strategy."""
    check_choice("strategy", strategy, ("width", "mass"))
    wanted = f"from 1 to {MOST_BINS}"
    check_number("bins", bins, wanted, lambda number: 1 <= number <= MOST_BINS, whole=True)
    return int(bins)


def bin_edges(
    confidence: NDArray[np.floating[Any]], weight: Vector, bins: int, strategy: str
) -> NDArray[np.floating[Any]]:
    """Return the bins + 1 edges from 0 to 1, in the dtype of `confidence`."""
    if strategy == "width":
        # Division in float64, then rounding to float32 or float16, gives the nearest number to i / M:
        # the quotient has more than twice the digits, so rounding twice does no harm.
        return (np.arange(bins + 1) / bins).astype(confidence.dtype)
    return _mass_edges(confidence, weight, bins)


def assign(
    confidence: NDArray[np.floating[Any]], edges: NDArray[np.floating[Any]]
) -> NDArray[np.signedinteger[Any]]:
    """Return the bin of each confidence, from 0 to bins - 1."""
    return np.searchsorted(edges[1:-1], confidence, side="left")


def _mass_edges(
    confidence: NDArray[np.floating[Any]], weight: Vector, bins: int
) -> NDArray[np.floating[Any]]:
    """Return edges that hold about the same weight between them and never split equal confidences."""
    values, group = np.unique(confidence, return_inverse=True)
    mass = np.bincount(group, weights=weight)
    # Twice the weight up to the middle of each group: whole numbers stay whole, so weights and repeated
    # rows give the same bins to the last bit.
    middle = 2 * mass.cumsum() - mass
    # Rounded up: a middle at i / M itself belongs below that edge, as a confidence does.
    index = np.ceil(bins * middle / (2 * mass.sum())).astype(int) - 1
    last = np.searchsorted(index, np.arange(bins - 1), side="right")  # groups in bins 0 to i
    edges = np.concatenate([[0], values])[last]
    return np.concatenate([[0], edges, [1]]).astype(confidence.dtype)
