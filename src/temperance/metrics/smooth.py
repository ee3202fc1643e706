"""Calibration error without bins (Błasiok and Nakkiran, 2024).

With residuals r_i = correct_i - confidence_i at confidences c_i and a Gaussian kernel of width s, reflected
at 0 and 1 so that no mass leaves the interval:

    smECE_s = integral over t in [0, 1] of |1/n sum_i r_i kernel_s(t, c_i)|
    smECE   = the s for which smECE_s = s

smECE_s falls as s grows, so the fixed point exists, is unique, and is found by bisection.

On M cells of [0, 1] the reflected Gaussian is diagonal in the cosine basis: cos(pi k t) is multiplied by
exp(-(pi k s)^2 / 2). One cosine transform then serves every width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from temperance.core.arrays import Vector
from temperance.metrics.bootstrap import Residuals, group_sums
from temperance.metrics.predictions import Predictions

_CELLS = 2048  # widths below 1 / 2048 are not resolved; for N < 10^9 noise makes widths larger
_CELLS_IN_WIDTH = 4  # of the grid for resamples, which are only compared, not reported
_MIN_CELLS = 32


def grid_mean(rows: Predictions) -> Vector:
    """Return the mean residuals on the grid."""
    mean: Vector = grid_sums(rows)((rows.weight * rows.residual)[:, None])[:, 0] / rows.total
    return mean


def grid_sums(rows: Predictions, cells: int = _CELLS) -> Callable[[Any], Any]:
    """Return the map from values of rows to their sums on a grid of the confidences.

    A value is shared between the two nearest cell centres, which keeps its mean position.
    """
    position = np.clip(rows.confidence.astype(np.float64) * cells - 0.5, 0, cells - 1)
    cell = np.minimum(position.astype(int), cells - 2)
    upper = position - cell
    row = np.arange(len(cell))
    values = np.concatenate([1 - upper, upper])
    group, twice = np.concatenate([cell, cell + 1]), np.concatenate([row, row])
    return group_sums(values, group, twice, (cells, len(cell)))


def fixed_point(residual: Vector) -> float:
    """Return the fixed point for residuals on the grid; 0 if there are none."""
    spectrum = _cosines(residual)
    low, high = 0.0, 1.0
    above, below = float(np.abs(residual).sum()), 1 - float(np.abs(_damped(spectrum, high)).sum())
    for _ in range(12):  # halvings; linear interpolation between the last ends leaves an error below 1e-6
        middle = (low + high) / 2
        excess = float(np.abs(_damped(spectrum, middle)).sum()) - middle
        low, high = (middle, high) if excess > 0 else (low, middle)
        above, below = (excess, below) if excess > 0 else (above, -excess)
    return min(low + (high - low) * above / (above + below), 1.0)  # rounding


def smoothed(residual: Any, width: float) -> Any:
    """Return the residuals in each column, smoothed."""
    return _damped(_cosines(residual), width)


def smooth_parts(rows: Predictions, change: Vector) -> tuple[float, Residuals]:
    """Return the error, and residuals whose norm shows how it varies.

    smECE_s decreases as s grows, so the fixed point of any residuals is at least t if and only if their
    smECE_t is at least t. With t the value of the rows, resamples do not need their own fixed point, only the
    norm of residuals smoothed by t, on a grid that resolves this width. For the same reason, an end of an
    interval of that norm is at least as far from t as the fixed point. `change` is the amount that
    recalibration adds to the confidence of each row.
    """
    mean = grid_mean(rows)
    value = fixed_point(mean)
    if value == 0:
        return value, Residuals(np.zeros(1), lambda moved: np.zeros((1, moved.shape[1])), np.zeros(1))
    cells = int(np.clip(2 ** np.ceil(np.log2(_CELLS_IN_WIDTH / value)), _MIN_CELLS, _CELLS))
    sums = grid_sums(rows, cells)
    coarse, fitted = (
        smoothed(sums((rows.weight * values)[:, None])[:, 0] / rows.total, value)
        for values in (rows.residual, change)
    )
    return value, Residuals(coarse, lambda moved: smoothed(sums(moved), value), fitted)


def _cosines(residual: Any) -> Any:
    """Return the cosine transform of each column."""
    from scipy.fft import dct

    return dct(residual, type=2, norm="ortho", axis=0)


def _damped(spectrum: Any, width: float) -> Any:
    """Return the inverse of a cosine transform, smoothed by a kernel of positive width."""
    from scipy.fft import idct

    # Beyond pi k s = 9 a cosine keeps less than 3e-18 of its amplitude: leave it out.
    kept = min(len(spectrum), int(9 / (np.pi * width)) + 1)
    damping = np.exp(-((np.pi * width * np.arange(kept)) ** 2) / 2).astype(spectrum.dtype)
    damped = spectrum[:kept] * damping.reshape(-1, *[1] * (spectrum.ndim - 1))
    return idct(damped, type=2, n=len(spectrum), norm="ortho", axis=0)
