"""Which method to use, why, and what it gains.

Methods are compared by NLL, a proper score: it rewards true probabilities and nothing else. Among the methods
that keep every decision, the simplest one whose NLL is within one standard error of the lowest is chosen. The
error is that of the mean difference between the two methods, row by row, which is far smaller than that of
either method. Simpler means fewer parameters; with a prior, only parameters that the rows determine count.

A method that changes decisions is chosen only if its NLL is below that of this choice by more than one
standard error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.comparison.decisions import share_in_words
from temperance.comparison.difference import Difference
from temperance.comparison.method_result import MethodResult
from temperance.core.arrays import Vector

NEGLIGIBLE = 1e-6  # of the NLL: two solvers of the same problem may differ by more than the error over rows


@dataclass(frozen=True)
class Recommendation:
    """The method to use, and the reason in words.

    Attributes
    ----------
    method : str
        The method to use; "none" if none is needed.
    reason : str
        Why, in words.
    alternative : str, or None
        If the method changes decisions: the one to use if they must stay the same.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> comparison.recommendation.method
    'ts'
    """

    method: str
    reason: str
    alternative: str | None = None


def recommend(results: Mapping[str, MethodResult], weights: Vector | None) -> Recommendation:
    """Choose among the methods that keep every decision, unless one that changes some is clearly better."""
    share = np.ones(len(results[UNCALIBRATED].row_nll)) if weights is None else weights
    choice = _Choice(results, share / share.sum())
    kept = choice.simplest([name for name in results if not results[name].changes_decisions])
    better = choice.clearly_better_than(kept)
    chosen = choice.simplest(better) if better else kept
    if better:
        return Recommendation(chosen, choice.reason_to_change(chosen, kept), kept)
    return Recommendation(kept, choice.reason_to_keep(kept))


@dataclass(frozen=True)
class _Choice:
    """The results of a comparison, with row weights that sum to 1."""

    results: Mapping[str, MethodResult]
    share: Vector

    def nll(self, name: str) -> float:
        return float(self.results[name].row_nll @ self.share)

    def lowest(self, names: Iterable[str]) -> str:
        return min(names, key=self.nll)

    def difference(self, higher: str, lower: str) -> Difference:
        """Return the NLL of one method minus that of another."""
        return Difference.of(self.results[higher].row_nll - self.results[lower].row_nll, self.share)

    def is_beyond_error(self, higher: str, lower: str) -> bool:
        """Say whether one NLL is above another by more than one standard error."""
        difference = self.difference(higher, lower)
        return difference.value > difference.error + NEGLIGIBLE * self.nll(lower)

    def simplest(self, names: Sequence[str]) -> str:
        """Return the simplest of the candidates that is within one standard error of the lowest NLL."""
        candidates = self.candidates(names)
        best = self.lowest(candidates)
        within = [name for name in candidates if not self.is_beyond_error(name, best)]
        return min(within, key=lambda name: (self.results[name].n_parameters, self.nll(name)))

    def candidates(self, names: Sequence[str]) -> Sequence[str]:
        """Return those that beat the uncalibrated classifier by more than one standard error, or else all.

        A method with a lower but noisy NLL must not hide one that is clearly better.
        """
        return [name for name in names if self.is_beyond_error(UNCALIBRATED, name)] or names

    def clearly_better_than(self, kept: str) -> list[str]:
        """Return the methods that change decisions and lower the NLL by more than one standard error."""
        return [
            name
            for name, result in self.results.items()
            if result.changes_decisions and self.is_beyond_error(kept, name)
        ]

    def reason_to_keep(self, kept: str) -> str:
        """Say why a method is chosen, and not one that changes decisions for a lower NLL."""
        keeping = [name for name, result in self.results.items() if not result.changes_decisions]
        candidates = self.candidates(keeping)
        best, lowest = self.lowest(candidates), self.lowest(self.results)
        rival = None if lowest in keeping else lowest
        among = "" if rival is None else " of the methods that keep every decision"
        others = [name for name in keeping if name not in (UNCALIBRATED, *candidates)]
        if not all(self.is_beyond_error(name, best) for name in others):
            beat = "beat the uncalibrated classifier by more than one standard error"
            among += f" and {beat}" if among else f" of the methods that {beat}"
        if kept == best:
            reason = (
                f"Its NLL, {self.nll(best):.4f}, is the lowest{among}; no simpler one is within one standard "
                "error."
            )
        else:
            reason = (
                f"It is the simplest method whose NLL, {self.nll(kept):.4f}, is within one standard error "
                f"({self.difference(kept, best).error:.4f}) of the lowest{among}, {self.nll(best):.4f} "
                f"({best})."
            )
        return reason if rival is None else f"{reason} {self._why_not(rival, kept)}"

    def _why_not(self, rival: str, kept: str) -> str:
        return (
            f"{rival} has a lower NLL by {_in_words(self.difference(kept, rival))}, within its standard "
            f"error, and would change {share_in_words(self.results[rival].changed_share)}."
        )

    def reason_to_change(self, chosen: str, kept: str) -> str:
        """Say what a method that changes decisions gains over the one that would keep them."""
        other = "the uncalibrated classifier" if kept == UNCALIBRATED else kept
        return (
            f"Its NLL, {self.nll(chosen):.4f}, is below that of {other}, the choice among methods that keep "
            f"every decision, by {_in_words(self.difference(kept, chosen))}, more than one standard error."
        )


def _in_words(difference: Difference) -> str:
    return f"{difference.value:.4f} \u00b1 {difference.error:.4f}"
