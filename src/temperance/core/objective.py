"""The labelled rows of a fit, and the mean negative log-likelihood of their labels by the parameters.

A method asks `FitData` for sums over rows, for quantiles over rows, and for an objective, a mean over rows.
It never holds the rows itself, so they can be in one array or in parts on many machines.

With beta = 1/T(a), a the predictor, and the row moments at beta (see `row_block`):

    value    = mean_i w_i (log s - beta d_y)                  w: sample weights, with mean 1
    gradient = J' (w r beta')                                 r = mu - d_y = d nll / d beta
    Fisher   = J' diag(w v beta'^2) J                         always positive semi-definite

plus, where a prior is given, its negative log density: 1/2 (theta - m)' P (theta - m).

All three are means over rows, so rows in many parts add up their `terms` to get them.

A new objective derives from `RowObjective`, or from `LogLikelihood` if it has a predictor and a link, and
implements `evaluate`, which gives its value and derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.blocks import sampled_rows
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.predictors import Constant, Link, Predictor
from temperance.core.quantiles import Quantiles, quantiles
from temperance.errors import InputError

# A subsample keeps at least one row in so many, so that its optimum is a useful start, unless it would take
# more bytes than that.
THINNING, MAX_THIN_BYTES = 16, 1 << 27


@dataclass(frozen=True)
class Prior:
    """A Gaussian prior of the parameters, in the units of the mean over rows.

    A precision with one axis is the diagonal of a diagonal matrix.
    """

    mean: Vector
    precision: Matrix

    def pull(self, off: Vector) -> Vector:
        """Return the gradient at mean + `off`."""
        return self.precision * off if self.precision.ndim == 1 else self.precision @ off

    def loss(self, theta: Vector) -> float:
        """Return the negative log density, up to a constant."""
        off = theta - self.mean
        return float(off @ self.pull(off)) / 2


class ObjectivePoint(NamedTuple):
    """The objective at one point; the Fisher matrix is None unless it was requested."""

    value: float
    gradient: Vector
    fisher: Matrix | None = None


class Objective(ABC):
    """A mean over rows, wherever they are, plus the negative log density of a prior."""

    thinning = THINNING
    """The largest ratio of rows to subsample."""
    groups: NDArray[np.intp] | None = None
    """The group of each row (`core.design_effect`), if rows of a group are not independent."""

    def __init__(self, total_weight: float, dtype: np.dtype[Any], prior: Prior | None) -> None:
        self.total_weight, self.prior = total_weight, prior
        self.noise = float(np.finfo(dtype).eps)  # relative error of a value
        self._last_point: list[Any] = []

    @property
    @abstractmethod
    def passes(self) -> int:
        """How often the rows have been read so far."""

    @abstractmethod
    def every(self, step: int) -> Self:
        """Return the objective of one of each `step` rows (`sampled_rows`), with the same prior."""

    @abstractmethod
    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value, the gradient and, if requested, the Fisher matrix, without the prior."""

    @property
    def order(self) -> int:
        """Order of convergence: 2 if the Fisher matrix is the second derivative at the optimum, else 1."""
        return 1

    def with_prior(self, prior: Prior) -> Self:
        """Return this objective with another prior; both keep the same last point."""
        other = copy(self)
        other.prior = prior
        return other

    def __call__(self, theta: Vector, with_fisher: bool = True) -> ObjectivePoint:
        """Evaluate at `theta`; the last point is kept, since the prior can change while theta does not."""
        last = self._last_point
        if not last or not np.array_equal(last[0], theta) or (with_fisher and last[1].fisher is None):
            last[:] = theta.copy(), self.evaluate(theta, with_fisher)
        here: ObjectivePoint = last[1]
        if self.prior is None:
            return here
        value, gradient, fisher = here
        if fisher is not None:
            precision = self.prior.precision
            fisher = fisher + (np.diag(precision) if precision.ndim == 1 else precision)
        return ObjectivePoint(
            value + self.prior.loss(theta), gradient + self.prior.pull(theta - self.prior.mean), fisher
        )


