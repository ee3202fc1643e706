"""The log loss (NLL) of all methods side by side: minus the lowest one, and by the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison, LearningCurve
from temperance.comparison.method_result import Difference
from temperance.comparison.table import numbers
from temperance.display.base import Display, chosen
from temperance.display.chart import (
    WIDE,
    Axis,
    Band,
    Chart,
    Intervals,
    Line,
    Mark,
    Rule,
    Text,
    robust_limits,
)
from temperance.metrics.intervals import Estimate

_RARE = 0.5  # largest share of the means outside the limits: with few rows, several methods are far too high


@dataclass(frozen=True, eq=False)
class DifferencesDisplay(Display):
    """The log loss (NLL) of each method minus the lowest one, with its interval.

    Hard rows are hard for all methods, so differences have far smaller errors than the scores themselves.

    Attributes
    ----------
    differences : dict from name to Estimate
        Mean difference and its interval, which takes the skewness of the rows into account; the lowest log
        loss first.
    recommended : str
        The method to use.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3)
    >>> display = DifferencesDisplay.from_comparison(compare(task.logits, task.labels, methods=["ts"]))
    >>> list(display.differences), display.differences["ts"].value, display.recommended
    (['ts', 'none'], 0.0, 'ts')
    """

    differences: dict[str, Estimate]
    recommended: str

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Use all methods."""
        ordered = [comparison.results[name] for name in numbers(comparison)]
        above = {one.method: Difference.of_nll(one, ordered[0]) for one in ordered}
        intervals = {name: one.interval(comparison.confidence) for name, one in above.items()}
        return cls(intervals, comparison.recommended)

    def chart(self) -> Chart:
        """Return one dot with its interval per method, the lowest log loss on top.

        The recommended method is bold. A value beyond the limits is written at the edge.
        """
        labels = [method_style(method).label for method in self.differences]
        used = method_style(self.recommended).label
        value, low, high = np.array([[one.value, one.low, one.high] for one in self.differences.values()]).T
        # The best method and the recommended one are always inside; a far worse one is often the classifier.
        limits = robust_limits(value, low, high, keep=[0.0, self.differences[self.recommended].value])
        marks: list[Mark] = [Rule(0.0, upright=True)]
        for i, (method, one) in enumerate(self.differences.items()):
            tips = [f"{labels[i]}: {one.value:.4f} ({one.low:.4f} to {one.high:.4f})"]
            at, own = np.array([float(i)]), slice(i, i + 1)
            marks.append(Intervals(at, value[own], low[own], high[own], flat=True, method=method, tips=tips))
            if one.value > limits[1]:
                marks.append(
                    Text(limits[1], float(i), f"{one.value:.4f} \N{RIGHTWARDS ARROW} ", method=method)
                )
        return Chart(
            "Log loss above the lowest",
            f"Log loss minus the lowest ({labels[0]}), with intervals. {used} is recommended. All methods "
            "are evaluated on the same rows, so differences are more certain than scores.",
            Axis("log loss above the lowest", limits),
            Axis.of_names("", labels),
            marks,
            (WIDE, 1.2 + 0.22 * len(labels)),
            bold=used,
        )


@dataclass(frozen=True, eq=False)
class LearningCurveDisplay(Display):
    """The mean NLL of each method by the number of rows it was fitted to, with one standard error.

    Attributes
    ----------
    curve : LearningCurve
        The NLL of each draw, from `comparison.learning_curve`.
    methods : list of str
        The methods to show.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance.comparison import LearningCurve
    >>> curve = LearningCurve((20, 50), {"ts": np.array([[0.5, 0.7], [0.4, 0.4]])}, 0.9, 1000)
    >>> chart = LearningCurveDisplay.from_curve(curve).chart()
    >>> [mark.y.round(2).tolist() for mark in chart.marks if mark.label == "TS"]
    [[0.6, 0.4]]
    """

    curve: LearningCurve
    methods: list[str]

    @classmethod
    def from_curve(cls, curve: LearningCurve, methods: Sequence[str] | None = None) -> Self:
        """Use the given methods, by default all."""
        return cls(curve, chosen(methods, curve.nll))

    def chart(self) -> Chart:
        """Return one line per method, with a band of one standard error."""
        sizes, alone = np.array(self.curve.sizes, np.float64), self.curve.uncalibrated
        mean = np.array([self.curve.mean(name) for name in self.methods])
        error = np.array([self.curve.error(name) for name in self.methods])
        means, lows, highs = (np.append(alone, one) for one in (mean, mean - error, mean + error))
        lowest = float(np.fmin.reduce(means))  # fmin ignores nan
        limits = robust_limits(means, lows, highs, rare=_RARE, keep=[lowest])
        label = method_style(UNCALIBRATED).label
        own: Mark = Rule(alone, method=UNCALIBRATED, label=label)
        if alone > limits[1]:
            words = f"{label}: {alone:.4f} \N{UPWARDS ARROW}"
            own = Text(sizes[0], limits[1] - 0.05 * (limits[1] - limits[0]), words, method=UNCALIBRATED)
        marks, above = [own], []
        for name, middle, spread in zip(self.methods, mean, error, strict=True):
            label = method_style(name).label
            pairs = list(zip(self.curve.sizes, middle, strict=True))
            hidden = [f"{n:,}" for n, value in pairs if not value <= limits[1]]
            if hidden:
                above.append(f"{label} with {'up to ' if len(hidden) > 1 else ''}{hidden[-1]} rows")
            tips = [f"{label}, {n:,} rows: log loss {value:.4f}" for n, value in pairs]
            # A band around a mean outside the figure would cover the other methods.
            spread = np.where(middle > limits[1], np.nan, spread)
            marks.append(Band(sizes, middle - spread, middle + spread, method=name))
            marks.append(Line(sizes, middle, method=name, label=label, tips=tips))
        ticks = tuple((size, f"{size:,}") for size in self.curve.sizes)
        words = "Lines: means over random draws of the calibration rows; bands: one standard error."
        return Chart(
            "Log loss by labelled rows",
            words + (f" Above the figure: {'; '.join(above)}." if above else ""),
            Axis("labelled rows for calibration", (sizes[0] / 1.15, sizes[-1] * 1.15), log=True, ticks=ticks),
            Axis("log loss", limits),
            marks,
            (WIDE, 2.8),
        )
