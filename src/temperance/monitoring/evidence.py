"""The evidence that a calibrator has changed: an e-process, at which one may look as often as one likes.

For residuals r >= -1 with mean at most m given all earlier rows, and any bet 0 <= lambda < 1,

    exp(lambda sum xi - psi(lambda) sum xi^2),   xi = (r - m) / (1 + m),   psi(l) = -log(1 - l) - l

is a nonnegative supermartingale that starts at 1 (Fan, Grama and Liu, 2015; Howard et al., 2021). So is an
average over bets, over both sides, over the gap and the classes, and over the check with which the window
begins, each with a weight fixed beforehand. By Ville's inequality such an average ever reaches 1 / alpha with
probability alpha at most, however many checks there are, of whatever sizes.

It depends on sums over the rows of each check alone: the order of rows within a check does not matter, and
a history of sums continues it exactly. Windows that begin late keep the power against a change that comes
late (Shin, Ramdas and Rinaldo, 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from temperance.core.arrays import Indices, Matrix, Vector

BETS = np.geomspace(0.005, 0.8, 12)
COST_OF_BETS = -np.log1p(-BETS) - BETS  # psi

ALL_STARTS = 16  # every one of the first checks may begin a window
STARTS_PER_OCTAVE = 8  # and of later ones, so many of each doubling


@dataclass(frozen=True)
class Evidence:
    """The logarithm of the e-value, and the number of checks before the window that contributes most."""

    log_e: float
    start: int


def evidence_of(rows: Vector, residuals: Matrix, squares: Matrix, low: Vector, high: Vector) -> Evidence:
    """Return the evidence after checks with these sums.

    Parameters
    ----------
    rows : (M,) array
        Numbers of rows of the M checks, in their order.
    residuals, squares : (M, 1 + K) arrays
        Sums over the rows of each check.
    low, high : (1 + K,) arrays
        Limits of the allowed means.
    """
    logs = window_evidence(rows, residuals, squares, low, high)
    return Evidence(float(total(logs)), int(window_starts(len(rows))[np.argmax(logs)]))


def total(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the e-value: all windows, and those that have not begun yet, which are at 1."""
    result: NDArray[np.float64] = np.logaddexp(logsumexp(logs, axis=0), -np.log(len(logs) + 1.0))
    return result


def window_evidence(
    rows: Vector,
    residuals: NDArray[np.float64],
    squares: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the logarithm of each window's weighted e-value, (windows, ...).

    Between the first axis of the sums, the checks, and the last, the residuals, there may be others: those
    of histories that are simulated side by side.
    """
    starts = window_starts(len(rows))
    n, r, rr = (_from(starts, column) for column in (rows, residuals, squares))
    n = n.reshape(-1, *[1] * (r.ndim - 1))
    above = _log_capital(n, r, rr, high)
    below = _log_capital(n, -r, rr, -low)
    sides = np.logaddexp(above, below) - np.log(2.0)
    weights = np.log(_residual_weights(r.shape[-1]))
    number = np.arange(1.0, len(starts) + 1).reshape(-1, *[1] * (r.ndim - 2))
    logs: NDArray[np.float64] = logsumexp(sides + weights, axis=-1) - np.log(number * (number + 1))
    return logs


def window_starts(checks: int) -> Indices:
    """Return how many checks may come before a window: all numbers at first, then fewer of each doubling.

    Examples
    --------
    >>> window_starts(40)[14:]
    array([14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36])
    """
    before = np.arange(checks)
    octave = np.floor(np.log2(np.maximum(before, 1) / ALL_STARTS)).astype(np.intp)
    step = np.where(before < ALL_STARTS, 1, ALL_STARTS // STARTS_PER_OCTAVE << np.maximum(octave, 0))
    return np.flatnonzero(before % step == 0)


def _from(starts: Indices, column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums over the windows that begin at the starts and end now."""
    sums = np.add.accumulate(column[::-1], axis=0, dtype=np.float64)
    return sums[len(column) - 1 - starts]


def _residual_weights(number: int) -> Vector:
    """Return half of the weight for the gap, and the other half in equal parts for the classes."""
    return np.append(0.5, np.full(number - 1, 0.5 / (number - 1)))


def _log_capital(
    n: NDArray[np.float64],
    r: NDArray[np.float64],
    squares: NDArray[np.float64],
    mean: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the logarithm of the average over bets against means of at most `mean`."""
    scale = 1 + mean
    gain = (r - n * mean) / scale
    variation = (squares - 2 * mean * r + n * mean**2) / scale**2
    bets = np.expand_dims(BETS, tuple(range(1, gain.ndim + 1)))
    costs = np.expand_dims(COST_OF_BETS, tuple(range(1, gain.ndim + 1)))
    logs: NDArray[np.float64] = _log_mean(bets * gain - costs * variation)
    return logs


def _log_mean(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log mean exp over the first axis; SciPy's checks would take most of the time."""
    peak = logs.max(axis=0)
    logs -= peak
    mean: NDArray[np.float64] = np.exp(logs, out=logs).mean(axis=0)
    return peak + np.log(mean)
