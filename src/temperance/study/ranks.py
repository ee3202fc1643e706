"""Mean ranks of methods over tasks, with the Friedman test and Nemenyi's critical difference.

On each of N tasks the k methods are ranked, 1 is the best, and tied methods share the mean of their ranks.
With mean ranks R_j, Friedman's statistic, corrected for ties, is

    12 N sum_j (R_j - (k + 1) / 2)^2 / (k (k + 1)) / (1 - sum(t^3 - t) / (N k (k^2 - 1)))

where t are the sizes of tied groups. Under the null hypothesis of no difference it follows a chi-squared
distribution with k - 1 degrees of freedom. Two methods differ at level alpha if their mean ranks differ by
more than

    q sqrt(k (k + 1) / (6 N)),

with q the 1 - alpha quantile of the studentized range of k means, divided by sqrt(2): J. Demsar, Statistical
comparisons of classifiers over multiple data sets, JMLR 7, 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, rankdata, studentized_range

from temperance.core.arrays import Matrix, Vector
from temperance.inputs.validation import check_choice
from temperance.study.paired_scores import Over, PairedScores, pair_scores
from temperance.study.results import Results

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Ranks:
    """Mean ranks of methods, best first, and which of them are distinguishable.

    Attributes
    ----------
    scores : PairedScores
        The ranked scores.
    over : "tasks" or "datasets"
        What means are taken over.
    blocks : int
        Number of tasks or data sets.
    methods : tuple of str
        Methods by mean rank, the best first.
    mean : array
        The mean ranks.
    statistic, p_value : float
        Friedman's test of the hypothesis that all methods are equal.
    critical_difference : float
        Nemenyi's critical difference at 5 %.
    groups : tuple of tuples of str
        Methods whose mean ranks differ by no more than that, as many as possible in each group. All methods
        are in one group if the Friedman test does not reject at 5 %.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> ranks = rank_methods(example_results())
    >>> dict(zip(ranks.methods, ranks.mean.tolist()))
    {'ts': 1.0, 'none': 2.0}
    """

    scores: PairedScores
    over: Over
    blocks: int
    methods: tuple[str, ...]
    mean: Vector
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
    better: str | None = None,
    over: Over = "tasks",
) -> Ranks:
    """Rank methods over the tasks of a study.

    Parameters
    ----------
    results : Results
        Of a study, finished or not.
    metric, n, methods
        As for `make_table`. The uncalibrated classifier is always ranked.
    better : "lower" or "higher", optional
        Which scores are better. Needed for a metric from outside.
    over : "tasks" or "datasets"
        What means are taken over. The test assumes independent tasks; tasks of one data set are not. With
        "datasets" the mean ranks of each data set are ranked again.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> ranks = rank_methods(example_results())
    >>> ranks.methods, ranks.mean, round(ranks.p_value, 3)
    (('ts', 'none'), array([1., 2.]), 0.157)
    """
    check_choice("over", over, ("tasks", "datasets"))
    scores = pair_scores(results, metric, n, methods=methods, better=better)
    ranks = rankdata(scores.losses, axis=1)
    if over == "datasets":
        ranks = rankdata(scores.by_block(ranks, over), axis=1)
    blocks, k = ranks.shape
    order = np.argsort(ranks.mean(axis=0), kind="stable")
    names, mean = tuple(scores.methods[i] for i in order), ranks.mean(axis=0)[order]
    statistic, p_value = friedman(ranks)
    difference = critical_difference(k, blocks)
    groups = _groups(names, mean, difference) if p_value < ALPHA else (names,)
    return Ranks(scores, over, blocks, names, mean, statistic, p_value, difference, groups)


def friedman(ranks: Matrix) -> tuple[float, float]:
    """Return Friedman's statistic of ranks, a row for each task, and its p-value.

    `scipy.stats.friedmanchisquare` needs three methods; a study may compare two.

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


def _groups(names: Sequence[str], mean: Vector, difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the longest runs of methods within the critical difference, in the order of ranks."""
    ends = np.searchsorted(mean, mean + difference, side="right")
    firsts = [i for i, end in enumerate(ends) if i == 0 or end > ends[i - 1]]
    return tuple(tuple(names[i : ends[i]]) for i in firsts)
