"""What rows show about probabilities, in one state and one sentence, the same in every command.

With two classes people act on P(positive), so that is evaluated: its mean against the rate of the
class, as O/E (observed over expected), and its slope. With several classes it is the confidence in the top
class, and the frequency of each class; of a class that the caller calls positive, its probability.

Only the one test (`metrics.one_test`) at the level of 5% says "miscalibrated". Intervals then say what is
wrong: an interval that excludes its ideal while the test does not reject is "may be". The states are tried in
this order:

    reversed       p < 0.05, and the slope is below 0, or the accuracy below chance: columns are mixed up
    impossible     labels have probability 0
    level, spread  p < 0.05, and the interval of O/E excludes 1, or that of the slope, or both
    gap, class     with several classes: confidence is not accuracy, or one class is not as frequent as said
    frequencies    with several classes: their frequencies are off together, no single one stands out
    unclear        p < 0.05, and the rows do not show how
    may be         p >= 0.05, and an interval (O/E, slope, confidence minus accuracy) excludes its ideal
    too few        p >= 0.05, and the interval is wide
    none           no miscalibration is detectable

`benchmarks/events.py` simulates the test and the states.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from temperance.errors import percent
from temperance.inputs.names import class_in_words
from temperance.metrics.calibration_tests import LEVEL, cox_of
from temperance.metrics.intervals import Estimate, mean_interval, without_nan
from temperance.metrics.one_test import Design, one_test
from temperance.metrics.predictions import Predictions

CONFIDENCE = 1 - LEVEL  # of the intervals that the states compare with their ideals
VISIBLE_GAP = 0.1  # that too few rows do not show
FEW = (0.5, 2.0)  # O/E that too few rows do not exclude
MAX_DECIMALS = 6  # of O/E
VISIBLE_RATIO = 2.0  # width of an interval of O/E that is shown with one decimal
_BELOW_CHANCE = 2.0  # standard errors
_NO_ESTIMATE = Estimate(np.nan, np.nan, np.nan)


class State(StrEnum):
    """What rows show about probabilities; see the module for when each applies. Each member is a str."""

    IMPOSSIBLE = "impossible"
    REVERSED = "reversed"
    LEVEL_AND_SPREAD = "level and spread"
    LEVEL = "level"
    SPREAD = "spread"
    GAP_AND_CLASS = "gap and class"
    GAP = "gap"
    CLASS = "class"
    FREQUENCIES = "frequencies"
    UNCLEAR = "unclear"
    MAY_BE = "may be"
    TOO_FEW = "too few"
    NONE = "none"

    @property
    def miscalibrated(self) -> bool:
        """Whether the test rejects the probabilities."""
        return self not in (State.MAY_BE, State.TOO_FEW, State.NONE)


@dataclass(frozen=True)
class Finding:
    """What rows show about probabilities: `print` it, or read its fields.

    Attributes
    ----------
    state : State
    p_value, level_p, spread_p : float
        Of the average and spread test, and of its two parts; nan if the rows cannot show a part.
    of_event : bool
        Whether P(class) is evaluated, as with two classes; otherwise it is the confidence in the top class.
    name : str
        The class: the one whose probability is evaluated, or the one furthest from its predicted frequency.
    n_rows : int
    mean, rate : float
        The mean probability of the class, and its share of the labels.
    ratio : Estimate
        O/E of the class, `rate / mean`.
    gap : Estimate
        What is predicted minus what happened: of an event `mean - rate`, otherwise confidence minus accuracy.
    slope : Estimate
        Of Cox's recalibration of an event: below 1 if predictions are too extreme; nan if not identified.
    accuracy, chance : float
        The share of rows whose predicted class is the label, and what it would be if they were unrelated.
    events : int
        How many labels are of the class.
    too_extreme : bool
        The direction of the spread.
    impossible : int
        How many labels have probability 0.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = 1 / (1 + np.exp(-rng.normal(size=2000)))
    >>> happens = rng.uniform(size=2000) < p / (p + 1.5 * (1 - p))
    >>> finding = evaluate(p, np.where(happens, "yes", "no"), classes=["no", "yes"], draws=20).finding
    >>> str(finding.state), round(finding.ratio.value, 2)
    ('level', 0.85)
    >>> print(finding)
    P(yes) is too high: 49.5% on average, 41.9% observed (O/E 0.85, 0.81 to 0.89).
    """

    state: State
    p_value: float
    level_p: float
    spread_p: float
    of_event: bool
    name: str
    n_rows: int
    mean: float
    rate: float
    ratio: Estimate
    gap: Estimate
    slope: Estimate
    accuracy: float
    chance: float
    events: int
    too_extreme: bool
    impossible: int

    @classmethod
    def of(cls, rows: Predictions, design: Design | None = None) -> Finding:
        """Return what rows show; `design` replaces the design effects that their groups would give."""
        event = rows.event
        judged = rows if event is None else rows.of_class(event)
        test = one_test(judged, design)
        column = test.column if event is None else event
        of_class = judged if event is not None else rows.of_class(column)
        outcome = of_class.labels.astype(np.float64)
        p = of_class.probs[:, 1].astype(np.float64)
        mean, slope, gap = of_class.mean(p), _NO_ESTIMATE, _gap(of_class)
        ends = gap.value, gap.high, gap.low  # no class has a frequency below 0
        ratio = Estimate(*(float(np.maximum(0.0, 1 - end / mean)) if mean > 0 else np.nan for end in ends))
        if event is None:
            gap = rows.gap(CONFIDENCE)
        else:
            slope = cox_of(p, outcome, of_class.weight, of_class.groups, CONFIDENCE).slope
            if not np.isfinite(slope.high - slope.low):  # rows of a single group
                slope = Estimate(slope.value, np.nan, np.nan)
        accuracy, chance = judged.mean(judged.correct), _chance(judged)
        found = cls(
            State.NONE,
            *(test.p_value, test.level_p, test.spread_p),
            of_event=event is not None,
            name=class_in_words(column, rows.names),
            n_rows=len(rows.labels),
            mean=mean,
            rate=of_class.mean(outcome),
            ratio=ratio,
            gap=gap,
            slope=slope,
            accuracy=accuracy,
            chance=chance,
            events=int(outcome.sum()),
            too_extreme=slope.value < 1 if slope.value == slope.value else test.too_extreme,
            impossible=test.impossible,
        )
        error = float(np.sqrt(max(chance * (1 - chance), 0.0) * judged.units.one_row))
        below_chance = not rows.positions and accuracy < chance - _BELOW_CHANCE * error
        is_reversed = below_chance or slope.high < 0
        return replace(found, state=_state(found, is_reversed, 2 * test.largest_p < LEVEL))

    @property
    def confidence(self) -> float:
        """The mean confidence in the top class, where it is evaluated."""
        return np.nan if self.of_event else self.accuracy + self.gap.value

    @property
    def is_off(self) -> bool:
        """Whether the interval of O/E, or of confidence minus accuracy, excludes its ideal."""
        return excludes(self.ratio, 1.0) if self.of_event else excludes(self.gap, 0.0)

    @property
    def is_few(self) -> bool:
        """Whether the rows are too few to show whether something is off."""
        is_narrow = max(self.gap.high - self.gap.value, self.gap.value - self.gap.low) <= VISIBLE_GAP
        low, high = FEW if self.of_event else (-np.inf, np.inf)
        return not (is_narrow and self.ratio.low >= low and self.ratio.high <= high)

    @property
    def direction(self) -> str:
        """Whether an event has too low or too high a probability, or the confidence is over or under."""
        if self.of_event:
            return "too high" if self.gap.value > 0 else "too low"
        return "overconfident" if self.gap.value > 0 else "underconfident"

    @property
    def frequencies(self) -> str:
        """What is predicted for the class on average, what was observed, and their ratio."""
        predicted, observed = rates(self.mean, self.rate)
        return f"{predicted} on average, {observed} observed ({ratio_in_words(self.ratio)})"

    @property
    def spread(self) -> str:
        """The direction of the spread, as a phrase."""
        return "too extreme" if self.too_extreme else "not extreme enough"

    @property
    def claim(self) -> str:
        """What is wrong, or might be, without numbers."""
        of, may_be = f"P({self.name})", self.state is State.MAY_BE
        match self.state:
            case State.IMPOSSIBLE:
                return "labels have probability 0"
            case State.REVERSED:
                rows = "rows of " * self.name.startswith("class ")
                fewer = f"higher {of} goes with fewer {rows}{self.name}"
                return fewer if self.of_event else "accuracy is below chance"
            case State.UNCLEAR:
                return f"{of} does not fit these rows"
            case State.CLASS | State.FREQUENCIES:
                return "class frequencies are off"
            case State.SPREAD if not self.of_event:
                return f"predictions are {self.spread}"
        if not self.of_event:
            return f"{'it may be ' * may_be}{self.direction}"
        return f"{of} {'may be' if may_be else 'is'} {self.direction if self.is_off else self.spread}"

    def at(self, p_value: float) -> Finding:
        """Return the same with a p-value that also counts other tests, and so might not reject any more."""
        return replace(self, p_value=p_value, state=self.state if p_value < LEVEL else _not_rejected(self))

    @property
    def words(self) -> str:
        """The state and the numbers behind it as sentences."""
        return self.words_in("")

    def words_in(self, place: str) -> str:
        """Return the words; `place`, such as " in West", says where it is wrong."""
        if self.state is State.IMPOSSIBLE:
            rows, have = ("row", "has") if self.impossible == 1 else ("rows", "have")
            zeros = f"{self.impossible:,} {rows}{place} {have} a label of probability 0."
            if not self.is_off:
                return zeros
            # What most rows show comes first: a few answers can be as sure as can be, and wrong.
            level = replace(self, state=State.LEVEL if self.of_event else State.GAP)
            return f"{level.words_in(place)} {zeros}"
        return self._of_event(place) if self.of_event else self._of_classes(place)

    def __str__(self) -> str:
        return self.words

    def _of_event(self, place: str) -> str:
        shown, p = self.frequencies, p_in_words(self.p_value)
        wrong = f"{capital(self.claim)}{place}"
        predicted, observed = rates(self.mean, self.rate)
        ratio, slope = ratio_in_words(self.ratio), f"slope {self.slope.value:.2f}"
        slope_ends = _ends(self.slope, 2)
        match self.state:
            case State.REVERSED:
                return f"{wrong}. Check the columns and labels before you calibrate."
            case State.LEVEL:
                return f"{wrong}: {shown}."
            case State.LEVEL_AND_SPREAD:
                return f"{wrong}: {shown}. It is also {self.spread} ({slope}, {slope_ends})."
            case State.SPREAD:
                fits = f"On average it fits: {predicted}, {observed} observed ({ratio})."
                return f"{wrong}: {slope} ({slope_ends}). {fits}"
            case State.UNCLEAR:
                return f"{wrong} ({p}), but they do not show how: {shown}."
            case State.MAY_BE:
                seen = shown if self.is_off else f"{slope} ({slope_ends})"
                return f"{wrong}: {seen}. Average and spread together do not confirm it ({p})."
            case State.TOO_FEW:
                counted = f"{self.events:,} of {self.n_rows:,} observed"
                of = f"P({self.name}) {percent(self.mean)}"
                return f"Too few rows to tell: {of} on average, {counted} ({ratio})."
        return f"No miscalibration is detectable: P({self.name}) {shown[:-1]}; {p})."

    def _of_classes(self, place: str) -> str:
        confidence, accuracy = rates(self.confidence, self.accuracy)
        both, p = f"confidence {confidence}, accuracy {accuracy}", p_in_words(self.p_value)
        side = "rarely" if self.ratio.value > 1 else "often"
        of_class = f"{self.name} is predicted too {side}: {self.frequencies}."
        match self.state:
            case State.REVERSED:
                return (
                    f"The accuracy{place}, {accuracy}, is below chance, {percent(self.chance)}. Check the "
                    "labels and the order of the columns before you calibrate."
                )
            case State.GAP | State.GAP_AND_CLASS:
                off = f"{self.direction.capitalize()}{place} by {points_in_words(self.gap)}: {both}."
                return f"{off} {capital(of_class)}" if self.state is State.GAP_AND_CLASS else off
            case State.CLASS:
                return f"On average confidence fits{place} ({confidence}, {accuracy}), but {of_class}"
            case State.FREQUENCIES:
                predicted, observed = rates(self.mean, self.rate)
                return (
                    f"Class frequencies are off together{place} ({p}); no single class stands out. "
                    f"Largest: {self.name}, {predicted} for {observed}."
                )
            case State.SPREAD:
                wrong = f"{capital(self.claim)}{place} ({p})"
                return f"{wrong}, though confidence fits on average: {both}."
            case State.MAY_BE:
                return (
                    f"It may be {self.direction}, by {points_in_words(self.gap)}; the test of classes and "
                    f"spread does not confirm it ({p})."
                )
            case State.TOO_FEW:
                return f"Too few rows to tell: {both} ({p})."
        return f"No miscalibration is detectable: {both} ({p})."

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON; None for what is unknown."""
        plain: dict[str, Any] = {"state": str(self.state), "class": self.name, "words": self.words}
        for name in ("p_value", "level_p", "spread_p", "mean", "rate", "gap", "ratio", "slope"):
            value = getattr(self, name)
            plain[name] = asdict(value) if isinstance(value, Estimate) else value
        found: dict[str, Any] = without_nan(plain)
        return found


