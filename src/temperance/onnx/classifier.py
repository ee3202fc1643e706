"""What a classifier's graph holds: names, weight files, logits or probabilities.

Calibrating probabilities as if they were logits gives numbers that look right and are not. So the graph and
the calibrator must agree, or the user must say what the output holds. scikit-learn's converter also calls raw
scores `probabilities`, so a name counts only if the node that makes the output says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

from temperance.errors import InputError, Remedy
from temperance.formulas.model import Model


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
    tensors: list[TensorProto] = []
    for part in _graphs(graph):
        tensors += part.initializer
        for attribute in _attributes(part):
            tensors += [attribute.t, *attribute.tensors]
    return {
        entry.value
        for tensor in tensors
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for attribute in _attributes(graph):
        for part in (attribute.g, *attribute.graphs):  # an empty graph if it has none
            yield from _graphs(part)


def _attributes(graph: GraphProto) -> Iterator[AttributeProto]:
    for node in graph.node:
        yield from node.attribute


PROBABILITY_TRANSFORMS = (b"LOGISTIC", b"SOFTMAX", b"SOFTMAX_ZERO", b"PROBIT")


def nodes_behind(model: ModelProto, output: str, passing: Sequence[str] = ("Identity",)) -> list[NodeProto]:
    """Return the nodes that make an output, from the last back to the first that does not pass numbers on."""
    found: list[NodeProto] = []
    for node in reversed(model.graph.node):  # nodes are in the order of their use
        if output in node.output:
            found.append(node)
            if node.op_type not in passing:
                break
            output = node.input[0]
    return found


def _evidence_for(model: ModelProto, output: str) -> tuple[str | None, str]:
    """Return what an output holds: "probabilities", "logits", or None if unknown; and the reason."""
    for node in nodes_behind(model, output, ("Identity", "Cast"))[-1:]:
        if kind := _kind_by_node(node):
            return kind, f"the node {node.op_type} makes it"
    return ("probabilities", "its name says so") if "prob" in output.lower() else (None, "")


def _kind_by_node(node: NodeProto) -> str | None:
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.op_type in ("Softmax", "Sigmoid"):
        return "probabilities"
    if node.op_type == "LogSoftmax":
        return "logits"
    if node.op_type == "Normalizer":
        return "probabilities" if attributes.get("norm") == b"L1" else None
    if node.op_type not in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"):
        return None
    if attributes.get("post_transform") in PROBABILITY_TRANSFORMS:
        return "probabilities"
    if node.op_type == "SVMClassifier":
        return "probabilities" if _numbers(attributes, "prob_a") else "logits"
    if node.op_type == "LinearClassifier":
        return "logits"
    # The leaves of a forest hold shares; the leaves of boosted trees hold positive and negative steps.
    steps = [*_numbers(attributes, "class_weights"), *_numbers(attributes, "base_values")]
    return "logits" if min(steps, default=0.0) < 0 else "probabilities"


def _numbers(attributes: dict[str, Any], name: str) -> list[float]:
    if (tensor := attributes.get(f"{name}_as_tensor")) is not None:
        return numpy_helper.to_array(tensor).ravel().tolist()
    return list(attributes.get(name, ()))


def holds_probabilities(fitted: Model, classifier: ModelProto, output: str, said: bool | None) -> bool:
    """Say whether an output holds probabilities; raise if unknown, or if the calibrator disagrees."""
    kind, reason = _evidence_for(classifier, output)
    on_probabilities = fitted.record.fitted_on is not None and fitted.record.fitted_on.kind != "logits"
    if said and kind == "logits":
        raise InputError(
            f"with from_probs the output must hold probabilities; {output!r} holds logits ({reason}). "
            "Leave it out."
        )
    if said is not None:
        return said
    if kind == "probabilities" and not on_probabilities:
        raise _refusal(classifier, output, reason)
    if kind is None and on_probabilities:
        raise InputError(
            f"the calibrator was fitted on probabilities, and nothing in the classifier shows whether "
            f"{output!r} holds probabilities or logits.",
            remedy=Remedy("from_probs", (True, False)),
        )
    return kind == "probabilities"


def _refusal(classifier: ModelProto, output: str, reason: str) -> InputError:
    fact = (
        f"the calibrator was fitted on logits, and {output!r} must hold the same; it holds probabilities "
        f"({reason})."
    )
    others = [
        other.name
        for other in classifier.graph.output
        if other.name != output
        and len(other.type.tensor_type.shape.dim) == 2
        and _evidence_for(classifier, other.name)[0] != "probabilities"
    ]
    if others:
        return InputError(fact, remedy=Remedy("classifier_output", (others[0],)))
    advice = "If it was fitted on their logarithms, as logits_from_probs gives them, say so."
    return InputError(fact, advice=advice, remedy=Remedy("from_probs", (True,)))
