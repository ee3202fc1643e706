"""The operations that formulas are written in give the same on NumPy arrays and on tensors."""

import numpy as np
import pytest
from operations import CONSTANTS, OPERATIONS, X

from temperance.core.ops import NumpyOps


class Reference(NumpyOps):
    """NumPy's operations, with those that only whole arrays of logits need."""

    isfinite, greater = np.isfinite, np.greater
    where, transpose = staticmethod(np.where), staticmethod(np.transpose)

    def argmax(self, x):
        return np.argmax(x, axis=-1, keepdims=True)

    def gather(self, x, index):
        return np.take_along_axis(x, index, axis=-1)

    def one_hot(self, index, size):
        return np.arange(size) == index

    def topk(self, x, k):
        return np.sort(x, axis=-1)[..., : -k - 1 : -1]


@pytest.mark.parametrize(("build", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_on_arrays(build, wanted):
    np.testing.assert_allclose(build(X, Reference(), CONSTANTS), wanted, rtol=1e-12)


@pytest.mark.parametrize(("build", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_on_tensors(build, wanted):
    torch = pytest.importorskip("torch")
    from temperance.torch.module import TORCH

    constants = {name: torch.from_numpy(values) for name, values in CONSTANTS.items()}
    got = build(torch.from_numpy(X), TORCH, constants)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)
