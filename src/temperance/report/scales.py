"""From numbers to places on a picture, and the numbers to write on its axes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

import numpy as np

from temperance.core.arrays import Vector

_MOST_TICKS = 8
_DIGITS: tuple[tuple[float, ...], ...] = (
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 2.5, 3, 4, 5, 7),
    (1, 2, 3, 5),
    (1, 3),
    (1,),
)


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, linear or logarithmic, drawn from `start` to `stop`."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def place(self, values: Vector | float) -> Vector:
        """Return where values are drawn; far beyond the axis they stay a little outside of it."""
        low, high, x = (np.asarray(v, np.float64) for v in (self.low, self.high, values))
        if self.log:
            low, high, x = np.log(low), np.log(high), np.log(x)
        share = np.clip((x - low) / (high - low), -2.0, 3.0)
        placed: Vector = self.start + share * (self.stop - self.start)
        return placed

    def ticks(self) -> list[float]:
        """Return a few round numbers within the axis."""
        ticks = _log_ticks(self.low, self.high) if self.log else []
        return ticks if len(ticks) > 1 else _linear_ticks(self.low, self.high)

    def label(self, tick: float) -> str:
        """Write a tick with no more digits than its neighbours need."""
        ticks = self.ticks()
        step = min((b - a for a, b in pairwise(ticks)), default=1.0)
        if self.log or abs(tick) >= 1e5:
            return f"{tick:,.6g}".replace(",", "\u202f")
        return f"{tick:.{max(0, -floor(log10(step) + 1e-9))}f}"


def _linear_ticks(low: float, high: float) -> list[float]:
    size = (high - low) / 5
    unit = 10 ** floor(log10(size))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= size * 0.999)
    first = ceil(low / step - 1e-9)
    ticks = [round(k * step, 12) for k in range(first, floor(high / step + 1e-9) + 1)]
    return [0.0 if tick == 0 else tick for tick in ticks]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in _DIGITS:
        ticks = [d * 10.0**k for k in decades for d in digits if low * 0.999 <= d * 10.0**k <= high * 1.001]
        if len(ticks) <= _MOST_TICKS:
            return ticks
    return ticks[:: ceil(len(ticks) / _MOST_TICKS)]
