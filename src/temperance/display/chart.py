"""A figure before it is drawn: axes with limits, labels and ticks, marks in order, title and caption.

A display builds a chart; matplotlib (`axes.py`) and the page's SVG (`report/svg.py`) draw it. Everything that
a reader could compare between the two is defined here, so both show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

from temperance.core.arrays import Vector
from temperance.display.labels import short_exponent

WIDE, PANEL, SMALL = 7.0, 5.2, 3.4
"""Widths in inches: a single figure, one of two side by side, and one of many."""

_MAX_TICKS = 8
_LINEAR_STEPS = 7.5  # at most: with steps of 1, 2 or 5 there are then at least three ticks
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
    def of_names(cls, label: str, names: Sequence[str], *, downwards: bool = False) -> Axis:
        """Return an axis with a name at each of the places 0, 1, 2, ..."""
        ends = (-0.6, len(names) - 0.4)
        return cls(label, ends[::-1] if downwards else ends, ticks=tuple(enumerate(names)))

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
    """Points that no line joins; `fine` ones are many."""

    x: Vector
    y: Vector
    fine: bool = False


@dataclass(frozen=True, eq=False)
class Intervals(Mark):
    """Points with intervals along y; `flat` ones are along x."""

    at: Vector
    value: Vector
    low: Vector
    high: Vector
    flat: bool = False


@dataclass(frozen=True, eq=False)
class Whiskers(Mark):
    """Intervals along y for other marks."""

    at: Vector
    low: Vector
    high: Vector


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
    """Axes with marks, drawn in their order. `size` is in inches; `below` shares the x axis."""

    title: str
    caption: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    size: tuple[float, float] = (WIDE, 4.0)
    bold: str | None = None  # the highlighted tick of y
    below: Chart | None = None


def tick_labels(low: float, high: float, *, log: bool = False) -> list[tuple[float, str]]:
    """Return a few round numbers from `low` to `high`, and each as it is written.

    Examples
    --------
    >>> tick_labels(0.97, 1.42)
    [(1.0, '1.0'), (1.1, '1.1'), (1.2, '1.2'), (1.3, '1.3'), (1.4, '1.4')]
    """
    ticks = _log_ticks(low, high) if log else []
    if len(ticks) < 2:
        ticks = _linear_ticks(low, high)
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    return [(tick, _written(tick, step, log)) for tick in ticks]


def _written(tick: float, step: float, log: bool) -> str:
    """Write a tick with no more digits than its neighbours need."""
    if log or abs(tick) >= 1e5:
        return short_exponent(f"{tick:,.6g}").replace(",", "\u202f")
    return f"{tick:.{max(0, -floor(log10(step) + 1e-9))}f}"


def _linear_ticks(low: float, high: float) -> list[float]:
    size = (high - low) / _LINEAR_STEPS
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
