"""The NLL by the number of labels: whether more of them would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from temperance.comparison import UNCALIBRATED, LearningCurve
from temperance.core.arrays import Vector
from temperance.display.axes import add_legend, axes_or_new, draw_band, label_of
from temperance.display.colours import colour_of
from temperance.display.methods import chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class LearningCurveDisplay:
    """The mean NLL of each method by the number of rows it was fitted to.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of rows, S of them.
    mean : dict from name to array of shape (S,)
        Over random draws of the rows.
    low, high : dict from name to array of shape (S,)
        One standard error of the mean below and above it; nan if there was but one draw.
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
        """Take the methods asked for, by default all, from `comparison.learning_curve`."""
        names = chosen(methods, curve.nll, list(curve.nll))
        mean = {name: curve.mean(name) for name in names}
        error = {name: _error(curve, name) for name in names}
        return cls(
            curve.sizes,
            mean,
            {name: mean[name] - error[name] for name in names},
            {name: mean[name] + error[name] for name in names},
            curve.uncalibrated,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a line for each method, with a band of one standard error."""
        ax = axes_or_new(ax)
        for name, mean in self.mean.items():
            draw_band(ax, name, self.sizes, mean, self.low[name], self.high[name])
        none = UNCALIBRATED
        ax.axhline(self.uncalibrated, color=colour_of(none), linestyle="--", label=label_of(none))
        ax.set_xscale("log")
        ax.set_xticks(self.sizes, [str(size) for size in self.sizes])
        ax.minorticks_off()
        ax.set_ylim(self._limits())
        ax.set(xlabel="labelled rows fitted to", ylabel="NLL", title="Would more labels help?")
        add_legend(ax)
        return ax

    def _limits(self) -> tuple[float, float]:
        """Return limits that a method far worse than the others may leave, lest it flatten them."""
        values = np.concatenate([[self.uncalibrated], *self.mean.values()])
        low, high = float(values.min()), float(values.max())
        typical = max(self.uncalibrated, float(np.median(values)))
        high = min(high, low + 1.4 * (typical - low) + 1e-3)
        margin = 0.06 * (high - low) + 1e-6
        return low - margin, high + margin


def _error(curve: LearningCurve, method: str) -> Vector:
    if curve.nll[method].shape[1] > 1:
        return curve.error(method)
    return np.full(len(curve.sizes), np.nan)  # one draw does not tell
