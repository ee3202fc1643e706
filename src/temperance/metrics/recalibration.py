"""Simple recalibrators, fitted by maximum likelihood.

With l = log p of a row, minus its maximum, the recalibrated probabilities are q = softmax(beta l + b).
Without b this is temperature scaling. Each bias has a unit normal prior, which matters only for classes with
few rows. The objectives and solvers come from `core`. l is float32, which is several times faster, with
errors far below standard errors; sums over classes and rows are float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.blocks import Scratch, for_each_block
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.fisher import lbfgs, solve
from temperance.core.kernels import exponentiate
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Linear, Log
from temperance.core.solution import Solver
from temperance.files import scratch_array
from temperance.inputs.probabilities import MIN_FLOOR
from temperance.metrics.predictions import cached_slices

_LOG_TEMPERATURES = -np.log([100.0]), -np.log([0.01])  # separable rows would drive beta to infinity
_RIDGE = 1.0
_TINY = float(np.finfo(np.float64).tiny)
_LOSS_TOLERANCE = 1e-9  # of the mean loss, whose further digits do not matter
_GRADIENT_TOLERANCE = 3e-2  # in standard errors of each parameter, see `fit_bias`


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """Probabilities q = softmax(beta l + bias)."""

    beta: float
    bias: Vector

    def parts(self, logs: Floats, labels: Indices) -> tuple[Floats, Vector, Vector]:
        """Return u of the label, log sum exp u, and the sum of the squares of softmax(u), u = beta l + b."""
        rows = np.arange(len(logs))
        at_label = np.float32(self.beta) * logs[rows, labels] + self.bias.astype(np.float32)[labels]
        odds, sums, log_sums = self.odds(logs)
        return at_label, log_sums, np.einsum("ij,ij->i", odds, odds).astype(np.float64) / sums**2

    def odds(self, logs: Floats) -> tuple[Floats, Vector, Vector]:
        """Return exp(u) up to a factor per row, its row sums, and log sum exp u."""
        odds = np.float32(self.beta) * logs
        odds += self.bias.astype(np.float32)
        return (odds, *exponentiate(odds))


def losses_of_parts(log_label: Floats, squares: Vector) -> tuple[Vector, Vector]:
    """Return both losses of rows, from the log probability of the label and the sum of all squares."""
    nll = np.maximum(-log_label, 0)  # rounding
    return nll, np.maximum(squares - 2 * np.exp(-nll) + 1, 0)


def log_probabilities(probs: Floats, dtype: DTypeLike) -> Floats:
    """Return log p minus its row maximum, with p at least the precision of a float, or of half precision.

    All smaller numbers mean the same. With a logarithm of -708, one label of probability 0 would determine
    the temperature of all rows.
    """
    lowest = 2.0**-24 if probs.dtype.itemsize == 2 else MIN_FLOOR
    logs = scratch_array(probs.shape, dtype)

    def work(p: Floats, i: int, j: int, scratch: Scratch) -> None:
        part = np.maximum(p, p.dtype.type(lowest), out=scratch.e[: j - i])
        np.log(part, out=part)
        np.subtract(part, part.max(axis=1, keepdims=True), out=logs[i:j], casting="same_kind")

    for_each_block(probs, work)
    return logs


def fit_temperature(rows: LogitRows, weight: Vector, start: float = 1.0) -> float:
    """Return the best beta: temperature scaling of the log probabilities."""
    objective = LogLikelihood(rows, Linear(np.ones((rows.n_rows, 1))), Log(), weight)
    start_at = np.array([-np.log(start)])
    solution = solve(objective, start_at, rows.n_rows, _LOSS_TOLERANCE, bounds=_LOG_TEMPERATURES)
    return float(np.exp(-solution.parameters[0]))


def bias_objective(rows: LogitRows, weight: Vector) -> ClassBiasLikelihood:
    """Return the objective of (log T, b): the mean over rows, and a unit normal prior on each bias."""
    K = rows.n_classes
    prior = Prior(np.zeros(1 + K), np.repeat([0.0, _RIDGE], [1, K]) / weight.sum())
    return ClassBiasLikelihood(rows, weight, prior, interacting=False)


def parameter_precision(rows: LogitRows, weight: Vector, model: Recalibrator) -> Vector:
    """Return the information on log T and on each bias, including the prior's."""
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    return bias_objective(rows, weight).diagonal(theta) * weight.sum()


