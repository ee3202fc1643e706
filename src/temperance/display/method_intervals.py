"""A number of each method with its interval, one method below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.core.arrays import Vector
from temperance.display.chart import WIDE, Axis, Chart, Intervals, Mark, Rule, Text

__all__ = ["interval_chart"]


_FAR = 3.0  # times the range of the methods: the classifier itself is often so much worse


class _MethodIntervals(Protocol):
    @property
    def methods(self) -> tuple[str, ...]: ...
    @property
    def value(self) -> Vector: ...
    @property
    def low(self) -> Vector: ...
    @property
    def high(self) -> Vector: ...


def interval_chart(
    shown: _MethodIntervals, title: str, caption: str, label: str, number: str, rules: Sequence[Rule]
) -> Chart:
    """Return a chart with a row for each method; a value beyond the limits is written at the edge."""
    names = [method_style(method).label for method in shown.methods]
    x, y = Axis(label, _limits(shown)), Axis.of_names("", names, downwards=True)
    marks: list[Mark] = [*rules]
    for i, (method, name) in enumerate(zip(shown.methods, names, strict=True)):
        value, low, high = (column[i : i + 1] for column in (shown.value, shown.low, shown.high))
        a, b, c = (number.format(column[0]) for column in (value, low, high))
        tip = f"{name}: {a} ({b} to {c})"
        marks.append(Intervals(np.array([float(i)]), value, low, high, flat=True, method=method, tips=[tip]))
        if value[0] > x.limits[1]:
            marks.append(Text(x.limits[1], float(i), f"{a} → ", method=method))
            caption += f" {name} is beyond the right edge, at {a}."
    return Chart(title, caption, x, y, marks, (WIDE, 1.2 + 0.25 * len(names)))


def _limits(shown: _MethodIntervals) -> tuple[float, float]:
    """Return limits that hold all methods; the classifier itself is left out if it would flatten them."""
    low, high = float(shown.low.min()), float(shown.high.max())
    calibrated = [method != UNCALIBRATED for method in shown.methods]
    near = float(shown.high[calibrated].max(initial=low))
    if low < near < low + (high - low) / _FAR:
        high = near
    margin = 0.08 * (high - low) or 1e-3
    return low - margin, high + margin