def p_in_words(p: float) -> str:
    """Return a p-value as words show it.

    Examples
    --------
    >>> p_in_words(0.0304), p_in_words(0.000304), p_in_words(0.54)
    ('p = 0.030', 'p < 0.001', 'p = 0.54')
    """
    if p != p:
        return "p unknown"
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def rates(*shares: float) -> list[str]:
    """Return shares in percent, with as many decimals as the smallest needs for two digits.

    Examples
    --------
    >>> rates(0.0195, 0.0253), rates(0.241, 0.2), rates(0.0003, 0.25)
    (['1.95%', '2.53%'], ['24.1%', '20.0%'], ['0.030%', '25.000%'])
    """
    smallest = min((share for share in shares if share > 0), default=1.0)
    decimals = 1 if smallest >= 0.05 else int(np.clip(1 - np.floor(np.log10(100 * smallest)), 2, 8))
    return [f"{100 * share:.{decimals}f}%" for share in shares]


def ratio_in_words(ratio: Estimate) -> str:
    """Return O/E with its interval: with one decimal where that is wide."""
    if not np.isfinite(ratio.value):
        return "O/E unknown"
    decimals = 1 if not ratio.high - ratio.low < VISIBLE_RATIO else 2
    nearest = min(abs(ratio.low - 1), abs(ratio.high - 1)) if excludes(ratio, 1.0) else 1.0
    while decimals < MAX_DECIMALS and nearest < 0.5 * 10**-decimals:  # 1.00 would seem to include 1
        decimals += 1
    return f"O/E {ratio.value:.{decimals}f}, {_ends(ratio, decimals)}"


