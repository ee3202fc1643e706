"""What tests of ONNX share: models run by onnxruntime, rows of any size, and small classifiers."""

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


def extreme_rows(n_rows, n_classes, dtype=np.float64, seed=0):
    """Return logits with gaps from 0.01 to 1e4; in half of the rows some classes are close to the top."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-0.5, 0.5, (n_rows, n_classes)) * 10 ** rng.uniform(-2, 4, (n_rows, 1))
    near = (rng.random((n_rows, n_classes)) < 0.3) & (np.arange(n_rows) % 2 == 0)[:, None]
    top = z.max(axis=1, keepdims=True)
    return np.where(near, top + rng.standard_normal((n_rows, n_classes)), z).astype(dtype)


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
