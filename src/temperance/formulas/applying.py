"""Apply a fitted model to logits in memory: open the container, compute, wrap the result like the input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import AnyArray, Floats
from temperance.core.blocks import BFloat16
from temperance.core.features import RowFeatures
from temperance.core.logit_rows import LogitRows
from temperance.core.one_row import OneRow
from temperance.core.ops import Array
from temperance.core.small_rows import LongWayError, SmallRows, are_small
from temperance.core.turns import turns
from temperance.errors import InputError
from temperance.formulas.model import Model
from temperance.formulas.numpy_rows import NumpyRows
from temperance.inputs.containers import Logits, open_logits
from temperance.inputs.validation import inspector

ONE_PER_ROW: dict[str, str] = {"temperature": "temperature_of", "log_temperature_std": "log_temperature_std"}
"""The methods that give one number for each row, and the formula of each."""


def apply(model: Model, method: str, logits: Any, dim: int = -1) -> Any:
    """Return what `method` gives for these logits, in a container like theirs."""
    return apply_opened(model, method, open_logits(logits, dim))


def apply_opened(model: Model, method: str, opened: Logits) -> Any:
    """Return what `method` gives for opened logits, in the container that they came in."""
    check_columns(model, opened.shape, opened.dim)
    result = apply_to_rows(model, method, opened.values)
    if method == "transform" and opened.binary:
        result = result[:, 1] - result[:, 0]
    return opened.close(result)


def apply_to_rows(model: Model, method: str, values: NDArray[Any] | BFloat16) -> AnyArray:
    """Return what `method` gives for an array with a row for each prediction and a column for each class."""
    if are_small(values):
        try:
            return _compute_small(model, method, values)
        except LongWayError:
            pass
    with turns:
        rows = LogitRows(values, inspect=inspector(values))
        result = _compute(model, method, rows)
        rows.check()  # TS needs no row for its temperature, but invalid rows must still raise
    return result


def _compute_small(model: Model, method: str, values: Floats) -> AnyArray:
    rows = (OneRow if len(values) == 1 else SmallRows)(values, log=method == "transform")
    if method == "predict" and model.keeps_class:
        return rows.columns
    return _result(model, method, rows, rows.n_rows)


def _compute(model: Model, method: str, rows: LogitRows) -> AnyArray:
    if method == "predict" and model.keeps_class:
        return rows.top
    return _result(model, method, NumpyRows(rows, model.name, log=method == "transform"), rows.n_rows)


def _result(model: Model, method: str, features: RowFeatures, n_rows: int) -> AnyArray:
    if method in ONE_PER_ROW:
        column = np.asarray(evaluate(model, method, features), np.float64)
        return np.broadcast_to(column.reshape(-1), n_rows).copy()
    calibrated: AnyArray = model.calibrate(features)
    return np.argmax(calibrated, axis=1) if method == "predict" else calibrated


def evaluate(model: Model, method: str, rows: RowFeatures) -> Array:
    """Return what a model gives under the name of a calibrator's method, on rows of any framework."""
    if method in ONE_PER_ROW:
        return getattr(model.formula, ONE_PER_ROW[method])(rows)
    return model.calibrate(rows)


def check_columns(model: Model, shape: tuple[int, ...], dim: int) -> None:
    """Raise unless logits of this shape have as many classes in the axis `dim` as the model."""
    wanted = (
        f"this {model.name} was fitted on {model.n_classes} classes, so logits must have {model.n_classes} "
        "columns"
    )
    if len(shape) == 1 and model.n_classes != 2:
        one_row = shape[0] == model.n_classes
        advice = "For a single row pass logits[None, :]." if one_row else "Pass a column for each class."
        raise InputError(f"{wanted}; found shape {shape}, one score for each row. {advice}")
    if len(shape) > 1 and shape[dim] != model.n_classes:
        others = [axis for axis, length in enumerate(shape) if length == model.n_classes]
        raise InputError(
            f"{wanted}; found {shape[dim]}.",
            advice=f"Pass dim={others[0]}." if others else "Use the calibrator of this classifier.",
        )
