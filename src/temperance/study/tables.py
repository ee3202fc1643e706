"""The results of a study as a table in the paper's layout: tasks by methods, with averages.

This module has the numbers; `table_text` writes them as Markdown, LaTeX or CSV. All numbers are in natural
units: an ECE is a fraction. The record of a metric defines how it is shown.

An average is the mean over tasks of a method's score divided by the uncalibrated score. It is shown only if
all tasks have the method, since averages over different tasks are not comparable. A task whose uncalibrated
score is missing, zero or infinite has no such ratio and is left out for all methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from temperance.calibrators import UNCALIBRATED
from temperance.inputs.validation import check_choice
from temperance.metrics import METRICS
from temperance.metrics.table import Metric
from temperance.study import paper as _paper
from temperance.study.results import Better, Results, better_scores
from temperance.study.tasks import TaskFile

Kind = Literal["task", "paper", "average"]

_RECORDS: dict[str, Metric] = {
    "ece": replace(METRICS["ece"], label="ECE (50 bins)"),
    "ece15": replace(METRICS["ece"], label="ECE (15 bins)"),
    "nll": METRICS["nll"],
    "brier": METRICS["brier"],
}


def record_of(metric: str) -> Metric:
    """Return the label and format of a metric; the user's own metrics are not scaled."""
    return _RECORDS.get(metric, Metric(label=metric, help="", interval="none", range=(-math.inf, math.inf)))


def p_value_in_words(p: float) -> str:
    """Return a p-value as text, such as "p = 0.012"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a study, for one metric and one number of rows.

    Attributes
    ----------
    metric, n
        As in the study.
    lines : data frame
        One row per line of the table, in order: `dataset`, `kind`, `label`, and `task`, which is None for
        averages. The average over all tasks comes last, without a data set.
    value, error, draws : data frames
        The number of each line and method, its standard error, and the number of draws behind it; nan where
        there is none.
    left_out : tuple of TaskFile
        Tasks that are left out of averages.
    errors, paper : bool
        Whether standard errors and the paper's results are shown.
    better : "lower", "higher" or None
        Which scores are better; None if unknown, as for the user's own metrics.
    """

    metric: str
    n: int
    lines: pd.DataFrame
    value: pd.DataFrame
    error: pd.DataFrame
    draws: pd.DataFrame
    left_out: tuple[TaskFile, ...]
    errors: bool
    paper: bool
    better: Better | None

    def shown(self, value: float, kind: Kind = "task") -> str:
        """Return a finite number as text; averages are of ratios, which have no unit."""
        return f"{value:.3f}" if kind == "average" else record_of(self.metric).shown(value)

    @property
    def methods(self) -> tuple[str, ...]:
        """The columns: keys of the methods, first the uncalibrated classifier."""
        return tuple(self.value.columns)

    def of_kind(self, *kinds: Kind) -> pd.DataFrame:
        """Return the lines of some kinds."""
        return self.lines[self.lines["kind"].isin(kinds)]

    def best(self, line: int) -> set[str]:
        """Return the methods with the best score of a line, and all that look equal to it."""
        kind: Kind = self.lines.at[line, "kind"]
        numbers = self.value.loc[line]
        numbers = numbers[np.isfinite(numbers)]
        if self.better is None or len(numbers) < 2 or kind not in ("task", "average"):
            return set()
        shown = numbers.map(lambda value: self.shown(value, kind))
        top = numbers.idxmin() if self.better == "lower" else numbers.idxmax()
        return set(shown.index[shown == shown[top]])


def make_table(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    errors: bool = False,
    paper: bool = False,
    better: Better | None = None,
) -> Table:
    """Return the table of a metric.

    Parameters
    ----------
    results
        The results of a study, finished or not.
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
        Add the paper's results to the tasks that it has.
    better : "lower" or "higher", optional
        Which scores of your own metric are better. Without it, nothing is marked as the best.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> table = make_table(example_results(), "nll", 200)
    >>> table.value.loc[0].to_dict()
    {'none': 0.8, 'ts': 0.4}
    """
    check_choice("metric", metric, results.metrics)
    direction = better_scores(metric, better)
    size = results.choose_size(n)
    if paper:
        _paper.check_in_paper(size, metric)
    columns = [UNCALIBRATED, *results.choose_methods(metric, size, methods)]
    summary = results.summary(metric, size).unstack("method")
    names = [task.name for task in results.tasks]
    ours = [summary[part].reindex(names, columns=columns) for part in ("mean", "error", "draws")]
    ratios = results.ratios(metric, size, to=UNCALIBRATED).reindex(columns=columns)
    ratios = ratios[ratios[UNCALIBRATED].notna()]
    lines: list[_Line] = []
    for dataset, tasks in results.datasets().items():
        for task in tasks:
            lines.append(_Line(dataset, "task", task.model, task, *(part.loc[task.name] for part in ours)))
            if paper and (found := papers_task(results, task)):
                theirs = pd.Series(_paper.paper_figures(found, size, metric)).reindex(columns)
                lines.append(_Line(dataset, "paper", f"(paper: {found.model})", task, theirs))
        if len(tasks) > 1:
            lines.append(_Line(dataset, "average", "Avg. relative", None, _average(ratios, tasks)))
    if len(results.datasets()) > 1:
        overall = _average(ratios, results.tasks)
        lines.append(_Line("", "average", "All tasks, avg. relative", None, overall))
    frame = pd.DataFrame(lines)
    value, error, draws = (
        pd.DataFrame([pd.Series(part, columns, dtype=float) for part in frame[name]]).reset_index(drop=True)
        for name in ("value", "error", "draws")
    )
    named = frame[["dataset", "kind", "label", "task"]]
    left_out = tuple(
        line.task for line in lines if line.kind == "task" and line.task.name not in ratios.index
    )
    return Table(metric, size, named, value, error, draws, left_out, errors, paper, direction)


class _Line(NamedTuple):
    """A line of a table under construction: its names and, per method, its numbers."""

    dataset: str
    kind: Kind
    label: str
    task: Any
    value: pd.Series
    error: pd.Series | float = math.nan
    draws: pd.Series | float = math.nan


def _average(ratios: pd.DataFrame, tasks: Sequence[TaskFile]) -> pd.Series:
    """Return the means of ratios over tasks; nan for a method that a task lacks."""
    known = [task.name for task in tasks if task.name in ratios.index]
    return ratios.loc[known].mean(skipna=False)


def papers_task(results: Results, task: TaskFile) -> _paper.PaperTask | None:
    """Return the paper's task with the same uncalibrated scores, or None."""
    scores = {
        metric: results.means(metric, results.sizes[0]).at[task.name, UNCALIBRATED]
        for metric in _paper.METRICS
    }
    return None if np.isnan(list(scores.values())).any() else _paper.recognise(scores)
