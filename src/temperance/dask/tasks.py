"""What the workers do with one part of the rows: pure functions, which Dask may run again elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.blocks import threads
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Build, Measure, PartialSums, Samples, Transform, Values
from temperance.core.quantiles import BracketedValues, Brackets, Sketch, values_in_brackets
from temperance.core.row_block import kernels_of_size
from temperance.errors import rows_from
from temperance.inputs.containers import open_labelled
from temperance.inputs.labels import Names, check_labels
from temperance.inputs.validation import check_sample_weight

Work = Callable[[LogitRows, Vector | None], Any]


def sum_of_weights(weights: NDArray[Any], start: int) -> float:
    """Return the weight of a part, each number checked."""
    with rows_from(start):
        return float(_checked_weights(np.asarray(weights), len(weights)).sum())


def _checked_weights(weights: NDArray[Any], n_rows: int) -> Vector:
    """Return the weights of a part, which may all be 0."""
    if weights.dtype.kind in "fiub" and weights.shape == (n_rows,) and not weights.any():
        return np.zeros(n_rows)
    checked = check_sample_weight(weights, n_rows)
    assert checked is not None
    return checked


def named_columns(labels: Any, n_classes: int, names: Names) -> NDArray[np.intp]:
    """Return the columns of a part's labels, which may be names."""
    array = np.asarray(labels)
    return check_labels(array, len(array), n_classes, names)


def run(work: Work, part: Any, size: int) -> Any:
    """Open and check a part, then do the work with it; None if it has no rows."""
    logits, labels, weights, start = part
    if not len(logits):
        return None
    with threads(1), kernels_of_size(size), rows_from(start):  # the threads are the engine's
        rows = open_labelled(np.asarray(logits), np.asarray(labels)).rows()
        return work(rows, None if weights is None else _checked_weights(np.asarray(weights), rows.n_rows))


def terms(
    build: Build, theta: Vector, with_fisher: bool, rows: LogitRows, weights: Vector | None
) -> PartialSums | None:
    """Return what a part adds to an objective, or None if none of its rows counts."""
    if weights is not None and not weights.any():
        return None
    objective = build(rows, weights)
    terms: PartialSums = objective.terms(theta, with_fisher)
    return terms.times(objective.total_weight)


def temperatures(
    build: Build, theta: Vector, rows: LogitRows, weights: Vector | None
) -> tuple[Vector, Vector | None]:
    """Return T of each row, with the weights."""
    return build(rows, weights).temperatures(theta), weights


def sketch(values: Values, rows: LogitRows, weights: Vector | None) -> Sketch:
    """Return a sketch of some numbers of a part."""
    return Sketch.of(*values(rows, weights))


def inside(values: Values, brackets: Brackets, rows: LogitRows, weights: Vector | None) -> BracketedValues:
    """Return the numbers of a part that may be quantiles."""
    return values_in_brackets(*values(rows, weights), brackets)


def survey(wanted: tuple[Measure, Samples], part: Any, size: int) -> Any:
    """Return sums over a part, and the arrays of each sample, or None for one without rows in it.

    Of a part without rows, return None.
    """
    measure, samples = wanted

    def work(rows: LogitRows, weights: Vector | None) -> Any:
        sampled = []
        for step, sample in samples:
            taken = slice(-part[-1] % step, None, step)  # the part begins at row part[-1]
            some = rows.take(taken)
            sampled.append(sample(some, None if weights is None else weights[taken]) if some.n_rows else None)
        return measure(rows, weights), sampled

    return run(work, part, size)


def transform(change: Transform, part: Any, size: int) -> Any:
    """Return the part with transformed logits."""
    changed = run(lambda rows, weights: change(rows), part, size)
    return part if changed is None else (changed, *part[1:])


def take_every(step: int, part: Any, size: int) -> Any:
    """Return the rows whose indices are multiples of `step`, after checking all rows of the part."""
    run(lambda rows, weights: None, part, size)
    *arrays, start = part
    taken = slice(-start % step, None, step)
    return (*(None if array is None else np.array(np.asarray(array)[taken]) for array in arrays), start)


def merge(parts: Sequence[Any], start: int) -> Any:
    """Join neighbouring parts, so that a small subsample is not split into tiny pieces."""
    *columns, _ = zip(*parts, strict=True)
    return (*(None if arrays[0] is None else np.concatenate(arrays) for arrays in columns), start)


def weight_of(part: Any) -> float:
    """Return the total weight of a subsampled part."""
    _, labels, weights, _ = part
    return float(len(labels) if weights is None else np.sum(weights))


def add_arrays(results: Sequence[Any]) -> Any:
    """Add up tuples of arrays, in their order."""
    totals = [result for result in results if result is not None]
    return tuple(sum(arrays[1:], arrays[0]) for arrays in zip(*totals, strict=True)) if totals else None


def join_arrays(results: Sequence[Any]) -> tuple[NDArray[Any], ...]:
    """Join tuples of arrays, in their order, without parts that have no sampled rows."""
    found = [result for result in results if result is not None]
    return tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))


def add_partial_sums(results: Sequence[PartialSums | None]) -> PartialSums | None:
    """Add up terms, in their order."""
    totals = [terms for terms in results if terms is not None]
    return sum(totals[1:], totals[0]) if totals else None
