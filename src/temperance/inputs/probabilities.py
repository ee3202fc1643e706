"""Probabilities: their checks, and what a probability of 0 means.

A calibrator cannot use the logarithm of 0, so smaller probabilities are raised to a floor. A forest that says
0 means less than one vote, and a table with three digits less than 0.0005: not impossible. All zeros of a row
together can have half of the smallest probability above 0. Below the precision of a float, all numbers mean
the same: naive Bayes returns 1e-300 and is wrong. So

    floor = max(smallest / (2 K), 2.2e-16)

If no probability is 0, nothing has to be raised, and the smallest probability is the floor if it is smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance import loaders
from temperance.errors import InputError, Remedy, excerpt
from temperance.inputs.containers import (
    as_numpy,
    framed_like,
    framework_of,
    item_size,
    joined_batches,
    numbers_of,
)
from temperance.inputs.validation import SUM_TOLERANCE, check_number, rows_where

MIN_FLOOR = float(np.finfo(np.float64).eps)


def floor_below(smallest: float, n_classes: int) -> float:
    """Return the value to which 0 is raised, where `smallest` is the smallest probability above 0."""
    return max(smallest / (2 * n_classes), MIN_FLOOR)


@dataclass(frozen=True)
class LowEnd:
    """The small probabilities of some rows: the smallest number above 0, and how many rows have small ones.

    `n_rows_with_zero` have a 0, `n_rows_below` a number below some floor.
    """

    n_rows: int
    n_rows_with_zero: int
    n_rows_below: int
    smallest: float
    n_classes: int

    @classmethod
    def of(cls, probs: NDArray[Any], floor: float = MIN_FLOOR) -> LowEnd:
        """Read rows (N, K), or (N,) with the probability of the second of two classes."""
        if probs.ndim == 1 and (outside := probs[(probs < 0) | (probs > 1)]).size:
            raise InputError(
                f"a probability of the second class must be from 0 to 1; found {outside[0]:g}. Divide "
                "percentages by 100."
            )
        table = probs if probs.ndim == 2 else both_columns(probs)
        with_zero, below = ((rows.any(axis=1)).sum() for rows in (table == 0, table < floor))
        above = table[table > 0]
        smallest = float(above.min()) if above.size else 1.0
        return cls(len(table), int(with_zero), int(below), smallest, table.shape[1])

    @classmethod
    def joined(cls, parts: Iterable[LowEnd]) -> LowEnd:
        """Combine the results of parts into the result of all rows."""
        ends = list(parts)
        return cls(
            sum(end.n_rows for end in ends),
            sum(end.n_rows_with_zero for end in ends),
            sum(end.n_rows_below for end in ends),
            min(end.smallest for end in ends),
            ends[0].n_classes,
        )

    @property
    def floor(self) -> float:
        """The value to which smaller probabilities of these and later rows are raised."""
        floor = floor_below(self.smallest, self.n_classes)
        return floor if self.n_rows_with_zero else min(floor, self.smallest)


def probability_floor(probs: Any, *, renormalise: bool = False) -> float:
    """Return the floor to which `logits_from_probs` raises smaller probabilities of these rows.

    All classes of a row with probability 0 get, together, at most half of the smallest probability above 0,
    and each at least 2.2e-16, the precision of a float. If no probability is 0, nothing is raised. Use the
    floor of the calibration rows for all later rows, so that 0 always means the same.

    Parameters
    ----------
    probs : array, tensor, data frame or Dask collection
        Probabilities, (N, K).
    renormalise : bool
        Whether each row is divided by its sum, as in `logits_from_probs`.

    Examples
    --------
    >>> floor = probability_floor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    >>> round(floor, 4)
    0.0417
    >>> logits_from_probs([[0.8, 0.2, 0.0]], floor=floor).round(2)
    array([[-0.22, -1.61, -3.18]])
    """
    if framework_of(probs) == "dask":
        return float(loaders.load("dask floor")(probs, renormalise=renormalise).compute())
    return LowEnd.of(check_probabilities(probs, renormalise=renormalise)).floor


def logits_from_probs(probs: Any, floor: float | None = None, *, renormalise: bool | None = False) -> Any:
    """Return the logarithms of probabilities: logits whose softmax are these probabilities.

    Probabilities (N,) or (N, 1) of class 1 of two become the logits, of the same shape, that calibrators
    accept for a binary classifier. A data frame stays one, with its headers.

    Parameters
    ----------
    probs : (N, K) or (N,) array, tensor, DataFrame, or Dask array or frame
    floor : float, optional
        Smaller probabilities are raised to this value, by default `probability_floor` of these rows. For new
        rows, pass the floor of the calibration rows. With 0, nothing is raised: 0 becomes -inf, an impossible
        class. For a Dask collection, the default floor is found when the logits are computed, in one more
        pass.
    renormalise : bool
        Whether each row is divided by its sum first: for probabilities that were rounded, percentages or
        votes.

    Examples
    --------
    >>> logits_from_probs([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([[-0.6931, -0.6931],
           [ 0.    , -2.0794]])
    >>> logits_from_probs([[0.5, 0.5], [1.0, 0.0]], floor=0).round(4)
    array([[-0.6931, -0.6931],
           [ 0.    ,    -inf]])
    >>> logits_from_probs([[50, 50], [66.7, 33.2]], renormalise=True).round(4)
    array([[-0.6931, -0.6931],
           [-0.404 , -1.1016]])
    """
    check_floor(floor)
    probs = joined_batches(probs)
    if framework_of(probs) == "dask":
        function = partial(logits_from_probs, renormalise=renormalise)
        return loaders.load("dask probabilities")(function, probs, floor, renormalise=renormalise)
    checked = check_probabilities(probs, renormalise=renormalise)
    lowest = LowEnd.of(checked).floor if floor is None else float(floor)
    with np.errstate(divide="ignore"):
        logs = np.log(checked)
        # The logarithm of the floor is in range even if the floor is not.
        logs = np.maximum(logs, logs.dtype.type(np.log(lowest)))
    single = np.ndim(probs) == 1 or np.shape(probs)[1] == 1
    return framed_like(probs, (logs[:, 1] - logs[:, 0]).reshape(np.shape(probs)) if single else logs)


def check_floor(floor: float | None) -> None:
    """Raise unless `floor` is a probability below 1 to which smaller ones can be raised, or None."""
    if floor is not None:
        check_number("floor", floor, "from 0 to 1, without 1", lambda number: 0 <= number < 1)


def check_probabilities(
    probs: Any, *, renormalise: bool | None = None, precision: int | None = None
) -> NDArray[np.floating[Any]]:
    """Return `probs` of any container as an (N, K) array; (N,) and (N, 1) are the probability of class 1.

    Each row is divided by its sum if the user says so. `renormalise` is None if the user has no such option:
    then no message names it. `precision` is the item size of the numbers before they were converted.
    """
    probs = joined_batches(probs)
    given = array = as_numpy(numbers_of(probs))
    precision = item_size(probs) if precision is None else precision
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    remedy = None if renormalise is None else Remedy("renormalise", (True,))
    wanted = "probabilities must be an (N, K) array of numbers from 0 to 1 whose rows sum to 1"
    if array.dtype.kind not in "fiub":
        raise InputError(f"{wanted}; found {array.dtype}.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] < 2):
        raise InputError(f"{wanted}, or (N,) for the second of two classes; found shape {array.shape}.")
    if len(array) == 0:
        raise InputError(f"{wanted}, with at least one row; found shape {array.shape}.")
    if renormalise:
        array = divide_by_sums(array)
    table = array.reshape(len(array), -1)
    outside = rows_where(table, lambda p: ~((p >= 0) & (p <= 1)).all(axis=1))
    if outside.size:
        found = ", ".join(f"{number:.4g}" for number in table[outside[0]])
        fact = f"{wanted}; found other numbers, such as {excerpt(f'[{found}]', str)},"
        if array.ndim == 2 and (array >= 0).all() and np.allclose(array.sum(axis=1), 100, rtol=0.01):
            advice = "Each row sums to about 100, like percentages: divide each by its sum."
            raise InputError(fact, rows=outside, advice=advice, remedy=remedy)
        raise InputError(fact, rows=outside, advice=_advice_on_numbers(array, given.dtype.kind in "iu"))
    if array.ndim == 1:
        return both_columns(array)
    sums = array.sum(axis=1, dtype=np.float64)
    narrowest = min(precision, array.dtype.itemsize)
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE.get(narrowest, 1e-6))
    if off.size:
        fact = f"{wanted}; found other sums, such as {sums[off[0]]:.6g},"
        if ((array[off] > 0.5).sum(axis=1) > 1).any():
            raise InputError(
                fact,
                rows=off,
                advice="Several classes of a row are above one half. If several can be true, this is a "
                "multi-label problem: evaluate each class as a separate binary problem, with probs[:, k] and "
                "labels[:, k].",
            )
        advice = "Pass the softmax of logits. If probabilities were rounded, divide each row by its sum."
        raise InputError(fact, rows=off, advice=advice, remedy=remedy)
    return array


def divide_by_sums(array: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return each row of an (N, K) array divided by its sum; (N,) probabilities are returned as they are."""
    if array.ndim == 1:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        sums = array.sum(axis=1, dtype=np.float64)
    bad = np.flatnonzero(~((array >= 0).all(axis=1) & (sums > 0) & np.isfinite(sums)))
    if bad.size:
        raise InputError(
            "to be divided by its sum, a row must have finite numbers >= 0, and one above 0; found "
            f"{excerpt(array[bad[0]].tolist())}",
            rows=bad,
            advice="If these are logits, pass them where logits are expected.",
        )
    shares = array / sums[:, None]
    return shares.astype(array.dtype) if array.dtype.kind == "f" else shares


def _advice_on_numbers(array: NDArray[Any], whole: bool) -> str:
    logits = "If these are logits, pass them where logits are expected, or pass their softmax."
    if array.ndim == 1 and whole:
        return "If these are labels, pass the probabilities first and the labels next."
    if array.ndim == 1 and ((array >= 0) & (array <= 100)).all():
        return f"If these are percentages, divide them by 100. {logits}"
    return logits


def both_columns(probs: NDArray[Any]) -> NDArray[Any]:
    """Return the probabilities of two classes from the probabilities of the second."""
    return np.column_stack([1 - probs, probs])
