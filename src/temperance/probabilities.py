"""Probabilities of 0, which have no logarithm that a calibrator can use, and the floor they are raised to.

A forest that says 0 means less than one vote, and a table of three digits less than 0.0005: not impossible.
All classes of a row that have 0 may have, together, half of the smallest probability above 0 that was met.
Below the precision of a float all numbers say the same: naive Bayes writes 1e-300 and is wrong. So

    floor = max(smallest / (2 K), 2.2e-16)

and smaller probabilities are raised to it. Where no probability is 0 nothing has to be raised, and a
smaller smallest one is the floor instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWEST_FLOOR = float(np.finfo(np.float64).eps)


def floor_below(smallest: float, n_classes: int) -> float:
    """Return what a probability of 0 is raised to, where `smallest` is the smallest one above 0."""
    return max(smallest / (2 * n_classes), LOWEST_FLOOR)


@dataclass(frozen=True)
class LowEnd:
    """The small probabilities of some rows: how many rows have a 0, and the smallest number above 0."""

    n_rows: int
    n_rows_with_zero: int
    smallest: float
    n_classes: int

    @classmethod
    def of(cls, probs: NDArray[Any]) -> LowEnd:
        """Look at rows (N, K), or (N,) with the probability of the second of two classes."""
        table = probs if probs.ndim == 2 else both_columns(probs)
        with_zero = (table == 0).any(axis=1)
        above = table[table > 0]
        smallest = float(above.min()) if above.size else 1.0
        return cls(len(table), int(with_zero.sum()), smallest, table.shape[1])

    @classmethod
    def joined(cls, parts: Iterable[LowEnd]) -> LowEnd:
        """Return that of all rows from those of their parts."""
        ends = list(parts)
        return cls(
            sum(end.n_rows for end in ends),
            sum(end.n_rows_with_zero for end in ends),
            min(end.smallest for end in ends),
            ends[0].n_classes,
        )

    @property
    def floor(self) -> float:
        """What smaller probabilities of these rows, and of those to come, are raised to."""
        floor = floor_below(self.smallest, self.n_classes)
        return floor if self.n_rows_with_zero else min(floor, self.smallest)


def both_columns(probs: NDArray[Any]) -> NDArray[Any]:
    """Return the probabilities of two classes from those of the second."""
    return np.column_stack([1 - probs, probs])


def raised_logarithms(probs: NDArray[Any], floor: float) -> NDArray[Any]:
    """Return log max(p, floor), in the type of `probs`; 0 has -inf if the floor is 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
        lowest = logs.dtype.type(np.log(floor))  # its logarithm is in range also where the floor is not
    return np.maximum(logs, lowest)
