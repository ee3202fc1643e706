"""Simple recalibrators, fitted by maximum likelihood.

With l = log p of a row, less its largest, the recalibrated probabilities are q = softmax(beta l + b). Without
b this is temperature scaling. Each bias has a unit normal prior, which decides for classes with few rows and
vanishes for others. The objectives and their solvers are those of `core`. Fits run on l in float32, several
times faster and exact far beyond their standard errors; sums over rows, and the losses that are reported, are
in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.fisher import lbfgs, solve
from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.offsets import Inputs, OffsetLogLikelihood, exponentiate
from temperance.core.predictors import ByClass, Linear
from temperance.core.solution import Solver
from temperance.files import scratch_array
from temperance.metrics.predictions import cached_slices

_LOG_TEMPERATURES = -np.log([100.0]), -np.log([0.01])  # separable rows would drive beta to infinity
_RIDGE = 1.0
_GRADIENT_TOLERANCE = 3e-2  # in standard errors of each parameter, see `fit_bias`


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """Probabilities q = softmax(beta l + bias)."""

    beta: float
    bias: Vector

    def losses(self, logs: Floats, labels: Indices) -> tuple[Vector, Vector]:
        """Return the negative log-likelihood and the Brier score of each row of a block."""
        odds = self.beta * logs
        odds += self.bias
        at_label = odds[np.arange(len(odds)), labels]
        sums, log_sums = exponentiate(odds)
        nll = log_sums - at_label
        return nll, np.einsum("ij,ij->i", odds, odds) / sums**2 - 2 * np.exp(-nll) + 1


def log_probabilities(probs: Floats, dtype: DTypeLike) -> Floats:
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


def fit_temperature(rows: LogitRows, weight: Vector, start: float = 1.0) -> float:
    """Return the best beta: temperature scaling of the log probabilities."""
    objective = LogLikelihood(rows, Linear(np.ones((rows.n_rows, 1))), Log(), weight)
    solution = solve(objective, np.array([-np.log(start)]), rows.n_rows, bounds=_LOG_TEMPERATURES)
    return float(np.exp(-solution.parameters[0]))


def bias_objective(rows: LogitRows, weight: Vector) -> OffsetLogLikelihood:
    """Return the objective of (log T, b): the mean over rows, and a unit normal prior on each bias."""
    K, predictor = rows.n_classes, ByClass(np.ones((rows.n_rows, 1)), np.full(rows.n_rows, -1), 0)
    prior = Prior(np.zeros(1 + K), np.repeat([0.0, _RIDGE], [1, K]) / weight.sum())
    return OffsetLogLikelihood(rows, predictor, Log(), Inputs(K, None), weight, prior, rows.dtype.type)


def fit_bias(rows: LogitRows, weight: Vector, start: Recalibrator) -> Recalibrator:
    """Return the best beta and class biases together, by L-BFGS from `start`.

    Each parameter is measured in units of 1/sqrt(its second derivative at the start), about its standard
    error: this makes the Hessian nearly the identity, for rare and frequent classes alike, and gives the
    tolerance a meaning. The matrix itself, of K x K numbers, is never formed.

    Whatever point the solver returns is a recalibrator no worse than its start on the training rows, and is
    judged on others; should it stop early, the decomposition is a little less sharp but still valid. So
    failure to converge is not an error here.
    """
    objective = bias_objective(rows, weight)
    theta = np.concatenate([[-np.log(start.beta)], start.bias])
    limits = np.full((2, len(theta)), [[-np.inf], [np.inf]])
    limits[:, :1] = _LOG_TEMPERATURES
    solution = lbfgs(
        objective,
        theta,
        Solver.LBFGS_MANY_PARAMETERS,
        (limits[0], limits[1]),
        scale=1 / np.sqrt(np.maximum(objective.diagonal(theta), 1e-12)),
        tolerance=_GRADIENT_TOLERANCE / np.sqrt(objective.total_weight),
    )
    return Recalibrator(float(np.exp(-solution.parameters[0])), solution.parameters[1:])
