"""Simple recalibrators, fitted by maximum likelihood.

With l = log p of a row, minus its maximum, the recalibrated probabilities are q = softmax(beta l + b).
Without b this is temperature scaling. Each bias has a unit normal prior, which matters only for classes with
few rows. The objectives and solvers come from `core`. l is float32, which is several times faster, with
errors far below standard errors; sums over classes and rows are float64.

A class that is no row's label, and whose probabilities add up to less than 1/4 of a row, would get a bias
between -1/4 and 0 under its prior. If most classes are like this, as in a vocabulary, they keep a bias of 0.
Then the other biases are fitted with all these classes merged into one, which has their total probability at
the best temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.fisher import lbfgs, solve
from temperance.core.kernels import exponentiate
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Linear, Log
from temperance.core.solution import Solver
from temperance.files import scratch_array
from temperance.inputs.probabilities import MIN_FLOOR
from temperance.metrics.predictions import Predictions, cached_slices

_LOG_TEMPERATURES = -np.log([100.0]), -np.log([0.01])  # separable rows would drive beta to infinity
_RIDGE = 1.0
_MIN_TOTAL = 0.25  # smallest sum of probabilities at which a class that is no row's label has its own bias
_TINY = float(np.finfo(np.float64).tiny)
_LOSS_TOLERANCE = 1e-9  # of the mean loss, whose further digits do not matter
_GRADIENT_TOLERANCE = 3e-2  # in standard errors of each parameter, see `fit_bias`


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """Probabilities q = softmax(beta l + bias)."""

    beta: float
    bias: Vector

    def odds(self, logs: Floats) -> tuple[Floats, Vector, Vector]:
        """Return exp(u) up to a factor per row, its row sums, and log sum exp u."""
        odds = np.float32(self.beta) * logs
        odds += self.bias.astype(np.float32)
        return (odds, *exponentiate(odds))


def log_probabilities(probs: Floats) -> Floats:
    """Return log p minus its row maximum, with p at least the precision of a float, or of half precision.

    All smaller numbers mean the same. With a logarithm of -708, one label of probability 0 would determine
    the temperature of all rows.
    """
    lowest = 2.0**-24 if probs.dtype.itemsize == 2 else MIN_FLOOR
    logs = scratch_array(probs.shape, np.float32)
    for block in cached_slices(*probs.shape):
        part = np.log(np.maximum(probs[block], lowest), dtype=np.promote_types(probs.dtype, np.float32))
        logs[block] = part - part.max(axis=1, keepdims=True)
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


Recalibrators = tuple[Recalibrator, Recalibrator]
"""Temperature scaling, and temperature scaling with biases."""


class Recalibration:
    """The log probabilities of some rows, to be recalibrated; `own` are the classes with a bias."""

    def __init__(self, rows: Predictions) -> None:
        self.logs, self.labels = log_probabilities(rows.probs), rows.labels
        self.rows, self.n_classes = LogitRows(self.logs, self.labels), rows.probs.shape[1]
        has_bias = rows.class_totals >= _MIN_TOTAL
        has_bias[rows.labels] = True
        self.merges = bool(2 * has_bias.sum() < self.n_classes)
        self.own = np.flatnonzero(has_bias) if self.merges else np.arange(self.n_classes)
        self.start = (Recalibrator(1.0, np.zeros(self.n_classes)),) * 2

    def fit(self, weight: Vector, start: Recalibrators) -> Recalibrators:
        """Return temperature scaling, and temperature scaling with biases, for these weights."""
        beta = fit_temperature(self.rows, weight, start[0].beta)
        rows, before = self._merged(Recalibrator(beta, start[1].bias))
        found = fit_bias(rows, weight, before, last_is_fixed=self.merges)
        bias = np.zeros(self.n_classes)
        bias[self.own] = found.bias[: len(self.own)]
        return Recalibrator(beta, start[0].bias), Recalibrator(found.beta, bias)

    def precision(self, weight: Vector, model: Recalibrator) -> Vector:
        """Return the information on log T and on each bias, including the prior's."""
        rows, merged = self._merged(model)
        theta = np.concatenate([[-np.log(merged.beta)], merged.bias])
        of_temperature, *of_biases = bias_objective(rows, weight).diagonal(theta) * weight.sum()
        precision = np.append(of_temperature, np.full(self.n_classes, _RIDGE))
        precision[1 + self.own] = of_biases[: len(self.own)]
        return precision

    def _merged(self, model: Recalibrator) -> tuple[LogitRows, Recalibrator]:
        """Return the rows and the model, with one column, the last, for all classes without a bias."""
        if not self.merges:
            return self.rows, model
        merged = np.empty((len(self.logs), len(self.own) + 1), np.float32)
        merged[:, :-1] = self.logs[:, self.own]
        for block in cached_slices(*self.logs.shape):
            odds = np.exp(np.float32(model.beta) * self.logs[block])
            odds[:, self.own] = 0
            total = np.maximum(odds.sum(axis=1, dtype=np.float64), np.finfo(np.float32).tiny)
            merged[block, -1] = np.log(total) / model.beta
        rows = LogitRows(merged, np.searchsorted(self.own, self.labels))
        return rows, Recalibrator(model.beta, np.append(model.bias[self.own], 0.0))

    def losses(self, models: Sequence[Recalibrator], fold: Indices) -> tuple[Vector, Vector]:
        """Return the negative log-likelihood and the Brier score of each row by the model of its fold."""
        nll, brier = np.empty((2, len(fold)))
        for held, model in enumerate(models):
            index = np.flatnonzero(fold == held)
            for block in cached_slices(len(index), self.n_classes):
                rows = index[block]
                logs, labels = self.logs[rows], self.labels[rows]
                odds, sums, log_sums = model.odds(logs)
                of_label = np.float32(model.beta) * logs[np.arange(len(rows)), labels]
                of_label += model.bias.astype(np.float32)[labels]
                squares = np.einsum("ij,ij->i", odds, odds).astype(np.float64) / sums**2
                nll[rows] = np.maximum(log_sums - of_label, 0)  # rounding
                brier[rows] = np.maximum(squares - 2 * np.exp(-nll[rows]) + 1, 0)
        return nll, brier

    def recalibrated(self, model: Recalibrator, column: Indices) -> Vector:
        """Return the probability of one class of each row after a model."""
        log_sums = np.empty(len(column))
        for block in cached_slices(len(column), self.n_classes):
            *_, log_sums[block] = model.odds(self.logs[block])
        log_odds = model.beta * self.logs[np.arange(len(column)), column].astype(np.float64)
        probs: Vector = np.exp(log_odds + model.bias[column] - log_sums)
        return probs


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
