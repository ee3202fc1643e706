"""A fitted calibrator on Dask collections: nothing is computed until it is needed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.blocks import sampled_rows, threads, working_dtype
from temperance.core.frequencies import ProbabilityRows, Sums, hessian_step_for
from temperance.core.row_block import kernels_of_size
from temperance.dask.fit_data import add_in_tree, as_array, check_dask_shape, lengths_of, row_blocks
from temperance.errors import rows_from
from temperance.formulas.model import ONE_PER_ROW, Model, check_columns
from temperance.formulas.model import apply as apply_in_memory
from temperance.inputs.probabilities import LowEnd, divide_by_sums

log = logging.getLogger("temperance")

_TYPES = {**dict.fromkeys(ONE_PER_ROW, np.float64), "predict": np.intp}  # of methods with one number per row


def apply(model: Model, method: str, logits: Any, dim: int = -1, from_probs: bool | None = None) -> da.Array:
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
    from_probs : bool, optional
        False if these are logits even if they look like probabilities.

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
        partial(apply_in_memory, model, method, from_probs=from_probs),
        dtype=dtype,
        meta=np.empty((0,) * n_dimensions, dtype),
        token=f"temperance-{method}",
        **change,
    )


def _on_block(block: NDArray[Any], work: Callable[..., Any], block_info: Any = None) -> NDArray[Any]:
    start = block_info[0]["array-location"][0][0] if block_info else 0
    with threads(1), rows_from(start):  # the threads are the engine's
        return np.asarray(work(block))


def map_probabilities(
    function: Callable[..., Any], probs: Any, floor: float | None, *, renormalise: bool | None = False
) -> da.Array:
    """Apply a function to each block of probabilities with one floor, by default the floor of all blocks.

    `temperance.logits_from_probs` calls it for a Dask collection.

    Parameters
    ----------
    function : callable
        Takes a block of probabilities, and `floor` by name.
    probs : Dask array or data frame
        Probabilities, (N, K).
    floor : float, or None
        Smaller probabilities are raised to this value.
    renormalise : bool
        Whether the function divides each row by its sum; if so, the default floor is computed after it.

    Examples
    --------
    >>> import dask.array as da
    >>> probs = da.from_array(np.array([[0.9, 0.1], [0.0, 1.0]]), chunks=(1, 2))
    >>> map_probabilities(lambda block, floor: np.maximum(block, floor), probs, 0.01).compute().tolist()
    [[0.9, 0.1], [0.01, 1.0]]
    """
    array = as_array(probs)
    shared = da.asarray(np.float64(floor)) if floor is not None else floor_of(array, renormalise=renormalise)

    def with_floor(block: NDArray[Any], floor: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
        return _on_block(block, partial(function, floor=float(floor)), block_info)

    return da.map_blocks(with_floor, array, shared, dtype=working_dtype(np.empty(0, array.dtype)))


def floor_of(probs: Any, *, renormalise: bool | None = False) -> da.Array:
    """Return the floor of all rows, as a number that Dask has yet to compute.

    Parameters
    ----------
    probs : Dask array or data frame
        Probabilities, (N, K).
    renormalise : bool
        Whether each row is divided by its sum first.

    Examples
    --------
    Half of the smallest probability above 0, shared by two classes:

    >>> import dask.array as da
    >>> probs = da.from_array(np.array([[0.9, 0.1], [0.0, 1.0]]), chunks=(1, 2))
    >>> round(float(floor_of(probs).compute()), 6)
    0.025
    """
    ends = [delayed(_low_end)(block, renormalise) for block in row_blocks(as_array(probs))]
    floor = delayed(lambda ends: np.float64(LowEnd.joined(end for end in ends if end is not None).floor))
    return da.from_delayed(floor(ends), (), np.float64)


def _low_end(block: Any, renormalise: bool | None) -> LowEnd | None:
    array = np.asarray(block)
    return LowEnd.of(divide_by_sums(array) if renormalise else array) if len(array) else None


class DaskProbabilityRows(ProbabilityRows):
    """A model's probabilities for the blocks of a collection: only sums over rows leave the workers.

    `adapt` uses it for a Dask collection.

    Parameters
    ----------
    model : Model
        The fitted model of a calibrator, its `model_`.
    logits : Dask array or data frame
        Unlabelled rows.
    from_probs : bool, optional
        False if these are logits even if they look like probabilities.

    Examples
    --------
    >>> import dask.array as da
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> logits = da.from_array(task.logits, chunks=(100, 3))
    >>> cal = TemperatureScaling().fit(logits, task.labels)
    >>> DaskProbabilityRows(cal.model_, logits).every(50).n_rows
    4
    """

    def __init__(self, model: Model, logits: Any, from_probs: bool | None = None) -> None:
        array = as_array(logits)
        check_dask_shape(array)
        check_columns(model, array.shape, array.ndim - 1)
        lengths = lengths_of(array)
        self.n_rows, self.passes = sum(lengths), 0
        self._predict = partial(apply_in_memory, model, "predict_proba", from_probs=from_probs)
        self._n_classes = model.n_classes
        self._parts = list(zip(row_blocks(array), np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))

    def sums(self, ratio: Vector) -> Sums:
        """Return sums over all rows."""
        self.passes += 1
        log.info("pass %d over %d rows in %d parts: adapt", self.passes, self.n_rows, len(self._parts))
        job = partial(_part_sums, self._predict, ratio, hessian_step_for(self.n_rows, self._n_classes))
        task, size = delayed(job, pure=False), self.n_rows * self._n_classes
        (total,) = compute(add_in_tree([task(*part, size) for part in self._parts]))
        return Sums(*total)

    def every(self, step: int) -> ProbabilityRows:
        """Return every `step`-th row, in memory."""

        def take(block: Any, start: int) -> NDArray[Any]:
            rows = np.asarray(block)
            return rows[sampled_rows(step, start + len(rows), start) - start]

        taken = compute(*(delayed(take, pure=False)(*part) for part in self._parts))
        return ProbabilityRows(np.asarray(self._predict(np.concatenate(taken))))


def _part_sums(
    predict: Callable[..., Any], ratio: Vector, hessian_step: int, block: Any, start: int, size: int
) -> tuple[Vector, ...] | None:
    logits = np.asarray(block)
    if not len(logits):
        return None
    with threads(1), kernels_of_size(size), rows_from(start):  # the threads are the engine's
        probs = np.asarray(predict(logits))
        sums = ProbabilityRows(probs, hessian_step).sums(ratio)
    return tuple(vars(sums).values())
