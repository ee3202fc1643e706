"""The operations that formulas are written in give the same on NumPy arrays and on tensors."""

import numpy as np
import pytest
from operations import CONSTANTS, OPERATIONS, X

from temperance.core.numpy_ops import NUMPY


@pytest.mark.parametrize(("build", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_on_arrays(build, wanted):
    np.testing.assert_allclose(build(X, NUMPY, CONSTANTS), wanted, rtol=1e-12)


@pytest.mark.parametrize(("build", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_on_tensors(build, wanted):
    torch = pytest.importorskip("torch")
    from temperance.torch.ops import TORCH

    constants = {name: torch.from_numpy(values) for name, values in CONSTANTS.items()}
    got = build(torch.from_numpy(X), TORCH, constants)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)
