"""The figures of a study, six of them from the paper: compute the numbers, draw them, save the file.

A figure of averages shows the ECE or NLL of each method and size, relative to TS. Per task, a method's mean
over draws is divided by the score of TS fitted to as many rows. A marker is the mean of these ratios over
tasks, with a bar of one standard error. Each data set with three or more tasks has a panel; all others share
one. The label of an own method can be long: figures make room for so many characters of it.

The critical difference diagram orders methods by mean rank, with bars over indistinguishable ones. Its layout
follows J. Demsar, JMLR 7, 2006: the best on the left, the critical difference above the axis.

`task_figures` has the figures of one task. Figures are drawn without a window, at the width of one or two
columns of a journal. The same numbers give byte-identical files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from temperance.calibrators import method_style
from temperance.core.arrays import Vector
from temperance.display.axes import blank_figure, draw_chart
from temperance.display.chart import Chart, shorten
from temperance.errors import InputError
from temperance.files import atomic_file, check_writable
from temperance.inputs.validation import check_choice
from temperance.loaders import import_optional
from temperance.study.comparisons import ALPHA, Over, Ranks, rank_methods
from temperance.study.results import Results
from temperance.study.tables import p_value_in_words, papers_task, record_of
from temperance.study.task_figures import (
    class_temperatures,
    entropy_temperatures,
    two_temperatures,
)
from temperance.study.tasks import TaskFile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CHARTS: dict[str, Callable[..., Chart]] = {
    "class_LTS": class_temperatures,
    "h_HTS": partial(entropy_temperatures, method="hts"),
    "h_PTS": partial(entropy_temperatures, method="pts"),
    "PTSvHTS": two_temperatures,
}
USUAL_LABEL, MAX_LABEL = 12, 30  # characters of a method's label
ON_A_TASK = tuple(_CHARTS)
"""The figures of one task; the others show the whole study."""

FIGURES = (*ON_A_TASK, "avg_ECE", "avg_NLL", "cd_ECE", "cd_NLL")

OPTIONS: dict[str, tuple[str, ...]] = {
    "task": ON_A_TASK,
    "methods": ("avg_ECE", "avg_NLL", "cd_ECE", "cd_NLL"),
    "n": ("cd_ECE", "cd_NLL"),
    "over": ("cd_ECE", "cd_NLL"),
}
"""The figures that each option applies to."""

SUFFIXES: dict[str, dict[str, Any]] = {
    ".png": {"dpi": 300},
    ".svg": {"dpi": 200, "metadata": {"Date": None}},  # resolution of dots, which are drawn as an image
    ".pdf": {"dpi": 200, "metadata": {"CreationDate": None}},
}
"""Options of each file format."""

_STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.handlelength": 1.5,
    "legend.columnspacing": 1.2,
    "pdf.fonttype": 42,  # embedded fonts, as publishers require
    "svg.hashsalt": "temperance",
}

_REFERENCE_METHOD = "ts"
_GREY = "0.4"
_STEP, _BAR_STEP = 0.2, 0.1  # inches from one label to the next, and from one bar to the next


def figure_task(results: Results, name: str | None = None) -> TaskFile:
    """Return the task of that name; by default the paper's task, or else the first."""
    results.choose_size(None)  # raises if there are no results
    tasks = {task.name: task for task in results.tasks}
    if name is None:
        return next((task for task in results.tasks if papers_task(results, task)), results.tasks[0])
    if name not in tasks:
        raise InputError(f"the task must be one of {', '.join(tasks)}; found {name!r}.")
    return tasks[name]


def save_figure(
    results: Results, name: str, path: str | Path, *, overwrite: bool = False, **choices: Any
) -> Path:
    """Draw a figure and save it.

    Parameters
    ----------
    results : Results
        Of the study.
    name : str
        One of `FIGURES`.
    path : path
        The file to write: .png, .svg or .pdf.
    overwrite : bool
        Whether to replace an existing file.
    **choices
        As for `draw_figure`: task, methods, n, over.
    """
    target = Path(path)
    options = SUFFIXES.get(target.suffix.lower())
    if options is None:
        raise InputError(
            f"{target} must end in {', '.join(SUFFIXES)}; found {target.suffix or 'no suffix'!r}."
        )
    check_writable(target, overwrite=overwrite)
    style = import_optional("matplotlib.style", "plot", "a figure")
    with style.context(["default", _STYLE]):  # the same look under any user settings
        figure = draw_figure(results, name, **choices)
        with atomic_file(target, overwrite=overwrite) as file, warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Glyph"
            )  # about characters in a task's name that the font lacks
            figure.savefig(file, format=target.suffix.lower()[1:], **options)
    return target


