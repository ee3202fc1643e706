"""A calibrator at the end of a classifier: one ONNX model from its inputs to calibrated probabilities.

The classifier is not changed; nodes are added, in the opset that it declares, and one of its outputs is
replaced. External weight files stay where they are. `onnx.compose.merge_models` would give the model another
producer, domain, version and documentation, and needs the same opset on both sides.

Calibrating probabilities as if they were logits gives numbers that look right and are not. So the user says
what an output holds, unless it is called `logits`: the nodes of a graph do not show it, and scikit-learn's
converter also calls raw scores `probabilities`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError, EncodeError
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    defs,
    helper,
    load,
    shape_inference,
)

from temperance.calibrators import Calibrator
from temperance.calibrators.estimator import model_of
from temperance.errors import InputError, Remedy, library_errors
from temperance.files import check_regular, check_writable
from temperance.formulas.fit_record import FittedOn
from temperance.formulas.model import Model
from temperance.inputs.probabilities import check_floor
from temperance.inputs.validation import check_choice
from temperance.onnx.graph import OLDEST_OPSET, Array, Graph
from temperance.onnx.model import METHOD, calibrate, describe, logarithms, name_for, write_model

KINDS = ("logits", "probs")

# What the nodes compute in, by the type of the classifier's output.
WORKING: dict[int, Any] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float32,
    TensorProto.BFLOAT16: np.float32,
}
_DAMAGE = (
    *(DecodeError, EncodeError, checker.ValidationError, shape_inference.InferenceError),
    *(AttributeError, LookupError, TypeError, ValueError, RuntimeError),
)
"""Errors of reading a damaged classifier, wherever it is read."""


def append_to_onnx(
    calibrator: Calibrator | Model,
    model: str | Path,
    path: str | Path,
    *,
    classifier_output: str | None = None,
    output: str = "probabilities",
    kind: str | None = None,
    floor: float | None = None,
    keep: bool = False,
    overwrite: bool = False,
) -> str:
    """Write a classifier with a fitted calibrator at its end, and return the name of the new output.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator.
    model : path
        The classifier, an ONNX file. It is only read.
    path : path
        The file to write.
    classifier_output : str, optional
        The classifier's output with the logits, (batch, K), or (batch, 1) or (batch,) for the second of two
        classes; by default the only output, or the one called `logits`. The calibrated `probabilities` (or
        `calibrated_probabilities`, if that name is taken) replace it. If the output comes from a Softmax, the
        input of the Softmax is calibrated.
    output : {"probabilities", "logits"}
        What replaces it; logits are called `calibrated_logits`.
    kind : {"logits", "probs"}, optional
        What the classifier's output holds. The logarithms of probabilities are calibrated. An output called
        `logits` holds logits, and a Softmax's needs no kind.
    floor : float, optional
        Smaller probabilities are raised to this value; by default the floor of the calibrator's fit. A
        calibrator that was fitted in Python, to `logits_from_probs(probs)`, does not know its floor: pass
        `probability_floor(probs)`, or 0 becomes -inf.
    keep : bool
        Whether to keep the output as well, as the last one.
    overwrite : bool
        Whether to replace an existing file.

    Examples
    --------
    The classifier here returns its input; usually it comes from PyTorch or scikit-learn.

    >>> import tempfile, pathlib
    >>> from temperance import TemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = TemperatureScaling().fit(task.logits, task.labels)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> import onnx
    >>> from onnx import TensorProto, helper
    >>> shapes = [
    ...     helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("x", "logits")
    ... ]
    >>> graph = helper.make_graph(
    ...     [helper.make_node("Identity", ["x"], ["logits"])], "classifier", shapes[:1], shapes[1:]
    ... )
    >>> opset = [helper.make_opsetid("", 13)]
    >>> onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "classifier.onnx")
    >>> append_to_onnx(cal, folder / "classifier.onnx", folder / "calibrated.onnx")
    'probabilities'
    """
    check_writable(path, overwrite=overwrite)
    check_floor(floor)
    if kind is not None:
        check_choice("kind", kind, KINDS)
    own_name = name_for(output)
    source_file, fitted = Path(model), model_of(calibrator)
    check_regular(source_file)
    invalid = "must be a valid ONNX model; ONNX says: {}. Export it again."
    with library_errors(source_file, invalid, of=_DAMAGE):
        classifier = _read(source_file)
        _check_folder(classifier, source_file, Path(path))
        found = _find_output(classifier, classifier_output)
        element, is_single = _check_output(found, fitted)
        taken = set(_names_in(classifier.graph))
        graph = Graph(WORKING[element], opset=_opset_of(classifier, source_file), taken=taken)
        names = (own_name, f"calibrated_{output}", f"{graph.prefix}_{output}")
        name = next(name for name in names if name not in taken)
        softmax = _softmax_behind(classifier, found.name, "Sigmoid" if is_single else "Softmax")
        source = softmax[-1].input[0] if softmax else found.name
        in_probs = not softmax and _kind_of(classifier, found.name, kind) == "probs"
        fitted_on = fitted.record.fitted_on or FittedOn()
        floor = fitted_on.floor if floor is None else floor
        # The calibrator follows the classifier's output, with casts to its type and back.
        x, working = Array(graph, source), helper.np_dtype_to_tensor_dtype(graph.dtype)
        if working != element:
            x = graph.cast(x, working)
        if is_single:
            x = graph.node("Reshape", x, [-1, 1])
            x = graph.node("Concat", 1.0 - x if in_probs else x * 0.0, x, axis=-1)
        if in_probs:
            x = logarithms(graph, x, floor, renormalise=fitted_on.renormalised)
        elif floor:
            x = graph.clip(graph.node("LogSoftmax", x, axis=-1), float(np.log(floor)), math.inf)
        calibrated = name if working == element else f"{graph.prefix}_{name}"
        calibrate(fitted, graph, x, calibrated, output)
        if working != element:
            graph.cast(Array(graph, calibrated), element, output=name)
        graph.drop_unused(name)
        _replace_output(classifier, found, name, fitted.n_columns, keep=keep)
        _remove_unread(classifier, softmax)
        classifier.graph.node.extend(graph.nodes)
        classifier.graph.initializer.extend(graph.constants)
        describe(classifier, fitted)
        write_model(classifier, path, overwrite=overwrite, full_check=False)
    return name


def _read(path: Path) -> ModelProto:
    model: ModelProto = load(str(path), format="protobuf", load_external_data=False)
    checker.check_model(str(path))
    if not all(isinstance(name, str) for name in _names_in(model.graph)):
        raise UnicodeError("a name is not UTF-8")
    if METHOD in {entry.key for entry in model.metadata_props}:
        raise InputError(f"{path} is already calibrated. Append the calibrator to the classifier itself.")
    return model


def _check_folder(model: ModelProto, source: Path, target: Path) -> None:
    """Raise if external weight files of the classifier would not be found from the new folder."""
    if target.exists() and target.samefile(source):
        raise InputError(f"the calibrated model must not be the classifier file; found {target} for both.")
    beside = sorted(_side_files(model.graph))
    if beside and source.resolve().parent != target.resolve().parent:
        raise InputError(
            f"{source} has its weights in files beside it ({beside[0]}), so the calibrated model must be "
            f"written to the same folder; found {target}."
        )


def _opset_of(model: ModelProto, path: Path) -> int:
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions:  # all its operators are of another kind, as in scikit-learn models
        model.opset_import.add(domain="", version=OLDEST_OPSET)
        return OLDEST_OPSET
    version, newest = int(versions[0]), defs.onnx_opset_version()
    if not OLDEST_OPSET <= version <= newest:
        raise InputError(
            f"{path} must have an opset from {OLDEST_OPSET} to {newest}, the newest that the installed ONNX "
            f"knows; found {version}. Export the classifier again, or update ONNX."
        )
    return version


def _find_output(model: ModelProto, name: str | None) -> ValueInfoProto:
    """Return the output of a name; by default the only one, or the one called `logits`."""
    outputs = {output.name: output for output in model.graph.output}
    chosen = next(iter(outputs)) if name is None and len(outputs) == 1 else name or "logits"
    if chosen not in outputs:
        found = "the classifier has several, and none is called 'logits'" if name is None else repr(name)
        raise InputError(
            f"the output to calibrate must be one of the classifier's, {_listed(model)}; found {found}.",
            remedy=Remedy("classifier_output", tuple(outputs)),
        )
    return outputs[chosen]


def _kind_of(model: ModelProto, output: str, said: str | None) -> str:
    """Return what an output holds, as the user says or as its name does."""
    if said is None and output != "logits":
        raise InputError(
            f"what {output!r} holds, logits or probabilities, must be said; the classifier's outputs are "
            f"{_listed(model)}.",
            remedy=Remedy("kind", KINDS),
        )
    return said or "logits"


def _listed(model: ModelProto) -> str:
    return ", ".join(repr(output.name) for output in model.graph.output)


def _check_output(output: ValueInfoProto, fitted: Model) -> tuple[int, bool]:
    """Return the type of an output that can be logits, and whether it is the one score of two classes."""
    n_classes = fitted.n_classes
    wanted = f"the calibrator has {n_classes} classes, so {output.name!r} must be floats (batch, {n_classes})"
    tensor = output.type.tensor_type
    held = output.type.WhichOneof("value").removesuffix("_type")
    if held != "tensor":
        advice = "Export the classifier again without ZipMap: zipmap=False in scikit-learn's converter."
        raise InputError(f"{wanted}; found {held}. {advice}")
    if tensor.elem_type not in WORKING:
        types = {number: name.lower() for name, number in TensorProto.DataType.items()}
        found = types.get(tensor.elem_type, f"the unknown type {tensor.elem_type}")
        raise InputError(
            f"{wanted}; found a tensor of {found}. Name another output, or export the classifier's logits."
        )
    sizes = [size.dim_value if size.HasField("dim_value") else "?" for size in tensor.shape.dim]
    if n_classes == 2 and (len(sizes) == 1 or sizes[1:] == [1]):
        return int(tensor.elem_type), True
    if len(sizes) != 2 or sizes[1] not in ("?", fitted.n_columns or sizes[1]):
        raise InputError(f"{wanted}; found ({', '.join(map(str, sizes))}).")
    return int(tensor.elem_type), False


def _softmax_behind(model: ModelProto, output: str, operator: str) -> list[NodeProto]:
    """Return the Softmax over the classes that makes an output, if there is one, looking through Identity.

    For a single score of two classes it is a Sigmoid.
    """
    found: list[NodeProto] = []
    for node in reversed(model.graph.node):  # nodes are in the order of their use
        if output in node.output:
            found.append(node)
            if node.op_type != "Identity":
                break
            output = node.input[0]
    if not found or found[-1].op_type != operator or found[-1].domain not in ("", "ai.onnx"):
        return []
    axis = [attribute.i for attribute in found[-1].attribute if attribute.name == "axis"]
    # The default axis is 1 or the last, by opset: the same with two axes.
    return found if axis in ([], [-1], [1]) else []


def _remove_unread(model: ModelProto, nodes: list[NodeProto]) -> None:
    """Remove nodes from the end, as long as nothing reads them any more."""
    for node in nodes:
        outputs = {output.name for output in model.graph.output}
        read = {name for part in _graphs(model.graph) for other in part.node for name in other.input}
        if not (outputs | read).isdisjoint(node.output):
            return
        model.graph.node.remove(node)


def _replace_output(
    model: ModelProto, old: ValueInfoProto, name: str, n_columns: int | None, *, keep: bool
) -> None:
    tensor = old.type.tensor_type
    batch, *columns = (
        size.dim_value if size.HasField("dim_value") else size.dim_param or "batch"
        for size in tensor.shape.dim
    )
    new = helper.make_tensor_value_info(name, tensor.elem_type, [batch, n_columns or columns[0]])
    outputs = [new if output.name == old.name else output for output in model.graph.output]
    if keep:
        outputs.append(old)
    del model.graph.output[:]
    model.graph.output.extend(outputs)


# ---- names and weight files


def _names_in(graph: GraphProto) -> Iterator[str]:
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


def _side_files(graph: GraphProto) -> set[str]:
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