class RowObjective(Objective):
    """An objective of labelled rows in memory, with their weights."""

    def __init__(self, rows: LogitRows, weights: Vector | None = None, prior: Prior | None = None) -> None:
        super().__init__(float(rows.n_rows if weights is None else weights.sum()), rows.dtype, prior)
        self.rows, self.weights = rows, weights
        self.thinning = thinning_of(rows.n_rows, rows.n_classes, rows.dtype)

    @property
    def passes(self) -> int:
        """How often the rows have been read so far."""
        return self.rows.passes

    @cached_property
    def share(self) -> Vector:
        """Each row's share of the mean."""
        weights = np.ones(self.rows.n_rows) if self.weights is None else self.weights
        return weights / self.total_weight

    def every(self, step: int) -> Self:
        """Return the objective of one of each `step` rows, with the same prior."""
        return self.take(sampled_rows(step, self.rows.n_rows))

    def take(self, index: Index) -> Self:
        """Return the objective of some rows, with the same prior."""
        weights = None if self.weights is None else self.weights[index]
        some = self._of_rows(self.rows.take(index), index, weights)
        some.groups = None if self.groups is None else self.groups[index]
        return some

    @abstractmethod
    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        """Return the objective of `rows`, the rows at `index`."""

    def terms(self, theta: Vector, with_fisher: bool) -> tuple[Any, ...]:
        """Return value, gradient and, if requested, the Fisher matrix, without the prior.

        For all rows, these are averaged over their parts. If the objective is a sum of absolute values, whose
        signs depend on all rows together, each of them has its own value and gradient.
        """
        return tuple(term for term in self.evaluate(theta, with_fisher) if term is not None)

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        raise NotImplementedError(f"{type(self).__name__} has no standard errors")