def draw_figure(
    results: Results,
    name: str,
    *,
    task: str | None = None,
    methods: Sequence[str] | None = None,
    n: int | None = None,
    over: Over | None = None,
) -> Figure:
    """Compute and draw a figure, in the current style.

    Parameters
    ----------
    results : Results
        Of the study.
    name : str
        One of `FIGURES`.
    task : str, optional
        Name of the task, for figures of one task; by default as `figure_task` chooses.
    methods : sequence of str, optional
        For averages and ranks.
    n : int, optional
        Rows fitted to, for ranks; by default the fewest of the study.
    over : "tasks" or "datasets", optional
        What to average ranks over.
    """
    check_choice("the figure", name, FIGURES)
    for choice, value in {"task": task, "methods": methods, "n": n, "over": over}.items():
        if value is not None and name not in OPTIONS[choice]:
            raise InputError(
                f"{choice} is for the figures {', '.join(OPTIONS[choice])}; found {name}. Leave it out."
            )
    kind, _, metric = name.partition("_")
    if kind == "avg":
        return _draw_averages(results, metric.lower(), methods)
    if kind == "cd":
        return _draw_ranks(rank_methods(results, metric.lower(), n, methods=methods, over=over or "tasks"))
    chosen = figure_task(results, task)
    chart, square = _CHARTS[name](results, chosen), name == "PTSvHTS"
    height = chart.size[1] if name == "class_LTS" else 3.7 if square else 3.0  # by the number of classes
    figure = blank_figure(3.4, height)  # in inches: one column of a journal
    title = shorten(chosen.title, int(15 * figure.get_figwidth()))
    draw_chart(figure.subplots(), replace(chart, title=title))
    if square:
        figure.supxlabel(chart.caption, fontsize=7)
        figure.axes[0].set_aspect("equal")
    else:  # below the axes: there is no room among the dots
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


# ---- averages


@dataclass(frozen=True, eq=False)
class Panel:
    """Some tasks: the mean ratio to TS and its standard error over tasks.

    The data frames have one row per method and one column per size, with nan if a task lacks the method. A
    task with fewer rows than a size counts there with all its rows. A single task has no standard error.
    """

    title: str
    tasks: int
    ratio: pd.DataFrame
    error: pd.DataFrame


def averages(results: Results, metric: str, methods: Sequence[str] | None = None) -> list[Panel]:
    """Average a metric relative to TS over tasks; a task without results of TS is left out."""
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
        names = [task.name for task in tasks]
        some = {n: frame[frame.index.isin(names)] for n, frame in ratios.items()}
        with np.errstate(invalid="ignore"):  # an infinite mean has no error
            mean, error = (
                pd.DataFrame({n: getattr(frame, name)(skipna=False) for n, frame in some.items()})
                for name in ("mean", "sem")
            )
        panels.append(Panel(title, len(tasks), mean, error))
    return panels


def _draw_averages(results: Results, metric: str, methods: Sequence[str] | None) -> Figure:
    """Draw the panels side by side on one scale, with a legend of the marker sizes below.

    A method that fails with few rows is several times worse than TS, while methods that work differ by a few
    percent. So the scale is linear near TS and logarithmic far from it.
    """
    from matplotlib.lines import Line2D

    panels = averages(results, metric, methods)
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    # In inches: one column of a journal for one panel, two for more.
    longest = max(len(_label(method)) for method in panels[0].ratio.index)
    figure = blank_figure(3.4 if across == 1 else 7.0, 0.9 + (2.3 + _room(longest)) * down)
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    areas = _areas(results.sizes)
    for ax, panel in zip(grid.flat, panels, strict=False):
        ax.set_yscale("asinh", linear_width=2, base=0)
        ax.margins(y=0.08)
        _draw_panel(ax, panel, areas)
    for ax in grid.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in grid[:, 0]:
        ax.set_ylabel(f"{metric.upper()} relative to TS, difference in %")
    sizes = [
        Line2D([], [], markersize=np.sqrt(area), label=f"N = {n}", linestyle="", marker="o", color=_GREY)
        for n, area in zip(results.sizes, areas, strict=True)
    ]
    title = "rows fitted to, or all of a task with fewer;\nbars: ± standard error over tasks"
    figure.legend(
        handles=sizes, loc="outside lower center", ncols=4, title=title, title_fontsize=7, frameon=False
    )
    return figure


