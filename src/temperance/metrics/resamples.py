"""Bootstrap resamples: how often each row is drawn, the same for every evaluation of the same rows.

A resample draws N rows with replacement; a metric needs only the N counts. They depend only on the number of
rows and the seed, so a comparison draws them once for all its methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint8]

DRAWS = 1000  # default number of resamples
_NUMBERS = 1 << 22  # in a block of counts
_WIDEST = 256  # draws in a block
_MOST_KEPT = 1 << 26  # counts of one byte that are kept for the next evaluation


@dataclass(frozen=True)
class Resamples:
    """The counts of `draws` resamples of `n_rows` rows."""

    n_rows: int
    draws: int
    seed: int

    def blocks(self) -> Iterator[Counts]:
        """Yield (N, B) blocks of counts, a column for each resample: always the same ones."""
        return iter(self._kept) if self.n_rows * self.draws <= _MOST_KEPT else self._drawn()

    @cached_property
    def _kept(self) -> list[Counts]:
        return list(self._drawn())

    def _drawn(self) -> Iterator[Counts]:
        generator, n = np.random.default_rng(self.seed), self.n_rows
        size = max(1, min(_WIDEST, _NUMBERS // n))
        for start in range(0, self.draws, size):
            counts = np.empty((n, min(size, self.draws - start)), np.uint8)
            for column in range(counts.shape[1]):
                counts[:, column] = np.bincount(generator.integers(n, size=n), minlength=n)
            yield counts
