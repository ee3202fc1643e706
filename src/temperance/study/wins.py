"""Win rates: the share of tasks, and of draws, on which one method has a better score than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.inputs.validation import check_choice
from temperance.study.paired_scores import Over, PairedScores, pair_scores
from temperance.study.results import Results


@dataclass(frozen=True, eq=False)
class WinRates:
    """Shares of tasks on which the method of a row beats that of a column. A tie counts half.

    Attributes
    ----------
    scores : PairedScores
        The compared scores.
    over : "tasks" or "datasets"
        What means are taken over.
    won, tied : arrays of shape (methods, methods)
        Shares of tasks, by means over draws.
    of_draws : array of shape (methods, methods)
        The win rate of single draws, each with the same rows for all methods. The weight of a task does not
        depend on its number of draws.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> rates = win_rates(example_results())
    >>> rates.rate
    array([[0.5, 0. ],
           [1. , 0.5]])
    >>> rates.overall
    array([0., 1.])
    """

    scores: PairedScores
    over: Over
    won: Matrix
    tied: Matrix
    of_draws: Matrix

    @property
    def rate(self) -> Matrix:
        """The win rate: won, plus half of those tied. A method against itself has 1/2."""
        return self.won + self.tied / 2

    @property
    def overall(self) -> Vector:
        """The mean win rate of a method against all others."""
        return _against_others(self.rate)

    @property
    def overall_of_draws(self) -> Vector:
        """The same for single draws."""
        return _against_others(self.of_draws)


def win_rates(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    better: str | None = None,
    over: Over = "tasks",
) -> WinRates:
    """Compare methods in pairs over the tasks of a study.

    Parameters
    ----------
    results, metric, n, methods, better, over
        As for `rank_methods`.

    Examples
    --------
    >>> from temperance.study.example import example_results
    >>> rates = win_rates(example_results())
    >>> rates.scores.methods, rates.overall
    (('none', 'ts'), array([0., 1.]))
    """
    check_choice("over", over, ("tasks", "datasets"))
    scores = pair_scores(results, metric, n, methods=methods, better=better)
    sign = 1 if scores.better == "lower" else -1
    won, tied = _won_and_tied(scores.losses)
    by_draw = [_won_and_tied(sign * draws) for draws in scores.draws]
    of_draws = np.array([won.mean(axis=0) + tied.mean(axis=0) / 2 for won, tied in by_draw])
    return WinRates(scores, over, *(scores.mean_over(values, over) for values in (won, tied, of_draws)))


def _won_and_tied(losses: Matrix) -> tuple[Matrix, Matrix]:
    """Return, for each row, which methods beat and which tie with each other."""
    ours, theirs = losses[:, :, None], losses[:, None, :]
    return (ours < theirs).astype(np.float64), (ours == theirs).astype(np.float64)


def _against_others(rates: Matrix) -> Vector:
    k = len(rates)
    overall: Vector = (rates.sum(axis=1) - np.diag(rates)) / (k - 1)
    return overall
