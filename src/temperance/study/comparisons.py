"""Methods compared over the tasks of a study: mean ranks, and improvements over a reference.

Both use only tasks on which every method has a score. On each of N tasks the k methods are ranked; 1 is the
best, and tied methods share the mean of their ranks. With mean ranks R_j, Friedman's statistic, corrected for
ties, is

    12 N sum_j (R_j - (k + 1) / 2)^2 / (k (k + 1)) / (1 - sum(t^3 - t) / (N k (k^2 - 1)))

where t are the sizes of tied groups. Under the null hypothesis of no difference it follows a chi-squared
distribution with k - 1 degrees of freedom. Two methods differ at level alpha if their mean ranks differ by
more than

    q sqrt(k (k + 1) / (6 N)),

with q the 1 - alpha quantile of the studentized range of k means, divided by sqrt(2): J. Demsar, Statistical
comparisons of classifiers over multiple data sets, JMLR 7, 2006.

An improvement is a geometric mean over tasks of ratios to a reference, which treats a halved and a doubled
score alike. The tasks of one data set share rows and often models, so a jackknife over whole data sets, each
left out with all its tasks, gives the standard error of the mean log ratio. The interval is Student's, with
the effective number of data sets, minus 1, as degrees of freedom. With fewer than five data sets there
is no interval: it would be too wide to be useful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import chi2, studentized_range
from scipy.stats import t as student

from temperance.calibrators import UNCALIBRATED
from temperance.core.arrays import Indices, Matrix, Vector
from temperance.errors import InputError, Remedy
from temperance.inputs.validation import check_choice
from temperance.study.results import Better, Results, better_scores
from temperance.study.tasks import TaskFile

ALPHA = 0.05  # of the tests; an interval has the level 1 - ALPHA
MIN_DATASETS = 5  # to leave out one at a time

Over = Literal["tasks", "datasets"]
"""What to average over: tasks, or data sets, whose tasks then share one weight."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of one metric at one size, on the tasks where every method has one.

    Attributes
    ----------
    metric, n
        As in the study.
    better : "lower" or "higher"
        Which scores are better.
    studied : sequence of TaskFile
        All tasks of the study.
    means : data frame
        Means over draws: one row per task, one column per method, first the uncalibrated classifier.
    """

    metric: str
    n: int
    better: Better
    studied: Sequence[TaskFile]
    means: pd.DataFrame

    @property
    def tasks(self) -> list[TaskFile]:
        """Tasks on which every method has a score."""
        return [task for task in self.studied if task.name in self.means.index]

    @property
    def left_out(self) -> list[TaskFile]:
        """The other tasks of the study."""
        return [task for task in self.studied if task.name not in self.means.index]

    @property
    def losses(self) -> pd.DataFrame:
        """The means, with a sign such that the lowest is the best."""
        return self.means if self.better == "lower" else -self.means

    @property
    def dataset_of(self) -> Indices:
        """The number of the data set of every task."""
        return pd.factorize(np.array([task.dataset for task in self.tasks], object), sort=True)[0]

    @property
    def datasets(self) -> int:
        """The number of data sets."""
        return int(self.dataset_of.max()) + 1


def pair_scores(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    better: Better | None = None,
) -> PairedScores:
    """Collect the scores of methods on the tasks that have them all; options as for `rank_methods`."""
    check_choice("metric", metric, results.metrics)
    direction = better_scores(metric, better)
    if direction is None:
        raise InputError(
            f"it is unknown whether a higher or a lower {metric} is better.",
            remedy=Remedy("better", ("lower", "higher")),
        )
    size = results.choose_size(n)
    columns = [UNCALIBRATED, *results.choose_methods(metric, size, methods)]
    means = results.means(metric, size).reindex(columns=columns).dropna()
    if means.empty or len(columns) < 2:
        raise InputError(
            f"no task has results of {', '.join(columns)} with {size} rows, which a comparison needs.",
            remedy=Remedy("methods", (columns[1:2] or ["ts"],)),
        )
    return PairedScores(metric, size, direction, results.tasks, means)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Mean ranks of methods, best first, and which of them are distinguishable.

    Attributes
    ----------
    scores : PairedScores
        The ranked scores.
    over : "tasks" or "datasets"
        What the means average over.
    mean : series
        The mean rank of each method, the best first.
    statistic, p_value : float
        Friedman's test of the hypothesis that all methods are equal.
    critical_difference : float
        Nemenyi's critical difference at 5%.
    groups : tuple of tuples of str
        Methods whose mean ranks differ by no more than that, as many as possible in each group. All methods
        are in one group if the Friedman test does not reject at 5%.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> ranks = rank_methods(example_results())
    >>> ranks.mean.to_dict()
    {'ts': 1.0, 'none': 2.0}
    """

    scores: PairedScores
    over: Over
    mean: pd.Series
    statistic: float
    p_value: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]


