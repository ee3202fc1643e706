"""Charts as figures of the page: SVG that needs no script, no font file and no image file.

We do not use matplotlib here: its SVG does not follow the page's dark theme, and the page would need a
plotting library for what two hundred lines can draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from temperance.calibrators import method_style
from temperance.core.arrays import Vector
from temperance.display.chart import (
    PANEL,
    SMALL,
    WIDE,
    Axis,
    Band,
    Bars,
    Chart,
    Dots,
    Intervals,
    Line,
    Mark,
    Rule,
    Text,
)
from temperance.report.markup import element, joined

_DASHES = {"-": None, "-.": "9 4 2 4", ":": "2 4"}  # pixels of line and gap
_RIGHT, _TOP = 16, 14


def figure(name: str, chart: Chart, caption: str | None = None, *, heading: bool = False) -> Markup:
    """Frame a chart with its legend, a caption (by default its own) and, optionally, its title."""
    entries = []
    for mark in chart.marks:
        if mark.label:  # with the symbol of the chart: dashed, filled or hollow
            dashed = isinstance(mark, Rule) or (isinstance(mark, Line) and not mark.method)
            kind = "dash" if dashed else "swatch" if mark.method else "swatch hollow"
            symbol = element("span", class_=kind, style=f"color:{_colour(mark)}")
            entries.append(element("span", symbol, mark.label))
    return element(
        "figure",
        element("h3", chart.title) if heading else "",
        draw_svg(chart, f"picture-{name}"),
        element("p", *entries, class_="legend") if entries else "",
        element("figcaption", chart.caption if caption is None else caption),
        id=f"figure-{name}",
    )


_SIZES = {WIDE: (600.0, 17.0, "wide"), PANEL: (440.0, 15.0, "panel"), SMALL: (300.0, 13.0, "small")}
"""The width of a figure in its own pixels, its largest lettering, and the class of its style sheet.

