"""Whether the output to be calibrated holds probabilities, and the floor for probabilities of 0.

Calibrating probabilities as if they were logits gives numbers that look right and are not. So the graph and
the calibrator must agree, or the user must say what the output holds.
"""

from __future__ import annotations

from onnx import ModelProto, ValueInfoProto

from temperance.errors import InputError, Remedy
from temperance.formulas.model import Model
from temperance.onnx.evidence import evidence_for


def fitted_floor(fitted: Model) -> float:
    """Return the floor of probabilities at the fit; 0 if there was none, or if it is unknown."""
    fitted_on = fitted.record.fitted_on
    return 0.0 if fitted_on is None else fitted_on.floor or 0.0


def holds_probabilities(fitted: Model, classifier: ModelProto, output: str, said: bool | None) -> bool:
    """Say whether an output holds probabilities; raise if unknown, or if the calibrator disagrees."""
    found = evidence_for(classifier, output)
    on_probabilities = fitted.record.fitted_on is not None and fitted.record.fitted_on.kind != "logits"
    if said and found.kind == "logits":
        raise InputError(
            f"with from_probs the output must hold probabilities; {output!r} holds logits ({found.reason}). "
            "Leave it out."
        )
    if said is not None:
        return said
    if found.kind == "probabilities" and not on_probabilities:
        raise _refusal(classifier, output, found.reason)
    if found.kind is None and on_probabilities:
        raise InputError(
            f"the calibrator was fitted on probabilities, and nothing in the classifier shows whether "
            f"{output!r} holds probabilities or logits.",
            remedy=Remedy("from_probs", (True, False)),
        )
    return found.kind == "probabilities"


def _refusal(classifier: ModelProto, output: str, reason: str) -> InputError:
    fact = (
        f"the calibrator was fitted on logits, and {output!r} must hold the same; it holds probabilities "
        f"({reason})."
    )
    others = [
        other.name
        for other in classifier.graph.output
        if other.name != output
        and _is_table(other)
        and evidence_for(classifier, other.name).kind != "probabilities"
    ]
    if others:
        return InputError(fact, remedy=Remedy("output", (others[0],)))
    advice = "If it was fitted on their logarithms, as logits_from_probs gives them, say so."
    return InputError(fact, advice=advice, remedy=Remedy("from_probs", (True,)))


def _is_table(output: ValueInfoProto) -> bool:
    return len(output.type.tensor_type.shape.dim) == 2
