"""The evidence that a calibrator has changed: an e-process, which may be checked as often as you like.

The capital of a bet (`bets`) is a nonnegative supermartingale that starts at 1 while the means of the
residuals are within their limits, given all earlier rows. So is an average over bets, over both sides, over
the gap and the classes, and over the check with which the window begins, each with a weight fixed beforehand.
By Ville's inequality such an average ever reaches 1 / alpha with probability alpha at most, however many
checks there are, of whatever sizes.

It depends only on sums over the rows of each check: the order of rows within a check does not matter, and a
history of sums continues it exactly. Windows that begin late keep the power against late changes (Shin,
Ramdas and Rinaldo, 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from temperance.core.arrays import Indices, Vector
from temperance.monitoring.bets import log_bound

Array = NDArray[np.float64]

ALL_STARTS = 16  # each of the first checks begins a window
STARTS_PER_OCTAVE = 8  # then this many checks of each doubling do


@dataclass(frozen=True, eq=False)
class CheckSums:
    """Sums over the rows of checks, in their order along the first axis, M of them.

    Attributes
    ----------
    rows : (M,) array
        Numbers of rows.
    capitals : (M, ..., 2, bets, F) array
        Logarithms of the capitals of the first F residuals, as `bets.log_growth` gives them.
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
        return CheckSums(*(_cumulated(column) for column in vars(self).values()))

    def first(self, checks: int) -> CheckSums:
        """Return the cumulated sums over the first checks, up to this number."""
        return CheckSums(*(column[: checks + 1] for column in vars(self).values()))


@dataclass(frozen=True)
class Evidence:
    """The logarithm of the e-value, and the number of checks before the window that contributes most."""

    log_e: float
    start: int


def evidence_of(sums: CheckSums, low: Vector, high: Vector) -> Evidence:
    """Return the evidence after checks with these sums, and limits of the allowed means."""
    logs = window_evidence(sums.cumulated(), low, high)
    return Evidence(float(total(logs)), int(window_starts(len(sums.rows))[np.argmax(logs)]))


def total(logs: Array) -> Array:
    """Return the log e-value over all windows; a window that has not begun has capital 1."""
    result: Array = np.logaddexp(logsumexp(logs, axis=0), -np.log(len(logs) + 1.0))
    return result


def window_evidence(cumulated: CheckSums, low: Array, high: Array) -> Array:
    """Return the logarithm of each window's weighted e-value, (windows, ...), from cumulated sums."""
    starts = window_starts(len(cumulated.rows) - 1)
    rows, capitals, r, squares = (column[-1] - column[starts] for column in vars(cumulated).values())
    logs, exact = _log_mean(capitals), capitals.shape[-1]
    if exact < r.shape[-1]:
        rest = np.s_[..., exact:]
        n = rows.reshape(-1, *[1] * (r.ndim - 1))
        bound = log_bound(n, r[rest], squares[rest], low[rest], high[rest])
        logs = np.concatenate([logs, _log_mean(bound)], axis=-1)
    logs = logs + np.log(_residual_weights(r.shape[-1]))
    number = np.arange(1.0, len(starts) + 1).reshape(-1, *[1] * (r.ndim - 2))
    weighted: Array = logsumexp(logs, axis=-1) - np.log(number * (number + 1))
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


def _cumulated(column: Array) -> Array:
    result = np.zeros((len(column) + 1, *column.shape[1:]))
    np.cumsum(column, axis=0, out=result[1:])
    return result


def _residual_weights(number: int) -> Vector:
    """Return half of the weight for the gap, and the other half in equal parts for the classes."""
    return np.append(0.5, np.full(number - 1, 0.5 / (number - 1)))


def _log_mean(capitals: Array) -> Array:
    """Return log mean exp over sides and bets; SciPy's checks would take most of the time."""
    peak = capitals.max(axis=(-3, -2), keepdims=True)
    mean = np.exp(capitals - peak).mean(axis=(-3, -2))
    logs: Array = peak[..., 0, 0, :] + np.log(mean)
    return logs
