"""The operations that a calibrator's formula is written in, besides + - * / and indexing.

NumPy, PyTorch and ONNX each have a class of these. An array has any leading shape, with classes or features
on the last axis; one number for each row has length 1 there. All numbers are of one type, the working type:
float32, or float64 for float64 logits.

The names are those of NumPy and PyTorch where they agree. array-api-compat was tried as the vocabulary: its
PyTorch `clip` fixes the batch size under `torch.export`, it has no `softplus`, `topk` or `one_hot`, and ONNX
needs a class of its own in any case. It would replace a dozen one-line aliases by a dependency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Array = Any
"""Numbers in the working type."""
Mask = Any
"""True or false, with the shape of an array."""
Index = Any
"""One whole number for each row, (..., 1)."""


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

    def sum(self, x: Array) -> Array:
        """Return the sum over the last axis, (..., 1)."""

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sum of x y over the last axis, (..., 1); y may be a vector for all rows."""

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
    """What row features need in addition, where they are computed from whole arrays."""

    def where(self, mask: Mask, x: Array | float, y: Array | float) -> Array:
        """Return x where the mask is true, else y; values not selected do not enter the derivative."""

    def isfinite(self, x: Array) -> Mask:
        """Say where x is neither infinite nor NaN."""

    def greater(self, x: Array, y: Array) -> Mask:
        """Say where x > y."""

    def transpose(self, matrix: Array) -> Array:
        """Return the transpose of a matrix (n, m)."""

    def argmax(self, x: Array) -> Index:
        """Return the position of the largest; of equal ones, the first."""

    def gather(self, x: Array, index: Index) -> Array:
        """Return x at the index of its row, (..., 1)."""

    def one_hot(self, index: Index, size: int) -> Mask:
        """Return True at the index and False elsewhere, (..., size)."""

    def topk(self, x: Array, k: int) -> Array:
        """Return the `k` largest of each row in descending order, (..., k)."""
