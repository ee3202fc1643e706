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

from typing import Any

import numpy as np

from temperance.core.arrays import Vector
from temperance.metrics.predictions import Predictions

_CELLS = 2048  # widths below 1 / 2048 are not resolved; for N < 10^9 noise makes widths larger
_CELLS_IN_WIDTH = 4  # of the grid for resamples, which are only compared, not reported
_MIN_CELLS = 32


def grid_mean(rows: Predictions) -> Vector:
    """Return the mean residuals on the grid."""
    mean: Vector = places_on_grid(rows) @ (rows.weight * rows.residual) / rows.total
    return mean


def places_on_grid(rows: Predictions, cells: int = _CELLS) -> Any:
    """Return the sparse matrix (cells, N) that adds up rows on a grid of the confidences.

    A row is shared between the two nearest cell centres, which keeps its mean position.
    """
    from scipy.sparse import csr_array

    position = np.clip(rows.confidence.astype(np.float64) * cells - 0.5, 0, cells - 1)
    cell, row = np.minimum(position.astype(int), cells - 2), np.arange(len(position))
    upper = position - cell
    values, places = np.concatenate([1 - upper, upper]), np.concatenate([cell, cell + 1])
    return csr_array((values, (places, np.tile(row, 2))), shape=(cells, len(row)))


def coarse_cells(value: float) -> int:
    """Return the number of cells that resolves the width `value`."""
    return int(np.clip(2 ** np.ceil(np.log2(_CELLS_IN_WIDTH / max(value, 1 / _CELLS))), _MIN_CELLS, _CELLS))


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
    """Return the residuals in each column, smoothed.

    smECE_s falls as s grows, so the fixed point of any residuals is at least t if and only if their smECE_t
    is at least t. With t the value of the rows, resamples do not need their own fixed point, only the norm of
    residuals smoothed by t, on a grid that resolves this width. For the same reason, an end of an interval of
    that norm is at least as far from t as the fixed point.
    """
    return _damped(_cosines(residual), max(width, 1 / _CELLS))


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
