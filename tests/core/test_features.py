"""Entropy and gaps of a row against mpmath, and the features made of them."""

import os
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from core_reference import log_confidence, log_entropy
from hypothesis import given, settings
from hypothesis import strategies as st

from temperance.calibrators.bayes import build_design
from temperance.core.features import LOG_ENTROPY_FLOOR, SHAPE_FEATURES, shape_features
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData
from temperance.population import shipped_population

N_ROWS = 60
TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 40])
RTOL = {np.float64: 1e-10, np.float32: 2e-5}


def logits(n_classes, dtype, masked=0.0):
    """Return rows from flat to sure, with ties; a part of the classes masked, all but one in the last row."""
    rng = np.random.default_rng(n_classes)
    z = rng.normal(size=(N_ROWS, n_classes)) * np.geomspace(0.1, 10, N_ROWS)[:, None] + 3
    z[0] = 1.5  # all alike
    z[1, :2] = z[1].max() + 1  # two at the top
    hidden = rng.random(z.shape) < masked
    hidden[np.arange(N_ROWS), rng.integers(n_classes, size=N_ROWS)] = False
    if masked:
        hidden[-1] = np.arange(n_classes) > 0
    return np.where(hidden, -np.inf, z).astype(dtype)


def naive(z, beta):
    """Return log entropy, gap to the third and gap to the mean, of one row at a time."""
    result = []
    for row in z.astype(float):
        falling = np.sort(beta * row[np.isfinite(row)])[::-1]
        third = falling[min(2, len(falling) - 1)]
        h = log_entropy(beta * row) if len(falling) > 1 else -np.inf
        result.append((h, falling[0] - third, falling[0] - falling.mean()))
    return np.array(result).T


@TYPES
@CLASSES
@pytest.mark.parametrize("masked", [0.0, 0.6])
@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
def test_a_row_shape_matches_its_definition(kernel, dtype, n_classes, masked, beta):
    z = logits(n_classes, dtype, masked)
    got = np.array(LogitRows(z).shape_at(beta))[:, :, 0]
    assert got.dtype == np.float64
    log_h, third, mean = naive(z, beta)
    exact = log_h > -60
    assert exact.sum() >= N_ROWS / 3
    np.testing.assert_allclose(got[0][exact], log_h[exact], rtol=RTOL[dtype], atol=RTOL[dtype])
    assert np.all(got[0][~exact] < -59)
    np.testing.assert_allclose(got[1], third, rtol=RTOL[dtype], atol=RTOL[dtype])
    np.testing.assert_allclose(got[2], mean, rtol=RTOL[dtype], atol=RTOL[dtype])


@TYPES
@CLASSES
def test_the_features_are_those_of_their_names(dtype, n_classes):
    z = logits(n_classes, dtype)
    got = shape_features(LogitRows(z), 2.0)
    log_h, third, mean = naive(z, 0.5)
    h = np.maximum(log_h - np.log(np.log(n_classes)), LOG_ENTROPY_FLOOR)
    want = np.column_stack([h, h**2 / 10, np.log(1 + third), np.log(1 + mean)])
    assert got.shape == (N_ROWS, len(SHAPE_FEATURES))
    np.testing.assert_allclose(got, want, rtol=4 * RTOL[dtype], atol=4 * RTOL[dtype])


def test_the_features_are_finite_for_extremely_confident_rows():
    z = np.array([[1e6, 0.0, 0.0], [1e300, 0.0, -1e300], [3.0, -np.inf, -np.inf]])
    features = shape_features(LogitRows(z), 1.0)
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(features[:, 0], LOG_ENTROPY_FLOOR)


def design(z, weights=None):
    labels = np.arange(len(z)) % z.shape[1]
    return build_design(FitData(LogitRows(z, labels), weights), shipped_population())


def test_the_mean_log_entropy_is_that_of_the_rows_with_a_floor():
    z = np.vstack([logits(4, np.float64)[:20], [[1e6, 0, 0, 0]]])
    weights = np.arange(1.0, 22.0)
    log_h = np.array([log_entropy(row) for row in z[:-1]] + [LOG_ENTROPY_FLOOR])
    assert design(z).mean_log_entropy == pytest.approx(log_h.mean(), rel=1e-9)
    assert design(z, weights).mean_log_entropy == pytest.approx(np.average(log_h, weights=weights), rel=1e-9)


@pytest.mark.parametrize("mask", [-1e9, -1e30, np.finfo(np.float32).min])
@TYPES
def test_a_mask_that_is_a_low_number_is_a_mask(mask, dtype):
    z = logits(7, dtype)
    z[::3, 2] = z[::2, 5] = -np.inf
    low = np.where(np.isfinite(z), z, dtype(mask))
    np.testing.assert_array_equal(shape_features(LogitRows(low), 2.0), shape_features(LogitRows(z), 2.0))


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
def test_a_class_counts_up_to_20000_units_below_the_top(beta):
    gaps = np.array([[0.0, 8.0, 20_000.0], [0.0, 8.0, 20_001.0]]) / beta
    _, gap_to_third, gap_to_mean = LogitRows(-gaps).shape_at(beta)
    np.testing.assert_allclose(gap_to_third[:, 0], [20_000, 8], rtol=1e-12)
    np.testing.assert_allclose(gap_to_mean[:, 0], [20_008 / 3, 8 / 2], rtol=1e-12)


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
    with patch.dict(os.environ, TEMPERANCE_KERNEL=name):
        got = LogitRows(z).log_entropy()[:, 0][0]
    assert abs(got - want) <= tolerance(np.array(want))
