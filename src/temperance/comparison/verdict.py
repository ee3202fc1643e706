"""What a comparison found, in one object that the terminal, the page, the JSON output and Python show.

What rows show about probabilities, before and after, is a `Finding`, as in all commands. The `Outcome`
describes the paired difference of the NLL, shown as "log loss", between the uncalibrated classifier and the
recommended method or, if none is recommended, the best candidate.

Where a classifier is calibrated no method is better, and the words must not say so more often than intervals
miss on one side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.comparison.method_result import Difference, MethodResult, ece_gain
from temperance.comparison.recommendation import Recommendation
from temperance.errors import percent
from temperance.metrics.finding import Finding, State, rates
from temperance.metrics.intervals import Estimate


class Outcome(StrEnum):
    """The effect of calibration on the NLL, as far as the test rows can show it. Each member is a str.

    Attributes
    ----------
    BETTER : "better"
        The interval of the gain lies above 0, and no remaining miscalibration is detectable.
    IMPROVED : "improved"
        The interval of the gain lies above 0, but the rows still show miscalibration.
    PROBABLY_BETTER : "probably better"
        The gain is above one standard error, but its interval includes 0.
    POSSIBLY_BETTER : "possibly better"
        The recommended method has a gain that these rows cannot tell from chance.
    NO_DIFFERENCE : "no difference"
        These rows cannot show a difference, or none that matters. A method that is recommended all the same
        is the default for two classes, and without a gain here.
    WORSE : "worse"
        No method is recommended, and the interval of the best one lies below 0.
    CHANCE : "no better than chance"
        No method has a lower NLL than the frequencies of the labels: the labels might belong to other rows.
    REVERSED : "reversed"
        Higher probabilities go with fewer labels: columns or labels are mixed up.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> verdict = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5).verdict
    >>> verdict.outcome is Outcome.BETTER, verdict.outcome == "better"
    (True, True)
    """

    BETTER = "better"
    IMPROVED = "improved"
    PROBABLY_BETTER = "probably better"
    POSSIBLY_BETTER = "possibly better"
    NO_DIFFERENCE = "no difference"
    WORSE = "worse"
    CHANCE = "no better than chance"
    REVERSED = "reversed"


@dataclass(frozen=True)
class Calibration:
    """How well calibrated predictions are.

    Attributes
    ----------
    confidence, accuracy : float
        Mean confidence and accuracy.
    nll, ece : float
    finding : Finding
        What the rows show about the probabilities.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> before = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5).verdict.before
    >>> round(before.gap, 2), before.gap_in_words
    (0.13, 'overconfident by 13.3 points')
    """

    confidence: float
    accuracy: float
    nll: float
    ece: float
    finding: Finding

    @classmethod
    def of(cls, result: MethodResult) -> Calibration:
        """Return the scores of a method."""
        confidence, accuracy = (float(one @ result.share) for one in (result.confidence, result.correct))
        assert result.scores.finding is not None
        return cls(confidence, accuracy, result.nll, result.scores["ece"].value, result.scores.finding)

    @property
    def gap(self) -> float:
        """Mean confidence minus accuracy: above 0 is overconfident."""
        return self.confidence - self.accuracy

    @property
    def gap_in_words(self) -> str:
        """The gap with its direction."""
        points = f"{100 * abs(self.gap):.1f}"
        if points == "0.0":
            return "confidence equal to accuracy"
        return f"{'over' if self.gap > 0 else 'under'}confident by {points} points"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the finding, ready for JSON."""
        numbers = {name: getattr(self, name) for name in ("confidence", "accuracy", "nll", "ece", "gap")}
        return numbers | {"finding": self.finding.to_dict()}


