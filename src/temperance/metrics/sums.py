"""Weighted sums of rows into groups, for many sets of weights at once.

With entries e, each of a row i_e, a group g_e and a value v_e, and weights of shape (N, B):

    sums_gb = sum over the entries e of group g of v_e weights_(i_e, b)

This is the product of a sparse and a dense matrix. It reads the weights row by row, in their precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector


def group_sums(
    values: Vector,
    group: NDArray[np.signedinteger[Any]],
    row: NDArray[np.signedinteger[Any]],
    shape: tuple[int, int],
) -> Callable[[Any], Any]:
    """Return the linear map from (N, B) weights to (groups, B) sums."""
    from scipy.sparse import csr_array

    matrix: Any = csr_array((values, (group, row)), shape=shape)
    narrow: Any = matrix.astype(np.float32)
    return lambda weights: (narrow if weights.dtype == np.float32 else matrix) @ weights
