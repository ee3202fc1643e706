"""What a comparison found, in one object that the terminal, the page, the JSON output and Python show.

The outcome describes the paired difference of the NLL between the uncalibrated classifier and the recommended
method or, if none is recommended, the best candidate:

    better           the interval of the difference lies above 0
    probably better  the difference is above one standard error, but its interval includes 0
    no difference    neither: these rows cannot show one, or none that matters
    worse            no method is recommended, and the interval of the best one lies below 0

A binned calibration error is also a mean over rows: with g_b the mean residual of bin b, it is the mean of
sign(g_b) (correct - confidence). So two methods can be compared row by row, with a standard error.

Where a classifier is calibrated no method is better, and the words must not say so more often than intervals
miss on one side.

References
----------
.. [1] Nadeau and Bengio (2003). Inference for the generalization error. doi:10.1023/A:1024068626366
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.core.arrays import Vector
from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.metrics.intervals import Estimate, PseudoRow, distances, spread

if TYPE_CHECKING:
    from temperance.comparison.recommendation import Recommendation
    from temperance.comparison.result import MethodResult


class Outcome(StrEnum):
    """The effect of calibration on the NLL, as far as the test rows can show it. Each member is a str.

    Attributes
    ----------
    BETTER : "better"
        The interval of the gain lies above 0.
    PROBABLY_BETTER : "probably better"
        The gain is above one standard error, but its interval includes 0.
    NO_DIFFERENCE : "no difference"
        Neither: these rows cannot show a difference, or none that matters.
    WORSE : "worse"
        No method is recommended, and the interval of the best one lies below 0.

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
    PROBABLY_BETTER = "probably better"
    NO_DIFFERENCE = "no difference"
    WORSE = "worse"


@dataclass(frozen=True)
class Difference:
    """A mean difference of two methods over the same rows, and its standard error.

    Attributes
    ----------
    value : float
        The mean difference.
    error : float
        Its standard error.
    skewness : float
        Its skewness: rows with large gains or losses make one end of the interval further away.
    rows : float
        How many rows of equal weight would have this error.

    Examples
    --------
    >>> gain = Difference(0.10, 0.02).interval(0.95)
    >>> round(gain.low, 2), round(gain.high, 2)
    (0.06, 0.14)
    """

    value: float
    error: float
    skewness: float = field(default=0.0, compare=False)
    rows: float = field(default=np.inf, compare=False)

    @classmethod
    def of(cls, rows: Vector, share: Vector, pseudo: PseudoRow | None = None) -> Difference:
        """Return the mean of `rows` with weights that sum to 1; a single row has no finite error.

        `pseudo` has the differences at a pseudo-error, see `metrics.intervals`.
        """
        value = float(rows @ share)
        centred = None if pseudo is None else (pseudo[0] - value, pseudo[1])
        return cls(value, *spread(rows - value, share, centred))

    @classmethod
    def of_nll(
        cls, before: MethodResult, after: MethodResult, share: Vector, folds: int | None = None
    ) -> Difference:
        """Return how much lower the NLL of the second method is.

        `folds` are those of a cross-validation. Its fits are not that to all rows, and share rows: the
        variance of a gain is 1 + folds / (folds - 1) times that of its rows (Nadeau and Bengio, 2003).
        """
        pseudo = None
        if before.pseudo_nll is not None and after.pseudo_nll is not None:
            pseudo = before.pseudo_nll[0] - after.pseudo_nll[0], before.pseudo_nll[1]
        found = cls.of(before.row_nll - after.row_nll, share, pseudo)
        return found if folds is None else replace(found, error=found.error * np.sqrt(2 + 1 / (folds - 1)))

    def interval(self, confidence: float) -> Estimate:
        """Return the interval, with the skewness of the rows taken into account."""
        below, above = distances(self.skewness, self.rows, confidence)
        return Estimate(self.value, self.value - below * self.error, self.value + above * self.error)


