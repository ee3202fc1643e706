"""The figures of a whole study: averages relative to TS, as in the paper, and mean ranks.

A figure of averages shows the ECE or NLL of each method and size, relative to TS. Per task, a method's mean
over draws is divided by the score of TS fitted to as many rows. A marker is the mean of these ratios over
tasks, with a bar of one standard error. Each data set with three or more tasks has a panel; all others share
one.

The critical difference diagram orders methods by mean rank, with bars over indistinguishable ones. Its layout
follows J. Demsar, JMLR 7, 2006: the best on the left, the critical difference above the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from temperance.calibrators import method_style
from temperance.calibrators.registry import MethodStyle
from temperance.core.arrays import Matrix
from temperance.display.axes import blank_figure
from temperance.display.chart import tick_labels
from temperance.errors import InputError
from temperance.study.comparisons import ALPHA, Ranks
from temperance.study.results import Results
from temperance.study.tables import p_value_in_words, record_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REFERENCE_METHOD = "ts"
_GREY = "0.4"
_MARKER_AREAS = {"*": 1.8, "D": 0.7}  # factors of markers that look smaller or larger than others
_STEP, _BAR_STEP = 0.2, 0.1  # inches from one label to the next, and from one bar to the next
_LINEAR = 0.02  # ratios this close to 1 are on a linear scale
_TICKS = np.array([0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000])


@dataclass(frozen=True, eq=False)
class Panel:
    """Some tasks: the mean ratio to TS, its standard error over tasks, and how many tasks have a ratio.

    The data frames have one row per method and one column per size. A task with fewer rows than a size
    counts there with all its rows. The standard error is nan for a single task.
    """

    title: str
    tasks: int
    ratio: pd.DataFrame
    error: pd.DataFrame
    count: pd.DataFrame


def averages(results: Results, metric: str, methods: Sequence[str] | None = None) -> list[Panel]:
    """Average a metric relative to TS over tasks; a task without results of a method or of TS is left out."""
    chosen = results.choose_methods(metric, results.choose_size(None), methods or results.methods)
    others = [key for key in chosen if key != _REFERENCE_METHOD]
    if not others or _REFERENCE_METHOD not in results.methods:
        raise InputError(
            "a figure of averages needs results of ts and of another method; found results of "
            f"{', '.join(chosen) or 'none'}. Choose more methods, or run the study with them."
        )
    ratios = {n: results.ratios(metric, n).reindex(columns=others) for n in results.sizes}
    panels = []
    for title, tasks in results.large_datasets().items():
        some = {n: frame.reindex([task.name for task in tasks]) for n, frame in ratios.items()}
        with np.errstate(invalid="ignore"):  # an infinite mean has no error
            mean, error, count = (
                pd.DataFrame({n: getattr(frame, name)() for n, frame in some.items()})
                for name in ("mean", "sem", "count")
            )
        panels.append(Panel(title, len(tasks), mean, error, count))
    return panels


# ---- drawing


def draw_averages(results: Results, metric: str, methods: Sequence[str] | None = None) -> Figure:
    """Draw the panels side by side on one scale, with a legend of the marker sizes below."""
    panels = averages(results, metric, methods)
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    # In inches: one column of a journal for one panel, two for more.
    figure = blank_figure(3.4 if across == 1 else 7.0, 0.7 + 2.3 * down)
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    limits = _limits(*(np.stack([getattr(panel, name) for panel in panels]) for name in ("ratio", "error")))
    for ax, panel in zip(grid.flat, panels, strict=False):
        _draw_panel(ax, panel, limits)
    for ax in grid.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in grid[:, 0]:
        ax.set_ylabel(f"{metric.upper()} relative to TS")
    _add_legend(figure, results, panels)
    return figure


def _limits(ratios: Matrix, errors: Matrix) -> tuple[float, float]:
    """Return limits that contain 1, and all finite ratios with their bars."""
    known, bars = np.append(ratios[np.isfinite(ratios)], 1.0), np.nan_to_num(errors[np.isfinite(ratios)])
    reach = np.append(bars, 0.0)
    low, high = _scaled(np.array([(known - reach).min(), (known + reach).max()]))
    margin = 0.06 * (high - low) + 0.1
    return _unscaled(low - margin), _unscaled(high + margin)


def _scaled(ratio: Any) -> Any:
    """Return the position of a ratio on a scale that is linear near 1 and logarithmic far from it.

    A method that fails with few rows is several times worse than TS, while methods that work differ by a few
    percent. A linear or a logarithmic scale could show only one of the two.
    """
    return np.arcsinh((ratio - 1) / _LINEAR)


def _unscaled(place: Any) -> Any:
    return 1 + _LINEAR * np.sinh(place)


def _draw_panel(ax: Axes, panel: Panel, limits: tuple[float, float]) -> None:
    ax.set_yscale("function", functions=(_scaled, _unscaled))
    ticks = _TICKS[(limits[0] < _TICKS) & (limits[1] > _TICKS)].tolist()
    if len(ticks) < 3:
        ticks = [y for y, _ in tick_labels(*limits)]
    ax.set_yticks(ticks, [f"{y:g}" for y in ticks])
    ax.set_yticks([], minor=True)
    ax.set_ylim(limits)
    ax.axhline(1.0, zorder=1, color=_GREY, linewidth=1.0)
    methods = panel.ratio.index
    for at, method in enumerate(methods):
        if at % 2:
            ax.axvspan(at - 0.5, at + 0.5, color="0.95", zorder=0, linewidth=0)
        _draw_method(ax, at, method, panel)
    ax.set_xlim(-0.5, len(methods) - 0.5)
    ax.set_xticks(range(len(methods)), [method_style(key).label for key in methods], rotation=90)
    ax.tick_params(axis="x", length=0, labelbottom=True)
    ax.set_title(f"{panel.title} ({panel.tasks} task{'s' if panel.tasks > 1 else ''})", parse_math=False)


def _draw_method(ax: Axes, at: int, method: str, panel: Panel) -> None:
    """Draw a column of markers, from few rows on the left to many on the right, joined by a thin line."""
    style, sizes = method_style(method), list(panel.ratio)
    ratio, error, counts = (frame.loc[method].to_numpy() for frame in (panel.ratio, panel.error, panel.count))
    colour, marker = style.colour, style.marker
    aside = 0.27 if len(sizes) > 1 else 0.0  # distance of the first and the last size from the middle
    places = at + np.linspace(-aside, aside, len(sizes))
    areas = _areas(sizes) * _MARKER_AREAS.get(marker, 1.0)
    drawn = np.isfinite(ratio)
    ax.plot(places[drawn], ratio[drawn], style.dash, color=colour, linewidth=0.6, alpha=0.6, zorder=2)
    bars = drawn & np.isfinite(error)
    ax.errorbar(places[bars], ratio[bars], error[bars], color=colour, linestyle="", linewidth=0.7,
                capsize=1.2, capthick=0.7, zorder=2)  # fmt: skip
    for place, y, area, count in zip(places, ratio, areas, counts, strict=True):
        if np.isfinite(y):
            face, edge = (colour, _marker_edge(style)) if count == panel.tasks else ("white", colour)
            ax.scatter(place, y, area, marker=marker, facecolor=face, edgecolor=edge, linewidth=0.4, zorder=3)
        elif count:  # an infinite mean, from a label of probability 0
            ax.text(place, 1.0, "∞", transform=ax.get_xaxis_transform(), ha="center", va="top", color=colour)


def _marker_edge(style: MethodStyle) -> str:
    """Return the edge colour of a marker: white separates neighbours, but would hide a letter."""
    return style.colour if style.marker.startswith("$") else "white"


def _areas(sizes: Sequence[int]) -> Matrix:
    """Return the areas of markers, which grow with the logarithm of the size."""
    logs = np.log(np.array(sizes, np.float64))
    share = (logs - logs[0]) / (logs[-1] - logs[0]) if len(logs) > 1 else np.zeros(1)
    return 9.0 + (50.0 - 9.0) * share  # points squared


def _add_legend(figure: Figure, results: Results, panels: Sequence[Panel]) -> None:
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"linestyle": "", "marker": "o", "color": _GREY}
    entries = [
        Line2D([], [], markersize=np.sqrt(area), label=f"N = {n}", **look)
        for n, area in zip(results.sizes, _areas(results.sizes), strict=True)
    ]
    if any(np.isfinite(panel.error).any(axis=None) for panel in panels):
        entries.append(
            Line2D([], [], label="± standard error over tasks", color=_GREY, marker="|", linestyle="")
        )
    if any((panel.count < panel.tasks).any(axis=None) for panel in panels):
        entries.append(Line2D([], [], markersize=5, fillstyle="none", label="mean of fewer tasks", **look))
    is_short = min(task.rows for task in results.tasks) < results.sizes[-1]
    fewer = ", or all of a task with fewer" if is_short else ""
    legend: dict[str, Any] = {"title": f"rows fitted to{fewer}", "title_fontsize": 7, "frameon": False}
    ncols = len(entries) if len(panels) > 1 else 2
    figure.legend(handles=entries, loc="outside lower center", ncols=ncols, **legend)


# ---- mean ranks


def draw_ranks(ranks: Ranks) -> Figure:
    """Draw the axis of ranks, the critical difference, the bars of groups and the labels."""
    mean, k = ranks.mean, len(ranks.mean)
    bars = [(mean[group[0]], mean[group[-1]]) for group in ranks.groups if len(group) > 1]
    first_label = 0.15 + _BAR_STEP * len(bars)
    # In inches; the margins hold the labels.
    above, below, width, margin = 0.55, 0.15 + first_label + _STEP * -(-k // 2), 7.0, 1.35
    height, inside = 0.3 + above + below, width - 2 * margin
    figure = blank_figure(width, height)
    figure.set_layout_engine("none")
    ax = figure.add_axes((margin / width, 0.0, inside / width, (above + below) / height))
    ax.set_xlim(1, k)
    ax.set_ylim(-below, above)  # 0 at the axis
    ax.set_axis_off()
    ax.set_title(_ranks_title(ranks), parse_math=False)
    look: dict[str, Any] = {"color": "black", "clip_on": False}
    ax.plot([1, k], [0, 0], linewidth=0.8, **look)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, 0.06], linewidth=0.8, **look)
        ax.text(rank, 0.09, str(rank), ha="center", va="bottom", fontsize=7)
    if len(ranks.groups) > 1:
        end, y = 1 + min(ranks.critical_difference, k - 1.0), 0.36
        ax.plot([1, end], [y, y], linewidth=1.2, **look)
        for tip in (1, end):
            ax.plot([tip, tip], [y - 0.03, y + 0.03], linewidth=1.2, **look)
        words = f"critical difference {end - 1:.2f}"
        ax.text((1 + end) / 2, y + 0.03, words, ha="center", va="bottom", fontsize=7)
    for i, ends in enumerate(bars):
        y = -0.1 - _BAR_STEP * i
        ax.plot(ends, [y, y], linewidth=2.2, solid_capstyle="round", **look)
    _draw_labels(ax, ranks, first_label, (k - 1) / inside)
    return figure


def _ranks_title(ranks: Ranks) -> str:
    scores = ranks.scores
    counted = f"{len(scores.tasks)} tasks of " if ranks.over == "tasks" else ""
    metric = record_of(scores.metric).label
    test = f"Friedman test: {p_value_in_words(ranks.p_value)}"
    words = f"mean rank by {metric}, N = {scores.n}, {counted}{scores.datasets} data sets ({test})"
    return words if ranks.p_value < ALPHA else f"{words}: no difference"


def _draw_labels(ax: Axes, ranks: Ranks, first: float, per_inch: float) -> None:
    """Draw a line from each mean rank to the method's name, with its marker: the better half on the left."""
    k, left = len(ranks.mean), -(-len(ranks.mean) // 2)
    for i, (method, mean) in enumerate(ranks.mean.items()):
        on_left = i < left
        y = -first - _STEP * (i if on_left else k - 1 - i) - 0.05
        end, align = (1 - 0.07 * per_inch, "right") if on_left else (k + 0.07 * per_inch, "left")
        style = method_style(method)
        ax.plot([mean, mean, end], [0, y, y], zorder=1, color="0.45", linewidth=0.7, clip_on=False)
        ax.plot(mean, 0, marker="o", markersize=2.5, color="black", clip_on=False)
        area = 42.0 * _MARKER_AREAS.get(style.marker, 1.0)
        look: dict[str, Any] = {"facecolor": style.colour, "edgecolor": _marker_edge(style), "linewidth": 0.4}
        ax.scatter(end, y, area, marker=style.marker, zorder=3, clip_on=False, **look)
        words = f"{style.label}  {mean:.2f}" if on_left else f"{mean:.2f}  {style.label}"
        ax.text(end + np.copysign(0.1 * per_inch, end - mean), y, words, ha=align, va="center",
                parse_math=False)  # fmt: skip
