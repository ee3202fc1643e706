"""The operations that formulas are written in (`core.ops`), as nodes of an ONNX graph.

ONNX has no log1p. With u = 1 + x as it is rounded, and x >= 0,

    log1p(x) = x                      where u = 1
             = log(u) x / (u - 1)     up to u = 2: rounding has moved u, and its logarithm by the same ratio
             = log(u)                 beyond, where rounding costs nothing
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from temperance.onnx.graph import Array, Constant, Graph


def _node(operator: str, **attributes: Any) -> Callable[..., Array]:
    """Return an operation that is one node."""
    return lambda self, *inputs: self.graph.node(operator, *inputs, **attributes)


def _reduction(operator: str) -> Callable[[OnnxOps, Array], Array]:
    """Return an operation that reduces each row to one number, (..., 1)."""
    return lambda self, x: self.graph.reduce(operator, x)


class OnnxOps:
    """Each operation adds its nodes to the graph and returns the array that they will compute."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    exp = _node("Exp")
    log = _node("Log")
    sqrt = _node("Sqrt")
    relu = _node("Relu")
    where = _node("Where")
    greater = _node("Greater")
    matmul = _node("MatMul")
    transpose = _node("Transpose", perm=[1, 0])
    gather = _node("GatherElements", axis=-1)
    sum = _reduction("ReduceSum")
    max = _reduction("ReduceMax")
    argmax = _reduction("ArgMax")

    def log1p(self, x: Array) -> Array:
        """Return log(1 + x) for x >= 0, exact for small x."""
        u = x + 1.0
        ratio = self.where(self.greater(u, 2.0), 1.0, x / (u - 1.0))
        return self.where(self.greater(u, 1.0), self.log(u) * ratio, x)

    def softplus(self, x: Array) -> Array:
        """Return log(1 + exp x), without overflow."""
        return self.relu(x) + self.log1p(self.exp(-self.graph.node("Abs", x)))

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        """Return x, not below `low` nor above `high`."""
        # Not Max and Min: in onnxruntime 1.18 they drop a NaN, which the result must keep.
        if low != -math.inf:
            x = self.where(self.graph.node("Less", x, low), low, x)
        return x if high == math.inf else self.where(self.greater(x, high), high, x)

    def isfinite(self, x: Array) -> Array:
        """Say where x is neither infinite nor NaN."""
        return self.graph.node("Less", self.graph.node("Abs", x), math.inf)

    def concat(self, arrays: Sequence[Array]) -> Array:
        """Return the arrays side by side on the last axis."""
        return self.graph.node("Concat", *arrays, axis=-1)

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sum of x y over the last axis, (..., 1)."""
        return self.sum(x * y)

    def split(self, x: Array, at: int) -> tuple[Array, Array]:
        """Return the first `at` columns, and the others."""
        node, end = self.graph.node, np.iinfo(np.int64).max
        return node("Slice", x, [0], [at], [-1]), node("Slice", x, [at], [end], [-1])

    def outer(self, x: Array, numbers: Sequence[float]) -> Array:
        """Return x times each of the numbers, (..., m)."""
        return self.concat([x * number for number in numbers])

    def columns(self, x: Array, number: int) -> list[Array]:
        """Return each of the columns of x, (..., 1)."""
        return [self.graph.node("Slice", x, [i], [i + 1], [-1]) for i in range(number)]

    def one_hot(self, index: Array, size: int) -> Array:
        """Say which of `size` places the index is, (..., size)."""
        return self.graph.node("Equal", index, list(range(size)))

    def topk(self, x: Array, k: int) -> Array:
        """Return the `k` largest of each row in descending order, (..., k)."""
        # Without rows, TopK crashes onnxruntime 1.18: one row is added, and removed again.
        padded = self.graph.node("Pad", x, [0, 0, 1, 0])
        found = self.graph.node("TopK", padded, [k], n_outputs=2, axis=-1)
        return self.graph.node("Slice", found, [0], [-1], [0])

    def searchsorted(self, edges: Array, x: Array) -> Array:
        """Return how many of the edges are below each x."""
        below = self.graph.cast(self.greater(x, edges), TensorProto.INT64)
        return self.graph.reduce("ReduceSum", below)

    def take(self, table: Constant, index: Array) -> Array:
        """Return the row of a table at each index: (..., m) of (n, m), and (..., 1) of (n,)."""
        if len(table.shape) == 1:
            return self.graph.node("Gather", table, index, axis=0)
        return self.graph.node("GatherND", table, index)
