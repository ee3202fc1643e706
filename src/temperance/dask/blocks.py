"""Dask collections as blocks of rows, with logits, labels and weights of the same rows together."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from temperance.errors import InputError
from temperance.inputs.containers import as_numpy, framework_of


def as_array(collection: Any) -> da.Array:
    """Return a Dask array or frame as an array with one chunk of classes."""
    array = collection if isinstance(collection, da.Array) else collection.to_dask_array()
    if array.ndim == 2 and array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    return array


def check_dask_shape(array: da.Array, dim: int = -1) -> None:
    """Raise unless an array is (N, K): other shapes would need to be rechunked."""
    if array.ndim > 2 or dim not in (-1, array.ndim - 1):
        raise InputError(
            "Dask logits must be an (N, K) array, a row for each prediction and a column for each class; "
            f"found shape {array.shape} with the classes in axis {dim}. Pass "
            "dask.array.moveaxis(logits, dim, -1).reshape(-1, K)."
        )


def lengths_of(array: da.Array) -> list[int]:
    """Return the rows of each block; those of a frame may have to be counted."""
    if not np.isnan(array.chunks[0]).any():
        return [int(n) for n in array.chunks[0]]
    return list(compute(*(delayed(len)(block) for block in row_blocks(array))))


def row_blocks(array: da.Array) -> list[Any]:
    """Return the blocks of rows, each computed separately."""
    return list(array.to_delayed().ravel())


def align_rows(values: Any, lengths: list[int], name: str) -> list[Any]:
    """Return labels or weights in blocks of the same rows as the logits."""
    if framework_of(values) != "dask":
        return _cut(as_numpy(values), lengths, name)
    array = as_array(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one number for each row; found {array.ndim} dimensions.")
    own = lengths_of(array)
    if sum(own) != sum(lengths):
        raise InputError(
            f"{name} must be one number for each row; found {sum(own)} for {sum(lengths)} rows. "
            "Check that they match."
        )
    if own != lengths:
        if np.isnan(array.chunks[0]).any():
            array = da.concatenate(
                [
                    da.from_delayed(block, (n,), array.dtype)
                    for block, n in zip(row_blocks(array), own, strict=True)
                ]
            )
        array = array.rechunk((tuple(lengths),))
    return row_blocks(array)


def _cut(values: NDArray[Any], lengths: list[int], name: str) -> list[Any]:
    if values.ndim == 0 or len(values) != sum(lengths):
        raise InputError(
            f"{name} must be one number for each row; found shape {values.shape} for {sum(lengths)} rows. "
            "Check that they match."
        )
    return np.split(values, np.cumsum(lengths)[:-1])
