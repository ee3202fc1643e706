"""Round numbers to write on an axis."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor, log10

from temperance.display.labels import short_exponent

_MOST_TICKS = 8
_LINEAR_STEPS = 7.5  # at most: with steps of 1, 2 or 5 there are then at least three ticks
_DIGITS: tuple[tuple[float, ...], ...] = (
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 2.5, 3, 4, 5, 7),
    (1, 2, 3, 5),
    (1, 3),
    (1,),
)


def tick_labels(low: float, high: float, *, log: bool = False) -> list[tuple[float, str]]:
    """Return a few round numbers from `low` to `high`, and each as it is written.

    Examples
    --------
    >>> tick_labels(0.97, 1.42)
    [(1.0, '1.0'), (1.1, '1.1'), (1.2, '1.2'), (1.3, '1.3'), (1.4, '1.4')]
    """
    ticks = _log_ticks(low, high) if log else []
    if len(ticks) < 2:
        ticks = _linear_ticks(low, high)
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    return [(tick, _written(tick, step, log)) for tick in ticks]


def _written(tick: float, step: float, log: bool) -> str:
    """Write a tick with no more digits than its neighbours need."""
    if log or abs(tick) >= 1e5:
        return short_exponent(f"{tick:,.6g}").replace(",", "\u202f")
    return f"{tick:.{max(0, -floor(log10(step) + 1e-9))}f}"


def _linear_ticks(low: float, high: float) -> list[float]:
    size = (high - low) / _LINEAR_STEPS
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
    step = ceil(len(ticks) / _MOST_TICKS)
    return [tick for tick in ticks if round(log10(tick)) % step == 0]  # 1 is one of them
