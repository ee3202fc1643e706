"""The operations that a calibrator's formula is written in, so that PyTorch and ONNX run the same one.

An array has any leading shape, with classes or features on the last axis; what is one number a row has 1
there. Arrays, and Python floats, are added, subtracted, multiplied, divided and negated by the usual signs,
and broadcast. All numbers are of one type, the working type: float32, or float64 for float64 logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["Array", "Index", "Mask", "Ops"]

Array = Any
"""Numbers in the working type."""
Mask = Any
"""True or false, of the shape of an array."""
Index = Any
"""One whole number for each row, (..., 1)."""


class Ops(Protocol):
    """What a framework must know for its formulas; x and y are arrays."""

    def parameter(self, name: str, item: int | None = None) -> Array:
        """Return fitted numbers, by the names of `Calibrator.parameters`, or one item of a vector."""
        ...

    def exp(self, x: Array) -> Array:
        """Return exp x."""
        ...

    def log(self, x: Array) -> Array:
        """Return log x."""
        ...

    def log1p(self, x: Array) -> Array:
        """Return log(1 + x), exact for small x."""
        ...

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        ...

    def softplus(self, x: Array) -> Array:
        """Return log(1 + exp x), without overflow."""
        ...

    def relu(self, x: Array) -> Array:
        """Return max(x, 0)."""
        ...

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        """Return x, not below `low` nor above `high`: floats (infinite ones too) or arrays of one number.

        Where it is clipped, its derivative is 0.
        """
        ...

    def where(self, mask: Mask, x: Array | float, y: Array | float) -> Array:
        """Return x where the mask is true, else y; what is not taken has no part in the derivative."""
        ...

    def is_finite(self, x: Array) -> Mask:
        """Say where x is neither infinite nor NaN."""
        ...

    def greater(self, x: Array, y: Array) -> Mask:
        """Say where x > y."""
        ...

    def sum(self, x: Array) -> Array:
        """Return the sum over the last axis, (..., 1)."""
        ...

    def concat(self, arrays: Sequence[Array]) -> Array:
        """Return the arrays side by side on the last axis."""
        ...

    def matmul(self, x: Array, matrix: Array) -> Array:
        """Return x @ matrix, for a matrix (n, m)."""
        ...

    def transpose(self, matrix: Array) -> Array:
        """Return the transposed of a matrix (n, m)."""
        ...

    def argmax(self, x: Array) -> Index:
        """Return where the largest is; of equal ones, the first."""
        ...

    def at(self, x: Array, index: Index) -> Array:
        """Return x at the index of its row, (..., 1)."""
        ...

    def one_hot(self, index: Index, size: int) -> Mask:
        """Say which of `size` places the index is, (..., size)."""
        ...

    def largest(self, x: Array, count: int) -> Array:
        """Return the `count` largest of each row in falling order, (..., count)."""
        ...

    def count(self, mask: Mask) -> Index:
        """Return how many are true in each row."""
        ...

    def take(self, table: Array, index: Index) -> Array:
        """Return the row of a table at each index: (..., m) of (n, m), and (..., 1) of (n,)."""
        ...
