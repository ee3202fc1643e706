"""All methods side by side, with intervals: one metric, or the log loss (NLL) minus the lowest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison
from temperance.comparison.differences import Difference, shares
from temperance.core.arrays import Vector
from temperance.display.base import Display
from temperance.display.chart import (
    WIDE,
    Axis,
    Chart,
    Intervals,
    Mark,
    Rule,
    Text,
    metric_in_words,
    robust_limits,
)
from temperance.inputs.validation import check_choice


class MethodIntervals(Display):
    """A number of each method, and the ends of its interval."""

    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector

    recommended: str

    def interval_chart(self, title: str, caption: str, label: str, number: str, reference: str) -> Chart:
        """Return a chart with one row per method, the recommended one in bold, and a line at the reference.

        A value beyond the limits is written at the edge.
        """
        names = [method_style(method).label for method in self.methods]
        at, used = (float(self.value[self.methods.index(name)]) for name in (reference, self.recommended))
        # The best method and these two are always inside; a far worse one is often the classifier itself.
        limits = robust_limits(self.value, self.low, self.high, keep=[float(np.nanmin(self.value)), at, used])
        marks: list[Mark] = [Rule(at, upright=True)]
        for i, (method, name) in enumerate(zip(self.methods, names, strict=True)):
            value, low, high = (column[i : i + 1] for column in (self.value, self.low, self.high))
            a, b, c = (number.format(column[0]) for column in (value, low, high))
            tip = f"{name}: {a} ({b} to {c})"
            marks.append(
                Intervals(np.array([float(i)]), value, low, high, flat=True, method=method, tips=[tip])
            )
            if value[0] > limits[1]:
                marks.append(Text(limits[1], float(i), f"{a} \N{RIGHTWARDS ARROW} ", method=method))
            elif value[0] < limits[0]:
                marks.append(Text(limits[0], float(i), f" \N{LEFTWARDS ARROW} {a}", method=method))
        x, y = Axis(label, limits), Axis.of_names("", names, downwards=True)
        size = (WIDE, 1.2 + 0.22 * len(names))
        return Chart(title, caption, x, y, marks, size, bold=method_style(self.recommended).label)


@dataclass(frozen=True, eq=False)
class ScoresDisplay(MethodIntervals):
    """A metric of each method, with its interval.

    Attributes
    ----------
    metric : str
        Its name in `metrics`.
    methods : tuple of str
        M methods, in the order of the comparison.
    value, low, high : arrays of shape (M,)
        In natural units: an ECE of 2% is 0.02.
    recommended : str
        The method to use.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], draws=20)
    >>> display = ScoresDisplay.from_comparison(comparison, "brier")
    >>> display.methods, display.recommended
    (('none', 'ts'), 'ts')
    >>> bool((display.low <= display.value).all())
    True
    """

    metric: str
    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector
    recommended: str

    @classmethod
    def from_comparison(cls, comparison: Comparison, metric: str = "nll") -> Self:
        """Use a metric of all methods."""
        check_choice("metric", metric, tuple(comparison.results[UNCALIBRATED].scores))
        scores = [result.scores[metric] for result in comparison.results.values()]
        return cls(
            metric,
            tuple(comparison.results),
            np.array([score.value for score in scores]),
            np.array([score.low for score in scores]),
            np.array([score.high for score in scores]),
            comparison.recommended,
        )

    def chart(self) -> Chart:
        """Return one dot with its interval per method, the first on top; the recommended one is bold."""
        words = metric_in_words(self.metric)
        best = method_style(self.recommended).label
        caption = f"{words} of each method, with its interval. {best} is recommended."
        return self.interval_chart(f"{words} of each method", caption, words, "{:.4f}", self.recommended)


@dataclass(frozen=True, eq=False)
class DifferencesDisplay(MethodIntervals):
    """The log loss (NLL) of each method minus the lowest one, with its interval.

    Hard rows are hard for all methods, so differences have far smaller errors than the scores themselves.

    Attributes
    ----------
    methods : tuple of str
        M methods, the lowest log loss first.
    value, low, high : arrays of shape (M,)
        Mean difference and its interval, which takes the skewness of the rows into account.
    recommended : str
        The method to use.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3)
    >>> display = DifferencesDisplay.from_comparison(compare(task.logits, task.labels, methods=["ts"]))
    >>> display.methods, float(display.value[0]), display.recommended
    (('ts', 'none'), 0.0, 'ts')
    """

    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector
    recommended: str

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Use all methods."""
        share = shares(comparison.results, comparison.judged.weights)
        ordered = sorted(comparison.results.values(), key=lambda result: float(result.row_nll @ share))
        found = [
            Difference.of_nll(result, ordered[0], share, comparison.settings.get("folds")).interval(
                comparison.confidence
            )
            for result in ordered
        ]
        value, low, high = (np.array([getattr(e, end) for e in found]) for end in ("value", "low", "high"))
        return cls(tuple(one.method for one in ordered), value, low, high, comparison.recommended)

    def chart(self) -> Chart:
        """Return one dot with its interval per method, the lowest log loss on top."""
        best, used = (method_style(name).label for name in (self.methods[0], self.recommended))
        caption = (
            f"Log loss minus the lowest ({best}), with intervals. {used} is recommended. All methods "
            "are evaluated on the same rows, so differences are more certain than scores."
        )
        title, label = "Log loss above the lowest", "log loss above the lowest"
        return self.interval_chart(title, caption, label, "{:.4f}", self.methods[0])
