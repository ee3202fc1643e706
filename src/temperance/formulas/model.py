"""A fitted model: a frozen value that estimators hold, files store, and PyTorch, ONNX and Dask run.

A `Formula` is the fitted numbers of a method and what it computes with them, written once over the features
of rows (`core.features`). PyTorch and ONNX replace the numbers by their own arrays (`with_arrays`) and run
the same formula. A `Model` adds what is known of the fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from temperance.core.arrays import AnyArray, Vector
from temperance.core.features import RowFeatures
from temperance.core.ops import Array
from temperance.core.solution import Solution
from temperance.formulas.fit_record import FitRecord

Shape = tuple[int, ...]

SHIFT = "log_prior_ratio"
"""Name of the one array that outputs depend on but the formula does not hold."""


@dataclass(frozen=True, eq=False)
class Formula(ABC):
    """The fitted numbers of a method, each a field, and its formula."""

    largest: ClassVar[float] = 1e150
    """The largest fitted number, so that products with logits stay finite."""

    needed_errors: ClassVar[tuple[str, ...]] = ()
    """Parameters whose standard errors every fit gives."""

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own."""
        return True

    @abstractmethod
    def calibrate(self, rows: RowFeatures) -> Array:
        """Return calibrated outputs of the rows, (..., K)."""

    def check(self) -> None:  # noqa: B027  most override it
        """Raise if numbers of the right shapes cannot be those of a fit."""

    def arrays(self) -> dict[str, AnyArray]:
        """Return the fitted numbers by name, as they are saved and exported."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: np.asarray(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """Build from the result of `arrays`."""
        return cls(**{name: value if value.ndim else float(value) for name, value in arrays.items()})

    def with_arrays(self, arrays: Mapping[str, Array]) -> Self:
        """Return the same formula with the numbers in another framework's arrays."""
        return replace(self, **arrays)

    @classmethod
    def shapes(
        cls, n_classes: int, options: Mapping[str, Any], given: Collection[str]
    ) -> Mapping[str, Shape]:
        """Return the names and shapes of the numbers of a fit with these options: scalars by default.

        `given` are the names in a file: numbers that a fit need not have are part of it if they are given.
        """
        return {item.name: () for item in fields(cls)}


@dataclass(frozen=True, eq=False)
class TemperatureFormula(Formula):
    """A formula of the Adaptive Temperature Scaling family: softmax(z / T(z))."""

    @abstractmethod
    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row, (..., 1), or one number for all."""

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs of z / T(z)."""
        return rows.divide(self.temperature_of(rows))


@dataclass(frozen=True, eq=False)
class Model:
    """What a fit has found: the formula with its numbers, the options, and how the solver ended."""

    key: str
    name: str
    formula: Formula
    options: Mapping[str, Any]
    n_classes: int
    n_rows: int
    solution: Solution
    standard_errors: Mapping[str, AnyArray] = field(default_factory=dict)
    temperature_quantiles: Vector | None = None
    """5 %, 50 % and 95 % quantiles of T over the rows of the fit; None without a T."""
    log_prior_ratio: Vector | None = None
    """Log ratios of the class frequencies at use and at fit, (K,); None if they agree."""
    class_counts: Vector | None = None
    """Weighted label counts of the rows of the fit, (K,)."""
    frequency_errors: Vector | None = None
    """Standard errors of the class frequencies at use, (K,); None if they were given."""
    adaptation_rows: int | None = None
    """How many unlabelled rows `log_prior_ratio` was estimated from; None if it was given."""
    n_parameters: float | None = None
    """The effective number of parameters: with a prior, less than their number. None in early files."""
    record: FitRecord = field(default_factory=FitRecord)
    """Where the fit came from, and what its rows looked like after calibration."""

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not under new class frequencies."""
        return self.formula.keeps_class and self.log_prior_ratio is None

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return calibrated outputs of the rows, (..., K), under the class frequencies at use."""
        output = self.formula.calibrate(rows)
        return output if self.log_prior_ratio is None else rows.shift_classes(output, self.log_prior_ratio)

    def arrays(self) -> dict[str, AnyArray]:
        """Return all numbers that outputs depend on, by name."""
        shift = {} if self.log_prior_ratio is None else {SHIFT: self.log_prior_ratio}
        return self.formula.arrays() | shift

    def with_arrays(self, arrays: Mapping[str, Array]) -> Self:
        """Return the same model with these numbers in another framework's arrays."""
        own = {name: value for name, value in arrays.items() if name != SHIFT}
        return replace(self, formula=self.formula.with_arrays(own), log_prior_ratio=arrays.get(SHIFT))