def rank_methods(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    better: Better | None = None,
    over: Over = "tasks",
) -> Ranks:
    """Rank methods over the tasks of a study.

    Parameters
    ----------
    results : Results
        The results of a study, finished or not.
    metric, n, methods
        As for `make_table`. The uncalibrated classifier is always ranked.
    better : "lower" or "higher", optional
        Which scores are better. Required for your own metrics.
    over : "tasks" or "datasets"
        What to average over. The test assumes independent tasks, and tasks of one data set are not
        independent. "datasets" ranks the mean ranks of each data set again.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> round(rank_methods(example_results()).p_value, 3)
    0.157
    """
    check_choice("over", over, ("tasks", "datasets"))
    scores = pair_scores(results, metric, n, methods=methods, better=better)
    ranks = scores.losses.rank(axis="columns")
    if over == "datasets":
        ranks = ranks.groupby(scores.dataset_of).mean().rank(axis="columns")
    blocks, k = ranks.shape
    mean = ranks.mean().sort_values(kind="stable")
    statistic, p_value = friedman(ranks.to_numpy())
    difference = critical_difference(k, blocks)
    groups = _groups(mean, difference) if p_value < ALPHA else (tuple(mean.index),)
    return Ranks(scores, over, mean, statistic, p_value, difference, groups)


def friedman(ranks: Matrix) -> tuple[float, float]:
    """Return Friedman's statistic of ranks, one row per task, and its p-value.

    `scipy.stats.friedmanchisquare` needs three methods; a study can compare two.

    Examples
    --------
    >>> friedman(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]))[0].round(3)
    np.float64(4.667)
    """
    blocks, k = ranks.shape
    sizes = [np.unique(row, return_counts=True)[1] for row in ranks]
    ties = sum(int((t**3 - t).sum()) for t in sizes)
    spread = 1 - ties / (blocks * k * (k * k - 1))
    if spread == 0:  # all methods are tied on all tasks
        return 0.0, 1.0
    squares = ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    statistic = 12 * blocks * squares / (k * (k + 1)) / spread
    return statistic, float(chi2.sf(statistic, k - 1))


