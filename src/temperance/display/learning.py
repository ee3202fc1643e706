"""The log loss (NLL) by the number of labels, which shows whether more labels would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import LearningCurve
from temperance.core.arrays import Vector
from temperance.display.base import Display, chosen
from temperance.display.chart import WIDE, Axis, Band, Chart, Line, Mark, Rule, Text, robust_limits

_RARE = 0.5  # largest share of the means outside the limits: with few rows, several methods are far too high


@dataclass(frozen=True, eq=False)
class LearningCurveDisplay(Display):
    """The mean NLL of each method by the number of rows it was fitted to.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of rows, S of them.
    mean : dict from name to array of shape (S,)
        Mean over random draws of the rows.
    low, high : dict from name to array of shape (S,)
        One standard error of the mean below and above it; nan with a single draw.
    uncalibrated : float
        NLL of the classifier itself.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance.comparison import LearningCurve
    >>> curve = LearningCurve((20, 50), {"ts": np.array([[0.5, 0.7], [0.4, 0.4]])}, 0.9, 1000)
    >>> display = LearningCurveDisplay.from_curve(curve)
    >>> display.mean["ts"].round(3), display.low["ts"].round(3)
    (array([0.6, 0.4]), array([0.5, 0.4]))
    """

    sizes: tuple[int, ...]
    mean: dict[str, Vector]
    low: dict[str, Vector]
    high: dict[str, Vector]
    uncalibrated: float

    @classmethod
    def from_curve(cls, curve: LearningCurve, methods: Sequence[str] | None = None) -> Self:
        """Use the given methods, by default all, from `comparison.learning_curve`."""
        names = chosen(methods, curve.nll, list(curve.nll))
        mean = {name: curve.mean(name) for name in names}
        unknown = np.full(len(curve.sizes), np.nan)  # a single draw has no standard error
        error = {name: curve.error(name) if curve.nll[name].shape[1] > 1 else unknown for name in names}
        return cls(
            curve.sizes,
            mean,
            {name: mean[name] - error[name] for name in names},
            {name: mean[name] + error[name] for name in names},
            curve.uncalibrated,
        )

    def chart(self) -> Chart:
        """Return one line per method, with a band of one standard error."""
        columns = (self.mean, self.low, self.high)
        mean, low, high = (np.concatenate([[self.uncalibrated], *one.values()]) for one in columns)
        lowest = float(np.fmin.reduce(mean))  # fmin ignores nan
        limits = robust_limits(mean, low, high, rare=_RARE, keep=[lowest])
        sizes = np.array(self.sizes, np.float64)
        label = method_style(UNCALIBRATED).label
        own: Mark = Rule(self.uncalibrated, method=UNCALIBRATED, label=label)
        if self.uncalibrated > limits[1]:
            words = f"{label}: {self.uncalibrated:.4f} \N{UPWARDS ARROW}"
            own = Text(sizes[0], limits[1] - 0.05 * (limits[1] - limits[0]), words, method=UNCALIBRATED)
        marks = [own]
        for name in self.mean:
            label = method_style(name).label
            pairs = zip(self.sizes, self.mean[name], strict=True)
            tips = [f"{label}, {n:,} rows: log loss {value:.4f}" for n, value in pairs]
            # A band around a mean outside the figure would cover the other methods.
            band = np.where(self.mean[name] > limits[1], np.nan, (self.low[name], self.high[name]))
            marks.append(Band(sizes, *band, method=name))
            marks.append(Line(sizes, self.mean[name], method=name, label=label, tips=tips))
        ticks = tuple((size, f"{size:,}") for size in self.sizes)
        x = Axis("labelled rows for calibration", (sizes[0] / 1.15, sizes[-1] * 1.15), log=True, ticks=ticks)
        y = Axis("log loss", limits)
        caption = "Lines: means over random draws of the calibration rows; bands: one standard error."
        return Chart("Log loss by labelled rows", caption, x, y, marks, (WIDE, 2.8))
