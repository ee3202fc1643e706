"""A fitted model: a frozen value that estimators hold, files store, and PyTorch, ONNX and Dask run.

A `Formula` holds the fitted numbers of a method and computes with them, written once in terms of the features
of rows (`core.features`). PyTorch and ONNX replace the numbers by their own arrays (`with_arrays`) and run
the same formula. A `Model` adds what is known of the fit. `apply` runs it on logits: it opens the container,
computes, and returns the result in the same kind of container.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from temperance import loaders
from temperance.core.arrays import AnyArray, Vector
from temperance.core.blocks import prediction_slot
from temperance.core.features import RowFeatures
from temperance.core.ops import Array
from temperance.core.row_block import RowBlock, map_rows
from temperance.core.solution import Solution
from temperance.errors import InputError, Remedy
from temperance.formulas.automation import Automation
from temperance.formulas.fit_record import FitRecord
from temperance.inputs.containers import as_numpy, framework_of, joined_batches, open_logits
from temperance.inputs.probabilities import logits_from_probs
from temperance.inputs.validation import (
    SCORES_LIKE,
    check_are_logits,
    check_peaks,
    check_unmasked,
    like_probabilities,
)

Shape = tuple[int, ...]

SHIFT = "log_prior_ratio"
"""Name of the one array that outputs depend on but the formula does not hold."""

ONE_PER_ROW: dict[str, str] = {"temperature": "temperature_of", "log_temperature_std": "log_temperature_std"}
"""The methods that give one number per row, and the formula of each."""

MAX_FEW_NUMBERS = 1 << 12  # logits whose arithmetic takes less time than setting up a pass over blocks
MAX_BOUNDED = 1e15  # largest logit whose products cannot overflow


def shaped(*shape: int | str, default: Any = MISSING) -> Any:
    """Declare a fitted number of a formula by the shape of its array; "K" is the number of classes."""
    return field(default=default, metadata={"shape": shape})


@dataclass(frozen=True, eq=False)
class Formula(ABC):
    """The fitted numbers of a method, each a field, and its formula."""

    largest: ClassVar[float] = 1e150
    """The largest fitted number, so that products with logits stay finite."""

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own."""
        return True

    @property
    def any_columns(self) -> bool:
        """Whether logits can have more or fewer columns than at the fit: no number belongs to a column."""
        return True

    @abstractmethod
    def calibrate(self, rows: RowFeatures) -> Array:
        """Return calibrated outputs of the rows, (..., K)."""

    def check(self) -> None:  # noqa: B027  most override it
        """Raise if no fit can give these numbers, whose shapes are correct."""

    def arrays(self) -> dict[str, AnyArray]:
        """Return the fitted numbers by name, as they are saved and exported."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: np.asarray(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Build from the result of `arrays`, perhaps in another framework's arrays."""
        return cls(**arrays)

    @classmethod
    def shapes(cls, n_classes: int, options: Mapping[str, Any], given: Collection[str]) -> dict[str, Shape]:
        """Return the names and shapes of the numbers of a fit with these options: scalars by default.

        `given` are the names in a file: optional numbers are included if the file has them.
        """
        return {
            item.name: tuple(n_classes if size == "K" else size for size in item.metadata.get("shape", ()))
            for item in fields(cls)
            if item.default is MISSING or item.name in given
        }


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
    """The result of a fit: the formula with its numbers, the options, and how the solver ended."""

    key: str
    name: str
    """The name of the method's class, for messages."""
    formula: Formula
    options: Mapping[str, Any]
    n_classes: int
    n_rows: int
    solution: Solution
    standard_errors: Mapping[str, AnyArray] = field(default_factory=dict)
    temperature_quantiles: Vector | None = None
    """5%, 50% and 95% quantiles of T over the rows of the fit; None without a T."""
    log_prior_ratio: Vector | None = None
    """Log ratios of the class frequencies at use and at fit, (K,); None if they agree."""
    class_counts: Vector | None = None
    """Weighted label counts of the rows of the fit, (K,)."""
    frequency_errors: Vector | None = None
    """Standard errors of the class frequencies at use, (K,); None if they were given."""
    adaptation_rows: int | None = None
    """How many unlabelled rows `log_prior_ratio` was estimated from; None if it was given."""
    n_parameters: float | None = None
    """The effective number of parameters: less than their count with a prior. None in early files."""
    automation: Automation | None = None
    """The rule for predictions that need no person, if there is one."""
    n_groups: int | None = None
    """How many groups the rows of the fit were in; None if they were independent."""
    design_effect: float | None = None
    """How many of these rows are worth one independent row, for the mean of confidence minus accuracy."""
    record: FitRecord = field(default_factory=FitRecord)
    """Where the fit came from, and its rows' predictions after calibration."""

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not under new class frequencies."""
        return self.formula.keeps_class and self.log_prior_ratio is None

    @property
    def of_positions(self) -> bool:
        """Whether it was fitted on positions of answers, not on classes."""
        return bool(self.record.fitted_on and self.record.fitted_on.positions)

    @property
    def of_probabilities(self) -> bool:
        """Whether it was fitted on probabilities, whose logarithms are its logits."""
        return bool(self.record.fitted_on and self.record.fitted_on.kind == "probabilities")

    @property
    def n_columns(self) -> int | None:
        """How many columns logits must have; None if any number is allowed, as for positions."""
        return None if self.of_positions and self.formula.any_columns else self.n_classes

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
        return replace(self, formula=self.formula.from_arrays(own), log_prior_ratio=arrays.get(SHIFT))


def apply(
    model: Model, method: str, logits: Any, dim: int | None = None, from_probs: bool | None = None
) -> Any:
    """Return the result of `method` for logits or probabilities, in the same kind of container."""
    if logits.__class__ in (list, tuple):  # asked without a call, for services that send one row
        logits = joined_batches(logits)
    logits, from_probs = logits_for(model, logits, from_probs)
    dim = axis_of_classes(model, dim, logits)
    framework = framework_of(logits)
    if framework is not None:
        return loaders.load(f"{framework} apply")(model, method, logits, dim, from_probs)
    opened = open_logits(logits, dim)
    check_kind(model, opened.values, from_probs)
    check_columns(model, opened.shape, opened.dim)
    result = apply_to_rows(model, method, opened.values)
    if method == "transform" and opened.binary:
        result = (result[:, 1] - result[:, 0]).reshape(np.shape(logits))
    return opened.close(result)


def logits_for(model: Model, given: Any, from_probs: bool | None) -> tuple[Any, bool | None]:
    """Return the logits of given rows, and `from_probs` for further checks: False if they are surely logits.

    The logits of probabilities are their logarithms, with the floor of the fit, so that 0 always means the
    same. Rows are divided by their sum first if the rows of the fit were. A fit to logits, which can be
    `logits_from_probs`, has no floor, so 0 must not be among these probabilities.
    """
    if not from_probs:
        return given, from_probs
    fitted_on = model.record.fitted_on
    if fitted_on is None or fitted_on.kind == "logits":
        logits = logits_from_probs(given, 0.0, renormalise=None)
        if fitted_on is None or framework_of(given) == "dask":
            return logits, False
        zeros = np.flatnonzero(np.isinf(as_numpy(logits)).reshape(len(logits), -1).any(axis=1))
        if zeros.size:
            raise InputError(
                f"a {model.name} that was fitted on logits does not know what a probability of 0 is; found 0",
                rows=zeros,
                advice="Fit it with from_probs=True, or pass logits_from_probs(probs, floor), where floor is "
                "probability_floor(...) of the rows of the fit.",
            )
        return logits, False
    renormalise = fitted_on.renormalised or None  # predictions have no such argument
    return logits_from_probs(given, fitted_on.floor or 0.0, renormalise=renormalise), False


def check_kind(model: Model, values: NDArray[Any], from_probs: bool | None) -> None:
    """Raise for logits that look like probabilities; a few only warn, unless the model was fitted on such.

    With from_probs=False the caller asserts that they are logits, and nothing is checked.
    """
    if from_probs is not None:
        return
    fitted_on = model.record.fitted_on
    if fitted_on is None or fitted_on.kind != "probabilities":
        check_are_logits(values, at_use=True)
    elif what := like_probabilities(values, few=True):
        raise InputError(
            f"the calibrator was fitted on probabilities, and logits are their logarithms; found {what}.",
            remedy=Remedy("from_probs", (True, False) if what == SCORES_LIKE else (True,)),
        )


def are_plain_rows(model: Model, logits: Any, dim: int | None, from_probs: bool | None) -> bool:
    """Say whether these are an (N, K) array of logits, with no container to open; if so, check their kind.

    A service calls it once per request, so it does as little as possible.
    """
    if from_probs or dim not in (None, -1, 1) or type(logits) is not np.ndarray or logits.dtype.kind != "f":
        return False
    fitted_on = model.record.fitted_on
    if logits.ndim != 2 or logits.shape[1] != model.n_classes:
        return False
    if dim is None and fitted_on is not None and fitted_on.dim == 0:
        return False
    check_kind(model, logits, from_probs)
    return True


def axis_of_classes(model: Model, dim: int | None, logits: Any = None) -> int:
    """Return the axis of the classes: as given, else as in the fit if these logits have it, else the last."""
    if dim is not None:
        return dim
    fitted_on = model.record.fitted_on
    at_fit = None if fitted_on is None else fitted_on.dim
    return -1 if at_fit is None or at_fit >= getattr(logits, "ndim", at_fit + 1) else at_fit


def apply_to_rows(
    model: Model,
    method: str,
    values: NDArray[Any],
) -> AnyArray:
    """Return the result of `method` for an array with one row per prediction and one column per class."""
    if method == "predict" and not model.keeps_class:
        probs = apply_to_rows(model, "predict_proba", values)
        return np.asarray(probs.argmax(axis=1), np.intp)
    log = method == "transform"
    if _are_few_and_bounded(values):  # valid for sure: as little Python as possible, for a service
        return _compute(model, method, RowBlock(values, log=log, bounded=True))
    with prediction_slot():
        result, peak = map_rows(values, partial(_compute, model, method), log=log)
    check_peaks(values, peak)  # invalid rows are found after the pass
    first = result if result.ndim == 1 else result[:, 0]
    if np.isnan(first).any():
        check_unmasked(values, first, model.name, fits=False)
    return result


def _are_few_and_bounded(values: NDArray[Any]) -> bool:
    """Say whether these logits are few, need no conversion, and are neither masked, huge nor NaN."""
    if not 0 < values.size <= MAX_FEW_NUMBERS:
        return False
    if not (values.dtype.char in "fd" and values.dtype.isnative and values.flags.c_contiguous):
        return False
    lowest, highest = values.item(values.argmin()), values.item(values.argmax())
    return bool(lowest > -MAX_BOUNDED and highest < MAX_BOUNDED)


def _compute(model: Model, method: str, rows: RowBlock) -> AnyArray:
    if method == "predict":
        return rows.tops
    result: AnyArray = evaluate(model, method, rows)
    if method in ONE_PER_ROW:
        column = np.asarray(result, np.float64).reshape(-1)
        return np.broadcast_to(column, rows.n_rows).copy()
    return result


def evaluate(model: Model, method: str, rows: RowFeatures) -> Array:
    """Return the result of a calibrator's method for a model, on rows of any framework."""
    if method in ONE_PER_ROW:
        return getattr(model.formula, ONE_PER_ROW[method])(rows)
    return model.calibrate(rows)


def check_columns(model: Model, shape: tuple[int, ...], dim: int) -> None:
    """Raise unless logits of this shape have as many classes in the axis `dim` as the model.

    Positions can be more or fewer than at the fit.
    """
    wanted = (
        f"this {model.name} was fitted on {model.n_classes} classes, so logits must have {model.n_classes} "
        "columns"
    )
    if len(shape) == 1 and model.n_classes != 2:
        one_row = shape[0] == model.n_classes
        advice = "For a single row pass logits[None, :]." if one_row else "Pass one column per class."
        raise InputError(f"{wanted}; found shape {shape}, one score per row. {advice}")
    if len(shape) > 1 and shape[dim] != (model.n_columns or shape[dim]):
        others = [axis for axis, length in enumerate(shape) if length == model.n_classes]
        raise InputError(
            f"{wanted}; found {shape[dim]}.",
            advice=f"Pass dim={others[0]}." if others else "Use the calibrator of this classifier.",
        )
