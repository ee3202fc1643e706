"""Draw charts with matplotlib, which is imported only when a chart is drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrators import method_style
from temperance.display.chart import (
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
from temperance.loaders import import_optional

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def blank_figure(width: float, height: float) -> Figure:
    """Return a figure to save, unknown to pyplot: it has no window and need not be closed."""
    figure: Figure = _of_matplotlib(".figure").Figure(figsize=(width, height), layout="constrained")
    return figure


def _of_matplotlib(name: str) -> ModuleType:
    return import_optional(f"matplotlib{name}", "plot", "a figure")


def plot_chart(chart: Chart, ax: Axes | None) -> Axes:
    """Draw on the given axes or, with the caption, on a new figure that a notebook shows."""
    if ax is not None:
        return _with_legend(ax, chart)
    width, height = chart.size
    caption = textwrap.fill(chart.caption, int(15 * width))
    size = (width, height + 0.17 * (1 + caption.count("\n")))  # inches per line of the caption
    figure = _of_matplotlib(".pyplot").figure(figsize=size, layout="constrained")
    figure.supxlabel(caption, fontsize="small", parse_math=False)
    if chart.below is None:
        return _with_legend(figure.subplots(), chart)
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    draw_chart(below, chart.below)
    _with_legend(top, chart).label_outer()
    return top


def _with_legend(ax: Axes, chart: Chart) -> Axes:
    draw_chart(ax, chart)
    entries = len(ax.get_legend_handles_labels()[0])
    if entries:
        ax.legend(fontsize="small", ncols=2 if entries > 5 else 1, framealpha=0.85)
    return ax


def draw_chart(ax: Axes, chart: Chart) -> None:
    """Draw the marks of a chart, and set its limits, ticks, labels and title."""
    _set_axis(ax, "x", chart.x)
    _set_axis(ax, "y", chart.y)
    ink = _of_matplotlib("").rcParams["text.color"]  # as on the page: white on black, black on white
    for order, mark in enumerate(chart.marks):
        colour = method_style(mark.method).colour if mark.method else ink
        look = {"color": colour, "zorder": 2 + order / 100, "label": mark.label or "_"}
        _DRAWN[type(mark)](ax, mark, look)
    ax.set_title(chart.title, parse_math=False)
    for label in ax.get_yticklabels():
        if label.get_text() == chart.bold:
            label.set_fontweight("bold")


def _set_axis(ax: Axes, name: str, axis: Axis) -> None:
    places, words = zip(*axis.tick_labels(), strict=True) if axis.tick_labels() else ((), ())
    ax.set(**{f"{name}scale": "log" if axis.log else "linear", f"{name}label": axis.label})
    getattr(ax, f"set_{name}ticks")(places, words)
    getattr(ax, f"set_{name}ticks")([], minor=True)
    getattr(ax, f"set_{name}lim")(axis.limits)


def _marker(mark: Mark, size: float) -> dict[str, Any]:
    """Return the marker of a method; a line without a method has none."""
    if not mark.method:
        return {"marker": ""}
    marker = method_style(mark.method).marker
    return {"marker": marker, "markersize": 1.5 * size if marker == "*" else size}  # a star looks small


def _draw_line(ax: Axes, mark: Line, look: dict[str, Any]) -> None:
    if mark.faint:
        look |= {"alpha": 0.4, "linewidth": 0.8}
    elif not mark.method:
        look |= {"linestyle": "--", "linewidth": 1.0}
    if mark.method:
        look["linestyle"] = method_style(mark.method).dash
    many = len(mark.x) > 100  # their markers would hide the line
    ax.plot(mark.x, mark.y, **look, **({} if many or mark.faint else _marker(mark, 5)))


def _draw_band(ax: Axes, mark: Band, look: dict[str, Any]) -> None:
    ax.fill_between(mark.x, mark.low, mark.high, alpha=0.16, linewidth=0, **look)


def _draw_dots(ax: Axes, mark: Dots, look: dict[str, Any]) -> None:
    if not mark.fine:
        ax.plot(mark.x, mark.y, linestyle="", **look, **_marker(mark, 4))
        return
    # In a vector format dots become one image: thousands of shapes would be slow to open.
    dots: dict[str, Any] = {"marker": "o", "markeredgewidth": 0, "linestyle": "", "rasterized": True}
    ax.plot(
        mark.x, mark.y, markersize=1.5, alpha=0.15 if mark.faint else 0.5, **dots, **{**look, "label": "_"}
    )
    if mark.label:  # large and dark enough for the legend
        ax.plot([], [], markersize=4, alpha=0.4 if mark.faint else 1.0, **dots, **look)


def _draw_intervals(ax: Axes, mark: Intervals, look: dict[str, Any]) -> None:
    spread = np.stack([mark.value - mark.low, mark.high - mark.value])
    look |= _marker(mark, 6) if mark.method else {"marker": "o", "markersize": 4}
    if mark.flat:
        ax.errorbar(mark.value, mark.at, xerr=spread, linestyle="", linewidth=1.5, **look)
    else:
        ax.errorbar(mark.at, mark.value, yerr=spread, linestyle="", linewidth=1.0, capsize=2, **look)


def _draw_bars(ax: Axes, mark: Bars, look: dict[str, Any]) -> None:
    ax.stairs(mark.heights, mark.edges, fill=True, alpha=0.2, **{**look, "label": "_"})
    ax.stairs(mark.heights, mark.edges, linewidth=1.5, **look)


def _draw_rule(ax: Axes, mark: Rule, look: dict[str, Any]) -> None:
    draw = ax.axvline if mark.upright else ax.axhline
    draw(mark.at, linestyle="--", linewidth=1.0, **look)


def _draw_text(ax: Axes, mark: Text, look: dict[str, Any]) -> None:
    left = mark.x < sum(ax.get_xlim()) / 2
    ax.text(mark.x, mark.y, mark.words, ha="left" if left else "right", va="center", **look)


_DRAWN: dict[type[Mark], Callable[[Axes, Any, dict[str, Any]], None]] = {
    Line: _draw_line,
    Band: _draw_band,
    Dots: _draw_dots,
    Intervals: _draw_intervals,
    Bars: _draw_bars,
    Rule: _draw_rule,
    Text: _draw_text,
}
