"""Which method to use, why, and what it gains.

Methods are compared by NLL, a proper score: it rewards true probabilities and nothing else. A difference of
two methods is a mean over rows of paired differences, with its standard error.

The rule: `bayes` is the default answer, since its prior makes it safe with few rows. Another candidate
replaces it only by a gain that matters: at least 1 % of the NLL and two standard errors; 2 % and two standard
errors if it changes decisions. So a noisy method does not qualify by its own large error. The classifier is
left as it is if its NLL is lower by a gain that matters, or if `bayes` does not lower the NLL by more than
one standard error and the rows exclude that it gains 1 %. The candidates are the methods that the user has
named; if none were, `ts`, `bayes`, `bayes-bias` and the uncalibrated classifier, whatever else was tried.
Without `bayes` among them, the default is the method with the fewest parameters that keeps every decision, if
it lowers the NLL by more than one standard error, and otherwise the uncalibrated classifier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.comparison.verdict import Difference, share_in_words
from temperance.core.arrays import Vector

if TYPE_CHECKING:
    from temperance.comparison.result import MethodResult

DEFAULT = "bayes"
DEFAULT_METHODS = ("ts", DEFAULT, "bayes-bias")
"""The methods that are compared if the user names none, and the candidates among all methods."""

MIN_GAIN = 0.01  # of the NLL; less would not be noticed
MIN_GAIN_WITH_CHANGES = 0.02  # of a method that changes decisions, which has a price of its own
MIN_ERRORS = 2.0  # standard errors of the gain


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
    candidates : tuple of str
        The names among which it was chosen.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> comparison.recommendation.method, comparison.recommendation.candidates
    ('ts', ('none', 'ts'))
    """

    method: str
    reason: str
    alternative: str | None = None
    candidates: tuple[str, ...] = ()


def recommend(
    results: Mapping[str, MethodResult], weights: Vector | None, candidates: Collection[str] | None = None
) -> Recommendation:
    """Choose among the candidates (all by default): those that keep every decision first, then the others."""
    share = np.ones(len(results[UNCALIBRATED].row_nll)) if weights is None else weights
    choice = _Choice(results, share / share.sum())
    among = tuple(name for name in results if candidates is None or name in (UNCALIBRATED, *candidates))
    simplest_first = sorted(among, key=lambda name: (results[name].n_parameters, choice.nll(name)))
    keeping = [name for name in simplest_first if not results[name].changes_decisions]
    changing = [name for name in simplest_first if results[name].changes_decisions]
    methods = [name for name in keeping if name != UNCALIBRATED]
    usual = DEFAULT if DEFAULT in methods else next(iter(methods), UNCALIBRATED)

    # A method without a prior has to show a gain. The default method is used until the rows show that it
    # gains nothing that matters.
    gain = choice.gain(UNCALIBRATED, usual)
    may_matter = gain.value + MIN_ERRORS * gain.error >= MIN_GAIN * choice.nll(UNCALIBRATED)
    is_used = gain.value > gain.error or (usual == DEFAULT and may_matter)
    default = usual if is_used else UNCALIBRATED
    kept = choice.improved(default, keeping, MIN_GAIN)
    chosen = choice.improved(kept, changing, MIN_GAIN_WITH_CHANGES)
    if chosen != kept:
        whose = "the choice among methods that keep every decision"
        reason = choice.reason_of_gain(chosen, kept, whose, MIN_GAIN_WITH_CHANGES)
        return Recommendation(chosen, reason, kept, among)
    role = "the default" if usual == DEFAULT else "the simplest method"
    if kept != default:
        reason = choice.reason_of_gain(kept, default, "the default", MIN_GAIN)
    elif usual == UNCALIBRATED:
        reason = "No method that keeps every decision was tried."
    elif is_used:
        nll = f"with an NLL of {choice.nll(default):.4f}"
        reason = f"It is {role}, {nll}; no other candidate is better by a gain that matters."
    else:
        before = f"the NLL, {choice.nll(UNCALIBRATED):.4f}"
        reason = (
            f"{usual}, {role}, does not lower {before}, by more than one standard error ({_in_words(gain)})."
        )
    return Recommendation(kept, reason + choice.reasons_against(kept, usual, among), None, among)


@dataclass(frozen=True)
class _Choice:
    """The results of a comparison, with row weights that sum to 1."""

    results: Mapping[str, MethodResult]
    share: Vector

    def nll(self, name: str) -> float:
        return float(self.results[name].row_nll @ self.share)

    def gain(self, before: str, after: str) -> Difference:
        """Return how much lower the NLL of the second method is."""
        return Difference.of_nll(self.results[before], self.results[after], self.share)

    def improved(self, answer: str, names: Iterable[str], min_gain: float) -> str:
        """Return the answer after each of the methods, in this order, could replace it by a gain."""
        for name in names:
            gain = self.gain(answer, name)
            if gain.value > 0 and gain.value >= max(min_gain * self.nll(answer), MIN_ERRORS * gain.error):
                answer = name
        return answer

    def reason_of_gain(self, chosen: str, other: str, whose: str, min_gain: float) -> str:
        named = "the uncalibrated classifier" if other == UNCALIBRATED else other
        return (
            f"Its NLL, {self.nll(chosen):.4f}, is below that of {named}, {whose}, by "
            f"{_in_words(self.gain(other, chosen))}: {_threshold(min_gain)} or more."
        )

    def reasons_against(self, kept: str, usual: str, candidates: Collection[str]) -> str:
        """Say why methods with a lower NLL than the one kept were not chosen."""
        words = ""
        lower = [name for name in self.results if self.nll(name) < self.nll(kept) and name != usual]
        lower.sort(key=self.nll)
        for rival in [name for name in lower if name in candidates][:1]:
            share = self.results[rival].changed_share
            changes = f" and would change {share_in_words(share)}" if share else ""
            needed = _threshold(MIN_GAIN_WITH_CHANGES if share else MIN_GAIN)
            gain = _in_words(self.gain(kept, rival))
            words += f" {rival} has a lower NLL by {gain}{changes}; {needed} are needed."
        for other in [name for name in lower if name not in candidates][:1]:
            words += f" {other} has a lower NLL, but is a candidate only if you name it."
        return words


def _threshold(min_gain: float) -> str:
    return f"{100 * min_gain:g} % of the NLL and {MIN_ERRORS:g} standard errors"


def _in_words(difference: Difference) -> str:
    return f"{difference.value:.4f} \u00b1 {difference.error:.4f}"
