"""The log loss (NLL) of all methods side by side, minus the lowest one, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.calibrators import method_style
from temperance.comparison import Comparison
from temperance.comparison.method_result import Difference
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
    robust_limits,
)


@dataclass(frozen=True, eq=False)
class DifferencesDisplay(Display):
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
        ordered = sorted(comparison.results.values(), key=lambda result: result.nll)
        found = [Difference.of_nll(result, ordered[0]).interval(comparison.confidence) for result in ordered]
        value, low, high = (np.array([getattr(e, end) for e in found]) for end in ("value", "low", "high"))
        return cls(tuple(one.method for one in ordered), value, low, high, comparison.recommended)

    def chart(self) -> Chart:
        """Return one dot with its interval per method, the lowest log loss on top.

        The recommended method is bold. A value beyond the limits is written at the edge.
        """
        names = [method_style(method).label for method in self.methods]
        best, used = names[0], self.methods.index(self.recommended)
        # The best method and the recommended one are always inside; a far worse one is often the classifier.
        limits = robust_limits(self.value, self.low, self.high, keep=[0.0, float(self.value[used])])
        marks: list[Mark] = [Rule(0.0, upright=True)]
        for i, (method, name) in enumerate(zip(self.methods, names, strict=True)):
            value, low, high = (column[i : i + 1] for column in (self.value, self.low, self.high))
            tip = f"{name}: {value[0]:.4f} ({low[0]:.4f} to {high[0]:.4f})"
            marks.append(
                Intervals(np.array([float(i)]), value, low, high, flat=True, method=method, tips=[tip])
            )
            if value[0] > limits[1]:
                words = f"{value[0]:.4f} \N{RIGHTWARDS ARROW} "
                marks.append(Text(limits[1], float(i), words, method=method))
        caption = (
            f"Log loss minus the lowest ({best}), with intervals. {names[used]} is recommended. All methods "
            "are evaluated on the same rows, so differences are more certain than scores."
        )
        return Chart(
            "Log loss above the lowest",
            caption,
            Axis("log loss above the lowest", limits),
            Axis.of_names("", names, downwards=True),
            marks,
            (WIDE, 1.2 + 0.22 * len(names)),
            bold=names[used],
        )
