"""The operations that formulas are written in give the same on NumPy arrays and on tensors."""

import importlib

import numpy as np
import pytest
from operations import CONSTANTS, OPERATIONS, X

from temperance.core.ops import ONE_ROW, NumpyOps


class Reference(NumpyOps):
    """NumPy's operations, with those that only whole arrays of logits need."""

    isfinite, greater = np.isfinite, np.greater
    where, transpose = staticmethod(np.where), staticmethod(np.transpose)

    def sum(self, x):
        return np.sum(x, axis=-1, keepdims=True)

    def argmax(self, x):
        return np.argmax(x, axis=-1, keepdims=True)

    def gather(self, x, index):
        return np.take_along_axis(x, index, axis=-1)

    def max(self, x):
        return np.max(x, axis=-1, keepdims=True)

    def number(self, mask, like):
        return mask.astype(like.dtype)

    def topk(self, x, k):
        return np.sort(x, axis=-1)[..., : -k - 1 : -1]


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize(("build", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_on_arrays_and_on_tensors(build, wanted, tensors):
    operations, convert = Reference(), np.asarray
    if tensors:
        convert = pytest.importorskip("torch").from_numpy
        operations = importlib.import_module("temperance.torch.module").TORCH
    constants = {name: convert(values) for name, values in CONSTANTS.items()}
    np.testing.assert_allclose(np.asarray(build(convert(X), operations, constants)), wanted, rtol=1e-12)


def test_the_numbers_or_arrays_of_one_row_are_put_side_by_side():
    assert ONE_ROW.concat([2.0]).tolist() == [[2.0]]
    assert ONE_ROW.concat([2.0, 3.0]).tolist() == [[2.0, 3.0]]
    assert ONE_ROW.concat([X[:1, :2], X[:1, 2:]]).tolist() == X[:1].tolist()
