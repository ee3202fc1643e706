"""The labelled rows of a fit, and everything a method may ask of them.

A method asks for sums over rows, for quantiles over rows, and for an objective, a mean over rows. It never
holds the rows itself, so they may be in one array (`InMemoryFitData`) or in parts on many machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior
from temperance.core.quantiles import Quantiles, quantiles

Array = NDArray[Any]

Measure = Callable[[LogitRows, Vector | None], tuple[Array, ...]]
"""From rows and their weights to arrays whose sum over parts is that of all rows."""
Values = Callable[[LogitRows, Vector | None], tuple[Vector, Vector | None]]
"""From rows and their weights to weighted numbers, not necessarily one for each row."""
Build = Callable[[LogitRows, Vector | None], Any]
"""From rows and their weights to their objective."""

Transform = Callable[[LogitRows], Floats]
"""From rows to the same number of rows of other values, one for each class."""


Samples = Sequence[tuple[int, Measure]]
"""Each is a number n and a measure of every n-th row, whose arrays are concatenated over parts."""

Survey = tuple[tuple[Array, ...], list[tuple[Array, ...]]]
"""Sums over all rows, and the arrays of each sample."""


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


class FitData(Protocol):
    """Labelled rows with weights."""

    n_rows: int
    n_classes: int
    total_weight: float

    @property
    def passes(self) -> int:
        """How often all rows have been read so far."""
        ...

    def every(self, step: int) -> FitData:
        """Return every `step`-th row."""
        ...

    def transformed(self, transform: Transform) -> FitData:
        """Return transformed rows, with the same labels and weights."""
        ...

    def total(self, measure: Measure) -> tuple[Array, ...]:
        """Return sums over all rows."""
        ...

    def quantiles(self, values: Values, shares: Vector, tie: float = 0.0) -> Quantiles:
        """Return quantiles over all rows; numbers that differ by less than `tie` count as ties."""
        ...

    def survey(self, measure: Measure, samples: Samples) -> Survey:
        """Return sums over all rows, and the arrays of samples in the order of the rows, in one pass."""
        ...

    def objective(self, build: Build, prior: Prior | None = None) -> Any:
        """Return the objective of all rows, the mean of what `build` gives for parts, plus the prior."""
        ...

    def require_in_memory(self, what: str) -> None:
        """Raise if `what` cannot be done because the rows are not in memory."""
        ...


class InMemoryFitData:
    """Rows of one array."""

    def __init__(self, rows: LogitRows, weights: Vector | None = None) -> None:
        self.rows, self.weights = rows, weights
        self.n_rows, self.n_classes = rows.n_rows, rows.n_classes
        self.total_weight = float(rows.n_rows if weights is None else weights.sum())

    @property
    def passes(self) -> int:
        """How often all rows have been read so far."""
        return self.rows.passes

    def every(self, step: int) -> InMemoryFitData:
        """Return every `step`-th row."""
        weights = None if self.weights is None else self.weights[::step]
        return InMemoryFitData(self.rows.take(slice(None, None, step)), weights)

    def transformed(self, transform: Transform) -> InMemoryFitData:
        """Return transformed rows, which stay in memory."""
        return InMemoryFitData(LogitRows(transform(self.rows), self.rows.labels), self.weights)

    def total(self, measure: Measure) -> tuple[Array, ...]:
        """Return sums over all rows."""
        return measure(self.rows, self.weights)

    def quantiles(self, values: Values, shares: Vector, tie: float = 0.0) -> Quantiles:
        """Return quantiles over all rows."""
        return quantiles(*values(self.rows, self.weights), shares, tie)

    def survey(self, measure: Measure, samples: Samples) -> Survey:
        """Return sums over all rows, and the arrays of samples in the order of the rows."""
        sampled = []
        for step, sample in samples:
            some = self if step == 1 else self.every(step)
            sampled.append(sample(some.rows, some.weights))
        return measure(self.rows, self.weights), sampled

    def objective(self, build: Build, prior: Prior | None = None) -> Any:
        """Return the objective that `build` gives, with the prior."""
        objective = build(self.rows, self.weights)
        return objective if prior is None else objective.with_prior(prior)

    def require_in_memory(self, what: str) -> None:
        """Return without an error: the rows are in memory."""
