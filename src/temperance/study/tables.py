"""The results of a study as a table in the paper's layout: tasks by methods, with averages.

This module has the numbers; `table_text` writes them as Markdown, LaTeX or CSV. All numbers are in natural
units, an ECE is a fraction; the `Unit` of a metric says how it is shown.

An average is the mean over tasks of a method's score divided by the uncalibrated one. It is shown only if all
tasks have the method, since averages over different tasks cannot be compared. A task whose uncalibrated score
is missing, zero or infinite has no such ratio and is left out for all methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.inputs.validation import check_choice
from temperance.metrics import METRICS
from temperance.metrics.table import Metric
from temperance.study import paper as _paper
from temperance.study.results import MeanOverDraws, Results
from temperance.study.selection import Better, better_scores, choose_methods, choose_size
from temperance.study.tasks import TaskFile

Kind = Literal["task", "paper", "difference", "average"]


@dataclass(frozen=True)
class Unit:
    """How a metric is shown: its name, a factor, and decimals of scores and of averages of ratios."""

    title: str
    factor: float
    decimals: int
    ratio_decimals: int

    def shown(self, value: float, kind: Kind = "task") -> str:
        """Return a finite number as it is shown."""
        if kind == "average":
            return f"{value:.{self.ratio_decimals}f}"
        return f"{self.factor * value:.{self.decimals}f}"


def _unit(metric: Metric, bins: str = "") -> Unit:
    percent = metric.unit == "%"
    title = f"{metric.label}{' in %' if percent else ''}{bins}"
    return Unit(title, metric.factor, metric.decimals, 2 if percent else 3)


UNITS: dict[str, Unit] = {
    "nll": _unit(METRICS["nll"]),
    "ece": _unit(METRICS["ece"], " (50 bins)"),
    "ece15": _unit(METRICS["ece"], " (15 bins)"),
    "brier": _unit(METRICS["brier"]),
}
"""As in the paper, except ratios of NLL and Brier score, whose fourth decimal is not meaningful."""


def unit_of(metric: str) -> Unit:
    """Return how a metric is shown; a metric from outside is not scaled."""
    return UNITS.get(metric, Unit(metric, 1.0, 4, 3))


@dataclass(frozen=True)
class Entry:
    """A number of a table. Its standard error is nan if unknown, as for one draw."""

    value: float
    error: float = float("nan")
    draws: int = 0
    bold: bool = False


@dataclass(frozen=True)
class Row:
    """A line of a table, with an entry or None for each method.

    A `difference` is ours minus the paper's, with its standard error, nan if unknown.
    """

    kind: Kind
    label: str
    entries: tuple[Entry | None, ...]
    task: TaskFile | None = None
    is_short: bool = False
    """Whether the task has fewer rows than requested, so that methods were fitted to all of them."""


@dataclass(frozen=True)
class Group:
    """The rows of a data set."""

    dataset: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Table:
    """A table of a study: one metric, one number of rows to fit to."""

    metric: str
    n: int
    methods: tuple[str, ...]
    groups: tuple[Group, ...]
    overall: Row | None
    """The average over all tasks, if there is more than one data set."""
    left_out: tuple[TaskFile, ...]
    """Tasks that are left out of averages."""
    errors: bool
    paper: bool
    better: Better | None
    """Which scores are better; None if unknown, as for a metric from outside."""

    @property
    def unit(self) -> Unit:
        """How the numbers are shown."""
        return unit_of(self.metric)

    def rows(self, *kinds: Kind) -> list[Row]:
        """Return the rows of some kinds in the groups."""
        return [row for group in self.groups for row in group.rows if row.kind in kinds]


def make_table(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    errors: bool = False,
    paper: bool = False,
    better: str | None = None,
) -> Table:
    """Return the table of a metric.

    Parameters
    ----------
    results
        Of a study, finished or not.
    metric : {"nll", "ece", "ece15", "brier"} or str
        Mean negative log-likelihood, ECE with 50 (as in the paper) or 15 bins, Brier score, or one of your
        own metrics.
    n : int, optional
        Rows that methods were fitted to, by default the fewest of the study.
    methods : sequence of str, optional
        By default all that have a result with this number of rows. The uncalibrated classifier always
        comes first.
    errors : bool
        Show the standard errors of means over draws.
    paper : bool
        Add the paper's results to the tasks that it has and, with `errors`, the differences.
    better : "lower" or "higher", optional
        Which scores of a metric from outside are better. Without it nothing is marked as the best.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> table = make_table(example_results(), "nll", 200)
    >>> [round(entry.value, 2) for entry in table.rows("task")[0].entries]
    [0.8, 0.4]
    """
    check_choice("metric", metric, results.metrics)
    direction = better_scores(metric, better)
    size = choose_size(results, n)
    if paper:
        _paper.check_in_paper(size, metric)
    reader = _ScoreReader(results, metric, size, unit_of(metric), direction)
    columns = (UNCALIBRATED, *choose_methods(results, metric, size, methods))
    groups, every_row = [], []
    for dataset, tasks in results.datasets().items():
        rows = [reader.row(task, columns) for task in tasks]
        every_row += rows
        lines = [[row, *(_beside(reader, row, columns, errors) if paper else [])] for row in rows]
        average = [_average("Avg. relative", rows, reader)] if len(rows) > 1 else []
        groups.append(Group(dataset, (*chain(*lines), *average)))
    overall = _average("All tasks, avg. relative", every_row, reader) if len(groups) > 1 else None
    left_out = tuple(row.task for row in every_row if row.task is not None and not _has_ratio(row))
    return Table(metric, size, columns, tuple(groups), overall, left_out, errors, paper, direction)


@dataclass(frozen=True)
class _ScoreReader:
    """One metric at one size of a study."""

    results: Results
    metric: str
    n: int
    unit: Unit
    better: Better | None

    def entry(self, task: TaskFile, method: str) -> Entry | None:
        return entry_of(self.results.summary(task, method, self.n, self.metric))

    def row(self, task: TaskFile, columns: Sequence[str]) -> Row:
        entries = [self.entry(task, method) for method in columns]
        return Row("task", task.model, self.mark(entries, "task"), task, task.rows < self.n)

    def mark(self, entries: Sequence[Entry | None], kind: Kind) -> tuple[Entry | None, ...]:
        return _with_best(entries, kind, self.unit, self.better)


def entry_of(summary: MeanOverDraws | None) -> Entry | None:
    """Return a mean over draws as an entry of a table."""
    return None if summary is None else Entry(summary.mean, summary.error, summary.draws)


def _with_best(
    entries: Sequence[Entry | None], kind: Kind, unit: Unit, better: Better | None
) -> tuple[Entry | None, ...]:
    """Mark the best score, and all that look equal to it. Nothing is marked if the direction is unknown."""
    finite = [entry.value for entry in entries if entry is not None and np.isfinite(entry.value)]
    choose = max if better == "higher" else min
    best = unit.shown(choose(finite), kind) if len(finite) > 1 and better is not None else None
    return tuple(entry and replace(entry, bold=unit.shown(entry.value, kind) == best) for entry in entries)


def _has_ratio(row: Row) -> bool:
    """Say whether scores of a task can be divided by its uncalibrated score."""
    uncalibrated = row.entries[0]
    return uncalibrated is not None and 0 < uncalibrated.value < np.inf


def _average(label: str, rows: Sequence[Row], reader: _ScoreReader) -> Row:
    ratios = [_ratios(row) for row in rows if _has_ratio(row)] or [[math.nan] * len(rows[0].entries)]
    means = [sum(column) / len(column) for column in zip(*ratios, strict=True)]
    entries = [None if math.isnan(mean) else Entry(mean) for mean in means]
    return Row("average", label, reader.mark(entries, "average"))


def _ratios(row: Row) -> list[float]:
    """Return the scores divided by the uncalibrated one; nan, also in their mean, where one is missing."""
    values = [math.nan if entry is None else entry.value for entry in row.entries]
    return [value / values[0] for value in values]


def _beside(reader: _ScoreReader, row: Row, columns: Sequence[str], errors: bool) -> list[Row]:
    """Return the paper's results for a task and the differences, if it is one of the paper's."""
    assert row.task is not None  # of a task's row
    found = papers_task(reader.results, row.task)
    if found is None:
        return []
    figures = _paper.paper_figures(found, reader.n, reader.metric)
    entries = tuple(Entry(figures[key]) if key in figures else None for key in columns)
    lines = [Row("paper", f"(paper: {found.model})", entries, row.task)]
    if errors:
        pairs = zip(row.entries, entries, strict=True)
        differences = tuple(difference(ours, theirs, reader.unit) for ours, theirs in pairs)
        lines.append(Row("difference", "(difference)", differences, row.task))
    return lines


def papers_task(results: Results, task: TaskFile) -> _paper.PaperTask | None:
    """Return the paper's task with the same uncalibrated scores, or None."""
    summaries = {
        metric: results.summary(task, UNCALIBRATED, results.sizes[0], metric) for metric in _paper.METRICS
    }
    scores = {metric: summary.mean for metric, summary in summaries.items() if summary is not None}
    return _paper.recognise(scores) if len(scores) == len(summaries) else None


def difference(ours: Entry | None, theirs: Entry | None, unit: Unit) -> Entry | None:
    """Return ours minus the paper's, with its standard error.

    The paper has no standard errors: its draws are assumed to vary as ours do, so with as many draws its
    error equals ours. If ours is unknown, or rounds to zero, the rounding of the paper's number dominates,
    and there is no error.
    """
    if ours is None or theirs is None or not np.isfinite([ours.value, theirs.value]).all():
        return None
    known = np.isfinite(ours.error) and float(unit.shown(ours.error)) > 0
    error = ours.error * math.sqrt(1 + ours.draws / _paper.DRAWS) if known else math.nan
    return Entry(ours.value - theirs.value, error)
