"""The figures of a study, six of them from the paper: compute the numbers, draw them, save the file.

Figures are drawn without a window, at the width of one or two columns of a journal. The same numbers give
byte-identical files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance.display.axes import blank_figure, draw_chart
from temperance.display.base import Display
from temperance.errors import InputError
from temperance.files import atomic_file, check_writable
from temperance.inputs.validation import check_choice
from temperance.study.comparisons import Over, rank_methods
from temperance.study.results import Results
from temperance.study.summary_figures import draw_averages, draw_ranks
from temperance.study.tables import papers_task
from temperance.study.task_figures import (
    class_temperatures,
    entropy_temperatures,
    two_temperatures,
)
from temperance.study.tasks import TaskFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COMPUTED: dict[str, Callable[..., Display]] = {
    "class_LTS": class_temperatures,
    "h_HTS": partial(entropy_temperatures, method="hts"),
    "h_PTS": partial(entropy_temperatures, method="pts"),
    "PTSvHTS": two_temperatures,
}
ON_A_TASK = tuple(_COMPUTED)
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


def figure_task(results: Results, name: str | None = None) -> TaskFile:
    """Return the task of that name; by default the paper's task, or else the first."""
    tasks = {task.name: task for task in results.tasks}
    if not tasks:
        raise InputError(f"{results.folder} has no results yet. Run the study first.")
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
    blank_figure(1, 1)  # if matplotlib is missing, raises and tells how to install it
    from matplotlib import style

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
        return draw_averages(results, metric.lower(), methods)
    if kind == "cd":
        return draw_ranks(rank_methods(results, metric.lower(), n, methods=methods, over=over or "tasks"))
    chosen = figure_task(results, task)
    shown = _COMPUTED[name](results, chosen)
    chart, square = shown.chart(), name == "PTSvHTS"
    height = chart.size[1] if name == "class_LTS" else 3.7 if square else 3.0  # by the number of classes
    figure = blank_figure(3.4, height)  # in inches: one column of a journal
    draw_chart(figure.subplots(), replace(chart, title=_title(chosen.title, figure.get_figwidth())))
    if square:
        figure.supxlabel(chart.caption, fontsize=7)
        figure.axes[0].set_aspect("equal")
    else:  # below the axes: there is no room among the dots
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def _title(name: str, width: float) -> str:
    """Return a name that fits on a figure of this width in inches."""
    most = int(15 * width)
    return name if len(name) <= most else f"{name[: most - 1]}…"
