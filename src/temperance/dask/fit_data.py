"""Labelled rows in many parts: sums are computed where the rows are, and added up.

Partial sums are added in the order of the rows, so the same parts give bit-identical results on any
scheduler. Workers run only pure functions of a part, which Dask can run again elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.base import compute, persist
from dask.delayed import delayed
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Vector
from temperance.core.blocks import sampled_rows, threads, working_dtype
from temperance.core.fisher import MAX_FISHER
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import (
    Build,
    FitData,
    Measure,
    Objective,
    ObjectivePoint,
    Prior,
    Samples,
    Survey,
    Transform,
    Values,
    thinning_of,
)
from temperance.core.quantiles import Quantiles, Sketch, make_brackets, resolve, values_in_brackets
from temperance.core.row_block import kernels_of_size
from temperance.errors import InputError, rows_from
from temperance.inputs.containers import as_numpy, framework_of, open_labelled
from temperance.inputs.labels import check_labels
from temperance.inputs.names import Names
from temperance.inputs.validation import check_logits_shape, check_sample_weight, warn_of_small_weights

FAN_IN = 8  # partial results added by one task

log = logging.getLogger("temperance")


def open_fit_data(logits: Any, labels: Any, sample_weight: Any, names: Names | None = None) -> DaskFitData:
    """Open Dask logits with their labels and weights, without reading the logits.

    Parameters
    ----------
    logits : Dask array or data frame
        (N, K), or (N,) for a binary classifier.
    labels : Dask array, data frame column, or array in memory
        Columns of the true classes, or their names.
    sample_weight : as labels, or None
        Numbers >= 0.
    names : sequence, optional
        Names of the classes, if the labels are names.

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
        raise InputError("logits have no rows, and fit needs some. Pass the logits of a validation set.")
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    blocks, columns = row_blocks(array), align_rows(labels, lengths, "labels")
    weights: list[Any] = [None] * len(lengths)
    total = float(sum(lengths))
    if sample_weight is not None:
        weights = align_rows(sample_weight, lengths, "sample_weight")
        sums = compute(*(delayed(_sum_of_weights)(*part) for part in zip(weights, starts, strict=True)))
        if total := float(sum(of_part for of_part, _ in sums)):
            check_sample_weight(np.array([total]), 1)  # raises if the sum is too large or too small
        else:
            check_sample_weight(np.zeros(sum(lengths)), sum(lengths))  # raises, and says what is wrong
        counts = [counted for _, counted in sums]
        warn_of_small_weights(total, sum(counts))
        if counts != lengths:
            rows = zip(blocks, columns, weights, strict=True)
            kept = [delayed(_with_weight, nout=3)(*part) for part in rows]
            lengths, (blocks, columns, weights) = counts, map(list, zip(*kept, strict=True))
            starts = np.cumsum([0, *lengths[:-1]]).tolist()  # of the rows that count, which samples are from
    n_classes = int(array.shape[1]) if array.ndim == 2 else 2
    if names is not None:
        columns = [delayed(_named_columns)(block, n_classes, names) for block in columns]
    parts = list(zip(blocks, columns, weights, starts, strict=True))
    return DaskFitData(parts, lengths, n_classes, working_dtype(np.empty(0, array.dtype)), total)


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
            "Dask logits must be an (N, K) array, one row per prediction and one column per class; "
            f"found shape {array.shape} with the classes in axis {dim}. Pass "
            "dask.array.moveaxis(logits, dim, -1).reshape(-1, K)."
        )


def lengths_of(array: da.Array) -> list[int]:
    """Return the number of rows of each block, which for some frames must be counted."""
    if not np.isnan(array.chunks[0]).any():
        return [int(n) for n in array.chunks[0]]
    return list(compute(*(delayed(len)(block) for block in row_blocks(array))))


def row_blocks(array: da.Array) -> list[Any]:
    """Return the blocks of rows, each computed separately."""
    return list(array.to_delayed().ravel())


