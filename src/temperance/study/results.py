"""The results of a study, by task, method, number of rows and metric: means over draws with their errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.core.arrays import Vector
from temperance.errors import InputError
from temperance.inputs.validation import check_choice
from temperance.study.methods import in_order
from temperance.study.scoring import Score
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile

METRICS: dict[str, str] = {"nll": "nll", "ece": "ece50", "ece15": "ece15", "brier": "brier"}
"""Names of metrics on the command line, and their columns in the store; `ece` has the paper's 50 bins."""

_LEAST_TASKS = 3  # of a data set with its own group


@dataclass(frozen=True)
class MeanOverDraws:
    """A mean over draws, with its standard error.

    Attributes
    ----------
    mean : float
        Mean over draws.
    error : float
        Its standard error; nan for a single draw, or if a draw is infinite.
    draws : int
        Number of draws.

    Examples
    --------
    >>> score = MeanOverDraws(0.45, 0.01, 50)
    >>> f"{score.mean} ± {score.error}"
    '0.45 ± 0.01'
    """

    mean: float
    error: float
    draws: int


@dataclass(frozen=True)
class MethodTime:
    """The times of a method's fits, in seconds, and how they ended."""

    method: str
    fits: int
    failed: int
    unconverged: int
    fit_seconds: float
    apply_seconds: float


class Results:
    """The results in the folder of a study, finished or not: tasks and sizes that have results.

    A task with fewer rows than a size counts there with all its rows.

    Parameters
    ----------
    folder : path
        The folder passed to `run_study`.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> results = example_results()
    >>> results.methods, results.sizes, len(results.scores)
    (['ts'], [200], 4)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        store = ResultStore(folder)
        self.seed, self.version = store.seed, store.version
        self.scores: list[Score] = store.scores()
        done = {(score.fit.task, score.fit.n) for score in self.scores}
        names = {name for name, _ in done}
        self.tasks: list[TaskFile] = [task for task in store.tasks() if task.name in names]
        self.sizes: list[int] = [
            n for n in store.sizes() if any((task.name, min(n, task.rows)) in done for task in self.tasks)
        ]

    @cached_property
    def methods(self) -> list[str]:
        """Methods with results, in the order of tables; the uncalibrated classifier is not among them."""
        return in_order(sorted({score.fit.method for score in self.scores} - {UNCALIBRATED}))

    @cached_property
    def _by_fit(self) -> dict[tuple[str, int, str], list[Score]]:
        groups: dict[tuple[str, int, str], list[Score]] = {}
        for score in self.scores:
            groups.setdefault((score.fit.task, score.fit.n, score.fit.method), []).append(score)
        return groups

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Metrics with results: ours, and those from outside."""
        return (*METRICS, *sorted({name for score in self.scores for name in score.metrics}))

    def datasets(self) -> dict[str, list[TaskFile]]:
        """Return the tasks of each data set, both by name."""
        groups: dict[str, list[TaskFile]] = {}
        for task in sorted(self.tasks, key=lambda task: (task.dataset, task.model)):
            groups.setdefault(task.dataset, []).append(task)
        return groups

    def large_datasets(self) -> dict[str, list[TaskFile]]:
        """Return the tasks of each data set with three or more, the others as `other`; `all` if none has."""
        datasets = self.datasets()
        large = {name: tasks for name, tasks in datasets.items() if len(tasks) >= _LEAST_TASKS}
        rest = [task for name, tasks in datasets.items() if name not in large for task in tasks]
        return large | ({"other" if large else "all": rest} if rest else {})

    def draws(self, task: TaskFile, method: str, n: int, metric: str) -> Vector:
        """Return a score for each draw that succeeded."""
        return np.array(list(self.by_draw(task, method, n, metric).values()), np.float64)

    def by_draw(self, task: TaskFile, method: str, n: int, metric: str) -> dict[int, float]:
        """Return the scores by number of the draw, without those that failed."""
        check_choice("metric", metric, self.metrics)
        if n not in self.sizes:
            raise InputError(
                f"the number of rows must be one of the study, {', '.join(map(str, self.sizes))}; found {n}."
            )
        fitted = 0 if method == UNCALIBRATED else min(n, task.rows)
        scores = self._by_fit.get((task.name, fitted, method), [])
        values = {score.fit.draw: _value(score, metric) for score in scores}
        return {draw: value for draw, value in values.items() if not np.isnan(value)}

    def summary(self, task: TaskFile, method: str, n: int, metric: str) -> MeanOverDraws | None:
        """Return the mean of a score over draws, or None if there is none."""
        values = self.draws(task, method, n, metric)
        if not len(values):
            return None
        known = len(values) > 1 and bool(np.isfinite(values).all())
        error = values.std(ddof=1) / np.sqrt(len(values)) if known else np.nan
        return MeanOverDraws(float(values.mean()), float(error), len(values))

    def ratio(self, task: TaskFile, method: str, n: int, metric: str, to: str = "ts") -> float:
        """Return a method's mean over draws divided by that of another; nan if that is undefined."""
        ours, its = (self.summary(task, key, n, metric) for key in (method, to))
        if ours is None or its is None or not 0 < its.mean < np.inf:
            return float("nan")
        return ours.mean / its.mean

    def times(self) -> list[MethodTime]:
        """Return the times of each method."""
        return [_time(key, [s for s in self.scores if s.fit.method == key]) for key in self.methods]

    def failures(self) -> list[Score]:
        """Return the fits that failed."""
        return [score for score in self.scores if np.isnan(score.nll)]


def _value(score: Score, metric: str) -> float:
    if metric in METRICS:
        return float(getattr(score, METRICS[metric]))
    return score.metrics.get(metric, float("nan"))


def _time(method: str, scores: list[Score]) -> MethodTime:
    failed = sum(bool(np.isnan(score.nll)) for score in scores)
    return MethodTime(
        method,
        len(scores),
        failed,
        sum(not score.converged for score in scores) - failed,
        sum(score.fit_seconds for score in scores),
        sum(score.apply_seconds for score in scores),
    )
