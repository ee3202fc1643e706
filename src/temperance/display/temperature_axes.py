"""What the pictures of temperatures share: best temperatures with whiskers, on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.display.axes import REFERENCE, add_legend
from temperance.display.optima import Optima

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_TELLING = 10.0  # high over low: a wider interval tells next to nothing


class Whiskers(Optima):
    """Best temperatures with their intervals, to be drawn."""

    @property
    def telling(self) -> NDArray[np.bool_]:
        """Which of them the rows have determined."""
        telling: NDArray[np.bool_] = self.high < _TELLING * self.low
        return telling

    def draw(self, ax: Axes, at: Vector, label: str, **options: Any) -> None:
        """Draw them at `at`, faintly where the rows tell little."""
        spread = np.stack([self.optimum - self.low, self.high - self.optimum])
        for chosen, alpha, name in ((self.telling, 1.0, label), (~self.telling, 0.25, "_")):
            method_style = {"capsize": 2, "zorder": 3, "alpha": alpha, "label": name, **options, **REFERENCE}
            ax.errorbar(at[chosen], self.optimum[chosen], spread[:, chosen], **method_style)

    def limits(self, single: float, values: list[Vector], rare: float = 0.0) -> tuple[float, float]:
        """Return limits of an axis that leave out faint whiskers and the `rare` fraction of the values.

        Whiskers over decades, and the odd row, would flatten all else.
        """
        ends = np.concatenate([[single], self.optimum, self.low[self.telling], self.high[self.telling]])
        low, high = np.log([ends.min(), ends.max()])
        outer = np.quantile(np.log(np.concatenate([[single], *values])), [rare / 2, 1 - rare / 2])
        low, high = min(low, outer[0]), max(high, outer[1])
        margin = 0.06 * (high - low) + 0.03
        return float(np.exp(low - margin)), float(np.exp(high + margin))


def finish(ax: Axes, single: float, limits: tuple[float, float]) -> None:
    """Add the best single temperature, the logarithmic axis and the legend."""
    ax.axhline(single, linestyle="--", label=f"best single T = {single:.3g}", **REFERENCE)
    ax.set_yscale("log")
    ax.set_ylim(limits)
    _plain_ticks(ax.yaxis, np.log10(limits[1] / limits[0]))
    ax.set_ylabel("temperature T")
    add_legend(ax)


def _plain_ticks(axis: Axis, decades: float) -> None:
    """Put plain numbers on a logarithmic axis, and enough of them where it spans less than a decade."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    steps = (1.0, 2.0, 5.0) if decades < 3 else (1.0,)
    axis.set_major_locator(MaxNLocator(6) if decades < 0.6 else LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())
