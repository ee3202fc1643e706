"""From the predictor a to the temperature T and its inverse beta = 1/T, with its derivative.

    softplus   T = log(1 + exp(a))      the paper's link
    log        T = exp(a)               a step of a is the same ratio of T at every scale

Each is limited to lower <= T <= upper, at fit and at use: beyond, T stays at the limit and the derivative
is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, log_expit

from temperance.core.arrays import Vector

__all__ = ["TEMPERATURE_MAX", "TEMPERATURE_MIN", "Beta", "Link", "Log", "Softplus"]

# Any temperature at all: logits that are 1e4 times too large or too small lie inside with a margin.
TEMPERATURE_MIN = 1e-6
TEMPERATURE_MAX = 1e6


@dataclass(frozen=True)
class Beta:
    """The inverse temperature, and its derivative with respect to a."""

    value: Vector
    first: Vector


class Link(Protocol):
    """What turns a predictor into a temperature."""

    def temperature(self, a: Vector) -> Vector:
        """T of each predictor."""
        ...

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        ...

    def beta(self, a: Vector) -> Beta:
        """1/T of each predictor, with its derivative."""
        ...


@dataclass(frozen=True)
class Softplus:
    """T = log(1 + exp(a))."""

    lower: float = TEMPERATURE_MIN
    upper: float = TEMPERATURE_MAX

    def temperature(self, a: Vector) -> Vector:
        """T of each predictor."""
        return np.clip(-log_expit(-np.asarray(a, np.float64)), self.lower, self.upper)

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        # log(exp(T) - 1) = T + log(1 - exp(-T)), which does not overflow
        return float(temperature + np.log(-np.expm1(-temperature)))

    def beta(self, a: Vector) -> Beta:
        """1/T of each predictor, with its derivative."""
        T = self.temperature(a)
        slope = np.where((self.lower < T) & (self.upper > T), expit(a), 0.0)
        beta = 1 / T
        return Beta(beta, -slope * beta**2)


@dataclass(frozen=True)
class Log:
    """T = exp(a)."""

    lower: float = TEMPERATURE_MIN
    upper: float = TEMPERATURE_MAX

    def temperature(self, a: Vector) -> Vector:
        """T of each predictor."""
        return np.clip(np.exp(np.clip(a, -50.0, 50.0)), self.lower, self.upper)

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        return float(np.log(temperature))

    def beta(self, a: Vector) -> Beta:
        """1/T of each predictor, with its derivative."""
        T = self.temperature(a)
        moving = np.where((self.lower < T) & (self.upper > T), 1 / T, 0.0)
        return Beta(1 / T, -moving)