def _draw_panel(ax: Axes, panel: Panel, areas: Vector) -> None:
    """Draw a column of markers per method, few rows on the left, many on the right, and a line through them.

    An infinite mean, from a label of probability 0, is a sign below the axes.
    """
    ax.axhline(0.0, zorder=1, color=_GREY, linewidth=1.0)
    sizes = panel.ratio.shape[1]
    aside = 0.27 if sizes > 1 else 0.0  # distance of the first and the last size from the middle
    for at, method in enumerate(panel.ratio.index):
        if at % 2:
            ax.axvspan(at - 0.5, at + 0.5, color="0.95", zorder=0, linewidth=0)
        style, places = method_style(method), at + np.linspace(-aside, aside, sizes)
        excess = 100 * (panel.ratio.loc[method].to_numpy() - 1)
        drawn = np.isfinite(excess)
        look: dict[str, Any] = {"color": style.colour, "linewidth": 0.7, "zorder": 2}
        ax.plot(places[drawn], excess[drawn], style.dash, alpha=0.6, **look)
        errors = 100 * panel.error.loc[method].to_numpy()[drawn]
        ax.errorbar(places[drawn], excess[drawn], errors, linestyle="", capsize=1.2, **look)
        ax.scatter(places[drawn], excess[drawn], areas[drawn], style.colour, marker=style.marker, zorder=3)
        for place in places[np.isposinf(excess)]:
            ax.text(
                place, 1.0, "∞", transform=ax.get_xaxis_transform(), ha="center", va="top", color=style.colour
            )
    labels = [_label(method) for method in panel.ratio.index]
    ax.set_xlim(-0.5, len(labels) - 0.5)
    ax.set_xticks(range(len(labels)), labels, rotation=90)
    ax.tick_params(axis="x", length=0, labelbottom=True)
    ax.set_title(f"{panel.title} ({panel.tasks} task{'s' if panel.tasks > 1 else ''})", parse_math=False)


def _label(method: str) -> str:
    """Return the label of a method; of a long one of the user's own, its beginning and its end."""
    return shorten(method_style(method).label, MAX_LABEL)


def _room(longest: int) -> float:
    """Return the inches that the longest label needs more than a label of the package."""
    return 0.075 * max(0, longest - USUAL_LABEL)


def _areas(sizes: Sequence[int]) -> Vector:
    """Return the areas of markers, which grow with the logarithm of the size."""
    logs = np.log(np.array(sizes, np.float64))
    share = (logs - logs[0]) / (logs[-1] - logs[0]) if len(logs) > 1 else np.zeros(1)
    return 9.0 + (50.0 - 9.0) * share  # points squared


# ---- mean ranks


def _draw_ranks(ranks: Ranks) -> Figure:
    """Draw the axis of ranks, the critical difference, the bars of groups and the labels."""
    mean, k = ranks.mean, len(ranks.mean)
    bars = [(mean[group[0]], mean[group[-1]]) for group in ranks.groups if len(group) > 1]
    first_label, left = 0.15 + _BAR_STEP * len(bars), -(-k // 2)
    # In inches; the margins hold the labels.
    above, below, width = 0.55, 0.15 + first_label + _STEP * left, 7.0
    margin = 1.35 + _room(max(len(_label(method)) for method in mean.index))
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
        ax.plot([1, end], [y, y], linewidth=1.2, marker="|", **look)
        words = f"critical difference {end - 1:.2f}"
        ax.text((1 + end) / 2, y + 0.03, words, ha="center", va="bottom", fontsize=7)
    for i, ends in enumerate(bars):
        y = -0.1 - _BAR_STEP * i
        ax.plot(ends, [y, y], linewidth=2.2, solid_capstyle="round", **look)
    # A line goes from each mean rank to the method's name: the better half is on the left.
    per_inch = (k - 1) / inside
    for i, (method, rank) in enumerate(mean.items()):
        style, label, on_left = method_style(method), _label(method), i < left
        y = -first_label - _STEP * (i if on_left else k - 1 - i) - 0.05
        end = 1 - 0.1 * per_inch if on_left else k + 0.1 * per_inch
        ax.plot([rank, rank, end], [0, y, y], zorder=1, color=style.colour, linewidth=0.7, clip_on=False)
        ax.plot(rank, 0, marker="o", markersize=2.5, **look)
        words = f"{label}  {rank:.2f} " if on_left else f" {rank:.2f}  {label}"
        ax.text(end, y, words, ha="right" if on_left else "left", va="center", parse_math=False)
    return figure


def _ranks_title(ranks: Ranks) -> str:
    scores = ranks.scores
    counted = f"{len(scores.tasks)} tasks of " if ranks.over == "tasks" else ""
    metric = record_of(scores.metric).label
    test = f"Friedman test: {p_value_in_words(ranks.p_value)}"
    words = f"mean rank by {metric}, N = {scores.n}, {counted}{scores.datasets} data sets ({test})"
    return words if ranks.p_value < ALPHA else f"{words}: no difference"
