"""A figure before it is drawn: axes with limits, labels and ticks, marks in order, title and caption.

A display builds a chart; matplotlib (`axes.py`) and the page's SVG (`report/svg.py`) draw it. Everything that
a reader could compare between the two is defined here, so both show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from temperance.core.arrays import Vector
from temperance.display.ticks import tick_labels

WIDE, PANEL, SMALL = 7.0, 5.2, 3.4
"""Widths in inches: a single figure, one of two side by side, and one of many."""


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
