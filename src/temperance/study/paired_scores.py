"""The scores of several methods on the same tasks, for ranks, win rates and improvements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.core.arrays import Indices, Matrix
from temperance.errors import InputError, Remedy
from temperance.inputs.validation import check_choice
from temperance.study.results import Results
from temperance.study.selection import Better, better_scores, choose_methods, choose_size
from temperance.study.tasks import TaskFile

Over = Literal["tasks", "datasets"]
"""What means are taken over: tasks, or data sets, whose tasks then share one weight."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of one metric at one size, on the tasks where every method has one.

    Attributes
    ----------
    metric, n
        As in the study.
    better : "lower" or "higher"
        Which scores are better.
    methods : tuple of str
        Keys of the methods; the uncalibrated classifier, `none`, is the first.
    tasks : tuple of TaskFile
        Tasks with a score of every method.
    left_out : tuple of TaskFile
        The others.
    means : array of shape (tasks, methods)
        Means over draws.
    draws : tuple of arrays of shape (draws, methods)
        For each task, the scores of the draws that all methods have.
    """

    metric: str
    n: int
    better: Better
    methods: tuple[str, ...]
    tasks: tuple[TaskFile, ...]
    left_out: tuple[TaskFile, ...]
    means: Matrix
    draws: tuple[Matrix, ...]

    @property
    def losses(self) -> Matrix:
        """The means with the sign that makes the lowest the best."""
        return self.means if self.better == "lower" else -self.means

    @property
    def dataset_of(self) -> Indices:
        """For each task, the number of its data set."""
        _, number = np.unique([task.dataset for task in self.tasks], return_inverse=True)
        return np.asarray(number, np.intp)

    @property
    def datasets(self) -> int:
        """The number of data sets."""
        return int(self.dataset_of.max()) + 1

    def mean_over(self, values: Matrix, over: Over) -> Matrix:
        """Average an array over tasks, its first axis, with equal weights of tasks or of data sets."""
        return self.by_block(values, over).mean(axis=0)

    def by_block(self, values: Matrix, over: Over) -> Matrix:
        """Return the values of tasks, or their means in each data set."""
        if over == "tasks":
            return values
        return np.stack([values[self.dataset_of == i].mean(axis=0) for i in range(self.datasets)])


def pair_scores(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    better: str | None = None,
) -> PairedScores:
    """Collect the scores of methods on the tasks that have them all.

    Parameters
    ----------
    results, metric, n, methods
        As for `make_table`.
    better : "lower" or "higher", optional
        Which scores are better. Needed for a metric from outside.
    """
    check_choice("metric", metric, results.metrics)
    direction = better_scores(metric, better)
    if direction is None:
        raise InputError(
            f"a comparison by {metric} must know which scores are better; found no direction.",
            remedy=Remedy("better", ("lower", "higher")),
        )
    size = choose_size(results, n)
    columns = (UNCALIBRATED, *choose_methods(results, metric, size, methods))
    scores = {task: [results.draws(task, key, size, metric) for key in columns] for task in results.tasks}
    whole = tuple(task for task, values in scores.items() if all(map(len, values)))
    if not whole or len(columns) < 2:
        raise InputError(
            f"a comparison needs a task on which {', '.join(columns)} all have results with {size} rows; "
            "found none.",
            remedy=Remedy("methods", (list(columns[1:2]) or ["ts"],)),
        )
    return PairedScores(
        metric,
        size,
        direction,
        columns,
        whole,
        tuple(task for task in results.tasks if task not in whole),
        np.array([[values.mean() for values in scores[task]] for task in whole]),
        tuple(_paired_draws(results, task, columns, size, metric) for task in whole),
    )


def _paired_draws(results: Results, task: TaskFile, methods: Sequence[str], n: int, metric: str) -> Matrix:
    """Return the scores of draws that all methods have; a method fitted once has the same score in each."""
    by_draw = [results.by_draw(task, key, n, metric) for key in methods]
    repeated = [scores for scores in by_draw if set(scores) != {0}] or by_draw
    shared = sorted(set.intersection(*(set(scores) for scores in repeated)))
    columns = [[scores[0] if set(scores) == {0} else scores[i] for i in shared] for scores in by_draw]
    return np.array(columns, np.float64).T
