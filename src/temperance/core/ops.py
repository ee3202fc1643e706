"""The operations in which calibrators' formulas are written, besides + - * / and indexing.

NumPy, PyTorch and ONNX each have a class of them; NumPy's is here. An array has any leading shape, with
classes or features on the last axis, which has length 1 for one number per row. All numbers are of one type,
the working type: float32, or float64 for float64 logits.

Names follow NumPy and PyTorch where these agree. We tried array-api-compat instead: its PyTorch `clip` fixes
the batch size under `torch.export`, it has no `softplus` or `topk`, and ONNX needs a class of its own in any
case. It would replace a dozen one-line aliases by a dependency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from temperance.core.arrays import Indices, Matrix, Vector
from temperance.core.blocks import row_products

Array = Any
"""Numbers in the working type."""
Mask = Any
"""True or false, with the shape of an array."""
Index = Any
"""One whole number per row, (..., 1)."""

# A ReLU in NumPy treats smaller values as 0. If all units of a row are inactive, the next layer gets only its
# bias, which can be 0 up to rounding: rounding errors must not decide which units are active.
SILENT = 1e-12


class Ops(Protocol):
    """What a framework must provide for formulas; x and y are arrays."""

    def exp(self, x: Array) -> Array:
        """Return exp x."""

    def log(self, x: Array) -> Array:
        """Return log x."""

    def log1p(self, x: Array) -> Array:
        """Return log(1 + x), exact for small x."""

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""

    def softplus(self, x: Array) -> Array:
        """Return log(1 + exp x), without overflow."""

    def relu(self, x: Array) -> Array:
        """Return max(x, 0)."""

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        """Clip x to `low` and `high`: floats, perhaps infinite, or arrays of one number.

        Where it is clipped, its derivative is 0.
        """

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sum of x y over the last axis, (..., 1); y can be a vector for all rows."""

    def matmul(self, x: Array, matrix: Array) -> Array:
        """Return x @ matrix, for a matrix (n, m)."""

    def concat(self, arrays: Sequence[Array]) -> Array:
        """Return the arrays side by side on the last axis."""

    def split(self, x: Array, at: int) -> tuple[Array, Array]:
        """Return the first `at` columns, and the others."""

    def outer(self, x: Array, numbers: Sequence[float]) -> Array:
        """Return x (..., 1) times each of the numbers, (..., m)."""

    def columns(self, x: Array, number: int) -> list[Array]:
        """Return each of the columns of x, (..., 1)."""

    def take(self, table: Array, index: Index) -> Array:
        """Return the row of a table at each index: (..., m) of (n, m), and (..., 1) of (n,)."""

    def searchsorted(self, edges: Array, x: Array) -> Index:
        """Return how many of the edges (n,), in ascending order, are below each x (..., 1)."""


class TensorOps(Ops, Protocol):
    """Further operations, for row features that are computed from whole arrays."""

    def sum(self, x: Array) -> Array:
        """Return the sum over the last axis, (..., 1)."""

    def max(self, x: Array) -> Array:
        """Return the maximum over the last axis, (..., 1)."""

    def where(self, mask: Mask, x: Array | float, y: Array | float) -> Array:
        """Return x where the mask is true, else y; values not selected do not enter the derivative."""

    def isfinite(self, x: Array) -> Mask:
        """Say where x is neither infinite nor NaN."""

    def greater(self, x: Array, y: Array) -> Mask:
        """Say where x > y."""

    def transpose(self, matrix: Array) -> Array:
        """Return the transpose of a matrix (n, m)."""

    def argmax(self, x: Array) -> Index:
        """Return the index of the maximum; the first if there are several."""

    def gather(self, x: Array, index: Index) -> Array:
        """Return x at the index of its row, (..., 1)."""

    def number(self, mask: Mask, like: Array) -> Array:
        """Return 1 where the mask is true, else 0, in the type of another array."""

    def topk(self, x: Array, k: int) -> Array:
        """Return the `k` largest of each row in descending order, (..., k)."""


class NumpyOps:
    """Operations on NumPy arrays of shape (N, ...); a row's results never depend on other rows."""

    exp: Any = np.exp
    log1p: Any = np.log1p
    sqrt: Any = np.sqrt

    def clip(self, x: Vector, lower: Any, upper: Any) -> Vector:
        """Clip x to its limits, for few numbers several times as fast as np.clip."""
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
        """Return max(x, 0), with 0 for values that are 0 up to rounding."""
        return np.where(x < SILENT, 0.0, x)

    def dot(self, x: Matrix, y: Matrix) -> Matrix:
        """Return the sum of x y over the last axis."""
        product: Vector = row_products(x, y) if y.ndim == 1 else np.einsum("ij,ij->i", x, y)
        return product[:, None]

    def matmul(self, x: Matrix, matrix: Matrix) -> Matrix:
        """Return x @ matrix."""
        return row_products(x, matrix)

    def concat(self, arrays: Sequence[Matrix]) -> Matrix:
        """Return the arrays side by side."""
        return np.concatenate(arrays, axis=1)

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
        """Return the row of a table at each index, (N,) or (N, 1)."""
        found: Matrix = table.take(index.reshape(-1), axis=0)
        return found[:, None] if table.ndim == 1 else found

    def searchsorted(self, edges: Vector, x: Vector) -> Indices:
        """Return how many of the edges are below each x."""
        return np.searchsorted(edges, x, side="left")


class OneRowOps(NumpyOps):
    """Operations on a single row: one number is a float, several numbers are an array (1, m).

    The smallest operation on floats takes a tenth of the time of one on arrays. Python's sums, products,
    quotients and roots follow IEEE 754, as NumPy's do. Exponentials and logarithms differ between libraries,
    so NumPy computes them.
    """

    def clip(self, x: Any, lower: Any, upper: Any) -> Any:
        """Clip x to its limits."""
        return min(max(x, lower), upper) if isinstance(x, float) else super().clip(x, lower, upper)

    def log(self, x: Any) -> Any:
        """Return log x; -inf for 0, without a warning."""
        if isinstance(x, float):
            return float(np.log(x)) if x > 0 else -np.inf
        return super().log(x)

    def log1p(self, x: float) -> float:
        """Return log(1 + x), a float: arithmetic with NumPy's own numbers takes longer."""
        return float(np.log1p(x))

    def dot(self, x: Matrix, y: Matrix) -> Any:
        """Return the sum of x y."""
        return super().dot(x, y).item()

    def concat(self, arrays: Sequence[Any]) -> Matrix:
        """Return numbers, or arrays, side by side."""
        return np.array([arrays]) if isinstance(arrays[0], float) else super().concat(arrays)

    def split(self, x: Matrix, at: int) -> tuple[Matrix, Any]:
        """Return the first columns, and the others; the last column as a number."""
        others = x[..., at:]
        return x[..., :at], others.item() if others.size == 1 else others

    def outer(self, x: Any, numbers: Sequence[float]) -> Matrix:
        """Return x times each of the numbers."""
        return np.array([[x * number for number in numbers]])

    def columns(self, x: Matrix, number: int) -> list[Any]:
        """Return each of the columns of x."""
        columns: list[Any] = x[0].tolist()
        return columns

    def take(self, table: Matrix, index: Any) -> Any:
        """Return the row of a table at the index."""
        return table[index]


NUMPY: Ops = NumpyOps()
ONE_ROW: Ops = OneRowOps()
