"""Mean relative improvements over a reference method, with bootstrap intervals.

On each task a method's mean over draws is divided by that of the reference; the geometric mean of these
ratios treats a halved and a doubled score alike. The tasks of one data set share rows and often models, so
the bootstrap draws whole data sets, each with all its tasks. With fewer than five data sets it draws tasks,
and the interval is then for further tasks on the same data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.core.arrays import Indices, Matrix, Vector
from temperance.errors import InputError
from temperance.inputs.validation import check_choice
from temperance.study.paired_scores import Over, PairedScores, pair_scores
from temperance.study.results import Results

LEVEL = 0.95
RESAMPLES = 10_000
_LEAST_DATASETS = 5  # data sets to draw from: with fewer, intervals are far too short
_LEAST_TASKS = 2


@dataclass(frozen=True, eq=False)
class Improvements:
    """Geometric means of ratios to a reference method.

    Attributes
    ----------
    scores : PairedScores
        The compared scores, on tasks whose reference score is positive and finite.
    over : "tasks" or "datasets"
        What means are taken over.
    reference : str
        The method that scores are divided by.
    resampled : "tasks", "datasets" or None
        What the bootstrap draws; None for a single task, which has no interval.
    ratio, low, high : arrays
        For each method, the ratio and its 95 % interval; nan where there is none.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> found = mean_improvements(example_results(), to="none")
    >>> found.improvement(found.ratio).round(2)
    array([0.  , 0.65])
    """

    scores: PairedScores
    over: Over
    reference: str
    resampled: Literal["tasks", "datasets"] | None
    ratio: Vector
    low: Vector
    high: Vector

    def improvement(self, ratio: Vector) -> Vector:
        """Return a ratio as an improvement: positive if the method is better than the reference."""
        return 1 - ratio if self.scores.better == "lower" else ratio - 1


def mean_improvements(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    to: str | None = None,
    methods: Sequence[str] | None = None,
    better: str | None = None,
    over: Over = "tasks",
    random_state: int = 0,
) -> Improvements:
    """Average the improvements of methods over a reference.

    Parameters
    ----------
    results, metric, n, methods, better, over
        As for `rank_methods`.
    to : str, optional
        The reference: a method, or "none" for the uncalibrated classifier. By default "ts" if available.
    random_state : int
        Random seed of the bootstrap.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> found = mean_improvements(example_results(), to="none")
    >>> found.scores.methods, found.ratio.round(3)
    (('none', 'ts'), array([1.   , 0.354]))
    """
    check_choice("over", over, ("tasks", "datasets"))
    if to is not None and to != UNCALIBRATED and methods is not None and to not in methods:
        methods = [*methods, to]
    scores = pair_scores(results, metric, n, methods=methods, better=better)
    reference = to or ("ts" if "ts" in scores.methods else UNCALIBRATED)
    check_choice("to", reference, scores.methods)
    scores = _with_ratios(scores, scores.methods.index(reference))
    with np.errstate(divide="ignore", invalid="ignore"):  # scores of 0 have ratios of 0, infinite ones inf
        logs = np.log(scores.means / scores.means[:, [scores.methods.index(reference)]])
        ratio = np.exp(scores.mean_over(logs, over))
    drawn: Literal["tasks", "datasets"] = "datasets" if scores.datasets >= _LEAST_DATASETS else "tasks"
    clusters = scores.dataset_of if drawn == "datasets" else np.arange(len(scores.tasks))
    weights = 1 / np.bincount(scores.dataset_of)[scores.dataset_of] if over == "datasets" else None
    has_interval = len(scores.tasks) >= _LEAST_TASKS
    low, high = _interval(logs, clusters, weights, random_state) if has_interval else [logs[0] * np.nan] * 2
    resampled = drawn if has_interval else None
    return Improvements(scores, over, reference, resampled, ratio, np.exp(low), np.exp(high))


def _with_ratios(scores: PairedScores, at: int) -> PairedScores:
    """Keep the tasks on which scores can be divided by the reference score."""
    if (scores.means < 0).any():
        raise InputError(
            f"ratios need scores that are not negative; found {scores.means.min():.4g} for {scores.metric}. "
            "Use ranks or win rates."
        )
    reference = scores.means[:, at]
    kept = (reference > 0) & np.isfinite(reference)
    if not kept.any():
        raise InputError(
            f"ratios need a task on which {scores.methods[at]} has a positive, finite {scores.metric}; "
            "found none."
        )
    return replace(
        scores,
        tasks=tuple(task for task, stays in zip(scores.tasks, kept, strict=True) if stays),
        left_out=scores.left_out + tuple(t for t, stays in zip(scores.tasks, kept, strict=True) if not stays),
        means=scores.means[kept],
        draws=tuple(draws for draws, stays in zip(scores.draws, kept, strict=True) if stays),
    )


def _interval(
    logs: Matrix, clusters: Indices, weights: Vector | None, random_state: int
) -> tuple[Vector, Vector]:
    """Return percentiles of weighted means over resampled clusters; nan where a ratio is 0 or infinite."""
    weight = np.ones(len(logs)) if weights is None else weights
    finite = np.isfinite(logs).all(axis=0)
    summed = np.zeros((clusters.max() + 1, logs.shape[1]))
    np.add.at(summed, clusters, weight[:, None] * np.where(finite, logs, 0.0))
    total = np.bincount(clusters, weight)
    rng = np.random.default_rng(random_state)
    counts = rng.multinomial(len(total), np.full(len(total), 1 / len(total)), size=RESAMPLES)
    means = (counts @ summed) / (counts @ total)[:, None]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return np.where(finite, low, np.nan), np.where(finite, high, np.nan)
