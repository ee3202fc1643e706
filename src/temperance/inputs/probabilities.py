"""Probabilities of 0, whose logarithm a calibrator cannot use, and the floor to which they are raised.

A forest that says 0 means less than one vote, and a table with three digits less than 0.0005: not impossible.
All zeros of a row together may have half of the smallest probability above 0. Below the precision of a float,
all numbers mean the same: naive Bayes returns 1e-300 and is wrong. So

    floor = max(smallest / (2 K), 2.2e-16)

and smaller probabilities are raised to it. If no probability is 0, nothing has to be raised, and the smallest
probability is the floor if it is smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWEST_FLOOR = float(np.finfo(np.float64).eps)


def floor_below(smallest: float, n_classes: int) -> float:
    """Return the value to which 0 is raised, where `smallest` is the smallest probability above 0."""
    return max(smallest / (2 * n_classes), LOWEST_FLOOR)


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
    def of(cls, probs: NDArray[Any], floor: float = LOWEST_FLOOR) -> LowEnd:
        """Read rows (N, K), or (N,) with the probability of the second of two classes."""
        table = probs if probs.ndim == 2 else both_columns(probs)
        with_zero, below = ((rows.any(axis=1)).sum() for rows in (table == 0, table < floor))
        above = table[table > 0]
        smallest = float(above.min()) if above.size else 1.0
        return cls(len(table), int(with_zero), int(below), smallest, table.shape[1])

    @classmethod
    def joined(cls, parts: Iterable[LowEnd]) -> LowEnd:
        """Combine the results of parts into that of all rows."""
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


def both_columns(probs: NDArray[Any]) -> NDArray[Any]:
    """Return the probabilities of two classes from those of the second."""
    return np.column_stack([1 - probs, probs])


def raised_logarithms(probs: NDArray[Any], floor: float) -> NDArray[Any]:
    """Return log max(p, floor), in the type of `probs`; -inf for 0 if the floor is 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
        lowest = logs.dtype.type(np.log(floor))  # the logarithm is in range even if the floor is not
    return np.maximum(logs, lowest)
