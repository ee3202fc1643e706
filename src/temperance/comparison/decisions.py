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
    """Return "accuracy rises from 83.4 % to 88.3 %", or that it stays the same.

    Examples
    --------
    >>> accuracy_in_words(0.834, 0.883)
    'accuracy rises from 83.4 % to 88.3 %'
    >>> accuracy_in_words(0.8341, 0.8339)
    'accuracy stays at 83.4 %'
    """
    was, becomes = percent(before), percent(after)
    if was == becomes:
        return f"accuracy stays at {was}"
    return f"accuracy {'rises' if after > before else 'falls'} from {was} to {becomes}"


def percent(share: float) -> str:
    """Return "97.7 %", with more digits if a share below 1 would be shown as 100 %.

    Examples
    --------
    >>> percent(0.9772), percent(0.99984), percent(1.0)
    ('97.7 %', '99.98 %', '100.0 %')
    """
    shown = [f"{100 * share:.{digits}f} %" for digits in (1, 2, 3)]
    return next((words for words in shown if share == 1 or not words.startswith("100")), shown[0])
