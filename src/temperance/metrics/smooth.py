"""Calibration error without bins (Błasiok and Nakkiran, 2024).

With residuals r_i = correct_i - confidence_i at confidences c_i and a Gaussian kernel of width s, reflected
at 0 and 1 so that no mass leaves the interval:

    smECE_s = integral over t in [0, 1] of |1/n sum_i r_i kernel_s(t, c_i)|
    smECE   = the s for which smECE_s = s

smECE_s falls as s grows, so the fixed point exists, is unique, and is found by bisection.

On M cells of [0, 1] the reflected Gaussian is diagonal in the cosine basis: cos(pi k t) is multiplied by
exp(-(pi k s)^2 / 2). One cosine transform then serves every width, and many sets of weights at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.labels import Names
from temperance.metrics.predictions import Predictions, check_rows
from temperance.metrics.sums import group_sums

_CELLS = 2048  # widths below 1 / 2048 are not resolved; noise keeps them above that for N < 10^9
_HALVINGS = 12  # of [0, 1]; a straight line between the last two ends then leaves an error below 1e-6


def smooth_ece(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Smooth calibration error of the top label: no bins to choose, and continuous in the probabilities.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows.
    classes : sequence of str or int, optional
        The names of the columns, in their order, where labels are names. A DataFrame brings its own.

    Returns
    -------
    float
        From 0 to 1. It bounds the distance to the nearest perfectly calibrated predictor from both sides, up
        to constants and a square root. Like `ece` it is above 0 on a sample of a calibrated classifier.

    References
    ----------
    .. [1] Błasiok and Nakkiran (2024). Smooth ECE: Principled reliability diagrams via kernel smoothing.
       arXiv:2309.12236

    Examples
    --------
    >>> round(smooth_ece([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1]), 3)
    0.171
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    residual = grid_sums(rows)(rows.weight[:, None]) / rows.total
    return float(fixed_point(residual)[0])


def grid_sums(rows: Predictions) -> Callable[[Vector], Vector]:
    """Return the map from weights to residuals on the grid.

    A residual is shared between the two nearest cell centres, which keeps its mean position.
    """
    position = np.clip(rows.confidence.astype(np.float64) * _CELLS - 0.5, 0, _CELLS - 1)
    cell = np.minimum(position.astype(int), _CELLS - 2)
    upper = position - cell
    row = np.arange(len(cell))
    values = np.concatenate([(1 - upper) * rows.residual, upper * rows.residual])
    cells, twice = np.concatenate([cell, cell + 1]), np.concatenate([row, row])
    return group_sums(values, cells, twice, (_CELLS, len(cell)))


def fixed_point(residual: Vector) -> Vector:
    """Return the fixed point of each column of (cells, B) residuals; 0 where there is no residual."""
    spectrum = _cosines(residual)
    low, high = np.zeros(residual.shape[1]), np.ones(residual.shape[1])
    above, below = np.abs(residual).sum(axis=0), 1 - _absolute_integral(spectrum, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        excess = _absolute_integral(spectrum, middle) - middle
        up = excess > 0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
        above, below = np.where(up, excess, above), np.where(up, below, -excess)
    crossing: Vector = low + (high - low) * above / (above + below)
    return np.minimum(crossing, 1.0)  # rounding


def _cosines(residual: Vector) -> Vector:
    """Return the cosine transform of each column, as rows."""
    from scipy.fft import dct

    spectrum: Vector = dct(np.ascontiguousarray(residual.T), type=2, norm="ortho", axis=1)
    return spectrum


def _absolute_integral(spectrum: Vector, width: Vector) -> Vector:
    """Return the sum over cells of the absolute smoothed residual, for widths above 0."""
    from scipy.fft import idct

    # Beyond pi k s = 9 a cosine keeps less than 3e-18 of its height: leave it out.
    kept = min(_CELLS, int(9 / (np.pi * width.min())) + 1)
    exponent = -((np.pi * np.arange(kept)) ** 2) / 2
    damped = spectrum[:, :kept] * np.exp(width[:, None] ** 2 * exponent)
    total: Vector = np.abs(idct(damped, type=2, n=_CELLS, norm="ortho", axis=1)).sum(axis=1)
    return total
