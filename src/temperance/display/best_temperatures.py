"""What the displays of temperatures share: best temperatures with intervals, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import UNCALIBRATED
from temperance.core.arrays import Vector
from temperance.display.base import Display
from temperance.display.chart import Intervals, Mark, Rule
from temperance.display.optima import IDENTIFIED_RATIO

_WHISKER_ROOM = 0.5  # of what the temperatures themselves need


class BestTemperatures(Display):
    """The best temperatures of groups of rows; `single` is that of all rows."""

    optimum: Vector
    low: Vector
    high: Vector
    single: float

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Which of them the rows determine; the others are left out of pictures."""
        identified: NDArray[np.bool_] = self.high < IDENTIFIED_RATIO * self.low
        return identified

    def interval(self, group: int) -> str:
        """Return the best temperature of a group in words."""
        return f"{self.optimum[group]:.3g} ({self.ends(group)})"

    def ends(self, group: int) -> str:
        """Return the interval of a group in words."""
        if self.identified[group]:
            return f"{self.low[group]:.3g} to {self.high[group]:.3g}"
        return "not identified"

    def left_out(self, groups: str) -> str:
        """Return a sentence about the groups that are not drawn, if there are any."""
        missing = int((~self.identified).sum())
        return (
            f" Not identified, and not drawn: {missing} of {len(self.optimum)} {groups}." if missing else ""
        )

    def best(
        self, at: Vector, group: tuple[str, str], tips: Sequence[str], *, flat: bool = False
    ) -> Intervals:
        """Return those that are identified, at some places of x; of y, if their intervals are `flat`."""
        known, label = self.identified, f"best T of a {group[0]}"
        if not known.all():
            label += f"\n({(~known).sum()} of {len(known)} {group[1]} not identified)"
        shown = [tip for tip, drawn in zip(tips, known, strict=True) if drawn]
        at, value, low, high = (column[known] for column in (at, self.optimum, self.low, self.high))
        return Intervals(at, value, low, high, flat, label=label, tips=shown)

    def limits(self, values: Sequence[Vector], rare: float = 0.0) -> tuple[float, float]:
        """Return limits that hold the best temperatures and all but the `rare` share of the values.

        They hold whiskers as far as these add half the range on each side: a whisker over a decade would
        flatten all else, as the odd row would.
        """
        known = np.concatenate([[self.single], self.optimum[self.identified]])
        every = np.concatenate([[self.single], *values])
        ends = np.log([*np.quantile(every, [rare / 2, 1 - rare / 2]), known.min(), known.max()])
        low, high = float(ends.min()), float(ends.max())
        room = _WHISKER_ROOM * (high - low)
        low = max(low - room, float(np.log(self.low[self.identified]).min(initial=low)))
        high = min(high + room, float(np.log(self.high[self.identified]).max(initial=high)))
        margin = 0.08 * (high - low) + 0.03
        return float(np.exp(low - margin)), float(np.exp(high + margin))

    def rules(self, limits: tuple[float, float], *, upright: bool = False) -> list[Mark]:
        """Return the best single temperature, and T = 1 if it is within the limits."""
        single = Rule(self.single, upright=upright, label=f"best single T = {self.single:.3g}")
        if not limits[0] < 1 < limits[1]:
            return [single]
        return [Rule(1.0, upright=upright, label="T = 1: uncalibrated", method=UNCALIBRATED), single]
