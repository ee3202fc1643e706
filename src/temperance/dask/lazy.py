"""A fitted calibrator on Dask collections: nothing is computed until it is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from temperance.core.blocks import threads, working_dtype
from temperance.dask.blocks import as_array, check_dask_shape, row_blocks
from temperance.errors import rows_from
from temperance.formulas.applying import ONE_PER_ROW, check_columns
from temperance.formulas.applying import apply as apply_in_memory
from temperance.formulas.model import Model
from temperance.inputs.probabilities import LowEnd

_TYPES = {**dict.fromkeys(ONE_PER_ROW, np.float64), "predict": np.intp}  # of what is one number for each row


def apply(model: Model, method: str, logits: Any, dim: int = -1) -> da.Array:
    """Return the result of `method` for these logits, as a Dask array in the same blocks of rows.

    The methods of a calibrator call it for a Dask collection.

    Parameters
    ----------
    model : Model
        The fitted model of a calibrator, its `model_`.
    method : {"predict_proba", "transform", "temperature", "predict"}
        What to compute.
    logits : Dask array or data frame
        (N, K), or (N,) for a binary classifier.
    dim : int
        Axis of the classes; it must be the last.

    Examples
    --------
    >>> import dask.array as da
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> logits = da.from_array(task.logits, chunks=(100, 3))
    >>> cal = TemperatureScaling().fit(logits, task.labels)
    >>> probs = apply(cal.model_, "predict_proba", logits)
    >>> probs.chunks
    ((100, 100), (3,))
    """
    array = as_array(logits)
    check_dask_shape(array, dim)
    check_columns(model, array.shape, array.ndim - 1)
    dtype = np.dtype(_TYPES.get(method, working_dtype(np.empty(0, array.dtype))))
    change: dict[str, Any] = {}
    if method in _TYPES and array.ndim == 2:
        change = {"drop_axis": 1}
    elif method == "predict_proba" and array.ndim == 1:
        change = {"new_axis": 1, "chunks": (array.chunks[0], (2,))}
    n_dimensions = array.ndim - ("drop_axis" in change) + ("new_axis" in change)
    return da.map_blocks(
        _on_block,
        array,
        partial(apply_in_memory, model, method),
        dtype=dtype,
        meta=np.empty((0,) * n_dimensions, dtype),
        token=f"temperance-{method}",
        **change,
    )


def _on_block(block: NDArray[Any], work: Callable[..., Any], block_info: Any = None) -> NDArray[Any]:
    start = block_info[0]["array-location"][0][0] if block_info else 0
    with threads(1), rows_from(start):  # the threads are the engine's
        return np.asarray(work(block))


def map_probabilities(function: Callable[..., Any], probs: Any, floor: float | None) -> da.Array:
    """Apply a function to each block of probabilities with one floor, by default that of all blocks.

    `temperance.logits_from_probs` calls it for a Dask collection.

    Parameters
    ----------
    function : callable
        Takes a block of probabilities, and `floor` by name.
    probs : Dask array or data frame
        Probabilities, (N, K).
    floor : float, or None
        What smaller probabilities are raised to.

    Examples
    --------
    >>> import dask.array as da
    >>> probs = da.from_array(np.array([[0.9, 0.1], [0.0, 1.0]]), chunks=(1, 2))
    >>> map_probabilities(lambda block, floor: np.maximum(block, floor), probs, 0.01).compute().tolist()
    [[0.9, 0.1], [0.01, 1.0]]
    """
    array = as_array(probs)
    shared = da.asarray(np.float64(floor)) if floor is not None else floor_of(array)
    return da.map_blocks(_with_floor, array, shared, function, dtype=working_dtype(np.empty(0, array.dtype)))


def _with_floor(
    block: NDArray[Any], floor: NDArray[Any], function: Callable[..., Any], block_info: Any = None
) -> NDArray[Any]:
    return _on_block(block, partial(function, floor=float(floor)), block_info)


def floor_of(probs: Any) -> da.Array:
    """Return the floor of all rows, a number to be computed.

    Parameters
    ----------
    probs : Dask array or data frame
        Probabilities, (N, K).

    Examples
    --------
    Half of the smallest probability above 0, shared by two classes:

    >>> import dask.array as da
    >>> probs = da.from_array(np.array([[0.9, 0.1], [0.0, 1.0]]), chunks=(1, 2))
    >>> round(float(floor_of(probs).compute()), 6)
    0.025
    """
    ends = [delayed(_low_end)(block) for block in row_blocks(as_array(probs))]
    return da.from_delayed(delayed(_joined_floor)(ends), (), np.float64)


def _low_end(block: Any) -> LowEnd | None:
    array = np.asarray(block)
    return LowEnd.of(array) if len(array) else None


def _joined_floor(ends: list[LowEnd | None]) -> np.float64:
    return np.float64(LowEnd.joined(end for end in ends if end is not None).floor)
