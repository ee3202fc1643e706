"""What Bayesian temperature scaling computes for a row: the posterior of log T, the map, and their average.

With T0 the reference, phi the shape of the row, k its predicted class, and e = -log softmax(z / T0):

    log T ~ normal,   mean b + w . phi + v[k]          p = E softmax(-map(e) T0 / T)

The first edition had no map: p = E softmax(z / T + bias). Its files are read, and predict the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.calibrators.model import TemperatureFormula
from temperance.core.features import ALMOST_ZERO, SHAPE_FEATURES, RowFeatures, shape_features
from temperance.core.links import Log
from temperance.core.ops import Array
from temperance.errors import excerpt
from temperance.validation import InputError, check_limits, check_temperatures

_nodes, _weights = np.polynomial.hermite_e.hermegauss(5)
NODES: list[float] = _nodes.tolist()
NODE_WEIGHTS = _weights / _weights.sum()

SIZE = 1 + len(SHAPE_FEATURES)
LEAST_SPREAD = 1e-30
LEAST_VARIANCE = 1e-30  # the root of 0 has no derivative


@dataclass(frozen=True, eq=False)
class LogTemperatureFormula(TemperatureFormula):
    """The posterior of log T as a row needs it: prediction needs no covariance between classes."""

    largest: ClassVar[float] = 1e30  # features are standardised: a fit stays far below

    reference: Array
    centre: Array
    spread: Array
    coefficients: Array
    covariance: Array
    class_shift: Array
    class_covariance: Array
    taus: Array
    effective_parameters: Array
    temperature_limits: Array

    def _log_temperature(self, rows: RowFeatures) -> tuple[Array, Array]:
        """Return the posterior mean and standard deviation of log T of each row."""
        ops = rows.ops
        x = (shape_features(rows, self.reference) - self.centre) / self.spread
        stored = ops.concat([ops.sum(x) * 0.0 + 1.0, x])
        mean = ops.dot(stored, self.coefficients) + ops.take(self.class_shift, rows.top)
        # The last column is a class's own variance, the others its covariance with the coefficients.
        with_class, of_class = ops.split(ops.take(self.class_covariance, rows.top), SIZE)
        variance = ops.dot(ops.matmul(stored, self.covariance) + 2.0 * with_class, stored) + of_class
        return mean, ops.sqrt(ops.clip(variance, LEAST_VARIANCE, math.inf))

    def _link(self) -> Log:
        return Log(self.temperature_limits[0], self.temperature_limits[1])

    def _temperatures(self, rows: RowFeatures) -> list[Array]:
        """Return T of each row at the nodes of the quadrature."""
        (mean, std), ops = self._averaged(rows), rows.ops
        return ops.columns(self._link().temperature(mean + ops.outer(std, NODES), ops), len(NODES))

    def _averaged(self, rows: RowFeatures) -> tuple[Array, Array]:
        """Return mean and standard deviation of what is averaged over: the posterior."""
        return self._log_temperature(rows)

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row at the posterior mean of log T."""
        return self._link().temperature(self._log_temperature(rows)[0], rows.ops)

    def log_temperature_std(self, rows: RowFeatures) -> Array:
        """Return the posterior standard deviation of log T of each row."""
        return self._log_temperature(rows)[1]

    def check(self) -> None:
        """Raise if the numbers cannot be those of a fit."""
        check_temperatures("reference", np.asarray(self.reference))
        check_limits(self.temperature_limits)
        if self.spread.min() < LEAST_SPREAD:
            raise InputError(
                f"spread must be at least {LEAST_SPREAD:g}; found {excerpt(self.spread.tolist())}."
            )
        if min(self.class_covariance[:, SIZE].min(), self.covariance.diagonal().min()) < 0:
            raise InputError("variances must be >= 0; one in covariance or class_covariance is not.")


@dataclass(frozen=True, eq=False)
class FirstEditionFormula(LogTemperatureFormula):
    """The formula of files without a map."""

    bias: Array | None = None
    interactions: Array | None = None

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not with a class bias."""
        return self.bias is None

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs averaged over the posterior of log T, by quadrature."""
        betas = [1.0 / temperature for temperature in self._temperatures(rows)]
        return rows.mixture(betas, NODE_WEIGHTS, self.bias, self.interactions)


@dataclass(frozen=True, eq=False, kw_only=True)
class BayesianFormula(LogTemperatureFormula):
    """A map of log-probabilities, a temperature for each row behind it, and perhaps a class bias."""

    map_knots: Array
    map_slopes: Array
    uniform_weight: Array
    bias_beta: Array | None = None
    bias: Array | None = None
    interactions: Array | None = None
    bias_weight: Array | None = None
    averaged_variance: Array | None = None
    """The share of the variance of log T that is averaged over; early files average over all of it."""

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not with a class bias."""
        return self.bias is None

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs averaged over the posterior of log T, with a little of the uniform."""
        scales = [self.reference / temperature for temperature in self._temperatures(rows)]
        weights = [*(weight * (1.0 - self.uniform_weight) for weight in NODE_WEIGHTS), self.uniform_weight]
        output = rows.mapped_mixture(
            self.reference, self.map_knots, self.map_slopes, [*scales, ALMOST_ZERO], weights
        )
        if self.bias is None:
            return output
        return rows.class_bias(output, self.bias_beta, self.bias, self.interactions, self.bias_weight)

    def _averaged(self, rows: RowFeatures) -> tuple[Array, Array]:
        mean, std = self._log_temperature(rows)
        return mean, std if self.averaged_variance is None else std * rows.ops.sqrt(self.averaged_variance)

    def check(self) -> None:
        """Raise if the numbers cannot be those of a fit."""
        super().check()
        check_map(self.map_knots, self.map_slopes)
        if not 0 <= self.uniform_weight < 1:
            raise InputError(f"uniform_weight must be from 0 to below 1; found {self.uniform_weight:g}.")
        if self.averaged_variance is not None and not 0 < self.averaged_variance <= 1:
            raise InputError(
                f"averaged_variance must be above 0 and at most 1; found {self.averaged_variance:g}."
            )
        if self.bias_weight is not None and not 0 < self.bias_weight <= 1:
            raise InputError(f"bias_weight must be above 0 and at most 1; found {self.bias_weight:g}.")
        if self.bias_beta is not None and self.bias_beta <= 0:
            raise InputError(f"bias_beta must be above 0; found {self.bias_beta:g}.")


def check_map(knots: Array, slopes: Array) -> None:
    """Raise unless the map begins at 0 and increases."""
    if knots[0] != 0 or (np.diff(knots) <= 0).any():
        raise InputError(f"map_knots must begin at 0 and increase; found {excerpt(knots.tolist())}.")
    if (slopes <= 0).any():
        raise InputError(f"map_slopes must be above 0; found {excerpt(slopes.tolist())}.")
