"""A graph being built: its nodes, its constants, and names that clash with no others.

Nodes are written for the requested version of the operators, the opset, so that they can be added to a
classifier without changing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from temperance.core.arrays import AnyArray

# The first opset with negative axes and comparison of floats; everything else that is used is older.
OLDEST_OPSET = 11

# From this opset on, an operator takes its axes as an input; before, as an attribute.
_AXES_AS_INPUT = {"ReduceSum": 13, "ReduceMax": 18}


class Graph:
    """Nodes and constants in order; `dtype` is that of all numbers, `taken` are names not to use."""

    def __init__(self, dtype: Any, *, opset: int = OLDEST_OPSET, taken: Iterable[str] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.opset = opset
        self.prefix = _free_prefix(set(taken))
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
        names = [x.name if isinstance(x, Array) else self._constant_of(x).name for x in inputs]
        self.nodes.append(helper.make_node(operator, names, outputs, name, **attributes))
        return Array(self, outputs[0])

    def _constant_of(self, given: float | list[int]) -> Constant:
        return self.constant(given if isinstance(given, list) else float(given))

    def constant(self, values: Any) -> Constant:
        """Return a constant: floats in the type of the graph, integers as int64; equal ones are shared."""
        given = np.asarray(values)
        array = given.astype(np.int64 if given.dtype.kind in "iu" else self.dtype)
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"{self.prefix}_constant_{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return Constant(self, self._known[key], given)

    def reduce(self, operator: str, x: Array) -> Array:
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


def _free_prefix(taken: set[str]) -> str:
    """Return the first of temperance, temperance2, ... that no name begins with."""
    prefixes = ["temperance", *(f"temperance{i}" for i in range(2, len(taken) + 3))]
    return next(prefix for prefix in prefixes if not any(name.startswith(f"{prefix}_") for name in taken))