def critical_difference(methods: int, blocks: int, alpha: float = ALPHA) -> float:
    """Return Nemenyi's critical difference of mean ranks.

    Examples
    --------
    >>> round(critical_difference(4, 14, alpha=0.05), 2)  # as in Demsar's paper
    1.25
    """
    quantile = studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def _groups(mean: pd.Series, difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the longest runs of methods within the critical difference, in the order of ranks."""
    ends = mean.searchsorted(mean + difference, side="right")
    firsts = [i for i, end in enumerate(ends) if i == 0 or end > ends[i - 1]]
    return tuple(tuple(mean.index[i : ends[i]]) for i in firsts)


@dataclass(frozen=True, eq=False)
class Improvements:
    """Geometric means of ratios to a reference method.

    Attributes
    ----------
    scores : PairedScores
        The compared scores, on tasks whose reference score is positive and finite.
    reference : str
        The method that scores are divided by.
    table : data frame
        One row per method: its `ratio`, the ends `low` and `high` of the 95% interval, nan where there is
        none, and the share of tasks that it is `better_on`.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> found = mean_improvements(example_results(), to="none")
    >>> found.improvement(found.table["ratio"]).round(2).to_dict()
    {'none': 0.0, 'ts': 0.65}
    """

    scores: PairedScores
    reference: str
    table: pd.DataFrame

    def improvement(self, ratio: pd.Series) -> pd.Series:
        """Return ratios as improvements: positive if the method is better than the reference."""
        return 1 - ratio if self.scores.better == "lower" else ratio - 1


def mean_improvements(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    to: str | None = None,
    methods: Sequence[str] | None = None,
    better: Better | None = None,
) -> Improvements:
    """Average the improvements of methods over a reference.

    Parameters
    ----------
    results, metric, n, methods, better
        As for `rank_methods`.
    to : str, optional
        The reference: a method, or "none" for the uncalibrated classifier. By default "ts" if available.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> found = mean_improvements(example_results(), to="none")
    >>> found.table["ratio"].round(3).to_dict()
    {'none': 1.0, 'ts': 0.354}
    """
    if to is not None and to != UNCALIBRATED and methods is not None and to not in methods:
        methods = [*methods, to]
    scores = pair_scores(results, metric, n, methods=methods, better=better)
    reference = to or ("ts" if "ts" in scores.means else UNCALIBRATED)
    check_choice("to", reference, tuple(scores.means))
    scores = _with_ratios(scores, reference)
    with np.errstate(divide="ignore", invalid="ignore"):  # scores of 0 have ratios of 0, infinite ones inf
        logs = np.log(scores.means.div(scores.means[reference], axis="index").to_numpy())
        ratio = np.exp(logs.mean(axis=0))
    low = high = np.full(logs.shape[1], np.nan)
    if scores.datasets >= MIN_DATASETS:
        low, high = _interval(logs, scores.dataset_of)
    better_on = scores.losses.lt(scores.losses[reference], axis="index").mean().to_numpy()
    columns = {"ratio": ratio, "low": np.exp(low), "high": np.exp(high), "better_on": better_on}
    table = pd.DataFrame(columns, scores.means.columns)
    return Improvements(scores, reference, table)


def _with_ratios(scores: PairedScores, reference: str) -> PairedScores:
    """Keep the tasks on which scores can be divided by the reference score."""
    if (scores.means < 0).any(axis=None):
        raise InputError(
            f"ratios need nonnegative scores; found {scores.means.min(axis=None):.4g} for "
            f"{scores.metric}. Use ranks."
        )
    its = scores.means[reference]
    kept = scores.means[(its > 0) & (its < np.inf)]
    if kept.empty:
        raise InputError(
            f"{reference} has a positive, finite {scores.metric} on no task, so there are no ratios to it."
        )
    return replace(scores, means=kept)


def _interval(logs: Matrix, clusters: Indices) -> tuple[Vector, Vector]:
    """Return Student's interval of means over clusters; nan where a ratio is 0 or infinite."""
    finite = np.isfinite(logs).all(axis=0)
    total = np.bincount(clusters)
    summed = np.zeros((len(total), logs.shape[1]))
    np.add.at(summed, clusters, np.where(finite, logs, 0.0))
    mean = summed.sum(axis=0) / total.sum()
    without_one = (summed.sum(axis=0) - summed) / (total.sum() - total)[:, None]
    error = np.sqrt(((without_one - mean) ** 2).sum(axis=0) * (1 - 1 / len(total)))
    effective = total.sum() ** 2 / (total**2).sum()
    reach = np.where(finite, student.ppf(1 - ALPHA / 2, effective - 1) * error, np.nan)
    return mean - reach, mean + reach
