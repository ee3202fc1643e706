"""Limits of an axis that a few extreme values do not stretch: one bad method, one diverged draw, one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector

MARGIN = 0.06
"""Room at each end, as a share of the range."""

_MIN_RANGE = 1e-3  # for the margin, where all values are the same


def robust_limits(
    values: Vector,
    low: Vector | None = None,
    high: Vector | None = None,
    *,
    rare: float = 1 / 3,
    reach: float = 2.0,
    near: float = 0.0,
    keep: Sequence[float] | Vector = (),
) -> tuple[float, float]:
    """Return limits that contain all values and their intervals, except extreme ones.

    A share `rare` of the values at each end may be extreme. Such a value is left out, or its interval is cut,
    if it is farther from the others than `reach` times their range. Infinite values are always left out.

    Parameters
    ----------
    values : array of shape (N,)
        What is drawn; nan where there is nothing.
    low, high : arrays of shape (N,), optional
        Ends of intervals around the values; nan where there is none.
    rare : float
        The share of the values at each end that may be left out.
    reach : float
        How far from the others a value is still shown, in units of their range.
    near : float
        A distance from the others at which a value is always shown.
    keep : sequence of float
        Numbers that are always inside.

    Examples
    --------
    >>> low, high = robust_limits(np.array([0.1, 0.2, 0.3, 7.0]))
    >>> round(low, 3), round(high, 3)
    (0.088, 0.312)
    >>> low, high = robust_limits(np.array([0.1, 0.2, 0.3, 0.4]))
    >>> round(low, 3), round(high, 3)
    (0.082, 0.418)
    """
    there = np.isfinite(values)
    lows, highs = (values if end is None else np.where(np.isfinite(end), end, values) for end in (low, high))
    columns = np.stack([values, lows, highs])[:, there]
    left_out = int(rare * columns.shape[1])
    # Without the extreme ones, the ends of the others:
    bottom = min([*keep, *np.sort(columns[1])[left_out : left_out + 1]], default=0.0)
    top = max([*keep, *np.sort(columns[2])[::-1][left_out : left_out + 1]], default=0.0)
    room = max(reach * (top - bottom), near) or np.inf  # others that are all the same cannot be squeezed
    shown = (columns >= bottom - room) & (columns <= top + room)
    drawn = np.concatenate([[bottom, top], columns[shown & shown[0]]])  # an end with its value
    margin = MARGIN * max(np.ptp(drawn), _MIN_RANGE)
    return float(drawn.min() - margin), float(drawn.max() + margin)


def outside(values: Vector, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Say which values are outside the limits of an axis."""
    low, high = min(limits), max(limits)
    beyond: NDArray[np.bool_] = (values < low) | (values > high)
    return beyond
