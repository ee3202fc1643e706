"""Bets against the mean of residuals: the factor by which a row multiplies the capital of each bet.

A row with residual r multiplies the capital of the bet lambda against means of at most m by

    1 + lambda xi,   xi = (r - m) / (1 + m) >= -1,   0 <= lambda < 1,

whose expectation is at most 1 if the mean of r is at most m (Waudby-Smith and Ramdas, 2024). The product over
rows is at least

    exp(lambda sum xi - psi(lambda) sum xi^2),   psi(l) = -log(1 - l) - l

(Fan, Grama and Liu, 2015), which needs two sums in total instead of one for each bet. With many classes, this
bound is used. Bets against means of at least m are bets with -r and -m.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats

BETS = np.geomspace(0.005, 0.8, 12)
COSTS = -np.log1p(-BETS) - BETS  # psi

MOST_EXACT = 1 + 32
"""Largest number of residuals whose bets are summed; with more, only those of the gap are."""

Array = NDArray[np.float64]


def summed_residuals(number: int) -> int:
    """Return the number of residuals whose bets are summed."""
    return number if number <= MOST_EXACT else 1


def log_growth(residuals: Floats, low: Array, high: Array) -> Array:
    """Return the logarithm of the capitals after rows, (..., 2 sides, bets, F), of the first F residuals.

    The rows are in the last axis but one of the residuals; limits have shape (1 + K,).
    """
    number = summed_residuals(residuals.shape[-1])
    sides = (residuals[..., :number], high[:number]), (-residuals[..., :number], -low[:number])
    logs = np.empty((*residuals.shape[:-2], 2, len(BETS), number))
    for i, (r, mean) in enumerate(sides):
        xi = (r - mean) / (1 + mean)
        for j, bet in enumerate(BETS):
            logs[..., i, j, :] = np.log1p(bet * xi).sum(axis=-2)
    return logs


def log_bound(rows: Array, residuals: Array, squares: Array, low: Array, high: Array) -> Array:
    """Return a lower bound of the log capitals, (..., 2, bets, residuals), from sums over rows."""
    bets, costs = BETS[:, None], COSTS[:, None]
    sides = []
    for r, mean in ((residuals, high), (-residuals, -low)):
        gain = (r - rows * mean) / (1 + mean)
        variation = (squares - 2 * mean * r + rows * mean**2) / (1 + mean) ** 2
        sides.append(bets * gain[..., None, :] - costs * variation[..., None, :])
    return np.stack(sides, axis=-3)
