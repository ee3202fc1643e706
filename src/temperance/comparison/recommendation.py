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

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.comparison.method_result import Difference, MethodResult
from temperance.comparison.verdict import share_in_words
from temperance.core.arrays import Vector

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
    among = tuple(name for name in results if candidates is None or name in (UNCALIBRATED, *candidates))
    choice = _Choice(results, share / share.sum(), among)
    keeping = [name for name in among if not results[name].changes_decisions]
    changing = [name for name in among if results[name].changes_decisions]
    usual = choice.usual_method(keeping)
    default = UNCALIBRATED if choice.gains_nothing(usual) else usual
    kept = choice.improved(default, keeping, MIN_GAIN)
    chosen = choice.improved(kept, changing, MIN_GAIN_WITH_CHANGES)
    if chosen != kept:
        whose = "the choice among methods that keep every decision"
        reason = choice.reason_of_gain(chosen, kept, whose, MIN_GAIN_WITH_CHANGES)
        return Recommendation(chosen, reason, kept, among)
    if kept != default:
        reason = choice.reason_of_gain(kept, default, "the default", MIN_GAIN)
    else:
        reason = choice.reason_of_default(default, usual)
    reason = " ".join([reason, *choice.reasons_against_others(kept, usual)])
    return Recommendation(kept, reason, None, among)


@dataclass(frozen=True)
class _Choice:
    """The results of a comparison, with row weights that sum to 1."""

    results: Mapping[str, MethodResult]
    share: Vector
    candidates: tuple[str, ...]

    def nll(self, name: str) -> float:
        return float(self.results[name].row_nll @ self.share)

    def gain(self, before: str, after: str) -> Difference:
        """Return how much lower the NLL of the second method is."""
        return Difference.of(self.results[before].row_nll - self.results[after].row_nll, self.share)

    def simplest_first(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: (self.results[name].n_parameters, self.nll(name)))

    def usual_method(self, keeping: Collection[str]) -> str:
        """Return the default method if it is a candidate, or else the simplest one that keeps decisions."""
        methods = [name for name in keeping if name != UNCALIBRATED]
        return DEFAULT if DEFAULT in methods else next(iter(self.simplest_first(methods)), UNCALIBRATED)

    def gains_nothing(self, method: str) -> bool:
        """Say whether the classifier is left as it is rather than calibrated by a method.

        A method without a prior has to show a gain. The default method is used until the rows show that it
        gains nothing that matters.
        """
        gain = self.gain(UNCALIBRATED, method)
        if gain.value > gain.error:
            return False
        highest = gain.value + MIN_ERRORS * gain.error
        return method != DEFAULT or highest < MIN_GAIN * self.nll(UNCALIBRATED)

    def improved(self, answer: str, names: Iterable[str], min_gain: float) -> str:
        """Return the answer after each of the methods, the simplest first, could replace it by a gain."""
        for name in self.simplest_first(names):
            gain = self.gain(answer, name)
            if gain.value > 0 and gain.value >= max(min_gain * self.nll(answer), MIN_ERRORS * gain.error):
                answer = name
        return answer

    def reason_of_default(self, default: str, usual: str) -> str:
        if usual == UNCALIBRATED:
            return "No method that keeps every decision was tried."
        role = "the default" if usual == DEFAULT else "the simplest method"
        if default != UNCALIBRATED:
            nll = f"with an NLL of {self.nll(default):.4f}"
            return f"It is {role}, {nll}; no other candidate is better by a gain that matters."
        before, gain = self.nll(UNCALIBRATED), self.gain(UNCALIBRATED, usual)
        return (
            f"{usual}, {role}, does not lower the NLL, {before:.4f}, by more than one standard error "
            f"({_in_words(gain)})."
        )

    def reason_of_gain(self, chosen: str, other: str, whose: str, min_gain: float) -> str:
        named = "the uncalibrated classifier" if other == UNCALIBRATED else other
        return (
            f"Its NLL, {self.nll(chosen):.4f}, is below that of {named}, {whose}, by "
            f"{_in_words(self.gain(other, chosen))}: {_threshold(min_gain)} or more."
        )

    def reasons_against_others(self, kept: str, usual: str) -> Iterator[str]:
        """Say why methods with a lower NLL were not chosen."""
        lower = [name for name in self.results if self.nll(name) < self.nll(kept) and name != usual]
        rival = min((name for name in lower if name in self.candidates), key=self.nll, default=None)
        if rival is not None:
            share = self.results[rival].changed_share
            changes = f" and would change {share_in_words(share)}" if share else ""
            needed = _threshold(MIN_GAIN_WITH_CHANGES if share else MIN_GAIN)
            gain = _in_words(self.gain(kept, rival))
            yield f"{rival} has a lower NLL by {gain}{changes}; {needed} are needed."
        other = min((name for name in lower if name not in self.candidates), key=self.nll, default=None)
        if other is not None:
            yield f"{other} has a lower NLL, but is a candidate only if you name it."


def _threshold(min_gain: float) -> str:
    return f"{100 * min_gain:g} % of the NLL and {MIN_ERRORS:g} standard errors"


def _in_words(difference: Difference) -> str:
    return f"{difference.value:.4f} \u00b1 {difference.error:.4f}"
