"""A number of each method with its interval, one row for each method."""

from __future__ import annotations

import numpy as np

from temperance.calibrators import method_style
from temperance.core.arrays import Vector
from temperance.display.base import Display
from temperance.display.chart import WIDE, Axis, Chart, Intervals, Mark, Rule, Text
from temperance.display.limits import highest_near, outside


class MethodIntervals(Display):
    """A number of each method, and the ends of its interval."""

    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector

    def interval_chart(self, title: str, caption: str, label: str, number: str, *, at: float | None) -> Chart:
        """Return a chart with a row for each method, and a line at a reference value.

        A value beyond the limits is written at the edge.
        """
        names = [method_style(method).label for method in self.methods]
        x, y = Axis(label, self._limits(at)), Axis.of_names("", names, downwards=True)
        marks: list[Mark] = [] if at is None else [Rule(at, upright=True)]
        for i, (method, name) in enumerate(zip(self.methods, names, strict=True)):
            value, low, high = (column[i : i + 1] for column in (self.value, self.low, self.high))
            a, b, c = (number.format(column[0]) for column in (value, low, high))
            tip = f"{name}: {a} ({b} to {c})"
            marks.append(
                Intervals(np.array([float(i)]), value, low, high, flat=True, method=method, tips=[tip])
            )
            if value[0] > x.limits[1]:
                marks.append(Text(x.limits[1], float(i), f"{a} \N{RIGHTWARDS ARROW} ", method=method))
            elif value[0] < x.limits[0]:
                marks.append(Text(x.limits[0], float(i), f" \N{LEFTWARDS ARROW} {a}", method=method))
        caption += self._left_out(x.limits, names, number)
        return Chart(title, caption, x, y, marks, (WIDE, 1.2 + 0.25 * len(names)))

    def _left_out(self, limits: tuple[float, float], names: list[str], number: str) -> str:
        """Return sentences about what is outside the axis."""
        beyond = outside(self.value, limits)
        words = []
        for side, is_there in (("left", self.value < limits[0]), ("right", self.value > limits[1])):
            found = [
                f"{name}, {number.format(value)}"
                for name, value, there in zip(names, self.value, is_there, strict=True)
                if there
            ]
            words += [f" Beyond the {side} edge: {'; '.join(found)}."] if found else []
        if (~beyond & (outside(self.low, limits) | outside(self.high, limits))).any():
            words.append(" Intervals that reach beyond an edge are cut there.")
        return "".join(words)

    def _limits(self, at: float | None) -> tuple[float, float]:
        """Return limits that contain all methods, except those so far off that they would flatten the rest.

        The classifier itself is often one of these. The reference value is always inside.
        """
        top = highest_near(self.high, float(self.value.min()))
        low = -highest_near(-self.low[self.high <= top], -top)
        if at is not None:
            low, top = min(low, at), max(top, at)
        margin = 0.08 * (top - low) or 1e-3
        return low - margin, top + margin
