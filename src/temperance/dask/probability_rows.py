"""Calibrated probabilities of unlabelled rows in a Dask collection, computed again in each pass."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.blocks import threads
from temperance.core.frequencies import ProbabilityRows, Sums, hessian_step_for
from temperance.core.row_block import kernels_of_size
from temperance.dask.blocks import as_array, check_dask_shape, lengths_of, row_blocks
from temperance.dask.fit_data import add_in_tree
from temperance.dask.tasks import add_arrays
from temperance.errors import rows_from
from temperance.formulas.applying import apply, check_columns
from temperance.formulas.model import Model

log = logging.getLogger("temperance")


class DaskProbabilityRows:
    """The probabilities of a model for the blocks of a collection: only sums over rows leave the workers.

    `adapt` uses it for a Dask collection.

    Parameters
    ----------
    model : Model
        The fitted model of a calibrator, its `model_`.
    logits : Dask array or data frame
        Unlabelled rows.

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

    def __init__(self, model: Model, logits: Any) -> None:
        array = as_array(logits)
        check_dask_shape(array)
        check_columns(model, array.shape, array.ndim - 1)
        lengths = lengths_of(array)
        self.n_rows, self.passes = sum(lengths), 0
        self._model = model
        self._parts = list(zip(row_blocks(array), np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))

    def sums(self, ratio: Vector) -> Sums:
        """Return sums over all rows."""
        self.passes += 1
        log.info("pass %d over %d rows in %d parts: adapt", self.passes, self.n_rows, len(self._parts))
        n_classes = self._model.n_classes
        job = partial(_part_sums, self._model, ratio, hessian_step_for(self.n_rows, n_classes))
        task, size = delayed(job, pure=False), self.n_rows * n_classes
        (total,) = compute(add_in_tree([task(*part, size) for part in self._parts], add_arrays))
        return Sums(*total)

    def every(self, step: int) -> ProbabilityRows:
        """Return every `step`-th row, in memory."""
        take = delayed(_take_every, pure=False)
        taken = compute(*(take(block, start, step) for block, start in self._parts))
        return ProbabilityRows(_probabilities(self._model, np.concatenate(taken)))


def _probabilities(model: Model, logits: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(apply(model, "predict_proba", logits))


def _part_sums(
    model: Model, ratio: Vector, hessian_step: int, block: Any, start: int, size: int
) -> tuple[Vector, ...] | None:
    logits = np.asarray(block)
    if not len(logits):
        return None
    with threads(1), kernels_of_size(size), rows_from(start):  # the threads are the engine's
        sums = ProbabilityRows(_probabilities(model, logits), hessian_step).sums(ratio)
    return tuple(vars(sums).values())


def _take_every(block: Any, start: int, step: int) -> NDArray[Any]:
    return np.array(np.asarray(block)[-start % step :: step])
