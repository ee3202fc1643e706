"""What a classifier's graph and its subgraphs hold: names, and external files."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, TensorProto


def names_in(graph: GraphProto) -> Iterator[str]:
    """Yield every name that a new node or value must not have."""
    for part in _graphs(graph):
        for value in (*part.input, *part.output, *part.value_info, *part.initializer):
            yield value.name
        for sparse in part.sparse_initializer:
            yield sparse.values.name
        for node in part.node:
            yield node.name
            yield from node.input
            yield from node.output


def readers_in(graph: GraphProto) -> set[str]:
    """Return the names of the values that some node reads."""
    return {name for part in _graphs(graph) for node in part.node for name in node.input}


def side_files(graph: GraphProto) -> set[str]:
    """Return the files in which the graph keeps its weights."""
    return {
        entry.value
        for tensor in _tensors(graph)
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for attribute in _attributes(graph):
        for part in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from _graphs(part)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    for part in _graphs(graph):
        yield from part.initializer
        for attribute in _attributes(part):
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t


def _attributes(graph: GraphProto) -> Iterator[AttributeProto]:
    for node in graph.node:
        yield from node.attribute
