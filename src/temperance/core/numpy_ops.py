"""The operations of `core.ops` on NumPy arrays of shape (N, ...), for formulas over row features.

The bits of a row's product do not depend on the other rows, which BLAS does not guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from temperance.core.arrays import Indices, Matrix, Vector
from temperance.core.blocks import row_products
from temperance.core.ops import Ops

# A ReLU treats smaller values as 0. Rows whose units are all inactive give the next layer its bias alone,
# which may be 0 up to rounding: the last bit of a sum over rows must not decide which units are active.
SILENT = 1e-12


class NumpyOps:
    """Operations on arrays in memory."""

    exp: Any = np.exp
    log1p: Any = np.log1p
    sqrt: Any = np.sqrt

    def clip(self, x: Vector, lower: Any, upper: Any) -> Vector:
        """Clip x to its limits; for few numbers np.clip takes several times as long."""
        result: Vector = np.minimum(np.maximum(x, lower), upper)
        return result

    def log(self, x: Vector) -> Vector:
        """Return log x; -inf for 0, without a warning."""
        with np.errstate(divide="ignore"):
            return np.log(x)

    def softplus(self, x: Vector) -> Vector:
        """Return log(1 + exp x)."""
        result: Vector = np.logaddexp(0.0, x)
        return result

    def relu(self, x: Matrix) -> Matrix:
        """Return max(x, 0), with 0 for what is 0 up to rounding."""
        return np.where(x < SILENT, 0.0, x)

    def sum(self, x: Matrix) -> Matrix:
        """Return the sum over the last axis."""
        return np.sum(x, axis=-1, keepdims=True)

    def dot(self, x: Matrix, y: Matrix) -> Matrix:
        """Return the sum of x y over the last axis."""
        product: Vector = row_products(x, y) if y.ndim == 1 else np.einsum("ij,ij->i", x, y)
        return product[:, None]

    def matmul(self, x: Matrix, matrix: Matrix) -> Matrix:
        """Return x @ matrix."""
        return row_products(x, matrix)

    def concat(self, arrays: Sequence[Matrix]) -> Matrix:
        """Return the arrays side by side."""
        return np.concatenate(arrays, axis=-1)

    def split(self, x: Matrix, at: int) -> tuple[Matrix, Matrix]:
        """Return the first columns, and the others."""
        return x[..., :at], x[..., at:]

    def outer(self, x: Matrix, numbers: Sequence[float]) -> Matrix:
        """Return x times each of the numbers."""
        return x * np.asarray(numbers)

    def columns(self, x: Matrix, number: int) -> list[Matrix]:
        """Return each of the columns of x."""
        return [x[:, i : i + 1] for i in range(number)]

    def take(self, table: Matrix, index: Indices) -> Matrix:
        """Return the row of a table at each index."""
        return table[index] if table.ndim == 1 else table[index[..., 0]]

    def searchsorted(self, edges: Vector, x: Vector) -> Indices:
        """Return how many of the edges are below each x."""
        return np.searchsorted(edges, x, side="left")


NUMPY: Ops = NumpyOps()
