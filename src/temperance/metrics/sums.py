"""Weighted sums of rows into groups, for many sets of weights at once.

With entries e, each of a row i_e, a group g_e and a value v_e, and weights of shape (N, B):

    sums_gb = sum over the entries e of group g of v_e weights_(i_e, b)

It is the product of a sparse matrix and a dense one, which runs through the weights row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector


class GroupSums:
    """The linear map from (N, B) weights to (groups, B) sums."""

    def __init__(
        self,
        values: Vector,
        group: NDArray[np.signedinteger[Any]],
        row: NDArray[np.signedinteger[Any]],
        shape: tuple[int, int],
    ) -> None:
        from scipy.sparse import csr_array

        self._matrix: Any = csr_array((values, (group, row)), shape=shape)

    def __call__(self, weights: Vector) -> Vector:
        """Return the sums for some weights."""
        sums: Vector = self._matrix @ weights
        return sums
