"""A figure before it is drawn: axes with limits, labels and ticks, marks in order, title and caption.

Limits exclude a few extreme values, such as one bad method or one diverged draw, which would stretch an axis.

A display builds a chart; matplotlib (`axes.py`) and the page's SVG (`report/svg.py`) draw it. Everything that
a reader could compare between the two is defined here, so both show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector

WIDE, PANEL, SMALL = 7.0, 5.2, 3.4
"""Widths in inches: a single figure, one of two side by side, and one of many."""

_MAX_TICKS = 8
MARGIN = 0.06
"""Room at each end of an axis, as a share of its range."""

_DIGITS: tuple[tuple[float, ...], ...] = (
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 2.5, 3, 4, 5, 7),
    (1, 2, 3, 5),
    (1, 3),
    (1,),
)


@dataclass(frozen=True)
class Axis:
    """An axis, linear or logarithmic; without ticks of its own it has a few round numbers."""

    label: str
    limits: tuple[float, float]
    log: bool = False
    ticks: tuple[tuple[float, str], ...] | None = None

    @classmethod
    def of_names(cls, label: str, names: Sequence[str]) -> Axis:
        """Return an axis with a name at each of the places 0, 1, 2, ..., from the top down."""
        return cls(label, (len(names) - 0.4, -0.6), ticks=tuple(enumerate(names)))

    def tick_labels(self) -> list[tuple[float, str]]:
        """Return the positions of the ticks, and their labels."""
        return tick_labels(*self.limits, log=self.log) if self.ticks is None else list(self.ticks)


@dataclass(frozen=True, eq=False, kw_only=True)
class Mark:
    """Something drawn: in the colour of its method, grey without one. A label puts it in the legend."""

    method: str = ""
    label: str = ""
    faint: bool = False
    tips: Sequence[str] = ()  # the tooltip of each point


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line through points, with the method's marker at each if it has one."""

    x: Vector
    y: Vector


@dataclass(frozen=True, eq=False)
class Band(Mark):
    """The area between two lines."""

    x: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, eq=False)
class Dots(Mark):
    """Points without a line; `fine` means many small ones."""

    x: Vector
    y: Vector
    fine: bool = False


@dataclass(frozen=True, eq=False)
class Intervals(Mark):
    """Points with intervals along y, or along x if `flat`."""

    at: Vector
    value: Vector
    low: Vector
    high: Vector
    flat: bool = False


@dataclass(frozen=True, eq=False)
class Bars(Mark):
    """Bars from 0, each between two neighbouring edges."""

    edges: Vector
    heights: Vector


@dataclass(frozen=True, eq=False)
class Rule(Mark):
    """A dashed line across the axes, at a value of y or, if `upright`, of x."""

    at: float
    upright: bool = False


@dataclass(frozen=True, eq=False)
class Text(Mark):
    """Words that end at a point, or begin there if it is in the left half."""

    x: float
    y: float
    words: str


@dataclass(frozen=True, eq=False)
class Chart:
    """Axes with marks, drawn in order. `size` is in inches; `below` is a chart that shares the x axis."""

    title: str
    caption: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    size: tuple[float, float] = (WIDE, 4.0)
    bold: str | None = None  # the highlighted tick of y
    below: Chart | None = None


def tick_labels(low: float, high: float, *, log: bool = False) -> list[tuple[float, str]]:
    """Return a few round numbers from `low` to `high`, each with its label.

    Examples
    --------
    >>> tick_labels(0.97, 1.42)
    [(1.0, '1.0'), (1.1, '1.1'), (1.2, '1.2'), (1.3, '1.3'), (1.4, '1.4')]
    """
    ticks = _log_ticks(low, high) if log else []
    if len(ticks) < 2:
        ticks = _linear_ticks(low, high)
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    decimals = max(0, -floor(log10(step) + 1e-9))  # no more than neighbours need to differ
    return [
        (tick, short_exponent(f"{tick:,.6g}" if log or abs(tick) >= 1e5 else f"{tick:,.{decimals}f}"))
        for tick in ticks
    ]


def _linear_ticks(low: float, high: float) -> list[float]:
    size = (high - low) / 7.5  # with steps of 1, 2 or 5 there are then at least three ticks
    unit = 10 ** floor(log10(size))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= size * 0.999)
    first = ceil(low / step - 1e-9)
    ticks = [round(k * step, 12) for k in range(first, floor(high / step + 1e-9) + 1)]
    return [0.0 if tick == 0 else tick for tick in ticks]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in _DIGITS:
        ticks = [d * 10.0**k for k in decades for d in digits if low * 0.999 <= d * 10.0**k <= high * 1.001]
        if len(ticks) <= _MAX_TICKS:
            return ticks
    step = ceil(len(ticks) / _MAX_TICKS)
    return [tick for tick in ticks if round(log10(tick)) % step == 0]  # 1 is one of them


# ---- limits


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

    A share `rare` of the values at each end can be extreme. Such a value is left out, or its interval is cut,
    if it is farther from the others than `reach` times their range. Infinite values are always left out.

    Parameters
    ----------
    values : array of shape (N,)
        Values to draw; nan where there is none.
    low, high : arrays of shape (N,), optional
        Ends of intervals around the values; nan where there is none.
    rare : float
        The largest share of the values at each end to leave out.
    reach : float
        The largest distance from the others at which a value is shown, in units of their range.
    near : float
        A distance from the others within which a value is always shown.
    keep : sequence of float
        Numbers that are always inside the limits, if they are finite.

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
    kept = [number for number in keep if np.isfinite(number)]
    # The ends of all values except extreme ones.
    bottom = min([*kept, *np.sort(columns[1])[left_out : left_out + 1]], default=0.0)
    top = max([*kept, *np.sort(columns[2])[::-1][left_out : left_out + 1]], default=0.0)
    room = max(reach * (top - bottom), near) or np.inf  # if the others are all the same, keep everything
    shown = (columns >= bottom - room) & (columns <= top + room)
    drawn = np.concatenate([[bottom, top], columns[shown & shown[0]]])  # an end only with its value
    margin = MARGIN * max(np.ptp(drawn), 1e-3)  # a margin even if all values are the same
    return float(drawn.min() - margin), float(drawn.max() + margin)


def outside(values: Vector, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Say which values are outside the limits of an axis."""
    low, high = min(limits), max(limits)
    beyond: NDArray[np.bool_] = (values < low) | (values > high)
    return beyond


# ---- names and numbers


def short_exponent(number: str) -> str:
    """Return a number without the zero that Python writes in an exponent: 1e-05 -> 1e-5."""
    return number.replace("e-0", "e-").replace("e+0", "e+")


def shorten(name: str, most: int) -> str:
    """Shorten a name in its middle: long names often differ at their ends.

    Examples
    --------
    >>> shorten("cancer-associated stroma", 16)
    'cancer-ass…troma'
    """
    if len(name) <= most:
        return name
    kept = (most - 1) // 3
    return f"{name[: most - 1 - kept]}\N{HORIZONTAL ELLIPSIS}{name[len(name) - kept :]}"
