"""Small ONNX classifiers, and models run by onnxruntime."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NAMES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE}


def session(path):
    """Open a model, without messages of the runtime on standard error."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def serve(path, inputs):
    """Return the first output of a model with one input."""
    running = session(path)
    return running.run(None, {running.get_inputs()[0].name: inputs})[0]


def linear_classifier(
    path, weights, *, opset=13, ir=8, end=(), outputs=None, dtype=np.float32, n_columns=None
):
    """Write a classifier: images (batch, features) -> logits = images @ weights, and what `end` adds."""
    kind = NAMES.get(np.dtype(dtype), TensorProto.FLOAT16)
    columns = weights.shape[1] if n_columns is None else n_columns
    logits = helper.make_tensor_value_info("logits", kind, ["batch", columns])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["images", "weights"], ["logits"], "classify"), *end],
        "classifier",
        [helper.make_tensor_value_info("images", kind, ["batch", weights.shape[0]])],
        [logits] if outputs is None else outputs,
        [numpy_helper.from_array(weights.astype(dtype), "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    model.producer_name = "somebody"
    onnx.save(model, str(path))
    return path
