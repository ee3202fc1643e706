"""How often predictions of a given confidence are correct: overall, by class, and by group of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison
from temperance.comparison.method_result import MIN_ROWS
from temperance.display.base import Display, chosen
from temperance.display.chart import (
    PANEL,
    SMALL,
    WIDE,
    Axis,
    Band,
    Bars,
    Chart,
    Intervals,
    Line,
    Mark,
    Rule,
    robust_limits,
    shorten,
)
from temperance.errors import InputError, on_one_line, percent
from temperance.metrics import Evaluation, Reliability, reliability
from temperance.metrics.bins import binned, check_bins
from temperance.metrics.by_group import CalibrationByGroup
from temperance.metrics.finding import capital

if TYPE_CHECKING:
    from temperance.monitoring import Check

MAX_DRAWN_VALUES = 30  # a figure has room for so many: the values with the most evidence of a gap
MIN_BIN_ROWS = 5  # with fewer rows, the share is mostly 0 or 1
_MAX_NAME = 32  # letters, so that a title has two lines at most
_TALL = 4.6  # inches: leaves room on the page beside and below it
_MOST = 0.7  # the axes of a class whose bins are all below this are shorter


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay(Display):
    """Accuracy against confidence, bin by bin: equal on the diagonal.

    The figure leaves out bins of fewer than five rows, unless all bins are so small.

    Attributes
    ----------
    diagrams : dict from name to Reliability
        The bins of each method, with Wilson intervals.

    Examples
    --------
    >>> display = ReliabilityDisplay.from_probs([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=2)
    >>> display.diagrams["classifier"].accuracy.round(3)
    array([  nan, 0.667])

    `display.plot()` draws it; so does `ReliabilityDisplay.from_comparison(temperance.compare(...)).plot()`.
    """

    diagrams: dict[str, Reliability]

    @classmethod
    def from_probs(
        cls,
        probs: ArrayLike,
        labels: ArrayLike,
        *,
        name: str = "classifier",
        bins: int = 15,
        strategy: str = "width",
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Bin the rows of one classifier, with the options of `metrics.reliability`."""
        diagram = reliability(probs, labels, bins=bins, strategy=strategy, sample_weight=sample_weight)
        return cls({name: diagram})

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, methods: Sequence[str] | None = None, *, bins: int | None = None
    ) -> Self:
        """Bin the test rows of some methods: by default the classifier itself and the method of the verdict.

        By default it uses the bins of the comparison, so the figure shows its calibration error.
        """
        bins = check_bins(comparison.settings["bins"] if bins is None else bins)
        rows, diagrams = comparison.judged, {}
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        for name in _before_and_after(comparison, methods):
            result = comparison.results[name]
            correct = result.correct.astype(np.float64)
            diagrams[name] = binned(result.confidence, correct, weights, bins)
        return cls(diagrams)

    def chart(self) -> Chart:
        """Return the diagrams, with the share of rows in each bin below."""
        ends = np.array([0.0, 1.0])
        marks: list[Mark] = [Line(ends, ends, label="perfectly calibrated")]
        for name, diagram in self.diagrams.items():
            marks += _diagram_marks(name, diagram)
        x, y = Axis("confidence", (0.0, 1.0)), Axis("accuracy", (0.0, 1.0))
        caption = " ".join(_in_words(name, diagram) for name, diagram in self.diagrams.items())
        top = max(float(diagram.share.max()) for diagram in self.diagrams.values())
        shares = Axis("share of rows", (0.0, 1.08 * top), ticks=((0.0, "0"), (top, f"{top:.2g}")))
        bars = [
            Bars(one.edges, one.share, method=name, tips=[f"{n:,.0f} rows" for n in one.count])
            for name, one in self.diagrams.items()
        ]
        below = Chart("", caption, x, shares, bars)
        return Chart("Reliability diagram", caption, x, y, marks, (PANEL, _TALL), below=below)


