"""What an output of a classifier holds, logits or probabilities, by the node that makes it.

scikit-learn's converter also calls raw scores `probabilities`, so a name counts only if the node says
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

PASS_ON = ("Identity", "Cast")
PROBABILITY_TRANSFORMS = ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class Evidence:
    """What an output holds: "probabilities", "logits", or None if unknown; and the reason."""

    kind: str | None
    reason: str = ""


def maker_of(model: ModelProto, output: str) -> NodeProto | None:
    """Return the node that makes an output, looking through those that pass numbers on."""
    for node in reversed(model.graph.node):  # nodes are in the order of their use
        if output in node.output:
            if node.op_type not in PASS_ON:
                return node
            output = node.input[0]
    return None


def evidence_for(model: ModelProto, output: str) -> Evidence:
    """Return what is known about an output."""
    node = maker_of(model, output)
    found = None if node is None else _kind_by_node(node)
    if node is not None and found is not None:
        return Evidence(found, f"the node {node.op_type} makes it")
    if "prob" in output.lower():
        return Evidence("probabilities", "its name says so")
    return Evidence(None)


def _kind_by_node(node: NodeProto) -> str | None:
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type in ("Softmax", "Sigmoid"):
        return "probabilities"
    if node.op_type == "LogSoftmax":
        return "logits"
    if node.op_type == "Normalizer":
        return "probabilities" if _text(attributes.get("norm"), "MAX") == "L1" else None
    if node.op_type in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"):
        return _kind_of_classifier(node.op_type, attributes)
    return None


def _kind_of_classifier(operator: str, attributes: dict[str, AttributeProto]) -> str:
    if _text(attributes.get("post_transform"), "NONE") in PROBABILITY_TRANSFORMS:
        return "probabilities"
    if operator == "SVMClassifier":
        return "probabilities" if _numbers(attributes, "prob_a") else "logits"
    if operator == "LinearClassifier":
        return "logits"
    # The leaves of a forest hold shares; those of boosted trees hold positive and negative steps.
    steps = [*_numbers(attributes, "class_weights"), *_numbers(attributes, "base_values")]
    return "logits" if min(steps, default=0.0) < 0 else "probabilities"


def _text(attribute: AttributeProto | None, default: str) -> str:
    return default if attribute is None else attribute.s.decode()


def _numbers(attributes: dict[str, AttributeProto], name: str) -> list[float]:
    if name in attributes:
        return [float(value) for value in helper.get_attribute_value(attributes[name])]
    tensor = attributes.get(f"{name}_as_tensor")
    return [] if tensor is None else numpy_helper.to_array(tensor.t).ravel().tolist()
