"""One metric of all methods side by side, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison
from temperance.core.arrays import Vector
from temperance.display.chart import Chart
from temperance.display.labels import metric_in_words
from temperance.display.method_intervals import MethodIntervals
from temperance.inputs.validation import check_choice


@dataclass(frozen=True, eq=False)
class ScoresDisplay(MethodIntervals):
    """A metric of each method, with its interval.

    Attributes
    ----------
    metric : str
        Its name in `metrics`.
    methods : tuple of str
        M of them, in the order of the comparison.
    value, low, high : arrays of shape (M,)
        In natural units: an ECE of 2 % is 0.02.
    recommended : str or None
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
    recommended: str | None

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
        """Return a dot with its interval for each method, the first on top; the recommended one is bold."""
        words, bold, at = metric_in_words(self.metric), None, None
        caption = f"{words} of each method, with its interval."
        if self.recommended in self.methods:
            bold = method_style(self.recommended).label
            at = float(self.value[self.methods.index(self.recommended)])
            caption += f" {bold} is recommended."
        chart = self.interval_chart(f"{words} of each method", caption, words, "{:.4f}", at=at)
        return replace(chart, bold=bold)
