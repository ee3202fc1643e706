"""Intervals of norms by their definition, their noise, and the resamples behind them."""

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from temperance.metrics import bootstrap as module
from temperance.metrics.bootstrap import (
    binomial_deviation,
    bootstrap,
    expected_noise,
    kept_scales,
    norm_interval,
    plausible_shapes,
    random_factors,
    scaled,
)
from temperance.metrics.predictions import Predictions


def test_factors_have_their_moments_and_are_those_of_their_seed(monkeypatch):
    blocks = list(random_factors(50, 600, 7))
    assert [block.shape for block in blocks] == [(50, 256), (50, 256), (50, 88)]
    factors = np.hstack(blocks)
    for power, moment in enumerate((0, 1, 1), start=1):
        assert np.mean(factors.astype(float) ** power) == pytest.approx(moment, abs=0.05)
    assert len(np.unique(factors)) == 2
    monkeypatch.setattr(module, "_BLOCK_SIZE", 50 * 250)
    narrow = list(random_factors(50, 600, 7))
    assert [block.shape[1] for block in narrow] == [250, 250, 100]
    np.testing.assert_array_equal(np.hstack(narrow), factors)
    assert (np.hstack(list(random_factors(50, 600, 8))) != factors).any()


def test_draws_are_those_of_weighted_residuals():
    rng = np.random.default_rng(0)
    weight, p = rng.uniform(0.5, 2, 40), rng.uniform(0.5, 1, 40)
    rows = Predictions(np.column_stack([p, 1 - p]), rng.integers(2, size=40), weight)
    place = rng.normal(size=(3, 40))
    residual = place * rows.residual
    mean = residual @ weight / weight.sum()
    (noise,) = bootstrap(rows, (csr_array(place),), 20, 1)
    *factors, of_error = np.hstack(list(random_factors(41, 20, 1)))
    direct = ((residual - mean[:, None]) * weight) @ factors / weight.sum()
    # The rest is a pseudo-error: a row that is wrong, with the weight of one row.
    rest = (noise - direct) * weight.sum() ** 2 / (weight @ weight) / of_error + mean[:, None]
    for column in rest.T:
        assert np.abs(place * -p - column[:, None]).max(axis=0).min() < 1e-4


def test_the_expected_noise_of_bins_is_that_of_simulated_labels():
    rng = np.random.default_rng(0)
    stated = np.array([0.02, 0.3, 0.6])
    shares, n_rows, n = np.array([0.7, 0.299, 0.001]), 300, 20_000
    counts = rng.multinomial(n_rows, shares, size=n)
    direct = np.abs(rng.binomial(counts, stated) - counts * stated).mean(axis=0) / n_rows
    count = n_rows * shares
    none = np.zeros(3)
    found = expected_noise(count, count * stated, none, np.ones(n_rows))
    np.testing.assert_allclose(found[:2], direct[:2], rtol=0.02)
    doubled = expected_noise(2 * count, 2 * count * stated, none, np.full(n_rows, 2.0))
    np.testing.assert_allclose(doubled, found, rtol=1e-9)


def test_noise_that_is_too_small_is_scaled_to_what_is_expected():
    noise = np.array([[1.0, -1.0], [3.0, 3.0], [5.0, 5.0]], np.float32)
    for expected, factor in (([4.0, 4.0, 0.0], 2.0), ([1.0, 1.0, 0.0], 1.0)):
        np.testing.assert_allclose(scaled(noise, np.array(expected)), factor * noise)


def test_binomial_deviations_are_sums_over_counts():
    count, rate = np.array([1.0, 7.0, 50.0, 400.0]), np.array([0.2, 0.3, 0.01, 0.5])
    direct = [
        (np.abs(np.arange(n + 1) - n * p) * stats.binom.pmf(np.arange(n + 1), n, p)).sum()
        for n, p in zip(count.astype(int), rate, strict=True)
    ]
    np.testing.assert_allclose(binomial_deviation(count, rate), direct, rtol=1e-9)


@pytest.mark.parametrize("n_true", [1, 6])
@pytest.mark.parametrize("truth", [0.0, 3.0, 12.0, 60.0])
def test_kept_scales_cover_the_norm_of_a_normal_vector(truth, n_true):
    rng = np.random.default_rng(2)
    hits, n = 0, 300
    noise = rng.normal(size=(6, 400)).astype(np.float32)
    true = truth / n_true * (np.arange(6) < n_true)
    for _ in range(n):
        mean = true + rng.normal(size=6)
        size = np.abs(mean).sum()
        shapes = plausible_shapes(mean, noise)
        low, high = kept_scales(mean, shapes, noise, 0.95)
        hits += low * size <= truth <= max(high, 1.0) * size
    # One large residual: noise of the others looks like residuals.
    assert (0.92 if n_true > 1 else 0.82) <= hits / n <= 0.99, hits / n


