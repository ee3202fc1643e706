"""What Bayesian temperature scaling computes for a row: the posterior of log T, the map, the average.

With T0 the reference, phi the shape of the row, k its predicted class, and e = -log softmax(z / T0):

    log T ~ normal,   mean b + w . phi + v[k]          p = E softmax(-map(e) T0 / T)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from temperance.core.features import (
    MAX_INTERACTING,
    SHAPE_FEATURES,
    RowFeatures,
    n_class_biases,
    shape_features,
)
from temperance.core.kernels import KNOTS
from temperance.core.ops import Array
from temperance.core.predictors import Log
from temperance.errors import InputError, excerpt
from temperance.formulas.model import Shape, TemperatureFormula, shaped
from temperance.formulas.mono import check_map
from temperance.inputs.validation import check_limits, check_max_entropy, check_temperatures

# Gauss-Hermite quadrature of a standard normal: bit-identical to NumPy's hermegauss(5), without importing its
# module. In closed form +-sqrt(5 +- sqrt 10), 0, and (7 -+ 2 sqrt 10) / 60, 8 / 15.
NODES = [-2.8569700138728056, -1.355626179974266, 0.0, 1.355626179974266, 2.8569700138728056]
NODE_WEIGHTS = [
    0.011257411327720677,
    0.22207592200561257,
    0.5333333333333335,
    0.22207592200561257,
    0.011257411327720677,
]

SIZE = 1 + len(SHAPE_FEATURES)
BLOCKS = 4  # of the prior, without the blocks of a class bias
MAX_ROUNDING = 1e-9  # in the sum of weights that sum to 1
MIN_SPREAD = 1e-30
MIN_VARIANCE = 1e-30  # the square root has no derivative at 0


@dataclass(frozen=True, eq=False)
class BayesianFormula(TemperatureFormula):
    """A map of log-probabilities, then a temperature per row, and perhaps a class bias.

    Predictions need no covariance between classes. If columns are positions, no term belongs to a class.
    """

    largest: ClassVar[float] = 1e30  # features are standardised, so fitted numbers are far smaller

    reference: Array
    centre: Array = shaped(SIZE - 1)
    spread: Array = shaped(SIZE - 1)
    coefficients: Array = shaped(SIZE)
    covariance: Array = shaped(SIZE, SIZE)
    taus: Array = shaped(BLOCKS)
    effective_parameters: Array = shaped(BLOCKS)
    temperature_limits: Array = shaped(2)
    map_knots: Array = shaped(len(KNOTS))
    map_slopes: Array = shaped(len(KNOTS))
    uniform_weight: Array = shaped()
    bias_weights: Array | None = None
    """The weight of each kind of class bias (`core.features.CLASS_BIASES`), and what each adds."""
    bias_betas: Array | None = None
    biases: Array | None = None
    interactions: Array | None = None
    averaged_variance: Array | None = None
    """The share of the variance of log T to average over; early files use all of it."""
    class_shift: Array | None = shaped("K", default=None)
    """v; None if columns are positions."""
    class_covariance: Array | None = shaped("K", SIZE + 1, default=None)
    """The covariance of v with the coefficients, and its variance."""
    max_entropy: Array | None = None
    """log K of the fit, if the columns are positions, whose number can differ at prediction."""

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not with a class bias."""
        return self.bias_weights is None

    @property
    def any_columns(self) -> bool:
        """Whether the number of columns can differ from the fit."""
        return self.class_shift is None and self.bias_weights is None

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs averaged over the posterior of log T, mixed with a little uniform probability."""
        share = 1.0 - self.uniform_weight
        weights = [weight * share for weight in NODE_WEIGHTS]
        output = rows.mapped_mixture(
            self.reference, self.map_knots, self.map_slopes, self._scales(rows), weights, self.uniform_weight
        )
        if self.bias_weights is None:
            return output
        kinds = self.bias_weights, self.bias_betas, self.biases, self.interactions
        return rows.class_biases(output, self.reference, *kinds)

    def _scales(self, rows: RowFeatures) -> list[Array]:
        """Return T0 / T of each row, at each node of the quadrature."""
        (mean, std), ops = self._log_temperature(rows), rows.ops
        if self.averaged_variance is not None:
            std = std * ops.sqrt(self.averaged_variance)
        temperatures = self._link().temperature(mean + ops.outer(std, NODES), ops)
        return ops.columns(self.reference / temperatures, len(NODES))

    def _log_temperature(self, rows: RowFeatures) -> tuple[Array, Array]:
        """Return the posterior mean and standard deviation of log T of each row."""
        ops = rows.ops
        x = (shape_features(rows, self.reference, self.max_entropy) - self.centre) / self.spread
        stored = ops.concat([ops.split(x, 1)[0] * 0.0 + 1.0, x])
        mean, shared = ops.dot(stored, self.coefficients), ops.matmul(stored, self.covariance)
        if self.class_shift is None or self.class_covariance is None:
            variance = ops.dot(shared, stored)
        else:
            mean = mean + ops.take(self.class_shift, rows.top)
            # The last column is a class's own variance, the others its covariance with the coefficients.
            with_class, of_class = ops.split(ops.take(self.class_covariance, rows.top), SIZE)
            variance = ops.dot(shared + 2.0 * with_class, stored) + of_class
        return mean, ops.sqrt(ops.clip(variance, MIN_VARIANCE, math.inf))

    def _link(self) -> Log:
        return Log(self.temperature_limits[0], self.temperature_limits[1])

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row at the posterior mean of log T."""
        return self._link().temperature(self._log_temperature(rows)[0], rows.ops)

    def log_temperature_std(self, rows: RowFeatures) -> Array:
        """Return the posterior standard deviation of log T of each row."""
        return self._log_temperature(rows)[1]

    def check(self) -> None:
        """Raise if no fit can give these numbers."""
        check_temperatures("reference", np.asarray(self.reference))
        check_limits(self.temperature_limits)
        if self.spread.min() < MIN_SPREAD:
            raise InputError(
                f"spread must be at least {MIN_SPREAD:g}; found {excerpt(self.spread.tolist())}."
            )
        of_classes = np.zeros(1) if self.class_covariance is None else self.class_covariance[:, SIZE]
        if min(of_classes.min(), self.covariance.diagonal().min()) < 0:
            raise InputError("variances must be >= 0; found one below 0 in covariance or class_covariance.")
        check_max_entropy(self.max_entropy)
        check_map(self.map_knots, self.map_slopes)
        if not 0 <= self.uniform_weight < 1:
            raise InputError(f"uniform_weight must be from 0 to below 1; found {self.uniform_weight:g}.")
        share, weights, betas = self.averaged_variance, self.bias_weights, self.bias_betas
        if share is not None and not 0 < share <= 1:
            raise InputError(f"averaged_variance must be above 0 and at most 1; found {share:g}.")
        if weights is None or betas is None:
            return
        if weights.min() < 0 or not 0 < weights.sum() <= 1 + MAX_ROUNDING:
            found = excerpt(weights.tolist())
            raise InputError(f"bias_weights must be >= 0, with a sum above 0 and at most 1; found {found}.")
        if betas.min() <= 0:
            raise InputError(f"bias_betas must be above 0; found {excerpt(betas.tolist())}.")

    @classmethod
    def shapes(cls, n_classes: int, options: Mapping[str, Any], given: Collection[str]) -> dict[str, Shape]:
        """Return the shapes of the numbers; a class bias has all kinds that apply to K classes."""
        n_kinds = n_class_biases(n_classes)
        biases: dict[str, Shape] = {
            "bias_weights": (n_kinds,),
            "bias_betas": (n_kinds,),
            "biases": (n_kinds, n_classes),
        }
        if n_classes <= MAX_INTERACTING:
            biases["interactions"] = (n_kinds - 1, n_classes, n_classes)
        of_columns = {"max_entropy"} if "max_entropy" in given else {"class_shift", "class_covariance"}
        shapes = super().shapes(n_classes, options, of_columns | {"averaged_variance"}.intersection(given))
        return shapes | biases if biases.keys() & set(given) else shapes
