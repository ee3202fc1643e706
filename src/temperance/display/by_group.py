"""Confidence minus accuracy per value of `by`, such as the hospital, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from temperance.core.arrays import Vector
from temperance.display.base import Display
from temperance.display.chart import WIDE, Axis, Chart, Intervals, Rule, robust_limits
from temperance.errors import InputError, on_one_line
from temperance.metrics import Evaluation

if TYPE_CHECKING:
    from temperance.monitoring import Check

MAX_DRAWN_VALUES = 30  # a figure has room for so many: the values with the most evidence of a gap


@dataclass(frozen=True, eq=False)
class GapsDisplay(Display):
    """The gap of each value of `by`, the largest first.

    Attributes
    ----------
    values : tuple of str
        M values, at most 30: those with the most evidence of a gap.
    gap, low, high : arrays of shape (M,)
        Confidence minus accuracy with its interval, in natural units: above 0 is overconfident.
    words : str
        What the rows show.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1, 2000)
    >>> hospital = np.repeat(["A", "B"], 1000)
    >>> right = rng.uniform(size=2000) < p - 0.1 * (hospital == "B")
    >>> display = GapsDisplay.from_evaluation(evaluate(p, right, by=hospital, draws=20))
    >>> display.values, bool(display.low[0] > 0)
    (('B', 'A'), True)
    """

    values: tuple[str, ...]
    gap: Vector
    low: Vector
    high: Vector
    words: str

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation | Check) -> Self:
        """Use the gaps of an evaluation with `by`, or of a check."""
        if evaluation.by_group is None:
            raise InputError("the evaluation has no values of `by`. Pass by=... to evaluate.")
        found = sorted(evaluation.by_group.values[:MAX_DRAWN_VALUES], key=lambda one: -one.gap.value)
        gap, low, high = (
            np.array([getattr(one.gap, end) for one in found]) for end in ("value", "low", "high")
        )
        return cls(tuple(one.value for one in found), gap, low, high, evaluation.by_group.words)

    def chart(self) -> Chart:
        """Return one dot with its interval per value, and a line at 0, where confidence equals accuracy."""
        gap, low, high = (100 * numbers for numbers in (self.gap, self.low, self.high))
        at = np.arange(len(gap), dtype=np.float64)
        tips = [
            f"{name}: {a:+.1f} points ({b:+.1f} to {c:+.1f})"
            for name, a, b, c in zip(self.values, gap, low, high, strict=True)
        ]
        marks = [Rule(0.0, upright=True), Intervals(at, gap, low, high, flat=True, tips=tips)]
        names = [on_one_line(name)[:30] for name in self.values]
        x = Axis("confidence minus accuracy, in points", robust_limits(gap, low, high, keep=[0.0]))
        caption = f"Confidence minus accuracy with its interval: above 0 is overconfident. {self.words}"
        size = (WIDE, 1.2 + 0.25 * len(names))
        return Chart("Gap by group", caption, x, Axis.of_names("", names), marks, size)