def effective_parameters(precision: Vector) -> float:
    """Return how many parameters the rows determine: a bias counts less if its prior dominates.

    With h the information of the rows on a bias, it counts h / (h + 1). The temperature is one more, and a
    constant that all biases share is one less.
    """
    return max(float((1 - _RIDGE / precision[1:]).sum()), 1.0)


def shrunk(model: Recalibrator, precision: Vector) -> Recalibrator:
    """Return the model with its noise removed: each parameter x times (1 - variance / x^2)+."""
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    theta *= np.maximum(1 - 1 / np.maximum(precision * theta**2, _TINY), 0)
    return Recalibrator(float(np.exp(-theta[0])), theta[1:])


def probabilities_of(logs: Floats, column: Indices, beta: float, bias: Vector, log_sums: Vector) -> Vector:
    """Return q of one class of each row, with the bias of that class, given log sum exp u of the row."""
    odds = beta * logs[np.arange(len(column)), column].astype(np.float64) + bias
    probs: Vector = np.exp(odds - log_sums)
    return probs


Recalibrators = tuple[Recalibrator, Recalibrator]
"""Temperature scaling, and temperature scaling with biases."""


class Recalibration:
    """The log probabilities to recalibrate, by models in which every class has a bias."""

    def __init__(self, logs: Floats, labels: Indices) -> None:
        self.logs, self.labels, self.n_classes = logs, labels, logs.shape[1]
        self.rows = LogitRows(logs, labels)
        self.start = (Recalibrator(1.0, np.zeros(self.n_classes)),) * 2

    def fit(self, weight: Vector, start: Recalibrators) -> Recalibrators:
        """Return temperature scaling, and temperature scaling with biases, for these weights."""
        beta = fit_temperature(self.rows, weight, start[0].beta)
        scaled = Recalibrator(beta, start[0].bias)
        return scaled, fit_bias(self.rows, weight, Recalibrator(beta, start[1].bias))

    def losses(self, models: Sequence[Recalibrator], fold: Indices) -> tuple[Vector, Vector]:
        """Return the negative log-likelihood and the Brier score of each row by the model of its fold."""
        nll, brier = np.empty((2, len(fold)))
        for held, model in enumerate(models):
            index = np.flatnonzero(fold == held)
            for block in cached_slices(len(index), self.n_classes):
                rows = index[block]
                at_label, log_sums, squares = model.parts(self.logs[rows], self.labels[rows])
                nll[rows], brier[rows] = losses_of_parts(at_label - log_sums, squares)
        return nll, brier

    def precision(self, weight: Vector, model: Recalibrator) -> Vector:
        """Return the information on log T and on each bias."""
        return parameter_precision(self.rows, weight, model)

    def recalibrated(self, model: Recalibrator, column: Indices) -> Vector:
        """Return the probability of one class of each row after a model."""
        log_sums = np.empty(len(column))
        for block in cached_slices(len(column), self.n_classes):
            *_, log_sums[block] = model.odds(self.logs[block])
        return probabilities_of(self.logs, column, model.beta, model.bias[column], log_sums)


def fit_bias(
    rows: LogitRows, weight: Vector, start: Recalibrator, *, last_is_fixed: bool = False
) -> Recalibrator:
    """Return the best beta and class biases together, by L-BFGS from `start`; the last bias can stay fixed.

    Each parameter is measured in units of 1/sqrt(its second derivative at the start), about its standard
    error: this makes the Hessian nearly the identity, for rare and frequent classes alike, and gives the
    tolerance a meaning. The K × K matrix itself is never formed.

    Any point that the solver returns is a recalibrator no worse than its start on the training rows, and it
    is evaluated on other rows. If the solver stops early, the decomposition is a little less sharp but still
    valid. So failure to converge does not raise an error here.
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
