"""A number of each method with its interval, one method below the other."""

from __future__ import annotations

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.core.arrays import Vector
from temperance.display.base import Display
from temperance.display.chart import WIDE, Axis, Chart, Intervals, Mark, Rule, Text

_FAR = 3.0  # times the range of the methods: the classifier itself is often so much worse


class MethodIntervals(Display):
    """A number of each method, and the ends of its interval."""

    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector

    def interval_chart(self, title: str, caption: str, label: str, number: str, *, at: float | None) -> Chart:
        """Return a chart with a row for each method, and a line at a value that they compare with.

        A value beyond the limits is written at the edge.
        """
        names = [method_style(method).label for method in self.methods]
        x, y = Axis(label, self._limits()), Axis.of_names("", names, downwards=True)
        marks: list[Mark] = [] if at is None else [Rule(at, upright=True)]
        for i, (method, name) in enumerate(zip(self.methods, names, strict=True)):
            value, low, high = (column[i : i + 1] for column in (self.value, self.low, self.high))
            a, b, c = (number.format(column[0]) for column in (value, low, high))
            tip = f"{name}: {a} ({b} to {c})"
            marks.append(
                Intervals(np.array([float(i)]), value, low, high, flat=True, method=method, tips=[tip])
            )
            if value[0] > x.limits[1]:
                marks.append(Text(x.limits[1], float(i), f"{a} → ", method=method))
                caption += f" {name} is beyond the right edge, at {a}."
        return Chart(title, caption, x, y, marks, (WIDE, 1.2 + 0.25 * len(names)))

    def _limits(self) -> tuple[float, float]:
        """Return limits that hold all methods; the classifier itself is left out if it would flatten them."""
        low, high = float(self.low.min()), float(self.high.max())
        calibrated = [method != UNCALIBRATED for method in self.methods]
        near = float(self.high[calibrated].max(initial=low))
        if low < near < low + (high - low) / _FAR:
            high = near
        margin = 0.08 * (high - low) or 1e-3
        return low - margin, high + margin