@dataclass(frozen=True)
class Verdict:
    """What to do and what it gains: `print` it, or read its fields.

    Attributes
    ----------
    method : str
        The method to use; "none" if the classifier should not be calibrated.
    tried : str or None
        The method that `outcome`, `after` and the differences describe: `method` or, if that is "none", the
        candidate with the lowest NLL. None if no method was tried.
    outcome : Outcome
    before, after : Calibration
        The finding, mean confidence, accuracy, NLL and ECE of the classifier alone, and with the method.
    nll_gain : Estimate
        How much the NLL falls, with its interval; paired over rows. By cross-validation, the interval is that
        of the calibrator fitted to all rows.
    ece_gain : Difference
        How much the calibration error falls, with its standard error; paired over rows. No interval of it
        is shown: noise adds more to the smaller of two calibration errors, so that the gain comes out too
        small on average, and an interval around it would not cover.
    changed_share : float
        The share of predictions that the method changes.
    keeps_class : bool
        Whether the method cannot change a prediction.
    confidence : float
        The level of the interval.
    candidates : tuple of str
        The names among which the method was chosen, on these rows.
    alternative : str or None
        If the method changes predictions: the one to use if they must stay the same.
    alternative_scores : Calibration or None
        Its numbers.
    chance_nll : float or None
        The NLL of the frequencies of the labels, if no method has a lower one.
    floor : float or None
        The value to which smaller probabilities of the classifier were raised; None if none were.
    groups : str
        A description of the groups that intervals and tests take as independent; empty if these are the rows.
    few : str or None
        How many rows the rarer of two classes has, if they are too few to compare methods.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=4)
    >>> verdict = compare(task.logits, task.labels, methods=["ts"]).verdict
    >>> str(verdict.outcome), verdict.advice
    ('better', 'Calibrate with ts.')
    >>> verdict.before.gap_in_words, verdict.after.gap_in_words
    ('overconfident by 11.9 points', 'overconfident by 0.6 points')
    """

    method: str
    tried: str | None
    outcome: Outcome
    before: Calibration
    after: Calibration
    nll_gain: Estimate
    ece_gain: Difference
    changed_share: float
    keeps_class: bool
    confidence: float
    candidates: tuple[str, ...] = ()
    alternative: str | None = None
    alternative_scores: Calibration | None = None
    chance_nll: float | None = None
    floor: float | None = None
    groups: str = ""
    few: str | None = None

    @property
    def p_value(self) -> float:
        """Of the average and spread test with `method`: whether the rows show a remaining miscalibration."""
        return (self.before if self.method == UNCALIBRATED else self.after).finding.p_value

    @property
    def is_mixed_up(self) -> bool:
        """Whether the labels or columns probably belong to others, so that nothing else is worth showing."""
        return self.outcome in (Outcome.CHANCE, Outcome.REVERSED)

    @property
    def advice(self) -> str:
        """What to do."""
        if self.outcome is Outcome.REVERSED:
            return "Check the labels and the order of the columns."
        if self.outcome is Outcome.CHANCE:
            return "Check the labels before you calibrate."
        if self.method != UNCALIBRATED and self.outcome is Outcome.NO_DIFFERENCE:
            return f"Calibrate with {self.method}, or leave it: no difference shows."
        if self.method != UNCALIBRATED:
            return f"Calibrate with {self.method}."
        if self.floor is not None:
            raised = f"but raise probabilities below {self.floor:.3g} to this value"
            return f"Leave the classifier as it is, {raised}."
        return "Leave the classifier as it is."

    @property
    def headline(self) -> str:
        """What is predicted and what happens, before and after; without a method, the finding."""
        if self.chance_nll is not None:
            return (
                f"The classifier is no better than chance on these rows: its log loss is "
                f"{self.before.nll:.4f}, {self.after.nll:.4f} at best with a calibrator, and "
                f"{self.chance_nll:.4f} if the class frequencies are predicted for every row. Make sure that "
                "the labels belong to these rows, and that their numbers match the columns."
            )
        before, after = self.before.finding, self.after.finding
        if self.method == UNCALIBRATED:
            return str(before)
        if before.of_event:
            first, observed, last = rates(before.mean, before.rate, after.mean)
            was, becomes = (f"O/E {one.ratio.value:.2f}" for one in (before, after))
            was = f"P({before.name}) before: {first} for {observed} observed ({was})."
            return f"{was} After: {last} ({becomes})."
        words = self.after.gap_in_words + (f" ({_means(self.after)})" if self.changed_share > 0 else "")
        return f"Before calibration: {self.before.gap_in_words} ({_means(self.before)}); after: {words}."

    @property
    def gain_in_words(self) -> str:
        """The outcome, and the gain with its uncertainty."""
        if self.tried is None:
            return "No method was tried."
        before, after = f"{self.before.nll:.4f}", f"{self.after.nll:.4f}"
        rises = f"{-self.nll_gain.value:+.4f}"
        interval, of_rise = self._interval(), self._interval(sign=-1)
        if self.outcome is Outcome.WORSE:
            best = f"the best, {self.tried}, by {-self.nll_gain.value:.4f}"
            return f"Worse: every candidate raises the log loss, {before}; {best} ({of_rise})."
        if self.method == UNCALIBRATED:
            best = f"the best method, {self.tried}, changes the log loss, {before}, by {rises}"
            return f"No gain that matters: {best} ({of_rise})."
        decide = "more labelled rows would help to decide."
        falls = f"the log loss falls from {before} to {after}, by {self.nll_gain.value:.4f} ({interval})"
        if self.outcome in (Outcome.POSSIBLY_BETTER, Outcome.NO_DIFFERENCE):
            if before == after:
                falls = f"the log loss stays at {before} ({of_rise} for the change)"
            elif self.nll_gain.value < 0:
                falls = (
                    f"the log loss rises from {before} to {after}, by {-self.nll_gain.value:.4f} ({of_rise})"
                )
            little = "which is less than one standard error" if self.few is None else f"with {self.few}"
            return f"{self.outcome.capitalize()}: {falls}, {little}; {decide}"
        change = f"{falls}; {self._calibration_error()}"
        if self.outcome is Outcome.PROBABLY_BETTER:
            return f"Probably better: {change}. The interval of the log loss includes 0; {decide}"
        return f"{'Better' if self.outcome is Outcome.BETTER else 'Improved'}: {change}."

    def _interval(self, sign: int = 1) -> str:
        low, high = sorted((sign * self.nll_gain.low, sign * self.nll_gain.high))
        return f"{100 * self.confidence:g}% interval {low:.4f} to {high:.4f}"

    def _calibration_error(self) -> str:
        before, after = f"{100 * self.before.ece:.2f}%", f"{100 * self.after.ece:.2f}%"
        gain = self.ece_gain.interval(self.confidence)
        if gain.low > 0 or gain.high < 0:
            return f"the ECE {'falls' if gain.low > 0 else 'rises'} from {before} to {after}"
        return f"the ECE, {before} before and {after} after, does not change detectably"

    @property
    def remaining_in_words(self) -> str:
        """What the rows show with the method; without one, the headline has it."""
        return "" if self.method == UNCALIBRATED else f"After calibration: {self.after.finding}"

    @property
    def predictions_in_words(self) -> str:
        """What happens to the predicted classes."""
        if self.method == UNCALIBRATED or self.keeps_class:
            return "All predictions stay the same."
        if self.changed_share == 0:
            return f"{self.method} can change predictions, but changes none on these rows."
        accuracy = accuracy_in_words(self.before.accuracy, self.after.accuracy)
        changes = f"{self.method} changes {percent(self.changed_share)} of predictions; {accuracy}."
        if self.alternative is None or self.alternative_scores is None:
            return changes
        leave = self.alternative == UNCALIBRATED
        instead = "leave the classifier as it is" if leave else f"calibrate with {self.alternative}"
        scores = self.alternative_scores
        numbers = f"log loss {scores.nll:.4f}, ECE {100 * scores.ece:.2f}%"
        return f"{changes} If all predictions must stay the same, {instead} ({numbers})."

    @property
    def answer(self) -> tuple[str, ...]:
        """What to do, what is predicted and what happens, and the gain with what remains."""
        if self.is_mixed_up:
            return self.advice, self.headline
        return self.advice, self.headline, f"{self.gain_in_words} {self.remaining_in_words}".strip()

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know: groups, the classifier before, the choice, a floor."""
        notes = [self.groups] if self.groups else []
        if self.method == UNCALIBRATED:
            return tuple(notes)
        notes += [f"Before calibration: {self.before.finding}", self.predictions_in_words]
        if len(self.candidates) > 2:
            notes.append("The method was chosen on the rows of these figures: they are slightly optimistic.")
        if self.floor is not None:
            raised = f"probabilities below {self.floor:.3g} count as {self.floor:.3g}"
            notes.append(f"In the scores before calibration, {raised}.")
        return tuple(notes)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole verdict: the answer and the notes."""
        return self.answer + self.notes

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the words and the numbers behind them, ready for JSON."""
        other = self.alternative_scores
        return {
            "verdict": str(self),
            "outcome": str(self.outcome),
            "tried": self.tried,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "nll_gain": _without_infinities(asdict(self.nll_gain)),
            "ece_gain": _without_infinities({"value": self.ece_gain.value, "error": self.ece_gain.error}),
            "p_value": self.p_value,
            "changed_share": self.changed_share,
            "alternative": self.alternative,
            "alternative_scores": None if other is None else other.to_dict(),
            "chance_nll": self.chance_nll,
            "floor": self.floor,
        }


def give_verdict(
    results: Mapping[str, MethodResult],
    recommendation: Recommendation,
    *,
    keeps_class: bool,
    floor: float | None = None,
) -> Verdict:
    """Return the verdict on the recommended method, or on the best candidate if none is."""
    own = results[UNCALIBRATED]
    tried = recommendation.method
    if tried == UNCALIBRATED:
        others = [name for name in recommendation.candidates or results if name != UNCALIBRATED]
        tried = min(others, key=lambda name: results[name].nll, default=UNCALIBRATED)
    method, level = results[tried], own.scores.confidence
    gain = Difference.of_nll(own, method)
    interval = gain.interval(level)
    before, after = Calibration.of(own), Calibration.of(method)
    outcome = Outcome.POSSIBLY_BETTER
    if before.finding.state is State.REVERSED:
        outcome = Outcome.REVERSED
    elif recommendation.chance_nll is not None:
        outcome = Outcome.CHANCE
    elif recommendation.method == UNCALIBRATED:
        outcome = Outcome.WORSE if interval.high < 0 else Outcome.NO_DIFFERENCE
    elif interval.low > 0:
        outcome = Outcome.IMPROVED if after.finding.state.miscalibrated else Outcome.BETTER
    elif gain.value > gain.error:
        outcome = Outcome.PROBABLY_BETTER
    elif not gain.value > 0:
        outcome = Outcome.NO_DIFFERENCE
    alternative = recommendation.alternative
    return Verdict(
        method=recommendation.method,
        tried=None if tried == UNCALIBRATED else tried,
        outcome=outcome,
        before=before,
        after=after,
        nll_gain=interval,
        ece_gain=ece_gain(own, method),
        changed_share=method.changed_share,
        keeps_class=keeps_class,
        confidence=level,
        candidates=recommendation.candidates,
        alternative=alternative,
        alternative_scores=None if alternative is None else Calibration.of(results[alternative]),
        chance_nll=recommendation.chance_nll,
        floor=floor,
        groups="" if own.scores.n_groups is None else own.scores.groups_in_words,
        few=recommendation.few,
    )


def _means(scores: Calibration) -> str:
    return f"mean confidence {percent(scores.confidence)}, accuracy {percent(scores.accuracy)}"


def _without_infinities(numbers: dict[str, float]) -> dict[str, float | None]:
    """Return None for an infinite number, such as the standard error of a single row: JSON has none."""
    return {name: number if np.isfinite(number) else None for name, number in numbers.items()}


def accuracy_in_words(before: float, after: float) -> str:
    """Return "accuracy rises from 83.4% to 88.3%", or that it stays the same.

    Examples
    --------
    >>> accuracy_in_words(0.834, 0.883)
    'accuracy rises from 83.4% to 88.3%'
    >>> accuracy_in_words(0.8341, 0.8339)
    'accuracy stays at 83.4%'
    """
    was, becomes = percent(before), percent(after)
    if was == becomes:
        return f"accuracy stays at {was}"
    return f"accuracy {'rises' if after > before else 'falls'} from {was} to {becomes}"