A narrow screen scales a wide figure down, and there the style sheet makes its lettering larger, so the figure
must leave room for it.
"""


@dataclass(frozen=True)
class Scale:
    """An axis drawn from pixel `start` to pixel `stop`."""

    axis: Axis
    start: float
    stop: float

    def place(self, values: Vector | float) -> Vector:
        """Return where values are drawn; values far beyond the axis are drawn just outside it."""
        ends, x = np.array(self.axis.limits), np.asarray(values, np.float64)
        if self.axis.log:
            ends, x = np.log(ends), np.log(np.maximum(x, np.finfo(np.float64).tiny))
        share = np.clip((x - ends[0]) / (ends[1] - ends[0]), -2.0, 3.0)
        placed: Vector = self.start + share * (self.stop - self.start)
        return placed

    def holds(self, place: float) -> bool:
        """Say whether a place is on the axis; nan is not."""
        first, last = sorted((self.start, self.stop))
        return first - 0.5 <= place <= last + 0.5


def _colour(mark: Mark) -> str:
    """Return the colour of a mark: without a method, the text colour."""
    return method_style(mark.method).colour if mark.method else "var(--ink)"


def draw_svg(chart: Chart, name: str) -> Markup:
    """Draw a chart; the name is unique in the page."""
    width, lettering, class_ = _SIZES[chart.size[0]]
    height = width * chart.size[1] / chart.size[0]
    ticks = [len(words) for part in (chart, chart.below or chart) for _, words in part.y.tick_labels()]
    left = max(2.5 * lettering, 0.6 * lettering * max(ticks, default=0) + 14)
    across = Scale(chart.x, left, width - _RIGHT)
    for value, words in chart.x.tick_labels():  # half of the last label is right of its tick
        end = float(across.place(value)) + 0.3 * lettering * len(words)
        across = Scale(chart.x, left, min(across.stop, width - _RIGHT - (end - width)))
    top = 1.6 * lettering if chart.y.label else _TOP  # room for the label of y above the axes
    bottom = height - 2.7 * lettering - 6  # room for ticks and label of x
    parts = []
    if chart.below is not None:
        split = bottom - 0.2 * height
        parts.append(
            _drawn(chart.below, across, Scale(chart.below.y, bottom, split), lettering, f"{name}-below")
        )
        bottom = split - 1.8 * lettering  # room for its label
    parts.append(_drawn(chart, across, Scale(chart.y, bottom, top), lettering, name))
    return element(
        "svg",
        element("title", chart.title, id=f"{name}-title"),
        element("desc", chart.caption, id=f"{name}-text"),
        *parts,
        class_=class_,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_labelledby=f"{name}-title {name}-text",
    )


def _drawn(chart: Chart, x: Scale, y: Scale, lettering: float, name: str) -> Markup:
    marks = (joined(_DRAWN[type(mark)](x, y, mark, _colour(mark))) for mark in chart.marks)
    # The axes with a small margin, so that marks on the edge are complete.
    width, height = x.stop - x.start + 8, y.start - y.stop + 8
    box = element("rect", x=x.start - 4, y=y.stop - 4, width=width, height=height)
    clip = element("clipPath", box, id=f"{name}-clip")
    inside = element("g", *marks, clip_path=f"url(#{name}-clip)")
    return element("g", clip, *_axes(chart, x, y, lettering), inside, class_="axes")


def _axes(chart: Chart, x: Scale, y: Scale, lettering: float) -> Iterator[Markup]:
    left, right, top, bottom = x.start, x.stop, y.stop, y.start
    below = bottom + 0.5 * lettering  # avoids the lowest tick of y
    for value, words in chart.y.tick_labels():
        at, weight = float(y.place(value)), "bold" if words == chart.bold else None
        yield element("line", class_="grid", x1=left, x2=right, y1=at, y2=at)
        yield _text(words, "tick y", left - 6, at, "end", dy="0.35em", font_weight=weight)
    ticks = chart.x.tick_labels()
    for number, (value, words) in enumerate(ticks):
        at = float(x.place(value))
        yield element("line", class_="grid", x1=at, x2=at, y1=top, y2=bottom)
        if chart.below is None:  # otherwise the lower chart has them
            spare = " spare" if len(ticks) > 5 and number % 2 else ""  # a narrow screen hides these
            yield _text(words, f"tick x{spare}", at, below, "middle", dy="0.9em")
    if chart.below is None:
        yield _text(chart.x.label, "label x", (left + right) / 2, below, "middle", dy="2.3em")
    yield _text(chart.y.label, "label y", 2, top - 8, "start")


def _text(
    words: str, class_: str, x: float, y: float, anchor: str, **attributes: str | float | bool | None
) -> Markup:
    """Write words; `dy` is in em, so that the shift follows the lettering of the style sheet."""
    return element("text", words, class_=class_, x=x, y=y, text_anchor=anchor, **attributes)


def _draw_line(x: Scale, y: Scale, mark: Line, colour: str) -> Iterator[Markup]:
    """Draw a line through the points, which breaks where a number is missing."""
    dashes = _DASHES[method_style(mark.method).dash] if mark.method else None
    look = {"class_": "line" if mark.method else "rule", "stroke": colour, "fill": "none"}
    for part in _runs(np.isfinite(mark.x) & np.isfinite(mark.y)):
        points = _points(x.place(mark.x[part]), y.place(mark.y[part]))
        yield element("polyline", points=points, **look, stroke_dasharray=dashes)
    if mark.tips:
        yield from _circles(x, y, mark, mark.x, mark.y, class_="dot", fill=colour, r=4)


def _draw_band(x: Scale, y: Scale, mark: Band, colour: str) -> Iterator[Markup]:
    for part in _runs(np.isfinite(mark.x) & np.isfinite(mark.low) & np.isfinite(mark.high)):
        there = np.concatenate([mark.x[part], mark.x[part][::-1]])
        around = np.concatenate([mark.high[part], mark.low[part][::-1]])
        yield element("polygon", class_="band", fill=colour, points=_points(x.place(there), y.place(around)))


def _draw_dots(x: Scale, y: Scale, mark: Dots, colour: str) -> Iterator[Markup]:
    shade, radius = ("speck", 2) if mark.fine else ("dot", 4)
    return _circles(x, y, mark, mark.x, mark.y, class_=shade, fill=colour, r=radius)


def _draw_intervals(x: Scale, y: Scale, mark: Intervals, colour: str) -> Iterator[Markup]:
    across, along, names = (y, x, ("y1", "y2", "x1", "x2")) if mark.flat else (x, y, ("x1", "x2", "y1", "y2"))
    # Cut exactly at the axes: a value beyond them is written at their edge.
    first, last = sorted((along.start, along.stop))
    lows, highs = (np.clip(along.place(end), first, last) for end in (mark.low, mark.high))
    for at, low, high in zip(across.place(mark.at), lows, highs, strict=True):
        if np.isfinite(at + low + high) and (low != high or first < low < last):
            ends = dict(zip(names, map(float, (at, at, low, high)), strict=True))
            yield element("line", class_="whisker", stroke=colour, **ends)
    centre = (mark.value, mark.at) if mark.flat else (mark.at, mark.value)
    look: dict[str, Any] = {"class_": "dot", "fill": colour, "r": 5}
    if not mark.method:
        look = {"class_": "ring dot", "r": 6}
    yield from _circles(x, y, mark, *centre, **look)


def _circles(x: Scale, y: Scale, mark: Mark, across: Vector, along: Vector, **look: Any) -> Iterator[Markup]:
    for a, b, tip in zip(x.place(across), y.place(along), _tips(mark, len(across)), strict=True):
        if x.holds(a) and y.holds(b):  # otherwise half of it would be visible at the edge
            yield element("circle", tip, cx=float(a), cy=float(b), **look)


def _draw_bars(x: Scale, y: Scale, mark: Bars, colour: str) -> Iterator[Markup]:
    edges, zero, tops = x.place(mark.edges), float(y.place(0.0)), y.place(mark.heights)
    for left, right, top, tip in zip(edges[:-1], edges[1:], tops, _tips(mark, len(tops)), strict=True):
        if top != zero:
            place = {"x": float(left) + 0.5, "width": max(float(right - left) - 1, 0.5)}
            height = {"y": float(top), "height": max(zero - float(top), 0.5)}
            yield element("rect", tip, class_="bar", fill=colour, **place, **height)


def _draw_rule(x: Scale, y: Scale, mark: Rule, colour: str) -> Iterator[Markup]:
    x1, x2, y1, y2 = x.start, x.stop, y.start, y.stop
    if mark.upright:
        x1 = x2 = float(x.place(mark.at))
    else:
        y1 = y2 = float(y.place(mark.at))
    yield element("line", class_="rule", stroke=colour, x1=x1, x2=x2, y1=y1, y2=y2)


def _draw_text(x: Scale, y: Scale, mark: Text, colour: str) -> Iterator[Markup]:
    at = float(x.place(mark.x))
    anchor = "start" if at < (x.start + x.stop) / 2 else "end"
    yield _text(mark.words, "note", at, float(y.place(mark.y)), anchor, dy="0.35em")


_DRAWN: dict[type[Mark], Callable[[Scale, Scale, Any, str], Iterator[Markup]]] = {
    Line: _draw_line,
    Band: _draw_band,
    Dots: _draw_dots,
    Intervals: _draw_intervals,
    Bars: _draw_bars,
    Rule: _draw_rule,
    Text: _draw_text,
}


def _points(across: Vector, along: Vector) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, along, strict=True))


def _tips(mark: Mark, points: int) -> list[Markup]:
    return [element("title", words) for words in mark.tips] or [Markup("")] * points


def _runs(there: NDArray[np.bool_]) -> list[slice]:
    """Return the segments without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
