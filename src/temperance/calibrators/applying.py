"""A fitted model applied to logits in memory: open the container, compute, wrap the result like the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.calibrators.model import Model
from temperance.calibrators.numpy_rows import NumpyRows
from temperance.containers import open_logits
from temperance.core.arrays import AnyArray
from temperance.core.features import RowFeatures
from temperance.core.logit_rows import LogitRows
from temperance.core.ops import Array
from temperance.validation import InputError, inspector

ONE_PER_ROW: dict[str, str] = {"temperature": "temperature_of", "log_temperature_std": "log_temperature_std"}
"""The methods that give one number for each row, and the formula behind each."""


def apply(model: Model, method: str, logits: Any) -> Any:
    """Return what `method` gives for these logits, in a container like theirs."""
    opened = open_logits(logits)
    check_columns(model, opened.values.shape[1])
    rows = LogitRows(opened.values, inspect=inspector(opened.values))
    result = _compute(model, method, rows)
    rows.check()  # TS needs no row for its temperature, but invalid rows must still raise
    if method == "transform" and opened.binary:
        result = result[:, 1] - result[:, 0]
    return opened.wrap(result)


def _compute(model: Model, method: str, rows: LogitRows) -> AnyArray:
    if method == "predict" and model.keeps_class:
        return rows.top
    features = NumpyRows(rows, model.name, log=method == "transform")
    if method in ONE_PER_ROW:
        column = np.asarray(evaluate(model, method, features), np.float64)
        return np.broadcast_to(column.reshape(-1), rows.n_rows).copy()
    calibrated: AnyArray = model.calibrate(features)
    return np.argmax(calibrated, axis=1) if method == "predict" else calibrated


def evaluate(model: Model, method: str, rows: RowFeatures) -> Array:
    """Return what a model gives under the name of a calibrator's method, on rows of any framework."""
    if method in ONE_PER_ROW:
        return getattr(model.formula, ONE_PER_ROW[method])(rows)
    return model.calibrate(rows)


def check_columns(model: Model, n_classes: int) -> None:
    """Raise unless there are as many columns as the model has classes."""
    if n_classes != model.n_classes:
        raise InputError(
            f"this {model.name} was fitted on {model.n_classes} classes, so logits must have "
            f"{model.n_classes} columns; got {n_classes}. Use the calibrator of this classifier."
        )