@dataclass(frozen=True)
class Calibration:
    """The mean confidence of predictions, and their accuracy."""

    confidence: float
    accuracy: float


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
        "better", "probably better", "no difference" or "worse".
    before, after : Calibration
        Mean confidence and accuracy of the classifier alone, and with the method.
    nll_before, nll_after, ece_before, ece_after : float
    nll_gain : Estimate
        How much the NLL falls, with its interval; paired over rows. By cross-validation, the interval is that
        of the calibrator fitted to all rows.
    ece_gain : Difference
        How much the calibration error falls, with its standard error; paired over rows. No interval of it
        is shown: noise adds more to the smaller of two calibration errors, so that the gain comes out too
        small on average, and an interval around it would not cover.
    changed_share : float
        The share of decisions that the method changes.
    alternative : str or None
        If the method changes decisions: the one to use if they must stay the same.
    keeps_class : bool
        Whether the method cannot change a decision.
    confidence : float
        The level of the interval.
    floor : float or None
        The value to which smaller probabilities of the classifier were raised; None if none were.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=4)
    >>> verdict = compare(task.logits, task.labels, methods=["ts"]).verdict
    >>> str(verdict.outcome), verdict.headline
    ('better', 'The classifier said 88.7 % and was right 76.9 % of the time; calibrated, it says 77.4 %.')
    """

    method: str
    tried: str | None
    outcome: Outcome
    before: Calibration
    after: Calibration
    nll_before: float
    nll_after: float
    nll_gain: Estimate
    ece_before: float
    ece_after: float
    ece_gain: Difference
    changed_share: float
    keeps_class: bool
    confidence: float
    alternative: str | None = None
    floor: float | None = None

    @property
    def headline(self) -> str:
        """What the classifier says, how often it is right, and what it says once calibrated."""
        said, right = percent(self.before.confidence), percent(self.before.accuracy)
        if self.method == UNCALIBRATED:
            return f"The classifier says {said} and is right {right} of the time."
        after = f"calibrated, it says {percent(self.after.confidence)}"
        if self.changed_share > 0:
            after += f" and is right {percent(self.after.accuracy)} of the time"
        return f"The classifier said {said} and was right {right} of the time; {after}."

    @property
    def advice(self) -> str:
        """What to do."""
        if self.method != UNCALIBRATED:
            return f"Calibrate with {self.method}."
        if self.floor is not None:
            raised = f"but raise probabilities below {self.floor:.3g} to this value"
            return f"Leave the classifier as it is, {raised}."
        return "Leave the classifier as it is."

    @property
    def gain_in_words(self) -> str:
        """The outcome, and the gain with its uncertainty."""
        if self.tried is None:
            return "No method was tried."
        before, after = f"{self.nll_before:.4f}", f"{self.nll_after:.4f}"
        rises, falls = f"{-self.nll_gain.value:+.4f}", f"{self.nll_gain.value:.4f}"
        interval, of_rise = self._interval(), self._interval(sign=-1)
        if self.outcome is Outcome.WORSE:
            best = f"the best, {self.tried}, by {-self.nll_gain.value:.4f}"
            return f"Worse: every candidate raises the NLL, {before}; {best} ({of_rise})."
        if self.method == UNCALIBRATED:
            best = f"the best method, {self.tried}, changes the NLL, {before}, by {rises}"
            return f"No gain that matters: {best} ({of_rise})."
        decide = "more labelled test rows would help to decide."
        if self.outcome is Outcome.NO_DIFFERENCE:
            change = f"the NLL changes by {rises}, from {before} to {after} ({of_rise})"
            return f"No difference that these rows can show: {change}; {decide}"
        change = (
            f"the NLL falls by {falls}, from {before} to {after} ({interval}); {self._calibration_error()}"
        )
        if self.outcome is Outcome.BETTER:
            return f"Better: {change}."
        return f"Probably better: {change}. The interval of the NLL includes 0; {decide}"

    def _interval(self, sign: int = 1) -> str:
        low, high = sorted((sign * self.nll_gain.low, sign * self.nll_gain.high))
        return f"{100 * self.confidence:g} % interval {low:.4f} to {high:.4f}"

    def _calibration_error(self) -> str:
        before, after = f"{100 * self.ece_before:.2f} %", f"{100 * self.ece_after:.2f} %"
        gain = self.ece_gain.interval(self.confidence)
        if gain.low > 0:
            return f"the calibration error (ECE) falls from {before} to {after}"
        if gain.high < 0:
            return f"the calibration error (ECE) rises from {before} to {after}"
        return (
            f"these rows cannot show whether the calibration error (ECE) changes: it is {before} before and "
            f"{after} after"
        )

    @property
    def decisions_in_words(self) -> str:
        """What happens to the predicted classes."""
        if self.method == UNCALIBRATED or self.keeps_class:
            return "Every decision stays the same."
        if self.changed_share == 0:
            return "It may change decisions, but changes none on the test rows."
        accuracy = accuracy_in_words(self.before.accuracy, self.after.accuracy)
        changes = f"It changes {share_in_words(self.changed_share)}; {accuracy}."
        if self.alternative is None:
            return changes
        leave = self.alternative == UNCALIBRATED
        instead = "leave the classifier as it is" if leave else f"calibrate with {self.alternative}"
        return f"{changes} If every decision must stay the same, {instead}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole verdict, a sentence at a time."""
        first = self.headline, self.gain_in_words, self.advice
        if self.method == UNCALIBRATED:
            return first
        if self.floor is None:
            return (*first, self.decisions_in_words)
        raised = f"probabilities below {self.floor:.3g} count as {self.floor:.3g}"
        return (*first, self.decisions_in_words, f"In the scores before calibration, {raised}.")

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the words and the numbers behind them, ready for JSON."""
        before, after = ({"said": one.confidence, "right": one.accuracy} for one in (self.before, self.after))
        return {
            "verdict": str(self),
            "outcome": str(self.outcome),
            "tried": self.tried,
            "before": before | {"nll": self.nll_before, "ece": self.ece_before},
            "after": after | {"nll": self.nll_after, "ece": self.ece_after},
            "nll_gain": _without_infinities(asdict(self.nll_gain)),
            "ece_gain": _without_infinities({"value": self.ece_gain.value, "error": self.ece_gain.error}),
            "changed_share": self.changed_share,
            "floor": self.floor,
        }


def give_verdict(
    results: Mapping[str, MethodResult],
    recommendation: Recommendation,
    weights: Vector | None,
    *,
    keeps_class: bool,
    floor: float | None = None,
    folds: int | None = None,
) -> Verdict:
    """Return the verdict on the recommended method, or on the best candidate if none is."""
    own = results[UNCALIBRATED]
    share = np.ones(len(own.row_nll)) if weights is None else weights
    share = share / share.sum()
    tried = recommendation.method
    if tried == UNCALIBRATED:
        others = [name for name in recommendation.candidates or results if name != UNCALIBRATED]
        tried = min(others, key=lambda name: float(results[name].row_nll @ share), default=UNCALIBRATED)
    method, scores = results[tried], own.scores
    gain = Difference.of_nll(own, method, share, folds)
    interval = gain.interval(scores.confidence)
    outcome = Outcome.NO_DIFFERENCE
    if recommendation.method == UNCALIBRATED and interval.high < 0:
        outcome = Outcome.WORSE
    elif recommendation.method != UNCALIBRATED and interval.low > 0:
        outcome = Outcome.BETTER
    elif recommendation.method != UNCALIBRATED and gain.value > gain.error:
        outcome = Outcome.PROBABLY_BETTER
    return Verdict(
        method=recommendation.method,
        tried=None if tried == UNCALIBRATED else tried,
        outcome=outcome,
        before=Calibration(float(own.confidence @ share), float(own.correct @ share)),
        after=Calibration(float(method.confidence @ share), float(method.correct @ share)),
        nll_before=float(own.row_nll @ share),
        nll_after=float(method.row_nll @ share),
        nll_gain=interval,
        ece_before=scores["ece"].value,
        ece_after=method.scores["ece"].value,
        ece_gain=Difference.of(_gaps(own, share, scores.bins) - _gaps(method, share, scores.bins), share),
        changed_share=method.changed_share,
        keeps_class=keeps_class,
        confidence=scores.confidence,
        alternative=recommendation.alternative,
        floor=floor,
    )


def _gaps(result: MethodResult, share: Vector, bins: int) -> Vector:
    """Return one number for each row, whose mean is the calibration error in bins of equal width."""
    residual = result.correct - result.confidence
    index = assign_bins(result.confidence, equal_width_edges(bins, result.confidence.dtype))
    sums = np.bincount(index, residual * share, bins)
    gaps: Vector = np.sign(sums)[index] * residual
    return gaps


def _without_infinities(numbers: dict[str, float]) -> dict[str, float | None]:
    """Return None for an infinite number, such as the standard error of a single row: JSON has none."""
    return {name: number if np.isfinite(number) else None for name, number in numbers.items()}


# ---- Shares in words


def share_in_words(share: float) -> str:
    """Return "12.0 % of decisions"; a share above 0 is never shown as 0.

    Examples
    --------
    >>> share_in_words(0.12), share_in_words(0.0001)
    ('12.0 % of decisions', 'less than 0.1 % of decisions')
    """
    shown = "less than 0.1" if 0 < share < 0.0005 else f"{100 * share:.1f}"
    return f"{shown} % of decisions"


def accuracy_in_words(before: float, after: float) -> str:
    """Return "accuracy rises from 83.4 % to 88.3 %", or that it stays the same.

    Examples
    --------
    >>> accuracy_in_words(0.834, 0.883)
    'accuracy rises from 83.4 % to 88.3 %'
    >>> accuracy_in_words(0.8341, 0.8339)
    'accuracy stays at 83.4 %'
    """
    was, becomes = percent(before), percent(after)
    if was == becomes:
        return f"accuracy stays at {was}"
    return f"accuracy {'rises' if after > before else 'falls'} from {was} to {becomes}"


def percent(share: float) -> str:
    """Return "97.7 %", with more digits if a share below 1 would be shown as 100 %.

    Examples
    --------
    >>> percent(0.9772), percent(0.99984), percent(1.0)
    ('97.7 %', '99.98 %', '100.0 %')
    """
    shown = [f"{100 * share:.{digits}f} %" for digits in (1, 2, 3)]
    return next((words for words in shown if share == 1 or not words.startswith("100")), shown[0])
