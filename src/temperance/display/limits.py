"""Limits of an axis that are robust to extreme values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector

_RARE = 0.01  # of the values at either end may be left out
_REACH = 0.5  # of the range of the others: nearer values are kept
_FAR = 5.0  # times the range of the others: a value so far away is left out
_MOST_LEFT_OUT = 3  # one of this many values may be left out


def hold_most(values: Vector) -> tuple[float, float]:
    """Return limits that contain all values, except one per cent at either end if these are far off.

    Examples
    --------
    >>> hold_most(np.append(np.linspace(-3, 0, 400), -20.0))
    (-3.0, 0.0)
    >>> hold_most(np.linspace(-3, 0, 400))
    (-3.0, 0.0)
    """
    ordered = np.sort(values)
    low, high = ordered[0], ordered[-1]
    inner_low, inner_high = np.quantile(ordered, [_RARE, 1 - _RARE])
    reach = _REACH * (inner_high - inner_low)
    if low < inner_low - reach:
        low = ordered[ordered >= inner_low - reach][0]
    if high > inner_high + reach:
        high = ordered[ordered <= inner_high + reach][-1]
    return float(low), float(high)


def highest_near(values: Vector, low: float) -> float:
    """Return the highest value that is not far above the others; at most every third may be left out.

    A value is far if it is five times as far from `low` as the next smaller one. Infinite ones always are.

    Examples
    --------
    >>> highest_near(np.array([0.1, 0.2, 0.3, 7.0]), 0.0)
    0.3
    >>> highest_near(np.array([0.1, 0.2, 0.3, 0.5]), 0.0)
    0.5
    """
    ordered = np.sort(values[np.isfinite(values)])
    if not len(ordered):
        return low
    for left_out in range(len(ordered) // _MOST_LEFT_OUT, 0, -1):
        near, next_higher = ordered[-1 - left_out] - low, ordered[-left_out] - low
        if 0 < near < next_higher / _FAR:
            return float(ordered[-1 - left_out])
    return float(ordered[-1])


def outside(values: Vector, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Say which values are outside the limits of an axis."""
    low, high = min(limits), max(limits)
    beyond: NDArray[np.bool_] = (values < low) | (values > high)
    return beyond
