"""The labelled rows of a fit, and all that a method may ask of them.

A method asks for sums over rows, for quantiles over rows, and for an objective, a mean over rows. It never
holds the rows itself, so that they may lie in one array (`InMemoryFitData`) or in parts on many machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Matrix, Vector
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior
from temperance.core.quantiles import Quantiles, quantiles

Array = NDArray[Any]

Measure = Callable[[LogitRows, Vector | None], tuple[Array, ...]]
"""From rows and their weights to arrays that add up over parts."""
Values = Callable[[LogitRows, Vector | None], tuple[Vector, Vector | None]]
"""From rows and their weights to numbers with weights, not always one for each row."""
Build = Callable[[LogitRows, Vector | None], Any]
"""From rows and their weights to their objective."""


def weighted_sum(values: Vector, weights: Vector | None) -> Vector:
    """Return the sum over the first axis, each row counted with its weight."""
    total: Vector = (values if weights is None else (values.T * weights).T).sum(axis=0)
    return total


def count_labels(labels: Indices, weights: Vector | None, n_classes: int) -> Vector:
    """Return the weighted count of each label, (K,)."""
    return np.bincount(labels, weights, n_classes).astype(np.float64)


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
        """How often all rows were read so far."""
        ...

    def every(self, step: int) -> FitData:
        """Return every `step`-th row."""
        ...

    def total(self, measure: Measure) -> tuple[Array, ...]:
        """Return sums over all rows."""
        ...

    def class_counts(self) -> Vector:
        """Return the weighted count of each label, (K,)."""
        ...

    def quantiles(self, values: Values, shares: Vector) -> Quantiles:
        """Return quantiles over all rows."""
        ...

    def objective(self, build: Build, prior: Prior | None = None) -> Any:
        """Return the mean over all rows of what `build` gives for some, and the prior."""
        ...

    def require_in_memory(self, what: str) -> None:
        """Raise if `what` cannot be done since the rows are not at hand."""
        ...


class InMemoryFitData:
    """Rows of one array."""

    def __init__(self, rows: LogitRows, weights: Vector | None = None) -> None:
        self.rows, self.weights = rows, weights
        self.n_rows, self.n_classes = rows.n_rows, rows.n_classes
        self.total_weight = float(rows.n_rows if weights is None else weights.sum())

    @property
    def passes(self) -> int:
        """How often all rows were read so far."""
        return self.rows.passes

    def every(self, step: int) -> InMemoryFitData:
        """Return every `step`-th row."""
        weights = None if self.weights is None else self.weights[::step]
        return InMemoryFitData(self.rows.every(step), weights)

    def total(self, measure: Measure) -> tuple[Array, ...]:
        """Return sums over all rows."""
        return measure(self.rows, self.weights)

    def class_counts(self) -> Vector:
        """Return the weighted count of each label, (K,)."""
        assert self.rows.labels is not None
        return count_labels(self.rows.labels, self.weights, self.n_classes)

    def quantiles(self, values: Values, shares: Vector) -> Quantiles:
        """Return quantiles over all rows."""
        return quantiles(*values(self.rows, self.weights), shares)

    def objective(self, build: Build, prior: Prior | None = None) -> Any:
        """Return what `build` gives, with the prior."""
        objective = build(self.rows, self.weights)
        return objective if prior is None else objective.with_prior(prior)

    def require_in_memory(self, what: str) -> None:
        """Return: the rows are at hand."""
