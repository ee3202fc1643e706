"""A graph being built, and the operations that formulas are written in (`core.ops`) as its nodes.

Nodes are written for the requested version of the operators, the opset, so that they can be added to a
classifier without changing it; their names clash with no others. ONNX has no log1p. With u = 1 + x as it is
rounded,

    log1p(x) = x                      where u = 1
             = log(u) x / (u - 1)     up to u = 2: rounding has moved u, and its logarithm by the same ratio
             = log(u)                 beyond, where rounding costs nothing
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from temperance.core.arrays import AnyArray

# The first opset with negative axes and comparison of floats; everything else that is used is older.
OLDEST_OPSET = 11

# From this opset on, an operator takes its axes as an input; before, as an attribute.
_AXES_AS_INPUT = {"ReduceSum": 13, "ReduceMax": 18}


def _binary(operator: str) -> tuple[Callable[[Array, Array | float], Array], ...]:
    """Return the methods of a binary operator for an array on its left, and for one on its right."""
    return (
        lambda self, other: self.graph.node(operator, self, other),
        lambda self, other: self.graph.node(operator, other, self),
    )


class Array:
    """An array that the graph will compute, known by its name."""

    __array_ufunc__ = None  # so that a NumPy number on the left uses our operator

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __radd__ = _binary("Add")
    __sub__, __rsub__ = _binary("Sub")
    __mul__, __rmul__ = _binary("Mul")
    __truediv__, __rtruediv__ = _binary("Div")

    def __neg__(self) -> Array:
        return self.graph.node("Neg", self)


class Constant(Array):
    """An array whose numbers are known."""

    def __init__(self, graph: Graph, name: str, values: AnyArray) -> None:
        super().__init__(graph, name)
        self.values, self.shape = values, values.shape

    def __getitem__(self, index: int) -> Constant:
        return self.graph.constant(self.values[index])


def _node(operator: str, **attributes: Any) -> Callable[..., Array]:
    """Return an operation that is one node."""
    return lambda self, *inputs: self.node(operator, *inputs, **attributes)


def _reduction(operator: str) -> Callable[[Graph, Array], Array]:
    """Return an operation that reduces each row to one number, (..., 1)."""
    return lambda self, x: self._reduce(operator, x)


class Graph:
    """Nodes and constants in order; each operation of `core.ops` adds its nodes and returns their array.

    `dtype` is the type of all numbers, `taken` are names not to use.
    """

    def __init__(self, dtype: Any, *, opset: int = OLDEST_OPSET, taken: Iterable[str] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.opset = opset
        # The first of temperance, temperance2, ... that no name begins with.
        known = set(taken)
        prefixes = ["temperance", *(f"temperance{i}" for i in range(2, len(known) + 3))]
        self.prefix = next(p for p in prefixes if not any(name.startswith(f"{p}_") for name in known))
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def node(
        self, operator: str, *inputs: Any, output: str | None = None, n_outputs: int = 1, **attributes: Any
    ) -> Array:
        """Add a node and return its first output, under the name `output` if one is given.

        Inputs are arrays; a number or a list of integers becomes a constant.
        """
        name = f"{self.prefix}_{operator.lower()}_{len(self.nodes)}"
        outputs = [output or name, *(f"{name}_{i}" for i in range(1, n_outputs))]
        given = [x if isinstance(x, Array | list) else float(x) for x in inputs]
        names = [(x if isinstance(x, Array) else self.constant(x)).name for x in given]
        self.nodes.append(helper.make_node(operator, names, outputs, name, **attributes))
        return Array(self, outputs[0])

    def constant(self, values: Any) -> Constant:
        """Return a constant: floats in the type of the graph, integers as int64; equal ones are shared."""
        given = np.asarray(values)
        array = given.astype(np.int64 if given.dtype.kind in "iu" else self.dtype)
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"{self.prefix}_constant_{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return Constant(self, self._known[key], given)

    def _reduce(self, operator: str, x: Array) -> Array:
        """Add a node that reduces each row to one number, (..., 1)."""
        since = _AXES_AS_INPUT.get(operator)
        if since is None:
            reduced = self.node(operator, x, axis=-1)
        elif self.opset >= since:
            reduced = self.node(operator, x, [-1])
        else:
            reduced = self.node(operator, x, axes=[-1])
        # For an empty batch onnxruntime keeps all columns; take the first.
        return self.node("Gather", reduced, [0], axis=-1)

    def drop_unused(self, output: str) -> None:
        """Remove what the output does not need.

        An unused node makes onnxruntime 1.18 plan its memory wrongly, and fail from the second run on.
        """
        used, kept = {output}, []
        for node in reversed(self.nodes):
            if used.intersection(node.output):
                used.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.constants = [constant for constant in self.constants if constant.name in used]

    def cast(self, x: Array, kind: int, output: str | None = None) -> Array:
        """Return the same numbers in another of ONNX's types."""
        return self.node("Cast", x, output=output, to=kind)

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
        """Return log(1 + x) for x > -1, exact for small x."""
        u = x + 1.0
        moved = u - 1.0
        ratio = self.where(self.greater(u, 2.0), 1.0, x / moved)
        return self.where(self.greater(self.node("Abs", moved), 0.0), self.log(u) * ratio, x)

    def softplus(self, x: Array) -> Array:
        """Return log(1 + exp x), without overflow."""
        return self.relu(x) + self.log1p(self.exp(-self.node("Abs", x)))

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        """Return x, not below `low` nor above `high`."""
        # Not Max and Min: in onnxruntime 1.18 they drop a NaN, which the result must keep.
        if low != -math.inf:
            x = self.where(self.node("Less", x, low), low, x)
        return x if high == math.inf else self.where(self.greater(x, high), high, x)

    def isfinite(self, x: Array) -> Array:
        """Say where x is neither infinite nor NaN."""
        return self.node("Less", self.node("Abs", x), math.inf)

    def concat(self, arrays: Sequence[Array]) -> Array:
        """Return the arrays side by side on the last axis."""
        return self.node("Concat", *arrays, axis=-1)

    def dot(self, x: Array, y: Array) -> Array:
        """Return the sum of x y over the last axis, (..., 1)."""
        return self.sum(x * y)

    def split(self, x: Array, at: int) -> tuple[Array, Array]:
        """Return the first `at` columns, and the others."""
        node, end = self.node, np.iinfo(np.int64).max
        return node("Slice", x, [0], [at], [-1]), node("Slice", x, [at], [end], [-1])

    def outer(self, x: Array, numbers: Sequence[float]) -> Array:
        """Return x times each of the numbers, (..., m)."""
        return self.concat([x * number for number in numbers])

    def columns(self, x: Array, number: int) -> list[Array]:
        """Return each of the columns of x, (..., 1)."""
        return [self.node("Slice", x, [i], [i + 1], [-1]) for i in range(number)]

    def number(self, mask: Array, like: Array) -> Array:
        """Return 1 where the mask is true, else 0."""
        return self.cast(mask, helper.np_dtype_to_tensor_dtype(self.dtype))

    def topk(self, x: Array, k: int) -> Array:
        """Return the `k` largest of each row in descending order, (..., k)."""
        # Without rows, TopK crashes onnxruntime 1.18: one row is added, and removed again.
        padded = self.node("Pad", x, [0, 0, 1, 0])
        found = self.node("TopK", padded, [k], n_outputs=2, axis=-1)
        return self.node("Slice", found, [0], [-1], [0])

    def searchsorted(self, edges: Array, x: Array) -> Array:
        """Return how many of the edges are below each x."""
        below = self.cast(self.greater(x, edges), TensorProto.INT64)
        return self._reduce("ReduceSum", below)

    def take(self, table: Constant, index: Array) -> Array:
        """Return the row of a table at each index: (..., m) of (n, m), and (..., 1) of (n,)."""
        if len(table.shape) == 1:
            return self.node("Gather", table, index, axis=0)
        return self.node("GatherND", table, index)