def points_in_words(gap: Estimate) -> str:
    """Return the size of a difference in percentage points, with its interval."""
    size = gap if gap.value >= 0 else Estimate(-gap.value, -gap.high, -gap.low)
    size = Estimate(*(100 * end for end in (size.value, size.low, size.high)))
    return f"{size.value:.1f} points ({_ends(size, 1)})"


def _ends(interval: Estimate, decimals: int) -> str:
    if np.isnan(interval.low):
        return "without an interval"
    return f"{interval.low:.{decimals}f} to {interval.high:.{decimals}f}"


def capital(sentence: str) -> str:
    """Return a sentence that begins with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def _gap(rows: Predictions) -> Estimate:
    """Return the mean probability of the second class minus its rate, with a pseudo-error in the interval."""
    p, wrong = rows.probs[:, 1].astype(np.float64), rows.pseudo_error
    pseudo = p - wrong.labels, wrong.weight
    return mean_interval(p - rows.labels, rows.weight, CONFIDENCE, -1.0, 1.0, pseudo, rows.groups)


def _chance(rows: Predictions) -> float:
    """Return the accuracy of labels that are unrelated to the predicted classes, each as frequent as here."""
    n_classes, share = rows.probs.shape[1], rows.weight / rows.total
    return float(np.bincount(rows.labels, share, n_classes) @ np.bincount(rows.top, share, n_classes))


def excludes(interval: Estimate, ideal: float) -> bool:
    """Say whether an interval lies to one side of the ideal value; one that is not known does not."""
    return interval.low > ideal or interval.high < ideal


def _state(found: Finding, is_reversed: bool, is_named: bool) -> State:
    """Return the first state that applies; `is_named` says whether one class of several is off."""
    rejects = found.p_value < LEVEL
    if rejects and is_reversed:
        return State.REVERSED
    if found.impossible:
        return State.IMPOSSIBLE
    if not rejects:
        return _not_rejected(found)
    off = found.is_off
    if found.of_event:
        more, states = excludes(found.slope, 1.0), (State.LEVEL_AND_SPREAD, State.LEVEL, State.SPREAD)
    else:
        more, states = is_named, (State.GAP_AND_CLASS, State.GAP, State.CLASS)
    if off or more:
        return states[0] if off and more else states[1] if off else states[2]
    if found.of_event:
        return State.UNCLEAR
    return State.FREQUENCIES if found.level_p < LEVEL else State.SPREAD


def _not_rejected(found: Finding) -> State:
    """Return the first state that applies if the test does not reject."""
    if found.is_off or (found.of_event and excludes(found.slope, 1.0)):
        return State.MAY_BE
    return State.TOO_FEW if found.is_few else State.NONE
