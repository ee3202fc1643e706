"""Bootstrap resamples: a random factor for each row, the same for every evaluation of the same rows.

A resample of the wild bootstrap multiplies the residual of each row by one of two numbers with mean 0,
variance 1 and third moment 1 (Mammen, 1993). The factors depend only on the number of rows and the seed, so a
comparison draws them once for all its methods.

References
----------
.. [1] Mammen (1993). Bootstrap and wild bootstrap for high dimensional linear models.
   doi:10.1214/aos/1176349025
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Factors = NDArray[np.float32]

DRAWS = 1000  # default number of resamples
_NUMBERS = 1 << 22  # in a block of factors
_SMALL, _LARGE = np.float32((1 - 5**0.5) / 2), np.float32((1 + 5**0.5) / 2)
_SHARE_OF_LARGE = (1 - 5**-0.5) / 2
_WIDEST = 256  # draws in a block
_MOST_KEPT = 1 << 24  # factors that are kept for the next evaluation


@dataclass(frozen=True)
class Resamples:
    """The factors of `draws` resamples of `n_rows` rows."""

    n_rows: int
    draws: int
    seed: int

    def blocks(self) -> Iterator[Factors]:
        """Yield (N, B) blocks of factors, a column for each resample: always the same ones."""
        return iter(self._kept) if self.n_rows * self.draws <= _MOST_KEPT else self._drawn()

    @cached_property
    def _kept(self) -> list[Factors]:
        return list(self._drawn())

    def _drawn(self) -> Iterator[Factors]:
        generator, n = np.random.default_rng(self.seed), self.n_rows
        size = max(1, min(_WIDEST, _NUMBERS // n))
        for start in range(0, self.draws, size):
            factors = np.empty((n, min(size, self.draws - start)), np.float32)
            for column in range(factors.shape[1]):  # one by one: the same whatever the size of a block
                factors[:, column] = generator.random(n, np.float32) < _SHARE_OF_LARGE
            factors *= _LARGE - _SMALL
            factors += _SMALL
            yield factors
