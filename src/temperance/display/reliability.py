"""The reliability diagram: how often predictions of each confidence are right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibrators import method_style
from temperance.comparison import Comparison
from temperance.display.base import Display
from temperance.display.chart import PANEL, Axis, Band, Bars, Chart, Intervals, Line, Mark
from temperance.display.methods import before_and_after, weights_of
from temperance.metrics import Reliability, reliability
from temperance.metrics.bins import binned, check_bins
from temperance.metrics.predictions import check_fraction

FEWEST_IN_BIN = 5  # rows: the share of fewer is mostly 0 or 1
_NO_GAP = 0.002  # between mean confidence and accuracy: smaller ones are not mentioned


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
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Bin the rows of one classifier; the options are those of `metrics.reliability`."""
        diagram = reliability(
            probs, labels, bins=bins, strategy=strategy, level=level, sample_weight=sample_weight
        )
        return cls({name: diagram})

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        methods: Sequence[str] | None = None,
        *,
        bins: int | None = None,
        level: float = 0.95,
    ) -> Self:
        """Bin the test rows of some methods: by default the classifier itself and the recommended one.

        The default bins are those of the comparison, so the figure shows its calibration error.
        """
        bins = check_bins(comparison.settings["bins"] if bins is None else bins)
        level, weights = check_fraction("level", level), weights_of(comparison)
        diagrams = {}
        for name in before_and_after(comparison, methods):
            result = comparison.results[name]
            correct = result.correct.astype(np.float64)
            diagrams[name] = binned(result.confidence, correct, weights, bins, "width", level)
        return cls(diagrams)

    def chart(self, methods: Iterable[str] | None = None) -> Chart:
        """Return the diagrams, with the share of rows in each bin below."""
        shown = {name: self.diagrams[name] for name in methods or self.diagrams}
        ends = np.array([0.0, 1.0])
        marks: list[Mark] = [Line(ends, ends, label="perfectly calibrated")]
        for name, diagram in shown.items():
            marks += diagram_marks(name, diagram, fewest=_fewest(diagram))
        x, y = Axis("confidence", (0.0, 1.0)), Axis("accuracy", (0.0, 1.0))
        caption = " ".join(_in_words(name, diagram) for name, diagram in shown.items())
        below = Chart("", caption, x, self._shares(), [_shares_mark(*item) for item in shown.items()])
        return Chart("Reliability diagram", caption, x, y, marks, (PANEL, 5.6), below=below)

    def _shares(self) -> Axis:
        """Return an axis for the shares of all methods, so that panels can be compared."""
        top = max(float(diagram.share.max()) for diagram in self.diagrams.values())
        return Axis("share of rows", (0.0, 1.08 * top), ticks=((0.0, "0"), (top, f"{top:.2g}")))


def diagram_marks(name: str, diagram: Reliability, *, fewest: float = 0.0) -> list[Mark]:
    """Return the bins of a method that are not empty and have enough rows: a line with a band around it.

    A single bin is a point with its interval, as a band of one point could not be seen.
    """
    held = (diagram.count > 0) & (diagram.count >= fewest)
    columns = (diagram.count, diagram.confidence, diagram.accuracy, diagram.low, diagram.high)
    count, confidence, accuracy, low, high = (numbers[held] for numbers in columns)
    tips = [
        f"{n:.0f} rows: confidence {100 * c:.1f} %, accuracy {100 * a:.1f} % ({100 * b:.1f} to {100 * d:.1f})"
        for n, c, a, b, d in zip(count, confidence, accuracy, low, high, strict=True)
    ]
    label = method_style(name).label
    if len(tips) == 1:
        return [Intervals(confidence, accuracy, low, high, method=name, label=label, tips=tips)]
    return [
        Band(confidence, low, high, method=name),
        Line(confidence, accuracy, method=name, label=label, tips=tips),
    ]


def _shares_mark(name: str, diagram: Reliability) -> Bars:
    return Bars(diagram.edges, diagram.share, method=name, tips=[f"{n:.0f} rows" for n in diagram.count])


def _in_words(name: str, diagram: Reliability) -> str:
    error, gap = diagram.error, float(diagram.share @ diagram.gap)
    side = f"{'under' if gap > 0 else 'over'}confident by {100 * abs(gap):.2f} % overall"
    if abs(gap) < _NO_GAP:
        side = "neither overconfident nor underconfident overall"
    few = int(((diagram.count > 0) & (diagram.count < _fewest(diagram))).sum())
    bins = f"{few} bin{'s' if few > 1 else ''} of fewer than {FEWEST_IN_BIN} rows"
    left_out = f" Not drawn: {bins}." if few else ""
    return f"{method_style(name).label}: {100 * error:.2f} % from the diagonal on average, {side}.{left_out}"


def _fewest(diagram: Reliability) -> int:
    """Return the number of rows that a bin needs to be drawn."""
    return FEWEST_IN_BIN if (diagram.count >= FEWEST_IN_BIN).any() else 0