def align_rows(values: Any, lengths: list[int], name: str) -> list[Any]:
    """Return labels or weights in blocks of the same rows as the logits."""
    if framework_of(values) != "dask":
        in_memory = as_numpy(values)
        if in_memory.ndim == 0 or len(in_memory) != sum(lengths):
            raise InputError(
                f"{name} must have one number per row; found shape {in_memory.shape} for {sum(lengths)} "
                "rows. Check that they match."
            )
        return np.split(in_memory, np.cumsum(lengths)[:-1])
    array = as_array(values)
    if array.ndim != 1:
        raise InputError(f"{name} must have one number per row; found {array.ndim} dimensions.")
    own = lengths_of(array)
    if sum(own) != sum(lengths):
        raise InputError(
            f"{name} must have one number per row; found {sum(own)} for {sum(lengths)} rows. "
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


def _sum_of_weights(weights: NDArray[Any], start: int) -> tuple[float, int]:
    """Return the total weight of a part, and how many rows have one, after checking each number."""
    given = np.asarray(weights)
    if given.dtype.kind in "fiub" and given.ndim == 1 and not given.any():
        return 0.0, 0  # of a part
    with rows_from(start):
        checked = check_sample_weight(given, len(given))
        assert checked is not None
        return float(checked.sum()), int(np.count_nonzero(checked))


def _with_weight(logits: Any, labels: Any, weights: Any) -> tuple[NDArray[Any], NDArray[Any], Vector]:
    """Return the rows of a part without rows of weight 0."""
    counted = np.flatnonzero(np.asarray(weights))
    logits, labels, weights = (np.asarray(one)[counted] for one in (logits, labels, weights))
    return logits, labels, weights


def _named_columns(labels: Any, n_classes: int, names: Names) -> NDArray[np.intp]:
    """Return the columns of a part's labels, which can be names."""
    array = np.asarray(labels)
    return check_labels(array, len(array), n_classes, names)


def _run(work: Callable[[LogitRows, Vector | None], Any], part: Any, size: int) -> Any:
    """Open and check a part, then do the work on it; None if it has no rows."""
    logits, labels, weights, start = part
    if not len(logits):
        return None
    with threads(1), kernels_of_size(size), rows_from(start):  # the threads are the engine's
        rows = open_labelled(np.asarray(logits), np.asarray(labels)).checked()
        return work(rows, None if weights is None else np.asarray(weights, np.float64))


def _terms(
    build: Build, theta: Vector, with_fisher: bool, rows: LogitRows, weights: Vector | None
) -> tuple[NDArray[Any], ...]:
    """Return what a part adds to an objective."""
    objective = build(rows, weights)
    return tuple(objective.total_weight * term for term in objective.terms(theta, with_fisher))


def _temperatures(
    build: Build, theta: Vector, rows: LogitRows, weights: Vector | None
) -> tuple[Vector, Vector | None]:
    """Return T of each row, with the weights."""
    return build(rows, weights).temperatures(theta), weights


def _survey(wanted: tuple[Measure, Samples], part: Any, size: int) -> Any:
    """Return sums over a part, and the arrays of each sample; None if the part has no rows.

    A sample without rows in this part is None.
    """
    measure, samples = wanted

    def work(rows: LogitRows, weights: Vector | None) -> Any:
        sampled = []
        for step, sample in samples:
            taken = _taken(step, part) if step > 1 else slice(None)
            some = rows.take(taken)
            sampled.append(sample(some, None if weights is None else weights[taken]) if some.n_rows else None)
        return measure(rows, weights), sampled

    return _run(work, part, size)


def _transform(change: Transform, part: Any, size: int) -> Any:
    """Return the part with transformed logits."""
    changed = _run(lambda rows, weights: change(rows), part, size)
    return part if changed is None else (changed, *part[1:])


def _taken(step: int, part: Any) -> Indices:
    """Return the rows of a part that belong to the sample of all rows."""
    logits, *_, start = part
    return sampled_rows(step, start + len(logits), start) - start


def _take_every(step: int, part: Any, size: int) -> Any:
    """Return the sampled rows, after checking all rows of the part."""
    _run(lambda rows, weights: None, part, size)
    *arrays, start = part
    taken = _taken(step, part)
    return (*(None if array is None else np.asarray(array)[taken] for array in arrays), start)


def _joined(parts: Sequence[Any], start: int) -> Any:
    """Return neighbouring parts as one, whose first row is at `start`."""
    *columns, _ = zip(*parts, strict=True)
    return (*(None if arrays[0] is None else np.concatenate(arrays) for arrays in columns), start)


def _weight_of(part: Any) -> float:
    """Return the total weight of a subsampled part."""
    _, labels, weights, _ = part
    return float(len(labels) if weights is None else np.sum(weights))


def _add_arrays(results: Sequence[Any]) -> Any:
    """Add up tuples, element by element, in their order."""
    totals = [result for result in results if result is not None]
    return tuple(sum(arrays[1:], arrays[0]) for arrays in zip(*totals, strict=True)) if totals else None


def add_in_tree(tasks: list[Any]) -> Any:
    """Return one task that adds up the tuples of all parts, a few at a time."""
    adding = delayed(_add_arrays, pure=False)
    while len(tasks) > 1:
        tasks = [adding(tasks[i : i + FAN_IN]) for i in range(0, len(tasks), FAN_IN)]
    return tasks[0]


class DaskFitData(FitData):
    """Labelled rows in parts, each a tuple of logits, labels, weights and the number of its first row."""

    in_memory = False
    passes = 0

    def __init__(
        self, parts: list[Any], lengths: list[int], n_classes: int, dtype: np.dtype[Any], total_weight: float
    ) -> None:
        self.parts, self.lengths, self.n_classes = parts, lengths, n_classes
        self.dtype, self.total_weight = dtype, total_weight  # the core reads the logits as this type
        self.n_rows = sum(lengths)

    @property
    def thinning(self) -> int:
        """The largest ratio of all rows to a subsample, since workers keep the subsample in memory."""
        return thinning_of(self.n_rows, self.n_classes, self.dtype)

    def total(self, measure: Callable[..., Any], name: str = "sum") -> tuple[NDArray[Any], ...]:
        """Return sums over all rows."""
        (total,) = self._compute(name, [add_in_tree(self._tasks(name, measure))])
        result: tuple[NDArray[Any], ...] = total
        return result

    def quantiles(self, values: Values, shares: Vector, tie: float = 0.0) -> Quantiles:
        """Return quantiles over all rows: parts return sketches, then the numbers near the quantiles."""
        if not len(shares):
            return Quantiles(np.empty(0), np.empty(0))
        sketches = self._compute("sketch", self._tasks("sketch", lambda *rows: Sketch.of(*values(*rows))))
        brackets = make_brackets([sketch for sketch in sketches if sketch is not None], shares, tie)
        if brackets.found is not None:
            return brackets.found
        tasks = self._tasks("quantiles", lambda *rows: values_in_brackets(*values(*rows), brackets))
        inside = self._compute("quantiles", tasks)
        return resolve([part for part in inside if part is not None], brackets)

    def survey(self, measure: Measure, samples: Samples) -> Survey:
        """Return sums over all rows, and the arrays of samples in the order of the rows, in one pass."""
        parts = self._compute("survey", self._tasks("survey", (measure, samples), _survey))
        sums, sampled = zip(*(part for part in parts if part is not None), strict=True)
        joined = [
            tuple(np.concatenate(arrays) for arrays in zip(*(p for p in found if p is not None), strict=True))
            for found in zip(*sampled, strict=True)
        ]
        return _add_arrays(sums), joined

    def objective(self, build: Build) -> DaskObjective:
        """Return the objective that `build` makes per part, as a mean over all rows."""
        return DaskObjective(self, build)

    def every(self, step: int) -> DaskFitData:
        """Return every `step`-th row, independent of the parts, kept on the workers."""
        if step == 1:
            return self
        ends = pairwise(np.cumsum([0, *self.lengths]).tolist())
        taken = [len(sampled_rows(step, stop, start)) for start, stop in ends]
        # Neighbours are joined, as many as make about one part of the size of these.
        firsts = range(0, len(taken), step)
        lengths = np.add.reduceat(taken, firsts).tolist()
        starts = np.cumsum([0, *lengths[:-1]]).tolist()  # of each new part within the subsample
        thin, join = self._tasks("thin", step, _take_every), delayed(_joined, pure=False)
        joined = [join(thin[first : first + step], at) for first, at in zip(firsts, starts, strict=True)]
        log.info("taking one in %d of %d rows", step, self.n_rows)
        self.passes += 1
        kept = list(persist(*joined))
        weight = sum(compute(*(delayed(_weight_of)(part) for part in kept)))
        return DaskFitData(kept, lengths, self.n_classes, self.dtype, float(weight))

    def transformed(self, transform: Transform) -> DaskFitData:
        """Return rows with transformed logits, which each pass computes again on the workers."""
        parts = self._tasks("transform", transform, _transform)
        return DaskFitData(parts, self.lengths, self.n_classes, self.dtype, self.total_weight)

    def _tasks(self, name: str, job: Any, run: Callable[..., Any] = _run) -> list[Any]:
        """Return one task per part, which runs the job on it; the dashboard shows the names of tasks."""
        token, task = uuid4().hex, delayed(run, pure=False)
        return [
            task(job, part, self.n_rows * self.n_classes, dask_key_name=f"temperance-{name}-{token}-{i}")
            for i, part in enumerate(self.parts)
        ]

    def _compute(self, name: str, tasks: list[Any]) -> tuple[Any, ...]:
        self.passes += 1
        log.info("pass %d over %d rows in %d parts: %s", self.passes, self.n_rows, len(self.parts), name)
        results: tuple[Any, ...] = compute(*tasks)
        return results


class DaskObjective(Objective):
    """The mean of an objective over rows in parts, with a prior that belongs to no part."""

    def __init__(self, sample: DaskFitData, build: Build, prior: Prior | None = None) -> None:
        super().__init__(sample.total_weight, sample.dtype, prior)
        self.sample, self.build, self.thinning = sample, build, sample.thinning

    @property
    def passes(self) -> int:
        """How often the rows were read so far."""
        return self.sample.passes

    def every(self, step: int) -> DaskObjective:
        """Return the objective of every `step`-th row, with the same prior."""
        return DaskObjective(self.sample.every(step), self.build, self.prior)

    def temperature_quantiles(self, theta: Vector, shares: Vector) -> Vector:
        """Return quantiles of T over the rows."""
        return self.sample.quantiles(partial(_temperatures, self.build, theta), shares).values

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return value and derivatives in one pass: reading the rows takes most of the time."""
        with_fisher = with_fisher or len(theta) <= MAX_FISHER
        sums = self.sample.total(partial(_terms, self.build, theta, with_fisher), "objective")
        value, gradient, *fisher = (1 / self.total_weight * total for total in sums)
        if np.ndim(value):  # the terms of a sum of absolute values
            value, gradient = np.abs(value).sum(), np.sign(value) @ gradient
        return ObjectivePoint(float(value), gradient, fisher[0] if fisher else None)
