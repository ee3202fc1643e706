"""One block of rows: both kernels against the definitions, and against each other."""

from typing import Any

import numpy as np
import pytest
from core_reference import moments as reference_moments
from core_reference import softmax as reference_softmax
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temperance.core.blocks import FEW_CLASSES
from temperance.core.features import IMPOSSIBLE
from temperance.core.kernels import KNOTS, exponentiate
from temperance.core.row_block import RowBlock, block_type, first_equal, kernels_of_size

TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
CLASSES = [2, 3, 10, FEW_CLASSES - 1, FEW_CLASSES, FEW_CLASSES + 1, 100, 1000]
AGREEMENT = {np.float32: 1e-6, np.float64: 1e-12}  # of the two kernels
ACCURACY = {np.float32: 4e-6, np.float64: 1e-12}  # to the truth: beta d is rounded before its exponential
N_ROWS = 40


@pytest.fixture
def rows(kernel: str) -> type[RowBlock]:
    """Return each of the two types of blocks."""
    return block_type(1)


def block(n_classes: int, dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows from flat to confident, with one tie of two at the top and one of all classes."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N_ROWS, n_classes)) * np.geomspace(0.01, 10, N_ROWS)[:, None]
    z[0] = 3
    z[1, [0, -1]] = 1 + z[1].max()
    return z.astype(dtype), np.geomspace(0.2, 5, N_ROWS)[::-1].astype(dtype)


def run_moments(rows: type[RowBlock], z: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        return tuple(np.ravel(x) for x in rows(z).moments(beta[:, None], variance=True))


def run_softmax(rows: type[RowBlock], z: np.ndarray, beta: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return rows(z).mixture([beta[:, None]], np.ones(1))


def largest_errors(
    got: tuple[np.ndarray, ...], want: tuple[np.ndarray, ...], floor: float = 1e-300
) -> np.ndarray:
    """Return the largest error of r relative to s, of mu to |mu| and of v to E d^2."""
    r, mu, v = (np.asarray(x, np.float64) for x in want)
    scales = 1 + r, floor + np.abs(mu), floor + v + mu**2
    return np.array([np.max(np.abs(g - w) / s) for g, w, s in zip(got, (r, mu, v), scales, strict=True)])


@TYPES
@pytest.mark.parametrize("n_classes", CLASSES)
def test_moments_are_those_of_the_definition(rows, dtype, n_classes):
    z, beta = block(n_classes, dtype)
    errors = largest_errors(run_moments(rows, z, beta), reference_moments(z, beta)[:3])
    assert np.all(errors < ACCURACY[dtype]), errors


def test_r_mu_and_v_keep_their_digits_on_confident_rows(rows):
    gaps = np.array([20.0, 100.0, 300.0, 600.0])
    z = np.column_stack([np.zeros(4), -gaps, -gaps - 1, -gaps - 2])
    want = reference_moments(z, 1.0)
    for got, expected in zip(run_moments(rows, z, np.ones(4)), want, strict=False):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@TYPES
@pytest.mark.parametrize("n_classes", CLASSES)
def test_softmax_is_that_of_the_definition(rows, dtype, n_classes):
    z, beta = block(n_classes, dtype)
    got = run_softmax(rows, z, beta)
    np.testing.assert_allclose(got, reference_softmax(z, beta), rtol=0, atol=ACCURACY[dtype])
    np.testing.assert_allclose(got.sum(axis=1, dtype=np.float64), 1, rtol=0, atol=ACCURACY[dtype])


@TYPES
@pytest.mark.parametrize("n_classes", CLASSES)
def test_both_kernels_agree(dtype, n_classes):
    compiled = pytest.importorskip("temperance.core.compiled").CompiledBlock
    z, beta = block(n_classes, dtype, seed=1)
    errors = largest_errors(run_moments(compiled, z, beta), run_moments(RowBlock, z, beta))
    assert np.all(errors < AGREEMENT[dtype]), errors
    np.testing.assert_allclose(
        run_softmax(compiled, z, beta), run_softmax(RowBlock, z, beta), rtol=0, atol=AGREEMENT[dtype]
    )


@TYPES
@pytest.mark.parametrize("n_classes", [3, FEW_CLASSES + 8])
def test_a_masked_class_is_equivalent_to_an_absent_class(rows, dtype, n_classes):
    z, beta = block(n_classes, dtype, seed=2)
    masked = np.random.default_rng(3).permutation(n_classes)[: n_classes // 3]
    z[:, masked] = -np.inf
    kept = np.ascontiguousarray(np.delete(z, masked, axis=1))
    errors = largest_errors(run_moments(rows, z, beta), run_moments(rows, kept, beta))
    assert np.all(errors < AGREEMENT[dtype]), errors
    probabilities = run_softmax(rows, z, beta)
    assert np.all(probabilities[:, masked] == 0)
    np.testing.assert_allclose(
        np.delete(probabilities, masked, axis=1),
        run_softmax(rows, kept, beta),
        rtol=0,
        atol=AGREEMENT[dtype],
    )


@TYPES
@pytest.mark.parametrize("beta", [1e-6, 1.0, 1e6])
def test_a_masked_class_adds_nothing_at_any_temperature(rows, dtype, beta):
    z = np.array([[0.5, -np.inf, 0.5], [-np.inf, 2.0, -np.inf]], dtype)
    betas = np.full(2, beta, dtype)
    r, mu, v = run_moments(rows, z, betas)
    assert r.tolist() == [1, 0]  # a tie of two, a single possible class
    assert mu.tolist() == [0, 0]
    assert v.tolist() == [0, 0]
    assert run_softmax(rows, z, betas).tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


@TYPES
def test_a_constant_added_to_a_row_changes_nothing(rows, dtype):
    rng = np.random.default_rng(4)
    z = rng.integers(-64, 64, size=(20, 12)).astype(dtype) / 8  # sums with 4096 are exact
    beta = np.ones(20, dtype)
    for got, want in zip(run_moments(rows, z + 4096, beta), run_moments(rows, z, beta), strict=True):
        assert np.array_equal(got, want)


def test_the_top_is_the_first_of_equal_ones_and_the_peak_shows_a_nan():
    z = np.array([[1.0, 2.0, 2.0], [3.0, np.nan, 5.0], [-np.inf, -np.inf, -np.inf]])
    with np.errstate(invalid="ignore"):
        rows = RowBlock(z)
    assert rows.tops[[0, 2]].tolist() == [1, 0]
    np.testing.assert_equal(rows.peak[:, 0], [2.0, np.nan, -np.inf])


@settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it only names the type
)
@given(
    st.lists(st.floats(-1e6, 0), min_size=1, max_size=12),
    st.floats(1e-6, 1e6),
    st.floats(-1e3, 1e3),
)
def test_moments_of_any_row_at_any_temperature_are_close_and_finite(rows, gaps, beta, level):
    z = np.array([[level, *(level + g for g in gaps)]])
    got = run_moments(rows, z, np.array([beta]))
    want = reference_moments(z, beta)
    # A rounding error of d is one of beta d in its exponential.
    rtol = 1e-12 + 4 * np.finfo(float).eps * beta * min(np.abs(z).max(), 750 / beta)
    assert np.all(largest_errors(got, want[:3], floor=1.0) <= rtol)
    assert got[2][0] >= 0


def test_parts_of_a_large_array_use_its_kernels_even_if_a_pass_costs_more():
    pytest.importorskip("numba")
    for size, cost, compiled in (
        (1 << 28, 1, True),
        (1 << 25, 1, False),
        (1 << 25, 8, True),
        (1 << 24, 8, False),
    ):
        whole = block_type(size, cost)
        with kernels_of_size(size):
            part = block_type(10, cost)
        assert part is whole
        assert (whole.__name__ == "CompiledBlock") == compiled


@pytest.mark.parametrize("log", [False, True])
def test_a_mixture_is_a_probability_where_rounded_weights_add_up_to_more_than_1(log):
    weights, block = np.array([0.5, 0.25, 0.25 + 1e-15]), RowBlock(np.array([[0.0, -1e4]]), log=log)
    found = block.mapped_mixture(1.0, KNOTS, np.ones(len(KNOTS)), [1.0, 1.0, 1.0], weights)
    assert found[0, 0] == (0.0 if log else 1.0)


def test_the_largest_number_of_a_row_may_be_too_large_for_its_exponential():
    sums, log_sums = exponentiate(np.array([[2000.0, 1999.0], [-2000.0, -2001.0]]))
    np.testing.assert_allclose(
        log_sums, [2000 + np.log1p(np.exp(-1)), -2000 + np.log1p(np.exp(-1))], rtol=1e-14
    )
    np.testing.assert_allclose(sums, 1 + np.exp(-1), rtol=1e-14)


def test_at_a_temperature_of_one_an_impossible_class_stays_impossible():
    block = RowBlock(np.array([[0.0, 1.0, -np.inf, 1 - IMPOSSIBLE, 2 - IMPOSSIBLE]]))
    expected = [[False, False, True, True, False]]
    np.testing.assert_array_equal(np.isneginf(block.floored_log_probs(1.0)), expected)


@TYPES
def test_the_first_of_equal_numbers_is_found_as_argmax_does(dtype):
    x = np.random.default_rng(0).integers(0, 4, (500, FEW_CLASSES - 1)).astype(dtype)
    np.testing.assert_array_equal(first_equal(x, x.max(axis=1)[:, None]), x.argmax(axis=1))
    assert first_equal(np.full((1, 3), np.nan), 0).tolist() == [0]


@TYPES
@pytest.mark.parametrize("n_classes", [3, 40])
def test_the_logarithm_of_an_almost_certain_class_loses_no_digits(dtype, n_classes):
    z = np.zeros((2, n_classes), dtype)
    z[:, 1] = 30
    rows = RowBlock(z, log=True)
    scales, uniform = [np.full((2, 1), 1.0), np.full((2, 1), 0.9)], 1e-9
    found = rows.mapped_mixture(1.0, KNOTS, np.ones(len(KNOTS)), scales, [0.5, 0.5 - uniform], uniform)
    others = (n_classes - 1) * (0.5 * np.exp(-30.0) + 0.5 * np.exp(-27.0) + uniform / n_classes)
    np.testing.assert_allclose(found[:, 1], np.log1p(-others), rtol=1e-5)