@dataclass(frozen=True, eq=False)
class ClassReliabilityDisplay(Display):
    """The frequency of a class against its predicted probability: equal on the diagonal.

    A comparison keeps the diagrams of the ten classes with the most test rows, at least 30 each. With two
    classes it keeps only the second one, in bins with about the same number of rows; its figure shows the
    base rate, and has axes that fit rare positives. Figures leave out bins of fewer than five rows.

    Attributes
    ----------
    column : int
        The class.
    name : str
        Its name.
    diagrams : dict from name to Reliability
        The bins of each method, with Wilson intervals.
    two_classes : bool
        Whether there are only two classes.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3, random_state=0)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], classes=["cat", "dog", "emu"])
    >>> display = ClassReliabilityDisplay.from_comparison(comparison, column=1)
    >>> display.name, list(display.diagrams), float(display.diagrams["ts"].count.sum())
    ('dog', ['none', 'ts'], 1000.0)
    """

    column: int
    name: str
    diagrams: dict[str, Reliability]
    two_classes: bool = False

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, methods: Sequence[str] | None = None, *, column: int | None = None
    ) -> Self:
        """Use the diagrams of a class, by default the first that the comparison keeps."""
        kept = [*comparison.results[UNCALIBRATED].class_reliability]
        if not kept:
            raise InputError(
                f"no class has the {MIN_ROWS} test rows that its diagram needs. Pass more test rows."
            )
        if column is None:
            column = kept[0]
        if column not in kept:
            columns = ", ".join(map(str, kept))
            raise InputError(f"column must be a class with enough test rows, {columns}; found {column}.")
        diagrams = {
            name: comparison.results[name].class_reliability[column]
            for name in _before_and_after(comparison, methods)
        }
        names, n_classes = comparison.class_names, comparison.results[UNCALIBRATED].scores.n_classes
        return cls(column, str(column) if names is None else names[column], diagrams, n_classes == 2)

    def chart(self) -> Chart:
        """Return the diagrams of all methods on the same axes."""
        both = np.array([0.0, 1.0])
        marks: list[Mark] = [Line(both, both, label="perfectly calibrated" if self.two_classes else "")]
        for name, diagram in self.diagrams.items():
            marks += _diagram_marks(name, diagram, "probability", "share")
        errors = [f"{method_style(k).label} {100 * one.error:.2f}%" for k, one in self.diagrams.items()]
        short = shorten(self.name, _MAX_NAME)
        whole = f"Class {self.name}. " if len(self.name) > _MAX_NAME else ""
        caption = f"{whole}Mean distance from the diagonal: {', '.join(errors)}."
        if not self.two_classes:
            x, y = Axis("probability of the class", (0.0, 1.0)), Axis("share of the class", (0.0, 1.0))
            return Chart(f"Class {short}", caption, x, y, marks, (SMALL, SMALL))
        ends = [one[_drawn_bins(d)] for d in self.diagrams.values() for one in (d.confidence, d.high)]
        one = next(iter(self.diagrams.values()))
        base_rate = float(one.share @ np.nan_to_num(one.accuracy))
        top = max(base_rate, *(float(values.max()) for values in ends))
        limits = (0.0, 1.0 if top > _MOST else 1.05 * top)
        marks.append(Rule(base_rate, label=f"base rate {percent(base_rate)}"))
        x, y = Axis(f"P(class {short})", limits), Axis(f"share of class {short}", limits)
        return Chart(f"Class {short}", caption, x, y, marks, (PANEL, _TALL))


