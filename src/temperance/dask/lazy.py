"""A fitted calibrator on Dask collections: nothing is computed until it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.applying import ONE_PER_ROW, check_columns
from temperance.calibrators.applying import apply as apply_in_memory
from temperance.calibrators.model import Model
from temperance.core.blocks import threads, working_dtype
from temperance.dask.blocks import as_array
from temperance.validation import InputError, counted_from

__all__ = ["apply", "map_probabilities"]

_TYPES = {**dict.fromkeys(ONE_PER_ROW, np.float64), "predict": np.intp}  # of what is one number for each row


def apply(model: Model, method: str, logits: Any) -> da.Array:
    """Return what `method` gives for these logits, as a Dask array in the same blocks of rows."""
    array = as_array(logits)
    check_columns(model, array.shape[1] if array.ndim == 2 else 2)
    dtype = np.dtype(_TYPES.get(method, working_dtype(np.empty(0, array.dtype))))
    change: dict[str, Any] = {}
    if method in _TYPES and array.ndim == 2:
        change = {"drop_axis": 1}
    elif method == "predict_proba" and array.ndim == 1:
        change = {"new_axis": 1, "chunks": (array.chunks[0], (2,))}
    n_dimensions = array.ndim - ("drop_axis" in change) + ("new_axis" in change)
    return da.map_blocks(
        _apply_to_block,
        array,
        model,
        method,
        dtype=dtype,
        meta=np.empty((0,) * n_dimensions, dtype),
        token=f"temperance-{method}",
        **change,
    )


def _apply_to_block(block: NDArray[Any], model: Model, method: str, block_info: Any = None) -> NDArray[Any]:
    with threads(1):  # the threads are the engine's
        try:
            return np.asarray(apply_in_memory(model, method, block))
        except InputError as error:
            start = block_info[0]["array-location"][0][0] if block_info else 0
            raise InputError(f"{counted_from(start)}{error}") from None


def map_probabilities(function: Callable[..., Any], probs: Any) -> da.Array:
    """Return a function of each block of probabilities."""
    array = as_array(probs)
    return da.map_blocks(function, array, dtype=working_dtype(np.empty(0, array.dtype)))
