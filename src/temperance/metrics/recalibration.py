"""Simple recalibrators, fitted by maximum likelihood.

With l = log p of a row, less its largest, the recalibrated probabilities are q = softmax(beta l + b), and

    objective   F(beta, b) = sum_i w_i (log sum_k exp(beta l_ik + b_k) - beta l_iy - b_y) + 1/2 |b|^2
    dF/dbeta    = sum_i w_i (E_q[l] - l_y)                   d2F/dbeta2 = sum_i w_i Var_q[l]
    dF/db_k     = sum_i w_i (q_ik - 1[y_i = k]) + b_k

F is convex. The ridge is a unit normal prior on each bias: it decides for classes with few rows and vanishes
for others. With b = 0 this is temperature scaling, which the solver of `core` does. Rows are visited in
blocks, so that no second (N, K) array is needed beside l. Fits run on l in float32, several times faster and
exact far beyond their standard errors; sums over rows, and the losses that are reported, are in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.fisher import solve
from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import Linear
from temperance.files import scratch_array
from temperance.metrics.predictions import cached_slices

__all__ = ["Logs", "Recalibrator", "fit_bias", "fit_temperature", "log_probabilities"]

Logs = NDArray[np.floating[Any]]

_BETA_RANGE = (0.01, 100.0)  # separable rows would drive beta to infinity
_RIDGE = 1.0
_GRADIENT_TOLERANCE = 3e-2  # in standard errors of each parameter, see `fit_bias`


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """Probabilities q = softmax(beta l + bias)."""

    beta: float
    bias: Vector

    def odds(self, logs: Logs) -> tuple[Logs, Vector]:
        """Return exp(beta l + b - max b) of a block in its dtype, and the sums over classes."""
        odds = logs * logs.dtype.type(self.beta)
        odds += (self.bias - self.bias.max()).astype(logs.dtype)
        np.exp(odds, out=odds)
        return odds, odds.sum(axis=1).astype(np.float64)

    def losses(self, logs: Logs, labels: NDArray[np.intp]) -> tuple[Vector, Vector]:
        """Return the negative log-likelihood and the Brier score of each row of a block."""
        odds, sums = self.odds(logs)
        nll = self.nll(logs, labels, sums)
        return nll, _row_dots(odds, odds) / sums**2 - 2 * np.exp(-nll) + 1

    def nll(self, logs: Logs, labels: NDArray[np.intp], sums: Vector) -> Vector:
        """Return the negative log-likelihood, also where the odds of the label underflow."""
        return np.log(sums) - self.beta * _of_label(logs, labels) - (self.bias - self.bias.max())[labels]


def log_probabilities(probs: NDArray[np.floating[Any]], dtype: type[np.floating[Any]]) -> Logs:
    """Return log p less its row maximum; a probability of 0 counts as the smallest of its dtype."""
    if probs.dtype.itemsize == 2:
        probs, tiny = probs.astype(np.float32), 2.0**-24
    else:
        tiny = float(np.finfo(probs.dtype).tiny)
    logs = scratch_array(probs.shape, dtype)
    for block in cached_slices(*probs.shape):
        part = np.log(np.maximum(probs[block], tiny, dtype=probs.dtype))
        logs[block] = part - part.max(axis=1, keepdims=True)
    return logs


def _of_label(logs: Logs, labels: NDArray[np.intp]) -> Vector:
    chosen = np.take_along_axis(logs, labels[:, None], axis=1)[:, 0]
    return chosen.astype(np.float64)


def _row_dots(left: Logs, right: Logs) -> Vector:
    dots: NDArray[np.floating[Any]] = np.einsum("ij,ij->i", left, right)
    return dots.astype(np.float64)


def fit_temperature(logs: Logs, labels: NDArray[np.intp], weight: Vector, start: float = 1.0) -> float:
    """Return the best beta: temperature scaling of the log probabilities; `start` if no row counts."""
    if not weight.any():
        return start
    rows = LogitRows(logs, labels)
    bounds = -np.log([_BETA_RANGE[1]]), -np.log([_BETA_RANGE[0]])
    objective = LogLikelihood(rows, Linear(np.ones((rows.n_rows, 1))), Log(), weight)
    solution = solve(objective, np.array([-np.log(start)]), rows.n_rows, bounds=bounds)
    return float(np.exp(-solution.parameters[0]))


def fit_bias(logs: Logs, labels: NDArray[np.intp], weight: Vector, start: Recalibrator) -> Recalibrator:
    """Return the best beta and class biases together, by L-BFGS from `start`.

    Each parameter is measured in units of 1/sqrt(its second derivative at the start), about its standard
    error: this makes the Hessian nearly the identity, for rare and frequent classes alike, and gives the
    tolerance a meaning.

    Whatever point the solver returns is a recalibrator no worse than its start on the training rows, and is
    judged on others; should it stop early, the decomposition is a little less sharp but still valid. So
    failure to converge is not an error here.
    """
    from scipy.optimize import minimize

    scale = 1 / np.sqrt(_second_derivatives(logs, weight, start))

    def scaled(x: Vector) -> tuple[float, Vector]:
        value, gradient = _objective(logs, labels, weight, x * scale)
        return value, gradient * scale

    limits = [(bound / scale[0]) for bound in _BETA_RANGE]
    result = minimize(
        scaled,
        np.concatenate([[start.beta], start.bias]) / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=[(limits[0], limits[1])] + [(None, None)] * logs.shape[1],
        options={"gtol": _GRADIENT_TOLERANCE, "maxiter": 100},
    )
    x = result.x * scale
    return Recalibrator(float(x[0]), x[1:])


def _moments(logs: Logs, odds: Logs, sums: Vector) -> tuple[Vector, Vector]:
    """Return mean and variance of l under q, for a block of rows."""
    terms = odds * logs
    mean = terms.sum(axis=1) / sums
    # l is 0 at its largest, so that the moments are small where the variance is, and the difference is safe.
    return mean, np.maximum(_row_dots(terms, logs) / sums - mean**2, 0)


def _objective(logs: Logs, labels: NDArray[np.intp], weight: Vector, x: Vector) -> tuple[float, Vector]:
    """Return F and its gradient at x = (beta, b)."""
    model = Recalibrator(float(x[0]), x[1:])
    value, gradient = 0.5 * _RIDGE * float(x[1:] @ x[1:]), np.concatenate([[0.0], _RIDGE * x[1:]])
    gradient[1:] -= np.bincount(labels, weights=weight, minlength=len(x) - 1)
    for block in cached_slices(*logs.shape):
        part, chosen, w = logs[block], labels[block], weight[block]
        odds, sums = model.odds(part)
        value += float(w @ model.nll(part, chosen, sums))
        gradient[0] += float(w @ (_row_dots(odds, part) / sums - _of_label(part, chosen)))
        gradient[1:] += (w / sums).astype(logs.dtype) @ odds
    return value, gradient


def _second_derivatives(logs: Logs, weight: Vector, model: Recalibrator) -> Vector:
    """Return the diagonal of the Hessian of F at `model`, kept above 0."""
    curvature, diagonal = 1e-12, np.full(logs.shape[1], _RIDGE)
    for block in cached_slices(*logs.shape):
        odds, sums = model.odds(logs[block])
        curvature += float(weight[block] @ _moments(logs[block], odds, sums)[1])
        odds /= sums[:, None].astype(logs.dtype)
        diagonal += weight[block].astype(logs.dtype) @ (odds - odds * odds)
    return np.concatenate([[curvature], diagonal])
