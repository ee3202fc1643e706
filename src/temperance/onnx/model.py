"""The small graph: logits (batch, K) -> probabilities (batch, K), or calibrated logits, in its own file.

A calibrator of probabilities has a graph that takes these: their logarithms, and the floor, are in it.

For probabilities, the largest logit of a row is subtracted first. This changes no method, and numbers near
the top keep their digits in float32 however large the logits are.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from onnx import ModelProto, checker, helper

import temperance
from temperance.calibrators import Calibrator
from temperance.calibrators.estimator import model_of
from temperance.core.tensor_rows import TensorRows
from temperance.errors import InputError
from temperance.files import atomic_file, check_writable
from temperance.formulas.model import Model, axis_of_classes
from temperance.inputs.validation import check_choice
from temperance.onnx.graph import Array, Graph

IR_VERSION = 6  # the one that came with the oldest opset: onnxruntime reads it since 2019

METHOD = "temperance.method"
"""Key of the metadata with the method that a model is calibrated by."""


INPUT = "temperance.input"
"""Key of the metadata with what a graph of its own takes: logits or probabilities, its input's name."""
NAME_FOR = {"probabilities": "probabilities", "logits": "calibrated_logits"}
"""The name of each output in a graph, whose input can be called logits."""


def to_onnx(
    calibrator: Calibrator | Model,
    path: str | Path,
    *,
    dim: int | None = None,
    output: str = "probabilities",
    dtype: str = "float32",
    overwrite: bool = False,
) -> None:
    """Write a fitted calibrator as an ONNX model: `logits` (batch, K) in, `probabilities` (batch, K) out.

    If it was fitted on probabilities, it takes `probabilities`, and gives `calibrated_probabilities`. If it
    was fitted on positions, K can be any number. With dim=1, both are (batch, K, H, W).

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator.
    path : path
        The file to write.
    dim : {1, -1}, optional
        The axis of the classes: 1 for the logits of pixels, (N, K, H, W); by default the fit's.
    output : {"probabilities", "logits"}
        What the model gives; logits are called `calibrated_logits`.
    dtype : "float32" or "float64"
        Type of the input, the output and the computation. In float32, classes can tie that do not in float64;
        `bayes` then has the temperature of the first of them, as `predict_proba` of float32 rows has.
    overwrite : bool
        Whether to replace an existing file.

    Examples
    --------
    >>> import pathlib, tempfile, onnx, temperance
    >>> from temperance.data import simulate
    >>> from temperance.onnx.model import to_onnx
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.onnx"
    >>> to_onnx(cal, path)
    >>> [output.name for output in onnx.load(path).graph.output]
    ['probabilities']
    """
    check_choice("dtype", dtype, ("float32", "float64"))
    fitted, kind = model_of(calibrator), np.dtype(dtype)
    takes, name = input_name(fitted), name_for(output, fitted)
    check_writable(path, overwrite=overwrite)
    dim = axis_of_classes(fitted, dim)
    if dim not in (1, -1) or (dim == 1 and fitted.of_positions):
        found = f"{dim} for positions" if dim == 1 else f"{dim!r}"
        raise InputError(
            f"dim must be 1 in a model for pixels (N, K, H, W), else -1; found {found}. Pass dim=-1 and move "
            "the axis before the model."
        )
    graph, pixels = Graph(kind), ("height", "width") if dim == 1 else ()
    shape = "batch", fitted.n_columns or "positions", *pixels
    (_calibrate_pixels if dim == 1 else _calibrate_rows)(fitted, graph, Array(graph, takes), name, output)
    graph.drop_unused(name)
    element = helper.np_dtype_to_tensor_dtype(kind)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "calibrator",
            [helper.make_tensor_value_info(takes, element, shape)],
            [helper.make_tensor_value_info(name, element, shape)],
            graph.constants,
            doc_string=f"{fitted.name}: {takes} to calibrated {output}",
        ),
        producer_name="temperance",
        producer_version=temperance.__version__,
        opset_imports=[helper.make_opsetid("", graph.opset)],
        ir_version=IR_VERSION,
    )
    describe(model, fitted)
    model.metadata_props.add(key=INPUT, value=takes)
    write_model(model, path, overwrite=overwrite, full_check=True)


def input_name(fitted: Model) -> str:
    """Return what a graph of its own takes."""
    return "probabilities" if fitted.of_probabilities else "logits"


def name_for(output: str, fitted: Model | None = None) -> str:
    """Return the name of an output; raise if there is no such output. The input of `fitted` has another."""
    check_choice("output", output, tuple(NAME_FOR))
    taken = fitted is not None and NAME_FOR[output] == input_name(fitted)
    return f"calibrated_{output}" if taken else NAME_FOR[output]


def logarithms(graph: Graph, probs: Array, floor: float | None, *, renormalise: bool | None = None) -> Array:
    """Return the logits of probabilities, as `logits_from_probs` does."""
    logs = graph.log(probs / graph.sum(probs) if renormalise else probs)
    return graph.clip(logs, float(np.log(floor)), math.inf) if floor else logs


def _calibrate_rows(fitted: Model, graph: Graph, given: Array, name: str, output: str) -> None:
    """Add the nodes for what the calibrator was fitted to, (batch, K)."""
    fitted_on = fitted.record.fitted_on
    if fitted_on is not None and fitted.of_probabilities:
        given = logarithms(graph, given, fitted_on.floor, renormalise=fitted_on.renormalised)
    calibrate(fitted, graph, given, name, output)


def _calibrate_pixels(fitted: Model, graph: Graph, given: Array, name: str, output: str) -> None:
    """Add the nodes for pixels (N, K, H, W), which are (rows, K) in between."""
    last, inner = graph.node("Transpose", given, perm=[0, 2, 3, 1]), f"{graph.prefix}_rows"
    _calibrate_rows(fitted, graph, graph.node("Reshape", last, [-1, fitted.n_classes]), inner, output)
    found = graph.node("Reshape", Array(graph, inner), graph.node("Shape", last))
    graph.node("Transpose", found, output=name, perm=[0, 3, 1, 2])


def calibrate(fitted: Model, graph: Graph, logits: Array, name: str, output: str) -> None:
    """Add the nodes from logits to calibrated probabilities or logits, under this name."""
    arrays = {name: graph.constant(values) for name, values in fitted.arrays().items()}
    n_columns = fitted.n_columns or graph.node("Gather", graph.node("Shape", logits), graph.constant(-1))
    if output == "probabilities":
        logits = logits - graph.max(logits)
    calibrated = fitted.with_arrays(arrays).calibrate(TensorRows(logits, n_columns, graph))
    if output == "probabilities":
        graph.node("Softmax", calibrated, output=name, axis=-1)
    else:
        graph.node("Identity", calibrated, output=name)


def describe(model: ModelProto, fitted: Model) -> None:
    """Add to the metadata what the model was calibrated by."""
    about = {
        METHOD: fitted.key,
        "temperance.classes": str(fitted.n_classes),
        "temperance.version": temperance.__version__,
    }
    for key, value in about.items():
        model.metadata_props.add(key=key, value=value)


def write_model(model: ModelProto, path: str | Path, *, overwrite: bool, full_check: bool) -> None:
    """Write a model after ONNX's own check, in the folder where its weights can be."""
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(model.SerializeToString())
        file.flush()
        try:
            checker.check_model(file.name, full_check=full_check)
        except checker.ValidationError:
            Path(file.name).stat()  # raises if the file is gone with its folder: no fault of the model
            raise
