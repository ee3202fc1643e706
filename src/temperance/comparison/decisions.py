"""Decisions that a method changes: rows whose predicted class is no longer the classifier's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector

_LEAST_SHOWN = 0.0005  # below it a share would be shown as 0.0 %


def changed_share(before: NDArray[np.intp], after: NDArray[np.intp], weights: Vector | None) -> float:
    """Return the share of rows, by weight, whose predicted class is not the one before."""
    return float(np.average(before != after, weights=weights))


def share_in_words(share: float) -> str:
    """Return "12.0 % of decisions"; a share above 0 is never shown as 0.

    Examples
    --------
    >>> share_in_words(0.12), share_in_words(0.0001)
    ('12.0 % of decisions', 'less than 0.1 % of decisions')
    """
    shown = "less than 0.1" if 0 < share < _LEAST_SHOWN else f"{100 * share:.1f}"
    return f"{shown} % of decisions"


def accuracy_in_words(before: float, after: float) -> str:
    """Return "accuracy 83.4 -> 88.3 %", or that it stays the same.

    Examples
    --------
    >>> accuracy_in_words(0.834, 0.883), accuracy_in_words(0.8341, 0.8339)
    ('accuracy 83.4 -> 88.3 %', 'accuracy stays at 83.4 %')
    """
    was, becomes = f"{100 * before:.1f}", f"{100 * after:.1f}"
    return f"accuracy stays at {was} %" if was == becomes else f"accuracy {was} -> {becomes} %"
