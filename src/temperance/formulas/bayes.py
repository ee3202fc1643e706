"""What Bayesian temperature scaling computes for a row: the posterior of log T, the map, the average.

With T0 the reference, phi the shape of the row, k its predicted class, and e = -log softmax(z / T0):

    log T ~ normal,   mean b + w . phi + v[k]          p = E softmax(-map(e) T0 / T)

The first edition had no map: p = E softmax(z / T + bias). Its files still give bit-identical predictions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from temperance.core.features import ALMOST_ZERO, SHAPE_FEATURES, RowFeatures, shape_features
from temperance.core.kernels import KNOTS
from temperance.core.links import Log
from temperance.core.ops import Array
from temperance.errors import InputError, excerpt
from temperance.formulas.model import Formula, Shape, TemperatureFormula
from temperance.formulas.monotone import check_map
from temperance.inputs.validation import check_limits, check_temperatures

# Gauss-Hermite quadrature of a standard normal: the bits of NumPy's hermegauss(5), whose module would have to
# be imported. In closed form +-sqrt(5 +- sqrt 10), 0, and (7 -+ 2 sqrt 10) / 60, 8 / 15.
NODES = [-2.8569700138728056, -1.355626179974266, 0.0, 1.355626179974266, 2.8569700138728056]
NODE_WEIGHTS = [
    0.011257411327720677,
    0.22207592200561257,
    0.5333333333333335,
    0.22207592200561257,
    0.011257411327720677,
]

SIZE = 1 + len(SHAPE_FEATURES)
BLOCKS, FIRST_BLOCKS = 4, 3  # of the prior, without those of a class bias; the first edition had no map
LEAST_SPREAD = 1e-30
LEAST_VARIANCE = 1e-30  # the square root has no derivative at 0


@dataclass(frozen=True, eq=False)
class LogTemperatureFormula(TemperatureFormula):
    """The posterior of log T for predictions, which need no covariance between classes."""

    largest: ClassVar[float] = 1e30  # features are standardised: a fit stays far below
    needed_errors = ("coefficients", "map_slopes")

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
        stored = ops.concat([ops.split(x, 1)[0] * 0.0 + 1.0, x])
        mean = ops.dot(stored, self.coefficients) + ops.take(self.class_shift, rows.top)
        # The last column is a class's own variance, the others its covariance with the coefficients.
        with_class, of_class = ops.split(ops.take(self.class_covariance, rows.top), SIZE)
        variance = ops.dot(ops.matmul(stored, self.covariance) + 2.0 * with_class, stored) + of_class
        return mean, ops.sqrt(ops.clip(variance, LEAST_VARIANCE, math.inf))

    def _link(self) -> Log:
        return Log(self.temperature_limits[0], self.temperature_limits[1])

    def _over_temperatures(self, number: Array, rows: RowFeatures) -> list[Array]:
        """Return number / T of each row, at each node of the quadrature."""
        (mean, std), ops = self._averaged(rows), rows.ops
        temperatures = self._link().temperature(mean + ops.outer(std, NODES), ops)
        return ops.columns(number / temperatures, len(NODES))

    def _averaged(self, rows: RowFeatures) -> tuple[Array, Array]:
        """Return mean and standard deviation of the distribution that is averaged over: the posterior."""
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
            raise InputError("variances must be >= 0; found one below 0 in covariance or class_covariance.")

    @classmethod
    def stored_as(
        cls, names: Collection[str], n_classes: int, options: Mapping[str, Any]
    ) -> tuple[type[Formula], Mapping[str, Shape]]:
        """Return the edition of a file, and its shapes, which show whether there is a class bias."""
        if {"map_knots", "map_slopes", "uniform_weight"} & set(names):
            return BayesianFormula, _shapes(n_classes, names)
        return FirstEditionFormula, _temperature_shapes(n_classes, FIRST_BLOCKS, names)


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
        betas, weights = self._over_temperatures(1.0, rows), np.array(NODE_WEIGHTS)
        return rows.mixture(betas, weights, self.bias, self.interactions)


@dataclass(frozen=True, eq=False, kw_only=True)
class BayesianFormula(LogTemperatureFormula):
    """A map of log-probabilities, then a temperature for each row, and perhaps a class bias."""

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
        """Return outputs averaged over the posterior of log T, mixed with a little of the uniform."""
        share = 1.0 - self.uniform_weight
        weights = [*[weight * share for weight in NODE_WEIGHTS], self.uniform_weight]
        scales = [*self._over_temperatures(self.reference, rows), ALMOST_ZERO]
        output = rows.mapped_mixture(self.reference, self.map_knots, self.map_slopes, scales, weights)
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


def _shapes(n_classes: int, names: Collection[str]) -> dict[str, Shape]:
    """Return the shapes of the second edition's parameters; a class bias has more."""
    shapes = _temperature_shapes(n_classes, BLOCKS, names)
    shapes |= {"map_knots": (len(KNOTS),), "map_slopes": (len(KNOTS),), "uniform_weight": ()}
    optional = [name for name in ("averaged_variance",) if name in names]
    optional += ["bias_beta", "bias_weight"] if "bias" in names else []
    return shapes | dict.fromkeys(optional, ())


def _temperature_shapes(n_classes: int, n_blocks: int, names: Collection[str]) -> dict[str, Shape]:
    size = len(SHAPE_FEATURES)
    of_bias: dict[str, Shape] = {"bias": (n_classes,), "interactions": (n_classes, n_classes)}
    of_bias = {name: shape for name, shape in of_bias.items() if name in names}
    n_blocks += len(of_bias)
    return of_bias | {
        "reference": (),
        "centre": (size,),
        "spread": (size,),
        "coefficients": (SIZE,),
        "covariance": (SIZE, SIZE),
        "class_shift": (n_classes,),
        "class_covariance": (n_classes, SIZE + 1),
        "taus": (n_blocks,),
        "effective_parameters": (n_blocks,),
        "temperature_limits": (2,),
    }
