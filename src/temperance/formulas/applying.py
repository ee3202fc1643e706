"""Apply a fitted model to logits in memory: open the container, compute, wrap the result like the input."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import AnyArray
from temperance.core.blocks import BFloat16, prediction_slot
from temperance.core.features import RowFeatures
from temperance.core.ops import Array
from temperance.core.row_block import RowBlock, map_rows
from temperance.errors import InputError
from temperance.formulas.model import Model
from temperance.inputs.containers import Logits, open_logits
from temperance.inputs.validation import check_peaks, check_unmasked

ONE_PER_ROW: dict[str, str] = {"temperature": "temperature_of", "log_temperature_std": "log_temperature_std"}
"""The methods that give one number for each row, and the formula of each."""

MAX_FEW_NUMBERS = 1 << 12  # logits of a request whose arithmetic takes less time than a pass over blocks
MAX_BOUNDED = 1e15  # logit whose products cannot overflow


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


def apply_to_rows(
    model: Model,
    method: str,
    values: NDArray[Any] | BFloat16,
    whole: NDArray[Any] | BFloat16 | None = None,
) -> AnyArray:
    """Return what `method` gives for an array with a row for each prediction and a column for each class.

    If the rows are a part of a `whole`, messages are about all of its invalid rows.
    """
    log = method == "transform"
    if _are_few_and_bounded(values):  # which are valid: with as little Python as possible, for a service
        return _compute(model, method, RowBlock(values, log=log, bounded=True))
    with prediction_slot(), np.errstate(all="ignore"):  # invalid rows are found after the pass
        mapped = map_rows(values, partial(_compute, model, method), log=log)
    whole = values if whole is None else whole
    check_peaks(whole, mapped.peak)
    if mapped.weighed is not None:
        check_unmasked(whole, mapped.weighed, model.name, fits=False)
    return mapped.result


def _are_few_and_bounded(values: NDArray[Any] | BFloat16) -> TypeGuard[NDArray[Any]]:
    """Say whether these logits are few, need no conversion, and are neither masked, huge nor NaN."""
    if isinstance(values, BFloat16) or not 0 < values.size <= MAX_FEW_NUMBERS:
        return False
    if not (values.dtype.char in "fd" and values.dtype.isnative and values.flags.c_contiguous):
        return False
    lowest, highest = values.item(values.argmin()), values.item(values.argmax())
    return bool(lowest > -MAX_BOUNDED and highest < MAX_BOUNDED)


def _compute(model: Model, method: str, rows: RowBlock) -> AnyArray:
    if method == "predict" and model.keeps_class:
        return rows.tops
    if method in ONE_PER_ROW:
        column = np.asarray(evaluate(model, method, rows), np.float64)
        return np.broadcast_to(column.reshape(-1), rows.n_rows).copy()
    calibrated: AnyArray = model.calibrate(rows)
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