@dataclass(frozen=True, eq=False)
class GapsDisplay(Display):
    """What is predicted minus what happened in the rows with each value of `by`, the largest first.

    Attributes
    ----------
    by_group : CalibrationByGroup
        The gaps with their intervals; of more than 30, those with the most evidence are drawn.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1, 2000)
    >>> hospital = np.repeat(["A", "B"], 1000)
    >>> right = rng.uniform(size=2000) < p - 0.1 * (hospital == "B")
    >>> display = GapsDisplay.from_evaluation(evaluate(p, right, by=hospital, draws=20))
    >>> [label for _, label in display.chart().y.tick_labels()]
    ['B', 'A']
    """

    by_group: CalibrationByGroup

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation | Check) -> Self:
        """Use the gaps of an evaluation with `by`, or of a check."""
        if evaluation.by_group is None:
            raise InputError("the evaluation has no values of `by`. Pass by=... to evaluate.")
        return cls(evaluation.by_group)

    def chart(self) -> Chart:
        """Return one dot with its interval per value, and a line at 0, where confidence equals accuracy."""
        shown = sorted(self.by_group.values[:MAX_DRAWN_VALUES], key=lambda one: -one.alone.gap.value)
        gap, low, high = 100 * np.array([astuple(one.alone.gap) for one in shown]).T
        of, above = "confidence minus accuracy", "overconfident"
        if self.by_group.of_event:
            of, above = f"mean P({shown[0].alone.name}) minus its frequency", "too high"
        tips = [
            f"{one.value}: {a:+.1f} points ({b:+.1f} to {c:+.1f})"
            for one, a, b, c in zip(shown, gap, low, high, strict=True)
        ]
        at = np.arange(len(shown), dtype=np.float64)
        return Chart(
            "Gap by group",
            f"{capital(of)} with its interval: above 0 is {above}. {self.by_group.words}",
            Axis(f"{of}, in points", robust_limits(gap, low, high, keep=[0.0])),
            Axis.of_names("", [on_one_line(one.value)[:30] for one in shown]),
            [Rule(0.0, upright=True), Intervals(at, gap, low, high, flat=True, tips=tips)],
            (WIDE, 1.2 + 0.25 * len(shown)),
        )


def _before_and_after(comparison: Comparison, methods: Sequence[str] | None) -> list[str]:
    """Return the given methods; by default the classifier itself and the method of the verdict."""
    tried = comparison.verdict.tried
    return chosen(methods or [UNCALIBRATED, *([tried] if tried else [])], comparison.results)


def _drawn_bins(diagram: Reliability) -> NDArray[np.bool_]:
    """Say which bins have enough rows to be drawn; if none has, all bins with rows."""
    enough: NDArray[np.bool_] = diagram.count >= MIN_BIN_ROWS
    return enough if enough.any() else diagram.count > 0


def _diagram_marks(
    name: str, diagram: Reliability, said: str = "confidence", found: str = "accuracy"
) -> list[Mark]:
    """Return the bins of a method that have enough rows: a line with a band around it.

    A single bin is a point with its interval, since a band of one point would be invisible.
    """
    held = _drawn_bins(diagram)
    columns = (diagram.count, diagram.confidence, diagram.accuracy, diagram.low, diagram.high)
    count, confidence, accuracy, low, high = (numbers[held] for numbers in columns)
    tips = [
        f"{n:,.0f} rows: {said} {100 * c:.1f}%, {found} {100 * a:.1f}% ({100 * b:.1f}% to {100 * d:.1f}%)"
        for n, c, a, b, d in zip(count, confidence, accuracy, low, high, strict=True)
    ]
    label = method_style(name).label
    if len(tips) == 1:
        return [Intervals(confidence, accuracy, low, high, method=name, label=label, tips=tips)]
    return [
        Band(confidence, low, high, method=name),
        Line(confidence, accuracy, method=name, label=label, tips=tips),
    ]


def _in_words(name: str, diagram: Reliability) -> str:
    error, gap = diagram.error, float(diagram.share @ diagram.gap)
    side = f"{'under' if gap > 0 else 'over'}confident by {100 * abs(gap):.2f} points overall"
    if abs(gap) < 0.002:
        side = "neither overconfident nor underconfident overall"
    few = int((diagram.count > 0).sum() - _drawn_bins(diagram).sum())
    bins = f"{few} bin{'s' if few > 1 else ''} of fewer than {MIN_BIN_ROWS} rows"
    left_out = f" Not drawn: {bins}." if few else ""
    return f"{method_style(name).label}: {100 * error:.2f}% from the diagonal on average, {side}.{left_out}"
