"""Every operation that formulas use, with its expected result, for NumPy, PyTorch and ONNX."""

import numpy as np

X = np.array([[1.0, 3.0, 3.0, -2.0], [0.5, -np.inf, 0.25, 0.5]])
CONSTANTS = {
    "table": np.arange(8.0).reshape(4, 2),
    "vector": np.arange(5.0, 9.0),
    "column": np.array([[1.0], [2.0]]),
}


def largest(x, o):
    """Return the largest of each row, by two operations."""
    return o.gather(x, o.argmax(x))


# Name -> (x, operations, constants) -> result, and the result of X.
OPERATIONS = {
    "sum and clip": (lambda x, o, c: o.sum(o.clip(x, -1.0, 2.0)), [[4.0], [0.25]]),
    "argmax": (lambda x, o, c: o.argmax(x), [[1], [0]]),
    "gather": (lambda x, o, c: largest(x, o), [[3.0], [0.5]]),
    "max": (lambda x, o, c: o.max(x), [[3.0], [0.5]]),
    "number": (lambda x, o, c: o.number(o.greater(x, 0.4), x), [[1, 1, 1, 0], [1, 0, 0, 1]]),
    "log1p of small and negative numbers": (
        lambda x, o, c: o.log1p(o.clip(x, -0.5, 1e-20)),
        [[1e-20, 1e-20, 1e-20, -np.log(2)], [1e-20, -np.log(2), 1e-20, 1e-20]],
    ),
    "topk": (lambda x, o, c: o.topk(x, 2), [[3.0, 3.0], [0.5, 0.5]]),
    "searchsorted": (lambda x, o, c: o.searchsorted(c["vector"], largest(x, o) * 2.0 + 1.0), [[2], [0]]),
    "isfinite and where": (
        lambda x, o, c: o.where(o.isfinite(x), x, 7.0),
        [[1.0, 3.0, 3.0, -2.0], [0.5, 7.0, 0.25, 0.5]],
    ),
    "greater": (
        lambda x, o, c: o.where(o.greater(x, 0.4), 1.0, o.relu(x) * 0.0),
        [[1, 1, 1, 0], [1, 0, 0, 1]],
    ),
    "take": (lambda x, o, c: o.take(c["table"], o.argmax(x)), [[2.0, 3.0], [0.0, 1.0]]),
    "take of a vector": (lambda x, o, c: o.take(c["vector"], o.argmax(x)), [[6.0], [5.0]]),
    "matmul and relu": (lambda x, o, c: o.matmul(o.relu(x), c["table"]), [[18.0, 25.0], [4.0, 5.25]]),
    "dot": (lambda x, o, c: o.dot(o.relu(x), c["vector"]), [[44.0], [8.25]]),
    "dot of rows": (lambda x, o, c: o.dot(o.relu(x), o.relu(x)), [[19.0], [0.5625]]),
    "transpose": (
        lambda x, o, c: o.matmul(largest(x, o) * 1.0, o.transpose(c["column"])),
        [[3, 6], [0.5, 1]],
    ),
    "concat": (lambda x, o, c: o.concat([largest(x, o), o.sum(o.relu(x))]), [[3.0, 7.0], [0.5, 1.25]]),
    "split": (lambda x, o, c: o.split(o.relu(x), 1)[0] + o.sum(o.split(o.relu(x), 3)[1]), [[1.0], [1.0]]),
    "one of a vector": (lambda x, o, c: largest(x, o) / c["vector"][2], [[3 / 7], [0.5 / 7]]),
    "signs": (lambda x, o, c: 1.0 - 2.0 / (-largest(x, o) + np.float64(1.0)), [[2.0], [-3.0]]),
    "sqrt": (lambda x, o, c: o.sqrt(largest(x, o) * largest(x, o)), [[3.0], [0.5]]),
    "exp and log": (lambda x, o, c: o.log(o.exp(largest(x, o))), [[3.0], [0.5]]),
    "log1p": (lambda x, o, c: o.log1p(largest(x, o) - 0.5), [[np.log1p(2.5)], [0.0]]),
    "softplus": (lambda x, o, c: o.softplus(largest(x, o)), [[np.log1p(np.exp(3))], [np.log1p(np.exp(0.5))]]),
    "clip by constants": (lambda x, o, c: o.clip(x, c["vector"][0], c["vector"][3]), np.full((2, 4), 5.0)),
}
