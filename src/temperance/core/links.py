"""From the predictor a to the temperature T and its inverse beta = 1/T, with its derivative.

    softplus   T = log(1 + exp(a))      the paper's link
    log        T = exp(a)               a step in a multiplies T by the same factor at every scale

Each is limited to lower <= T <= upper, in fits and in predictions: beyond, T stays at the limit and the
derivative is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from temperance.core.arrays import Vector
from temperance.core.ops import NUMPY, Array, Ops

# Wide limits: logits that are 1e4 times too large or too small need a T well inside them.
TEMPERATURE_MIN = 1e-6
TEMPERATURE_MAX = 1e6

_MAX_LOG = 50.0  # keeps exp from overflowing; far beyond the limits above


class Beta(NamedTuple):
    """The inverse temperature, and its derivative with respect to a."""

    value: Vector
    first: Vector


@dataclass(frozen=True)
class Link(ABC):
    """A function from a predictor to a temperature, within limits."""

    lower: Array = TEMPERATURE_MIN
    upper: Array = TEMPERATURE_MAX

    @abstractmethod
    def unlimited(self, a: Array, ops: Ops) -> Array:
        """Return T without the limits."""

    @abstractmethod
    def slope(self, a: Vector, beta: Vector) -> Vector:
        """Return d beta / d a without the limits."""

    @abstractmethod
    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""

    def temperature(self, a: Array, ops: Ops = NUMPY) -> Array:
        """Return T of each predictor."""
        return ops.clip(self.unlimited(a, ops), self.lower, self.upper)

    def beta(self, a: Vector) -> Beta:
        """Return 1/T of each predictor, with its derivative."""
        T = self.temperature(a)
        beta = 1 / T
        return Beta(beta, np.where((self.lower < T) & (self.upper > T), self.slope(a, beta), 0.0))


class Softplus(Link):
    """T = log(1 + exp(a))."""

    def unlimited(self, a: Array, ops: Ops) -> Array:
        """Return T without the limits."""
        return ops.softplus(a)

    def slope(self, a: Vector, beta: Vector) -> Vector:
        """Return d beta / d a."""
        from scipy.special import expit  # for a fit: a prediction needs NumPy alone

        return -np.asarray(expit(a), np.float64) * beta**2

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        # log(exp(T) - 1) = T + log(1 - exp(-T)), which does not overflow
        return float(temperature + np.log(-np.expm1(-temperature)))


class Log(Link):
    """T = exp(a)."""

    def unlimited(self, a: Array, ops: Ops) -> Array:
        """Return T without the limits."""
        return ops.exp(ops.clip(a, -_MAX_LOG, _MAX_LOG))

    def slope(self, a: Vector, beta: Vector) -> Vector:
        """Return d beta / d a."""
        return -beta

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        return float(np.log(temperature))
