"""The evidence that a calibrator has changed: an e-process, which may be checked as often as you like.

Bets are placed against the means of residuals. A row with residual r multiplies the capital of the bet lambda
against means of at most m by

    1 + lambda xi,   xi = (r - m) / (1 + m) >= -1,   0 <= lambda < 1,

whose expectation is at most 1 if the mean of r is at most m (Waudby-Smith and Ramdas, 2024). Bets against
means of at least m are bets with -r and -m. The product over rows is at least

    exp(lambda sum xi - psi(lambda) sum xi^2),   psi(l) = -log(1 - l) - l

(Fan, Grama and Liu, 2015), which needs two sums in total instead of one for each bet. With many classes, this
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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from temperance.core.arrays import Floats, Indices, Vector

Array = NDArray[np.float64]

BETS = np.geomspace(0.005, 0.8, 12)
MAX_EXACT = 1 + 32
"""Largest number of residuals whose bets are summed; with more, only those of the gap are."""

ALL_STARTS = 16  # each of the first checks begins a window
STARTS_PER_OCTAVE = 8  # then this many checks of each doubling do


def summed_residuals(number: int) -> int:
    """Return the number of residuals whose bets are summed."""
    return number if number <= MAX_EXACT else 1


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
    bets = BETS[:, None]
    costs = -np.log1p(-bets) - bets  # psi
    sides = []
    for r, mean in ((residuals, high), (-residuals, -low)):
        gain = (r - rows * mean) / (1 + mean)
        variation = (squares - 2 * mean * r + rows * mean**2) / (1 + mean) ** 2
        sides.append(bets * gain[..., None, :] - costs * variation[..., None, :])
    return np.stack(sides, axis=-3)


@dataclass(frozen=True, eq=False)
class CheckSums:
    """Sums over the rows of checks, in their order along the first axis, M of them.

    Attributes
    ----------
    rows : (M,) array
        Numbers of rows.
    capitals : (M, ..., 2, bets, F) array
        Logarithms of the capitals of the first F residuals, as `log_growth` gives them.
    residuals, squares : (M, ..., 1 + K) arrays
        Sums of the residuals and their squares.

    Axes in between are for histories that are simulated together.
    """

    rows: Vector
    capitals: Array
    residuals: Array
    squares: Array

    def cumulated(self) -> CheckSums:
        """Return the sums over the first 0, 1, ..., M checks."""
        columns = []
        for column in vars(self).values():
            sums = np.zeros((len(column) + 1, *column.shape[1:]))
            np.cumsum(column, axis=0, out=sums[1:])
            columns.append(sums)
        return CheckSums(*columns)

    def first(self, checks: int) -> CheckSums:
        """Return the cumulated sums over the first checks, up to this number."""
        return CheckSums(*(column[: checks + 1] for column in vars(self).values()))


def evidence_of(sums: CheckSums, low: Vector, high: Vector) -> tuple[float, int]:
    """Return the log e-value after checks with these sums, and the check with which it is clearest.

    The check is that with which the window begins that contributes most.
    """
    logs = window_evidence(sums.cumulated(), low, high)
    return float(total(logs)), int(window_starts(len(sums.rows))[np.argmax(logs)])


def total(logs: Array) -> Array:
    """Return the log e-value over all windows; a window that has not begun has capital 1."""
    result: Array = np.logaddexp(logsumexp(logs, axis=0), -np.log(len(logs) + 1.0))
    return result


def window_evidence(cumulated: CheckSums, low: Array, high: Array) -> Array:
    """Return the logarithm of each window's weighted e-value, (windows, ...), from cumulated sums.

    The gap has half of the weight, and the classes the other half in equal parts.
    """
    starts = window_starts(len(cumulated.rows) - 1)
    rows, capitals, r, squares = (column[-1] - column[starts] for column in vars(cumulated).values())
    logs, exact, number = _log_mean(capitals), capitals.shape[-1], r.shape[-1]
    if exact < number:
        rest = np.s_[..., exact:]
        n = rows.reshape(-1, *[1] * (r.ndim - 1))
        bound = log_bound(n, r[rest], squares[rest], low[rest], high[rest])
        logs = np.concatenate([logs, _log_mean(bound)], axis=-1)
    logs = logs + np.log(np.append(0.5, np.full(number - 1, 0.5 / (number - 1))))
    window = np.arange(1.0, len(starts) + 1).reshape(-1, *[1] * (r.ndim - 2))
    weighted: Array = logsumexp(logs, axis=-1) - np.log(window * (window + 1))
    return weighted


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


def _log_mean(capitals: Array) -> Array:
    """Return log mean exp over sides and bets; SciPy's checks would take most of the time."""
    peak = capitals.max(axis=(-3, -2), keepdims=True)
    mean = np.exp(capitals - peak).mean(axis=(-3, -2))
    logs: Array = peak[..., 0, 0, :] + np.log(mean)
    return logs
