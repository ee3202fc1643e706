"""Log entropy and log confidence against mpmath, for any gap between the logits."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from core_reference import log_confidence, log_entropy
from hypothesis import given, settings
from hypothesis import strategies as st

from temperance.core import row_block
from temperance.core.logit_rows import LogitRows

EPS = np.finfo(np.float64).eps
GAPS = [
    0,
    1e-12,
    1e-6,
    1e-3,
    0.1,
    1,
    5,
    20,
    37,
    50,
    100,
    500,
    660,
    668,
    690,
    708,
    745,
    800,
    1e3,
    1e4,
    1e5,
    1e6,
]


def tolerance(want: np.ndarray, absolute: float = 1e-10) -> np.ndarray:
    """Allow 1e-10, and two units in the last place: at 1e6 one unit is 1.2e-10 already."""
    return absolute + 2 * EPS * np.abs(np.nan_to_num(want, neginf=0))


def rows_with_gaps(n_classes: int) -> np.ndarray:
    """For each gap: all others at it; one at it and the others far away; others spread from it on."""
    blocks = []
    for gap in GAPS:
        same = np.full(n_classes, -float(gap))
        lone = np.full(n_classes, -gap - 2000.0)
        lone[-1] = -gap
        spread = -gap - np.geomspace(1e-3, 1e3, n_classes)
        for row in (same, lone, spread):
            row[0] = 0.0
            blocks.append(np.roll(row, n_classes // 2))
    return np.array(blocks)


@cache
def rows_and_log_entropy(n_classes: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    z = (rows_with_gaps(n_classes) + 0.25).astype(dtype)
    return z, np.array([log_entropy(row) for row in z])


@pytest.mark.parametrize(("dtype", "absolute"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 300])
def test_log_entropy_equals_mpmath_for_gaps_from_0_to_a_million(kernel, n_classes, dtype, absolute):
    z, want = rows_and_log_entropy(n_classes, dtype)
    error = np.abs(LogitRows(z).log_entropy()[:, 0] - want)
    assert np.all(error <= tolerance(want, absolute)), error.max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_confidence_equals_mpmath(kernel, dtype):
    z = rows_with_gaps(10).astype(dtype)
    want = np.array([log_confidence(row) for row in z])
    rtol = {np.float32: 1e-5, np.float64: 1e-12}[dtype]
    # Below the smallest normal number an exponential is 0 or has lost its digits.
    np.testing.assert_allclose(
        LogitRows(z).log_confidence()[:, 0], want, rtol=rtol, atol=20 * np.finfo(dtype).tiny
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_possible_class_has_log_entropy_minus_infinity_and_full_confidence(kernel, dtype):
    z = np.array([[-np.inf, 3, -np.inf], [-np.inf, -np.inf, -7], [0, -np.inf, -np.inf]], dtype)
    assert LogitRows(z).log_entropy()[:, 0].tolist() == [-np.inf] * 3
    assert LogitRows(z).log_confidence()[:, 0].tolist() == [0] * 3


@pytest.mark.parametrize("name", ["numpy", "compiled"])
@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.lists(st.floats(0, 1e6) | st.floats(0, 800) | st.floats(0, 5), min_size=1, max_size=12))
def test_log_entropy_of_any_mixture_of_gaps_equals_mpmath(name, gaps):
    if name == "compiled":
        pytest.importorskip("numba")
    z = np.array([[0.0, *(-g for g in gaps), -np.inf]])  # a masked class has no effect
    want = log_entropy(z[0])
    with row_block.kernel(name):
        got = LogitRows(z).log_entropy()[:, 0][0]
    assert abs(got - want) <= tolerance(np.array(want))
