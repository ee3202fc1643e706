"""Win rates: on what share of tasks, and of draws, one method has a better score than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.study.paired_scores import Over, PairedScores, pair_scores
from temperance.study.results import Results
from temperance.validation import check_choice


@dataclass(frozen=True, eq=False)
class WinRates:
    """Shares of tasks on which the method of a row beats that of a column. A tie counts half.

    Attributes
    ----------
    scores : PairedScores
        What was compared.
    over : "tasks" or "datasets"
        What counts once.
    won, tied : arrays of shape (methods, methods)
        Shares of tasks, by means over draws.
    of_draws : array of shape (methods, methods)
        The win rate of single draws: each is the same rows for all methods. A task counts as before,
        however many draws it has.

    Examples
    --------
    Two methods on two tasks; the first is the uncalibrated classifier:

    >>> from pathlib import Path
    >>> from temperance.study.tasks import TaskFile
    >>> tasks = tuple(TaskFile(f"cifar10__{model}", Path("a.npz"), "9f86", 50, 100, 10) for model in "ab")
    >>> means = np.array([[0.8, 0.4], [0.6, 0.45]])
    >>> scores = PairedScores("nll", 50, "lower", ("none", "ts"), tasks, (), means, (means[:1], means[1:]))
    >>> won, tied = np.array([[0.0, 0.0], [1.0, 0.0]]), np.eye(2)
    >>> rates = WinRates(scores, "tasks", won, tied, won + tied / 2)
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
        """The win rate: won, and half of those tied. A method against itself has 1/2."""
        return self.won + self.tied / 2

    @property
    def overall(self) -> Vector:
        """The mean win rate of a method against all others."""
        return _against_others(self.rate)

    @property
    def overall_of_draws(self) -> Vector:
        """The same of single draws."""
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
    A folder as `run_study` leaves it, with the uncalibrated classifier and `ts` on two tasks:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from temperance.study.protocol import FitKey
    >>> from temperance.study.scoring import Score
    >>> from temperance.study.store import ResultStore
    >>> from temperance.study.tasks import TaskFile
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = ResultStore.create(folder, 0)
    >>> names = ["cifar10__a", "cifar10__b"]
    >>> store.add_tasks([TaskFile(name, folder / name, "9f86", 500, 1000, 10) for name in names], [200])
    >>> store.add([Score(FitKey(name, 0, 0, "none"), nll=0.8) for name in names])
    >>> nlls = zip(names, [0.4, 0.2])
    >>> store.add([Score(FitKey(name, 200, 0, "ts"), nll=nll) for name, nll in nlls])
    >>> rates = win_rates(Results(folder))
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
    """Return, for each row, which methods beat and equal which."""
    ours, theirs = losses[:, :, None], losses[:, None, :]
    return (ours < theirs).astype(np.float64), (ours == theirs).astype(np.float64)


def _against_others(rates: Matrix) -> Vector:
    k = len(rates)
    overall: Vector = (rates.sum(axis=1) - np.diag(rates)) / (k - 1)
    return overall
