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


@dataclass(frozen=True)
class _Size:
    """The width of a figure in its own pixels, and its largest lettering.

    A narrow screen scales a wide figure down, and there the style sheet makes its lettering larger, so the
    figure must leave room for it. The class name selects the rules of the style sheet.
    """

    width: float
    lettering: float
    class_: str


_SIZES = {WIDE: _Size(600, 17, "wide"), PANEL: _Size(440, 15, "panel"), SMALL: _Size(300, 13, "small")}


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


@dataclass(frozen=True)
class _Frame:
    """The positions of the axes in a chart of a given size."""

    x: Scale
    y: Scale
    size: _Size

    def points(self, x: Vector, y: Vector) -> str:
        places = zip(self.x.place(x), self.y.place(y), strict=True)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in places)


def _colour(mark: Mark) -> str:
    """Return the colour of a mark: without a method, the text colour."""
    return method_style(mark.method).colour if mark.method else "var(--ink)"


def draw_svg(chart: Chart, name: str) -> Markup:
    """Draw a chart; the name is unique in the page."""
    size = _SIZES[chart.size[0]]
    width, height = size.width, size.width * chart.size[1] / chart.size[0]
    ticks = [len(words) for part in (chart, chart.below or chart) for _, words in part.y.tick_labels()]
    left = max(2.5 * size.lettering, 0.6 * size.lettering * max(ticks, default=0) + 14)
    across = Scale(chart.x, left, width - _RIGHT)
    for value, words in chart.x.tick_labels():  # half of the last label is right of its tick
        end = float(across.place(value)) + 0.3 * size.lettering * len(words)
        across = Scale(chart.x, left, min(across.stop, width - _RIGHT - (end - width)))
    top = 1.6 * size.lettering if chart.y.label else _TOP  # room for the label of y above the axes
    bottom = height - 2.7 * size.lettering - 6  # room for ticks and label of x
    parts = []
    if chart.below is not None:
        split = bottom - 0.2 * height
        frame = _Frame(across, Scale(chart.below.y, bottom, split), size)
        parts.append(_drawn(chart.below, frame, f"{name}-below"))
        bottom = split - 1.8 * size.lettering  # room for its label
    frame = _Frame(across, Scale(chart.y, bottom, top), size)
    parts.append(_drawn(chart, frame, name))
    return element(
        "svg",
        element("title", chart.title, id=f"{name}-title"),
        element("desc", chart.caption, id=f"{name}-text"),
        *parts,
        class_=size.class_,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_labelledby=f"{name}-title {name}-text",
    )


def _drawn(chart: Chart, frame: _Frame, name: str) -> Markup:
    marks = (joined(_DRAWN[type(mark)](frame, mark, _colour(mark))) for mark in chart.marks)
    # The axes with a small margin, so that marks on the edge are complete.
    left, top = frame.x.start - 4, frame.y.stop - 4
    width, height = frame.x.stop - frame.x.start + 8, frame.y.start - frame.y.stop + 8
    box = element("rect", x=left, y=top, width=width, height=height)
    clip = element("clipPath", box, id=f"{name}-clip")
    inside = element("g", *marks, clip_path=f"url(#{name}-clip)")
    return element("g", clip, *_axes(chart, frame), inside, class_="axes")


def _axes(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    left, right, top, bottom = frame.x.start, frame.x.stop, frame.y.stop, frame.y.start
    below = bottom + 0.5 * frame.size.lettering  # avoids the lowest tick of y
    for value, words in chart.y.tick_labels():
        y, weight = float(frame.y.place(value)), "bold" if words == chart.bold else None
        yield element("line", class_="grid", x1=left, x2=right, y1=y, y2=y)
        yield _text(words, "tick y", left - 6, y, "end", dy="0.35em", font_weight=weight)
    ticks = chart.x.tick_labels()
    for number, (value, words) in enumerate(ticks):
        x = float(frame.x.place(value))
        yield element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom)
        if chart.below is None:  # otherwise the lower chart has them
            spare = " spare" if len(ticks) > 5 and number % 2 else ""  # a narrow screen hides these
            yield _text(words, f"tick x{spare}", x, below, "middle", dy="0.9em")
    if chart.below is None:
        yield _text(chart.x.label, "label x", (left + right) / 2, below, "middle", dy="2.3em")
    yield _text(chart.y.label, "label y", 2, top - 8, "start")


def _text(
    words: str, class_: str, x: float, y: float, anchor: str, **attributes: str | float | bool | None
) -> Markup:
    """Write words; `dy` is in em, so that the shift follows the lettering of the style sheet."""
    return element("text", words, class_=class_, x=x, y=y, text_anchor=anchor, **attributes)