class LogLikelihood(RowObjective):
    """The objective of all temperature methods: rows with labels, a predictor, a link, and weights."""

    def __init__(
        self,
        rows: LogitRows,
        predictor: Predictor,
        link: Link,
        weights: Vector | None = None,
        prior: Prior | None = None,
    ) -> None:
        super().__init__(rows, weights, prior)
        self.predictor, self.link = predictor, link
        self.n_parameters = predictor.n_parameters

    @property
    def order(self) -> int:
        """Order of convergence: 2 for one temperature; what the matrix leaves out adds up to the gradient."""
        return 2 if self.prior is None and isinstance(self.predictor, Constant) else 1

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        return type(self)(rows, self.predictor.take(index, rows), self.link, weights, self.prior)

    def temperatures(self, theta: Vector) -> Vector:
        """Return T of each row."""
        predicted = self.predictor.predict(theta[: self.predictor.n_parameters])
        return np.broadcast_to(self.link.temperature(predicted), self.rows.n_rows)

    def temperature_quantiles(self, theta: Vector, shares: Vector) -> Vector:
        """Return quantiles of T over the rows."""
        return quantiles(self.temperatures(theta), self.weights, shares).values

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives, without the prior."""
        beta = self.link.beta(self.predictor.predict(theta))
        moments = self.rows.moments(beta.value, variance=with_fisher)
        gap, share = self.rows.label_gap, self.share
        value = float(np.sum((moments.log_s - beta.value * gap) * share))
        da = (moments.mu - gap) * beta.first * share
        curvature = moments.v * beta.first**2 * share if with_fisher else None
        return ObjectivePoint(value, *self.predictor.pull_back(theta, da, curvature))

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        beta = self.link.beta(self.predictor.predict(theta))
        moments = self.rows.moments(beta.value, variance=False)
        da = (moments.mu - self.rows.label_gap) * beta.first
        return da[:, None] * self.predictor.jacobian(theta)


Array = NDArray[Any]

Measure = Callable[[LogitRows, Vector | None], tuple[Array, ...]]
"""From rows and their weights to arrays whose sum over parts is the result for all rows."""
Values = Callable[[LogitRows, Vector | None], tuple[Vector, Vector | None]]
"""From rows and their weights to weighted numbers, not necessarily one per row."""
Build = Callable[[LogitRows, Vector | None], Any]
"""From rows and their weights to their objective."""

Transform = Callable[[LogitRows], Floats]
"""From rows to the same number of rows of other values, one per class."""


Samples = Sequence[tuple[int, Measure]]
"""Each is a number n and a measure of one of each n rows, whose arrays are concatenated over parts."""

Survey = tuple[tuple[Array, ...], list[tuple[Array, ...]]]
"""Sums over all rows, and the arrays of each sample."""


def thinning_of(n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> int:
    """Return the largest ratio of rows to subsample."""
    return max(THINNING, ceil(n_rows * n_classes * dtype.itemsize / MAX_THIN_BYTES))


def weighted_sum(values: Vector, weights: Vector | None) -> Vector:
    """Return the weighted sum over the first axis."""
    total: Vector = (values if weights is None else (values.T * weights).T).sum(axis=0)
    return total


def mean_and_deviation(data: FitData, features: Callable[[LogitRows], Matrix]) -> tuple[Vector, Vector]:
    """Return the mean and the standard deviation of features (N, m) over all rows, in two passes."""

    def sums(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
        return (weighted_sum(features(rows), weights),)

    def squares(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
        return (weighted_sum((features(rows) - mean) ** 2, weights),)

    mean = data.total(sums)[0] / data.total_weight
    return mean, np.sqrt(data.total(squares)[0] / data.total_weight)


class FitData:
    """Labelled rows of one array, with weights; `temperance.dask` derives from it, for rows in many parts."""

    in_memory = True
    positions = False
    """Whether the columns are positions of answers: a method then treats all of them alike."""

    groups: NDArray[np.intp] | None = None
    """The group of each row, if rows of a group are not independent."""

    def __init__(
        self, rows: LogitRows, weights: Vector | None = None, groups: NDArray[np.intp] | None = None
    ) -> None:
        self.rows, self.weights, self.groups = rows, weights, groups
        self.n_rows, self.n_classes = rows.n_rows, rows.n_classes
        self.total_weight = float(rows.n_rows if weights is None else weights.sum())

    @property
    def passes(self) -> int:
        """How often all rows have been read so far."""
        return self.rows.passes

    def every(self, step: int) -> FitData:
        """Return one of each `step` rows."""
        at = sampled_rows(step, self.n_rows)
        weights = None if self.weights is None else self.weights[at]
        return FitData(self.rows.take(at), weights, None if self.groups is None else self.groups[at])

    def transformed(self, transform: Transform) -> FitData:
        """Return transformed rows, with the same labels, weights and groups."""
        return FitData(LogitRows(transform(self.rows), self.rows.labels), self.weights, self.groups)

    def total(self, measure: Measure) -> tuple[Array, ...]:
        """Return sums over all rows."""
        return measure(self.rows, self.weights)

    def quantiles(self, values: Values, shares: Vector, tie: float = 0.0) -> Quantiles:
        """Return quantiles over all rows; numbers that differ by less than `tie` count as ties."""
        return quantiles(*values(self.rows, self.weights), shares, tie)

    def survey(self, measure: Measure, samples: Samples) -> Survey:
        """Return sums over all rows, and the arrays of samples in the order of the rows, in one pass."""
        sampled = []
        for step, sample in samples:
            some = self if step == 1 else self.every(step)
            sampled.append(sample(some.rows, some.weights))
        return measure(self.rows, self.weights), sampled

    def objective(self, build: Build) -> Any:
        """Return the objective of all rows: what `build` gives, or the mean over parts of that."""
        objective = build(self.rows, self.weights)
        objective.groups = self.groups
        return objective

    def require_in_memory(self, what: str) -> None:
        """Raise if `what` cannot be done because the rows are not in memory."""
        if not self.in_memory:
            raise InputError(
                f"{what}, so it needs them in memory; found a Dask collection. Use solver='exact', or pass "
                "logits.compute()."
            )
