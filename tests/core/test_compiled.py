"""The exponential of the compiled loops, number by number."""

from typing import Any

import numpy as np
import pytest

numba = pytest.importorskip("numba")
from temperance.core import compiled  # noqa: E402  needs numba

LOWEST = {np.float32: -87.0, np.float64: -708.0}
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(scope="module")
def exponentials() -> Any:
    """Return a compiled loop over an array."""

    @numba.njit
    def each(x, out):
        for i in range(len(x)):
            out[i] = compiled.exp(x[i])

    def run(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        each(x, out)
        return out

    return run


@TYPES
def test_exp_is_right_to_one_unit_in_the_last_place(exponentials, dtype):
    lowest = LOWEST[dtype]
    halves = np.arange(np.ceil(2 * lowest / np.log(2)), 0) * np.log(2) / 2  # where the rounding of n turns
    x = np.concatenate(
        [np.linspace(lowest, 0, 200_001), -np.geomspace(1e-30, 1, 2000), halves, np.nextafter(halves, 0)]
    )
    x = x[x >= lowest].astype(dtype)
    want = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(exponentials(x) / want - 1)) < np.finfo(dtype).eps


@TYPES
def test_exp_is_one_at_zero_normal_at_the_lowest_argument_and_zero_below_it(exponentials, dtype):
    lowest = dtype(LOWEST[dtype])
    below = [np.nextafter(lowest, -np.inf), lowest - 1, 2 * lowest, -1e30, -np.inf]
    got = exponentials(np.array([0.0, -0.0, lowest, *below], dtype))
    assert got[:2].tolist() == [1, 1]
    assert got[2] >= np.finfo(dtype).tiny
    assert not got[3:].any()
