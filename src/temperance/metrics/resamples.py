"""Bootstrap resamples: a random sign for each row, the same for every evaluation of the same rows.

A resample of the wild bootstrap multiplies the residual of each row by a random sign (Liu, 1988). Signs
depend only on the number of rows and the seed, so a comparison draws them once for all its methods.

References
----------
.. [1] Liu (1988). Bootstrap procedures under some non-i.i.d. models. doi:10.1214/aos/1176351062
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Signs = NDArray[np.int8]

DRAWS = 1000  # default number of resamples
_NUMBERS = 1 << 22  # in a block of signs
_WIDEST = 256  # draws in a block
_MOST_KEPT = 1 << 26  # signs of one byte that are kept for the next evaluation


@dataclass(frozen=True)
class Resamples:
    """The signs of `draws` resamples of `n_rows` rows."""

    n_rows: int
    draws: int
    seed: int

    def blocks(self) -> Iterator[Signs]:
        """Yield (N, B) blocks of signs, a column for each resample: always the same ones."""
        return iter(self._kept) if self.n_rows * self.draws <= _MOST_KEPT else self._drawn()

    @cached_property
    def _kept(self) -> list[Signs]:
        return list(self._drawn())

    def _drawn(self) -> Iterator[Signs]:
        generator, n = np.random.default_rng(self.seed), self.n_rows
        size = max(1, min(_WIDEST, _NUMBERS // n))
        for start in range(0, self.draws, size):
            signs = np.empty((n, min(size, self.draws - start)), np.int8)
            for column in range(signs.shape[1]):  # one by one: the same signs whatever the size of a block
                signs[:, column] = generator.integers(2, size=n, dtype=np.int8)
            signs *= 2
            signs -= 1
            yield signs