def _draw_line(frame: _Frame, mark: Line, colour: str) -> Iterator[Markup]:
    """Draw a line through the points, which breaks where a number is missing."""
    shade = "line" if mark.method else "rule"
    dashes = _DASHES[method_style(mark.method).dash] if mark.method else None
    for part in _runs(np.isfinite(mark.x) & np.isfinite(mark.y)):
        points = frame.points(mark.x[part], mark.y[part])
        look = {"class_": shade, "stroke": colour, "fill": "none", "stroke_dasharray": dashes}
        yield element("polyline", points=points, **look)
    if mark.tips:
        yield from _circles(frame, mark.x, mark.y, mark, class_="dot", fill=colour, r=4)


def _draw_band(frame: _Frame, mark: Band, colour: str) -> Iterator[Markup]:
    for part in _runs(np.isfinite(mark.x) & np.isfinite(mark.low) & np.isfinite(mark.high)):
        x = np.concatenate([mark.x[part], mark.x[part][::-1]])
        around = np.concatenate([mark.high[part], mark.low[part][::-1]])
        yield element("polygon", class_="band", fill=colour, points=frame.points(x, around))


def _draw_dots(frame: _Frame, mark: Dots, colour: str) -> Iterator[Markup]:
    shade, radius = ("speck", 2) if mark.fine else ("dot", 4)
    return _circles(frame, mark.x, mark.y, mark, class_=shade, fill=colour, r=radius)


def _draw_intervals(frame: _Frame, mark: Intervals, colour: str) -> Iterator[Markup]:
    across, along = (frame.y, frame.x) if mark.flat else (frame.x, frame.y)
    names = ("y1", "y2", "x1", "x2") if mark.flat else ("x1", "x2", "y1", "y2")
    # Cut exactly at the axes: a value beyond them is written at their edge.
    first, last = sorted((along.start, along.stop))
    places = across.place(mark.at), *(np.clip(along.place(end), first, last) for end in (mark.low, mark.high))
    for at, low, high in zip(*places, strict=True):
        if np.isfinite(at + low + high) and (low != high or first < low < last):
            ends = dict(zip(names, map(float, (at, at, low, high)), strict=True))
            yield element("line", class_="whisker", stroke=colour, **ends)
    x, y = (mark.value, mark.at) if mark.flat else (mark.at, mark.value)
    look = {"class_": "dot", "fill": colour, "r": 5} if mark.method else {"class_": "ring dot", "r": 6}
    yield from _circles(frame, x, y, mark, **look)


def _circles(frame: _Frame, x: Vector, y: Vector, mark: Mark, **look: Any) -> Iterator[Markup]:
    for a, b, tip in zip(frame.x.place(x), frame.y.place(y), _tips(mark, len(x)), strict=True):
        if frame.x.holds(a) and frame.y.holds(b):  # otherwise half of it would be visible at the edge
            yield element("circle", tip, cx=float(a), cy=float(b), **look)


def _draw_bars(frame: _Frame, mark: Bars, colour: str) -> Iterator[Markup]:
    left, right = frame.x.place(mark.edges[:-1]), frame.x.place(mark.edges[1:])
    zero, ends = float(frame.y.place(0.0)), frame.y.place(mark.heights)
    for a, b, end, tip in zip(left, right, ends, _tips(mark, len(ends)), strict=True):
        if end != zero:
            place = {"x": float(a) + 0.5, "width": max(float(b - a) - 1, 0.5)}
            height = {"y": min(float(end), zero), "height": max(abs(float(end) - zero), 0.5)}
            yield element("rect", tip, class_="bar", fill=colour, **place, **height)


def _draw_rule(frame: _Frame, mark: Rule, colour: str) -> Iterator[Markup]:
    x, y = (frame.x.start, frame.x.stop), (frame.y.start, frame.y.stop)
    if mark.upright:
        x = (float(frame.x.place(mark.at)),) * 2
    else:
        y = (float(frame.y.place(mark.at)),) * 2
    yield element("line", class_="rule", stroke=colour, x1=x[0], x2=x[1], y1=y[0], y2=y[1])


def _draw_text(frame: _Frame, mark: Text, colour: str) -> Iterator[Markup]:
    x = float(frame.x.place(mark.x))
    anchor = "start" if x < (frame.x.start + frame.x.stop) / 2 else "end"
    yield _text(mark.words, "note", x, float(frame.y.place(mark.y)), anchor, dy="0.35em")


_DRAWN: dict[type[Mark], Callable[[_Frame, Any, str], Iterator[Markup]]] = {
    Line: _draw_line,
    Band: _draw_band,
    Dots: _draw_dots,
    Intervals: _draw_intervals,
    Bars: _draw_bars,
    Rule: _draw_rule,
    Text: _draw_text,
}


def _tips(mark: Mark, points: int) -> list[Markup]:
    return [element("title", words) for words in mark.tips] or [Markup("")] * points


def _runs(there: NDArray[np.bool_]) -> list[slice]:
    """Return the segments without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
