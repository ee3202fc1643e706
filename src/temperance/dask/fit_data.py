"""Labelled rows in many parts: sums are computed where the rows are, and added up.

Partial sums are added in the order of the rows, so the same parts give the same bits on any scheduler.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from dask.base import compute, persist
from dask.delayed import delayed
from numpy.typing import NDArray

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import working_dtype
from temperance.core.fisher import MAX_FISHER
from temperance.core.objective import (
    THINNING,
    Build,
    Derivatives,
    Measure,
    Objective,
    ObjectivePoint,
    PartialSums,
    Prior,
    Samples,
    Survey,
    Transform,
    Values,
)
from temperance.core.quantiles import Quantiles, make_brackets, resolve
from temperance.dask import tasks as work
from temperance.dask.blocks import align_rows, as_array, lengths_of, row_blocks
from temperance.errors import InputError
from temperance.inputs.labels import Names
from temperance.inputs.validation import check_logits_shape, check_sample_weight

FAN_IN = 8  # partial results added by one task
THIN_BYTES = 1 << 27  # of a subsample that is kept on the workers
MERGED_BYTES = 1 << 25  # of one of its parts

log = logging.getLogger("temperance")


@dataclass(frozen=True)
class PartsShape:
    """What all parts have in common."""

    n_rows: int
    n_classes: int
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """How many logits there are."""
        return self.n_rows * self.n_classes

    @property
    def row_bytes(self) -> int:
        """Bytes of one row as the core reads it."""
        return self.n_classes * self.dtype.itemsize


def open_fit_data(logits: Any, labels: Any, sample_weight: Any, names: Names | None = None) -> DaskFitData:
    """Open Dask logits with their labels and weights, without reading the logits.

    Parameters
    ----------
    logits : Dask array or data frame
        (N, K), or (N,) for a binary classifier.
    labels : Dask array, data frame column, or array in memory
        Columns of the right classes, or their names.
    sample_weight : as labels, or None
        Numbers >= 0.
    names : sequence, optional
        Names of the classes, which the labels may hold.

    Examples
    --------
    >>> import dask.array as da
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> data = open_fit_data(da.from_array(task.logits, chunks=(100, 3)), task.labels, None)
    >>> data.n_rows, data.n_classes
    (200, 3)
    """
    array = as_array(logits)
    known = [0 if np.isnan(n) else int(n) for n in array.shape]
    check_logits_shape(np.broadcast_to(np.float32(0), known))
    if array.dtype.kind not in "fiub":
        raise InputError(f"logits must be floating point numbers; found {array.dtype}.")
    lengths = lengths_of(array)
    if not sum(lengths):
        raise InputError("fit needs labelled rows; found none. Pass the logits of a validation set.")
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    columns = align_rows(labels, lengths, "labels")
    weights: list[Any] = [None] * len(lengths)
    total = float(sum(lengths))
    if sample_weight is not None:
        weights = align_rows(sample_weight, lengths, "sample_weight")
        total = _total_weight(weights, starts, sum(lengths))
    n_classes = int(array.shape[1]) if array.ndim == 2 else 2
    if names is not None:
        columns = [delayed(work.named_columns)(block, n_classes, names) for block in columns]
    parts = list(zip(row_blocks(array), columns, weights, starts, strict=True))
    shape = PartsShape(sum(lengths), n_classes, working_dtype(np.empty(0, array.dtype)))
    return DaskFitData(parts, lengths, shape, total)


def _total_weight(weights: Sequence[Any], starts: Sequence[int], n_rows: int) -> float:
    checked = delayed(work.sum_of_weights)
    sums = compute(*(checked(block, start) for block, start in zip(weights, starts, strict=True)))
    total = float(sum(sums))
    if total:
        check_sample_weight(np.array([total]), 1)  # of ordinary size
    else:
        check_sample_weight(np.zeros(n_rows), n_rows)  # raises, and says what is wrong
    return total


class DaskFitData:
    """Labelled rows in parts, each a tuple of logits, labels, weights and the number of its first row."""

    def __init__(self, parts: list[Any], lengths: list[int], shape: PartsShape, total_weight: float) -> None:
        self.parts, self.lengths, self.shape, self.total_weight = parts, lengths, shape, total_weight
        self.n_rows, self.n_classes = shape.n_rows, shape.n_classes
        self.passes = 0

    @property
    def thinning(self) -> int:
        """The largest ratio of rows to subsample: larger than in memory, so that the workers can keep it."""
        return max(THINNING, math.ceil(self.shape.size * self.shape.dtype.itemsize / THIN_BYTES))

    def require_in_memory(self, what: str) -> None:
        """Raise: the rows are not in memory."""
        raise InputError(
            f"{what}, so it needs them in memory; found a Dask collection. Use solver='exact', or pass "
            "logits.compute()."
        )

    def total(self, measure: Measure) -> tuple[NDArray[Any], ...]:
        """Return sums over all rows."""
        (total,) = self._compute("sum", [add_in_tree(self.tasks("sum", measure), work.add_arrays)])
        result: tuple[NDArray[Any], ...] = total
        return result

    def quantiles(self, values: Values, shares: Vector, tie: float = 0.0) -> Quantiles:
        """Return quantiles over all rows: the parts give sketches, then the numbers near the quantiles."""
        if not len(shares):
            return Quantiles(np.empty(0), np.empty(0))
        sketches = self._compute("sketch", self.tasks("sketch", partial(work.sketch, values)))
        brackets = make_brackets([sketch for sketch in sketches if sketch is not None], shares, tie)
        if brackets.found is not None:
            return brackets.found
        inside = self._compute("quantiles", self.tasks("quantiles", partial(work.inside, values, brackets)))
        return resolve([part for part in inside if part is not None], brackets)

    def survey(self, measure: Measure, samples: Samples) -> Survey:
        """Return sums over all rows, and the arrays of samples in the order of the rows, in one pass."""
        parts = self._compute("survey", self.tasks("survey", (measure, samples), work.survey))
        sums, sampled = zip(*(part for part in parts if part is not None), strict=True)
        return work.add_arrays(sums), [work.join_arrays(arrays) for arrays in zip(*sampled, strict=True)]

    def objective(self, build: Build) -> DaskObjective:
        """Return the objective that `build` makes for each part, as a mean over all rows."""
        return DaskObjective(self, build)

    def terms(self, build: Build, theta: Vector, with_fisher: bool) -> PartialSums:
        """Return the sum over all rows of an objective's terms."""
        tasks = self.tasks("objective", partial(work.terms, build, theta, with_fisher))
        (total,) = self._compute("objective", [add_in_tree(tasks, work.add_partial_sums)])
        result: PartialSums = total
        return result

    def every(self, step: int) -> DaskFitData:
        """Return every `step`-th row, the same for any parts, kept on the workers."""
        if step == 1:
            return self
        starts = np.cumsum([0, *self.lengths])
        bounds = -(-starts // step)  # the position of each part's first row within the subsample
        lengths = np.diff(bounds)
        thin = self.tasks("thin", step, work.take_every)
        merged, merged_lengths = [], []
        for group in _groups(lengths, self.shape.row_bytes):
            merged.append(delayed(work.merge, pure=False)([thin[i] for i in group], int(bounds[group[0]])))
            merged_lengths.append(int(lengths[group].sum()))
        log.info("taking every %d-th of %d rows", step, self.n_rows)
        self.passes += 1
        kept = list(persist(*merged))
        shape = replace(self.shape, n_rows=int(bounds[-1]))
        weight = sum(compute(*(delayed(work.weight_of)(part) for part in kept)))
        return DaskFitData(kept, merged_lengths, shape, float(weight))

    def transformed(self, transform: Transform) -> DaskFitData:
        """Return rows with transformed logits, which each pass computes again where the rows are."""
        parts = self.tasks("transform", transform, work.transform)
        return DaskFitData(parts, self.lengths, self.shape, self.total_weight)

    def tasks(self, name: str, job: Any, run: Callable[..., Any] = work.run) -> list[Any]:
        """Return a task for each part, which runs the job with it; their names show in the dashboard."""
        token, task = uuid4().hex, delayed(run, pure=False)
        return [
            task(job, part, self.shape.size, dask_key_name=f"temperance-{name}-{token}-{i}")
            for i, part in enumerate(self.parts)
        ]

    def _compute(self, name: str, tasks: list[Any]) -> tuple[Any, ...]:
        self.passes += 1
        log.info("pass %d over %d rows in %d parts: %s", self.passes, self.n_rows, len(self.parts), name)
        results: tuple[Any, ...] = compute(*tasks)
        return results


class DaskObjective(Objective):
    """The mean over rows in parts of an objective, with a prior that belongs to no part."""

    def __init__(self, sample: DaskFitData, build: Build, prior: Prior | None = None) -> None:
        self.sample, self.build, self.prior = sample, build, prior
        self.total_weight, self.thinning = sample.total_weight, sample.thinning
        self.noise = float(np.finfo(sample.shape.dtype).eps)

    @property
    def passes(self) -> int:
        """How often the rows were read so far."""
        return self.sample.passes

    def every(self, step: int) -> DaskObjective:
        """Return the objective of every `step`-th row, with the same prior."""
        return DaskObjective(self.sample.every(step), self.build, self.prior)

    def temperature_quantiles(self, theta: Vector, shares: Vector) -> Vector:
        """Return quantiles of T over the rows."""
        return self.sample.quantiles(partial(work.temperatures, self.build, theta), shares).values

    def evaluate(self, theta: Vector) -> ObjectivePoint:
        """Return value and derivatives in one pass: reading the rows takes most of the time."""
        value, gradient, fisher = self._derivatives(theta, len(theta) <= MAX_FISHER)

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            if with_fisher and fisher is None:
                return self._derivatives(theta, True)[1:]
            return gradient, fisher

        return ObjectivePoint(value, derive)

    def _derivatives(self, theta: Vector, with_fisher: bool) -> Derivatives:
        terms = self.sample.terms(self.build, theta, with_fisher)
        return terms.times(1 / self.total_weight).combined()


def _groups(lengths: NDArray[np.intp], row_bytes: int) -> list[list[int]]:
    """Return runs of parts that are large enough together, those without rows left out."""
    groups: list[list[int]] = []
    filled = MERGED_BYTES
    for i in np.flatnonzero(lengths):
        if filled >= MERGED_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(int(i))
        filled += int(lengths[i]) * row_bytes
    return groups


def add_in_tree(tasks: list[Any], add: Callable[[Sequence[Any]], Any]) -> Any:
    """Return one task that adds up all parts, a few at a time."""
    adding = delayed(add, pure=False)
    while len(tasks) > 1:
        tasks = [adding(tasks[i : i + FAN_IN]) for i in range(0, len(tasks), FAN_IN)]
    return tasks[0]
