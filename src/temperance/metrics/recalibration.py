"""Simple recalibrators, fitted by maximum likelihood.

With l = log p of a row, less its largest, the recalibrated probabilities are q = softmax(beta l + b). Without
b this is temperature scaling. Each bias has a unit normal prior, which decides for classes with few rows and
vanishes for others. The objectives and their solvers are those of `core`. All runs on l in float32, several
times faster and exact far beyond standard errors; sums over classes and rows are in float64.

A class that is no row's label, and whose probabilities add up to less than 1/4 of a row, would get a bias
between -1/4 and 0 by its prior: it gets 0. Where these are most classes, as in a vocabulary, a fit of biases
sees them as one class, which has their probability at the best temperature: it reads N rows of the other
classes, not of all.
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
_LEAST_TOTAL = 0.25  # of the probabilities of a class that is no label, for a bias of its own
_TINY = float(np.finfo(np.float32).tiny)
_LOSS_TOLERANCE = 1e-9  # of the mean loss, whose last digits nobody reads
_GRADIENT_TOLERANCE = 3e-2  # in standard errors of each parameter, see `fit_bias`


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """Probabilities q = softmax(beta l + bias)."""

    beta: float
    bias: Vector

    def losses(self, logs: Floats, labels: Indices) -> tuple[Vector, Vector]:
        """Return the negative log-likelihood and the Brier score of each row of a block."""
        odds = np.float32(self.beta) * logs
        odds += self.bias.astype(np.float32)
        at_label = odds[np.arange(len(odds)), labels]
        sums, log_sums = exponentiate(odds)
        nll = np.maximum(log_sums - at_label, 0)  # rounding
        squares = np.einsum("ij,ij->i", odds, odds).astype(np.float64) / sums**2
        return nll, np.maximum(squares - 2 * np.exp(-nll) + 1, 0)


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
    start_at = np.array([-np.log(start)])
    solution = solve(objective, start_at, rows.n_rows, _LOSS_TOLERANCE, bounds=_LOG_TEMPERATURES)
    return float(np.exp(-solution.parameters[0]))


def bias_objective(rows: LogitRows, weight: Vector) -> OffsetLogLikelihood:
    """Return the objective of (log T, b): the mean over rows, and a unit normal prior on each bias."""
    K, predictor = rows.n_classes, ByClass(np.ones((rows.n_rows, 1)), np.full(rows.n_rows, -1), 0)
    prior = Prior(np.zeros(1 + K), np.repeat([0.0, _RIDGE], [1, K]) / weight.sum())
    return OffsetLogLikelihood(rows, predictor, Log(), Inputs(K, None), weight, prior, rows.dtype.type)


class Recalibration:
    """The log probabilities to recalibrate, and which classes have a bias of their own."""

    def __init__(self, logs: Floats, labels: Indices, totals: Vector) -> None:
        own = totals >= _LEAST_TOTAL
        own[labels] = True
        self.logs, self.labels, self.n_classes = logs, labels, logs.shape[1]
        self.rows = LogitRows(logs, labels)
        self.own = np.flatnonzero(own) if 2 * own.sum() < self.n_classes else None
        if self.own is not None:
            self.place = np.searchsorted(self.own, labels)

    def fit(
        self, weight: Vector, start: tuple[Recalibrator, Recalibrator]
    ) -> tuple[Recalibrator, Recalibrator]:
        """Return temperature scaling, and temperature scaling with biases, for these weights."""
        beta = fit_temperature(self.rows, weight, start[0].beta)
        scaled = Recalibrator(beta, start[0].bias)
        if self.own is None:
            return scaled, fit_bias(self.rows, weight, Recalibrator(beta, start[1].bias))
        merged = LogitRows(self._merged(beta), self.place)
        before = Recalibrator(1.0, np.append(start[1].bias[self.own], 0.0))
        found = fit_bias(merged, weight, before, last_is_fixed=True)
        bias = np.zeros(self.n_classes)
        bias[self.own] = found.bias[:-1]
        return scaled, Recalibrator(beta * found.beta, bias)

    def effective_parameters(self, weight: Vector, model: Recalibrator) -> float:
        """Return how many parameters the rows determine: a bias counts less the more its prior decides.

        With h the information of the rows on a bias, it counts h / (h + 1). The temperature is one more, and
        a constant that all biases share is one less.
        """
        theta = np.concatenate([[-np.log(model.beta)], model.bias])
        precision = bias_objective(self.rows, weight).diagonal(theta)[1:] * weight.sum()
        own = precision if self.own is None else precision[self.own]
        return max(float((1 - _RIDGE / own).sum()), 1.0)

    def _merged(self, beta: float) -> Floats:
        """Return beta l of the classes with biases, and the log of the sum of exp(beta l) of all others."""
        assert self.own is not None
        merged = np.empty((len(self.logs), len(self.own) + 1), np.float32)
        for block in cached_slices(*self.logs.shape):
            odds = np.float32(beta) * self.logs[block]
            merged[block, :-1] = odds[:, self.own]
            np.exp(odds, out=odds)
            others = odds.sum(axis=1, dtype=np.float64) - odds[:, self.own].sum(axis=1, dtype=np.float64)
            merged[block, -1] = np.log(np.maximum(others, _TINY))
        return merged


def fit_bias(
    rows: LogitRows, weight: Vector, start: Recalibrator, *, last_is_fixed: bool = False
) -> Recalibrator:
    """Return the best beta and class biases together, by L-BFGS from `start`; the last may stay as it is.

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
    if last_is_fixed:
        limits[:, -1] = theta[-1]
    solution = lbfgs(
        objective,
        theta,
        Solver.LBFGS_MANY_PARAMETERS,
        (limits[0], limits[1]),
        scale=1 / np.sqrt(np.maximum(objective.diagonal(theta), 1e-12)),
        tolerance=_GRADIENT_TOLERANCE / np.sqrt(objective.total_weight),
    )
    return Recalibrator(float(np.exp(-solution.parameters[0])), solution.parameters[1:])
