"""The mean negative log-likelihood of the labels as a function of the parameters.

With beta = 1/T(a), a the predictor, and the row moments at beta (see `kernels`):

    value    = mean_i w_i (log s - beta d_y)                  w: sample weights, of mean 1
    gradient = J' (w r beta')                                 r = mu - d_y = d nll / d beta
    Fisher   = J' diag(w v beta'^2) J                         positive semi-definite always

plus, where a prior is given, its negative log density: 1/2 (theta - m)' P (theta - m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temperance.core.links import Link
from temperance.core.predictors import Predictor
from temperance.core.rows import Index, Rows

__all__ = ["Evaluation", "LogLikelihood", "Prior", "with_prior"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


# From whether the Fisher matrix is wanted to the gradient and that matrix, or None.
Derive = Callable[[bool], tuple[Vector, Matrix | None]]


@dataclass(frozen=True)
class Prior:
    """A Gaussian prior of the parameters, in the units of the mean over rows."""

    mean: Vector
    precision: Matrix


class Evaluation:
    """The objective at one point: its value now, its derivatives when asked for."""

    def __init__(self, value: float, derive: Derive) -> None:
        self.value = value
        self._derive = derive

    @cached_property
    def gradient(self) -> Vector:
        """The gradient alone: no matrix is formed."""
        return self._derive(False)[0]

    @cached_property
    def derivatives(self) -> tuple[Vector, Matrix]:
        """The gradient and the Fisher matrix."""
        gradient, fisher = self._derive(True)
        assert fisher is not None
        return gradient, fisher


def with_prior(prior: Prior | None, theta: Vector, value: float, derive: Derive) -> Evaluation:
    """Return the evaluation of a likelihood with its prior, if any."""
    if prior is None:
        return Evaluation(value, derive)
    off = theta - prior.mean
    pull = prior.precision @ off

    def derive_both(with_fisher: bool) -> tuple[Vector, Matrix | None]:
        gradient, fisher = derive(with_fisher)
        return gradient + pull, None if fisher is None else fisher + prior.precision

    return Evaluation(value + float(off @ pull) / 2, derive_both)


class LogLikelihood:
    """The objective of all temperature methods: rows with labels, a predictor, a link, and weights."""

    def __init__(
        self,
        rows: Rows,
        predictor: Predictor,
        link: Link,
        weights: Vector | None = None,
        prior: Prior | None = None,
    ) -> None:
        self.rows, self.predictor, self.link, self.prior = rows, predictor, link, prior
        self.weights = weights
        self.n_parameters = predictor.n_parameters
        self.total_weight = float(rows.n_rows if weights is None else weights.sum())
        self.noise = float(np.finfo(rows.dtype).eps)

    @property
    def passes(self) -> int:
        """How often the rows were read so far."""
        return self.rows.passes

    def every(self, step: int) -> Self:
        """Return the objective of every `step`-th row, with the same prior."""
        return self.take(slice(None, None, step))

    def take(self, index: Index) -> Self:
        """Return the objective of some rows, with the same prior."""
        rows = self.rows.take(index)
        weights = None if self.weights is None else self.weights[index]
        return type(self)(rows, self.predictor.take(index, rows), self.link, weights, self.prior)

    def with_prior(self, prior: Prior) -> Self:
        """Return the same with another prior."""
        return type(self)(self.rows, self.predictor, self.link, self.weights, prior)

    def share(self) -> Vector | float:
        """Each row's part of the mean."""
        return 1 / self.total_weight if self.weights is None else self.weights / self.total_weight

    def __call__(self, theta: Vector) -> Evaluation:
        """Evaluate at `theta`."""
        beta = self.link.beta(self.predictor.predict(theta))
        moments = self.rows.moments(beta.value)
        gap = self.rows.label_gap
        share = self.share()
        value = float(np.sum((moments.log_s - beta.value * gap) * share))

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            da = (moments.mu - gap) * beta.first * share
            curvature = moments.v * beta.first**2 * share if with_fisher else None
            return self.predictor.pull_back(theta, da, curvature)

        return with_prior(self.prior, theta, value, derive)