def test_where_noise_dominates_the_interval_misses_no_more_than_its_level():
    # 40 residuals, each far below its noise: the observed norm is always above the truth.
    rng, n, missed = np.random.default_rng(5), 400, 0
    noise, true = rng.normal(size=(40, 400)).astype(np.float32), np.full(40, 0.2)
    for mean in true + rng.normal(size=(n, 40)):
        size = np.abs(mean).sum()
        assert size > true.sum()
        low, high = kept_scales(mean, plausible_shapes(mean, noise), noise, 0.95)
        missed += not low * size <= true.sum() <= max(high, 1.0) * size
    assert 0.005 <= missed / n <= 0.08


ALPHA = 0.1


def keeps(t, direction, residuals, noise):
    """Say whether the two tails at t, of residuals in a direction of length 1, are wide enough."""
    observed = np.abs(residuals).sum()
    norms = np.array([np.abs(t * observed * direction + e).sum() for e in noise.T])
    a = min(ALPHA / 2, np.mean(norms < t * observed))
    return np.mean(norms >= observed) >= ALPHA - a, np.mean(norms <= observed) >= a


@pytest.mark.parametrize("size", [0.3, 1.0, 3.0])
def test_the_ends_of_an_interval_of_a_norm_are_where_the_test_begins_to_reject(size):
    rng = np.random.default_rng(1)
    residuals = size * np.array([0.6, -0.3, 0.05, 0.4])
    noise = (0.3 * rng.exponential(size=(4, 1000)) - 0.2).astype(np.float32)  # skewed: its sign matters
    direction = np.array([0.5, -0.3, 0.0, 0.2])
    shape = direction[:, None].astype(np.float32)
    low, high = kept_scales(residuals, (shape, shape), noise, 1 - ALPHA)
    assert keeps(high * 0.99, direction, residuals, noise)[1]
    assert not keeps(high * 1.01, direction, residuals, noise)[1]
    if low == 0:
        assert keeps(0.0, direction, residuals, noise)[0]
    else:
        assert keeps(low * 1.01, direction, residuals, noise)[0]
        assert not keeps(low * 0.99, direction, residuals, noise)[0]


def test_without_noise_an_interval_is_its_estimate():
    mean, none = np.array([0.1, -0.2]), np.zeros((2, 50), np.float32)
    found = norm_interval(0.3, mean, none, 0.9, 0.0)
    assert (found.low, found.high) == (0.3, 0.3)
    noise = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    shapes = plausible_shapes(np.zeros(2), noise)
    assert kept_scales(np.zeros(2), shapes, noise, 0.9) == (1.0, 1.0)


def test_plausible_residuals_are_what_noise_does_not_explain():
    noise = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32)
    mean = np.array([0.5, 0.0, 0.0, 300.0, 100.0])
    sparse, dense = plausible_shapes(mean, noise)
    np.testing.assert_allclose(sparse[:, 0], np.array([0.0, 0.0, 0.0, 300.0, 100.0]) / 400, atol=1e-4)
    np.testing.assert_allclose(dense.mean(axis=1), mean / 403, atol=3e-3)
    assert (dense.std(axis=1) > 0.2 / 403).all()
    for by_chance in plausible_shapes(np.full(5, 0.5), noise):
        np.testing.assert_allclose(by_chance[:, 1], noise[:, 0] / np.abs(noise[:, 0]).sum(), rtol=1e-5)
    np.testing.assert_allclose(np.abs(dense).sum(axis=0), 1, rtol=1e-5)


def test_for_the_lower_end_a_residual_is_shrunk_by_the_variance_of_its_noise():
    noise = 0.1 * np.random.default_rng(2).normal(size=(3, 4000)).astype(np.float32)
    sparse, _ = plausible_shapes(np.array([0.5, 0.2, 0.02]), noise)
    shape = np.array([0.5 - 0.01 / 0.5, 0.2 - 0.01 / 0.2, 0.0])
    np.testing.assert_allclose(sparse[:, 0], shape / shape.sum(), atol=0.01)
