"""The evidence that a calibrator has changed: an e-process, which you can check as often as you like.

Bets are placed against the means of residuals. A row with residual r multiplies the capital of the bet lambda
against means of at most m by

    1 + lambda xi,   xi = (r - m) / (1 + m) >= -1,   0 <= lambda < 1,

whose expectation is at most 1 if the mean of r is at most m (Waudby-Smith and Ramdas, 2024). Bets against
means of at least m are bets with -r and -m. The product over rows is at least

    exp(lambda sum xi - psi(lambda) sum xi^2),   psi(l) = -log(1 - l) - l

(Fan, Grama and Liu, 2015), which needs two sums in total instead of one per bet. With many classes, this
bound is used.

The capital of a bet is a nonnegative supermartingale that starts at 1 while the means of the residuals are
within their limits, given all earlier rows. So is an average over bets, over both sides, over the gap and the
classes, and over the check with which the window begins, each with a weight fixed beforehand. By Ville's
inequality such an average ever reaches 1 / alpha with probability alpha at most, however many checks there
are, of whatever sizes.

It depends only on sums over the rows of each check: the order of rows within a check does not matter, and a
history of sums continues it exactly. Windows that begin late keep the power against late changes (Shin,
Ramdas and Rinaldo, 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Matrix, Vector

if TYPE_CHECKING:
    from temperance.monitoring.sums import LabelledSums

Array = NDArray[np.float64]

BETS = np.geomspace(0.005, 0.8, 12)
MAX_EXACT = 1 + 32
"""Largest number of residuals whose bets are summed; with more, only the bets on the gap are."""

ALL_STARTS = 16  # each of the first checks begins a window
STARTS_PER_OCTAVE = 8  # then this many checks of each doubling do


def summed_residuals(number: int) -> int:
    """Return the number of residuals whose bets are summed."""
    return number if number <= MAX_EXACT else 1


def log_growth(residuals: Matrix, low: Vector, high: Vector, share: Vector | None = None) -> Array:
    """Return the logarithm of the capitals after rows, (2 sides, bets, F), of the first F residuals.

    The residuals have shape (N, 1 + K), the limits (1 + K,). A row that counts as a share of one, at most 1,
    stakes that share: its factor still has an expectation of at most 1.
    """
    number = summed_residuals(residuals.shape[1])
    sides = (residuals[:, :number], high[:number]), (-residuals[:, :number], -low[:number])
    logs = np.empty((2, len(BETS), number))
    for i, (r, mean) in enumerate(sides):
        xi = (r - mean) / (1 + mean)
        if share is not None:
            xi *= share[:, None]
        for j, bet in enumerate(BETS):
            logs[i, j] = np.log1p(bet * xi).sum(axis=0)
    return logs


def log_bound(rows: Array, residuals: Array, squares: Array, low: Array, high: Array) -> Array:
    """Return a lower bound of the log capitals, (..., 2, bets, residuals), from sums over rows."""
    bets = BETS[:, None]
    costs = -np.log1p(-bets) - bets  # psi
    sides = []
    for r, mean in ((residuals, high), (-residuals, -low)):
        gain = (r - rows * mean) / (1 + mean)
        variation = (squares - 2 * mean * r + rows * mean**2) / (1 + mean) ** 2
        sides.append(bets * gain[..., None, :] - costs * variation[..., None, :])
    return np.stack(sides, axis=-3)


def cumulate(checks: Sequence[LabelledSums]) -> list[Array]:
    """Return rows, capitals, residuals and squares, each summed over the first 0, 1, ..., M checks."""
    names = ("rows", "capitals", "residuals", "squares")
    columns = (np.array([getattr(one, name) for one in checks], np.float64) for name in names)
    return [np.cumsum([np.zeros_like(column[0]), *column], axis=0) for column in columns]


def evidence_of(cumulated: Sequence[Array], low: Vector, high: Vector) -> tuple[float, int]:
    """Return the log e-value after checks, and the check with which it is clearest.

    The check is that with which the window begins that contributes most. The gap has half of the weight, and
    the classes the other half in equal parts.
    """
    starts = window_starts(len(cumulated[0]) - 1)
    rows, capitals, residuals, squares = (column[-1] - column[starts] for column in cumulated)
    exact, number = capitals.shape[-1], residuals.shape[-1]
    if exact < number:
        rest = np.s_[:, exact:]
        bound = log_bound(rows[:, None], residuals[rest], squares[rest], low[exact:], high[exact:])
        capitals = np.concatenate([capitals, bound], axis=-1)
    logs = np.logaddexp.reduce(capitals, axis=(1, 2)) - np.log(2 * len(BETS))
    logs += np.log(np.append(0.5, np.full(number - 1, 0.5 / (number - 1))))
    window = np.arange(1.0, len(starts) + 1)
    weighted = np.logaddexp.reduce(logs, axis=1) - np.log(window * (window + 1))
    not_begun = -np.log(len(starts) + 1.0)  # the weight of later windows, whose capital is 1
    return float(np.logaddexp.reduce([*weighted, not_begun])), int(starts[np.argmax(weighted)])


def window_starts(checks: int) -> Indices:
    """Return the numbers of checks before a window: all numbers at first, then fewer of each doubling.

    Examples
    --------
    >>> window_starts(40)[14:]
    array([14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36])
    """
    before = np.arange(checks)
    octave = np.floor(np.log2(np.maximum(before, 1) / ALL_STARTS)).astype(np.intp)
    step = np.where(before < ALL_STARTS, 1, ALL_STARTS // STARTS_PER_OCTAVE << np.maximum(octave, 0))
    return np.flatnonzero(before % step == 0)
