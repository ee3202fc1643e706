"""The operations that formulas are written in (`core.ops`), as nodes of an ONNX graph.

ONNX has no log1p. With u = 1 + x as it is rounded, and x >= 0,

    log1p(x) = x                      where u = 1
             = log(u) x / (u - 1)     up to u = 2: rounding has moved u, and by this ratio also its logarithm
             = log(u)                 beyond, where rounding costs nothing
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from temperance.onnx.graph import Array, Constant, Graph


class OnnxOps:
    """Each operation adds its nodes to the graph and returns the array that they will compute."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def _array(self, x: Array | float) -> Array:
        return x if isinstance(x, Array) else self.graph.constant(float(x))

    def exp(self, x: Array) -> Array:
        """Return exp x."""
        return self.graph.node("Exp", x)

    def log(self, x: Array) -> Array:
        """Return log x."""
        return self.graph.node("Log", x)

    def log1p(self, x: Array) -> Array:
        """Return log(1 + x) for x >= 0, exact for small x."""
        u = x + 1.0
        ratio = self.where(self.greater(u, 2.0), 1.0, x / (u - 1.0))
        return self.where(self.greater(u, 1.0), self.log(u) * ratio, x)

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        return self.graph.node("Sqrt", x)

    def softplus(self, x: Array) -> Array:
        """Return log(1 + exp x), without overflow."""
        return self.relu(x) + self.log1p(self.exp(-self.graph.node("Abs", x)))

    def relu(self, x: Array) -> Array:
        """Return max(x, 0)."""
        return self.graph.node("Relu", x)

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        """Return x, not below `low` nor above `high`."""
        # Not Max and Min: in onnxruntime 1.18 they lose a NaN, of which the result must tell.
        if low != -math.inf:
            x = self.where(self.graph.node("Less", x, self._array(low)), low, x)
        return x if high == math.inf else self.where(self.greater(x, high), high, x)

    def where(self, mask: Array, x: Array | float, y: Array | float) -> Array:
        """Return x where the mask is true, else y."""
        return self.graph.node("Where", mask, self._array(x), self._array(y))

    def isfinite(self, x: Array) -> Array:
        """Say where x is neither infinite nor NaN."""
        return self.graph.node("Less", self.graph.node("Abs", x), self._array(math.inf))

    def greater(self, x: Array, y: Array | float) -> Array:
        """Say where x > y."""
        return self.graph.node("Greater", x, self._array(y))

    def sum(self, x: Array) -> Array:
        """Return the sum over the last axis, (..., 1)."""
        return self.graph.reduce("ReduceSum", x)

    def max(self, x: Array) -> Array:
        """Return the largest of the last axis, (..., 1)."""
        return self.graph.reduce("ReduceMax", x)

    def concat(self, arrays: Sequence[Array]) -> Array:
        """Return the arrays side by side on the last axis."""
        return self.graph.node("Concat", *arrays, axis=-1)

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sum of x y over the last axis, (..., 1)."""
        return self.sum(x * y)

    def split(self, x: Array, at: int) -> tuple[Array, Array]:
        """Return the first `at` columns, and the others."""
        whole = self.graph.constant
        zero, middle, end = (whole(np.array([edge])) for edge in (0, at, np.iinfo(np.int64).max))
        axis = whole(np.array([-1]))
        return self.graph.node("Slice", x, zero, middle, axis), self.graph.node("Slice", x, middle, end, axis)

    def matmul(self, x: Array, matrix: Array) -> Array:
        """Return x @ matrix."""
        return self.graph.node("MatMul", x, matrix)

    def transpose(self, matrix: Array) -> Array:
        """Return the transpose of a matrix."""
        return self.graph.node("Transpose", matrix, perm=[1, 0])

    def argmax(self, x: Array) -> Array:
        """Return where the largest is; of equal ones, the first."""
        return self.graph.reduce("ArgMax", x)

    def gather(self, x: Array, index: Array) -> Array:
        """Return x at the index of its row, (..., 1)."""
        return self.graph.node("GatherElements", x, index, axis=-1)

    def one_hot(self, index: Array, size: int) -> Array:
        """Say which of `size` places the index is, (..., size)."""
        return self.graph.node("Equal", index, self.graph.constant(np.arange(size)))

    def topk(self, x: Array, k: int) -> Array:
        """Return the `k` largest of each row in descending order, (..., k)."""
        # Without rows TopK ends the process in onnxruntime 1.18: one is added, and taken off again.
        whole = self.graph.constant
        zero, last = whole(np.array([0])), whole(np.array([-1]))
        padded = self.graph.node("Pad", x, whole(np.array([0, 0, 1, 0])))
        found = self.graph.node("TopK", padded, whole(np.array([k])), n_outputs=2, axis=-1)
        return self.graph.node("Slice", found, zero, last, zero)

    def searchsorted(self, edges: Array, x: Array) -> Array:
        """Return how many of the edges are below each x."""
        below = self.graph.cast(self.greater(x, edges), TensorProto.INT64)
        return self.graph.reduce("ReduceSum", below)

    def take(self, table: Constant, index: Array) -> Array:
        """Return the row of a table at each index: (..., m) of (n, m), and (..., 1) of (n,)."""
        if len(table.shape) == 1:
            return self.graph.node("Gather", table, index, axis=0)
        return self.graph.node("GatherND", table, index)
