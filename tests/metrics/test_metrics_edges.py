"""Intervals of norms by their definition, smoothing by its kernel, and what is shown at round numbers."""

import numpy as np
import pytest
from scipy.stats import norm

from temperance import metrics
from temperance.core.logit_rows import LogitRows
from temperance.metrics import CalibrationTest, Estimate, Evaluation
from temperance.metrics import bootstrap as module
from temperance.metrics.bootstrap import Resamples, Residuals, kept_scales, norm_interval, plausible_shapes
from temperance.metrics.calibration_tests import maximum_survival, verdict
from temperance.metrics.predictions import check_rows
from temperance.metrics.recalibration import Recalibrator, fit_bias, fit_temperature
from temperance.metrics.smooth import smooth_parts, smoothed
from temperance.metrics.vocabulary import open_recalibration

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
    observed, shape = float(np.abs(residuals).sum()), direction[:, None].astype(np.float32)
    low, high = kept_scales(observed, residuals, (shape, shape), noise, 1 - ALPHA)
    assert keeps(high * 0.99, direction, residuals, noise)[1]
    assert not keeps(high * 1.01, direction, residuals, noise)[1]
    if low == 0:
        assert keeps(0.0, direction, residuals, noise)[0]
    else:
        assert keeps(low * 1.01, direction, residuals, noise)[0]
        assert not keeps(low * 0.99, direction, residuals, noise)[0]


def test_without_noise_an_interval_is_its_estimate():
    mean, none = np.array([0.1, -0.2]), np.zeros((2, 50), np.float32)
    found = norm_interval(0.3, Residuals(mean, lambda weights: none, np.zeros(2)), none, 0.9)
    assert (found.low, found.high) == (0.3, 0.3)
    noise = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    shapes = plausible_shapes(np.zeros(2), np.zeros(2), noise)
    assert kept_scales(0.0, np.zeros(2), shapes, noise, 0.9) == (1.0, 1.0)


def test_plausible_residuals_are_the_fitted_ones_and_what_noise_does_not_explain():
    noise = np.random.default_rng(0).normal(size=(5, 400)).astype(np.float32)
    fitted = np.array([1.0, 0.0, -3.0, 0.0, 0.0])
    for near in plausible_shapes(fitted + 0.5, fitted, noise):
        np.testing.assert_allclose(near[:, 0], fitted / 4, rtol=1e-6)
    mean = np.array([1.5, 0.0, -3.0, 300.0, 100.0])
    sparse, dense = plausible_shapes(mean, fitted, noise)
    np.testing.assert_allclose(sparse[:, 0], np.array([1.0, 0.0, -3.0, 300.0, 100.0]) / 404, atol=1e-4)
    np.testing.assert_allclose(dense.mean(axis=1), mean / 405, atol=3e-3)
    assert (dense.std(axis=1) > 0.2 / 405).all()
    for no_fit in plausible_shapes(np.full(5, 0.5), np.zeros(5), noise):
        np.testing.assert_allclose(no_fit[:, 1], noise[:, 0] / np.abs(noise[:, 0]).sum(), rtol=1e-5)
    np.testing.assert_allclose(np.abs(dense).sum(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("width", [0.05, 0.1, 0.4])
def test_smoothing_is_by_a_gaussian_reflected_at_0_and_1(width):
    n = 128
    t = (np.arange(n) + 0.5) / n
    residual = np.random.default_rng(2).normal(size=n)
    kernel = sum(
        norm.pdf(t[:, None] - t + 2 * m, scale=width) + norm.pdf(t[:, None] + t + 2 * m, scale=width)
        for m in range(-4, 5)
    )
    np.testing.assert_allclose(smoothed(residual, width), kernel @ residual / n, atol=1e-10)
    both = smoothed(np.column_stack([residual, 2 * residual]), width)
    np.testing.assert_allclose(both[:, 1], 2 * smoothed(residual, width), rtol=1e-12)


@pytest.mark.parametrize("x", [3.0, 10.0, 25.0])
def test_a_small_p_value_has_all_its_digits(x):
    assert maximum_survival(x) == pytest.approx(4 * norm.sf(x) - 4 * norm.sf(3 * x), rel=1e-10, abs=0)


@pytest.mark.parametrize(("p_value", "shown"), [(0.001, "0.001"), (0.00099, "< 0.001"), (0.05, "0.050")])
def test_a_p_value_is_shown_down_to_a_thousandth(p_value, shown):
    evaluation = Evaluation(
        {"nll": Estimate(1, 1, 1)}, 10, 2, 15, 100, 0.95, {"cox": CalibrationTest(2.0, p_value, "")}
    )
    assert evaluation.shown_tests() == [("cox", "2.00", shown)]
    assert ("not calibrated" in verdict(p_value)) == (p_value < 0.05)


def test_resamples_are_random_factors_and_the_same_each_time():
    resamples = Resamples(50, 600, seed=3)
    factors = np.hstack(list(resamples.blocks()))
    assert factors.shape == (50, 600)
    for power, moment in enumerate((0, 1, 1), start=1):
        assert np.mean(factors.astype(float) ** power) == pytest.approx(moment, abs=0.05)
    assert len(np.unique(factors)) == 2
    assert max(block.shape[1] for block in resamples.blocks()) <= 256
    np.testing.assert_array_equal(factors, np.hstack(list(resamples.blocks())))


def test_a_bias_that_is_fixed_stays_and_classes_without_labels_or_weight_share_one():
    rng = np.random.default_rng(5)
    logs = np.log(rng.dirichlet(np.ones(12), size=400)).astype(np.float32)
    logs -= logs.max(axis=1, keepdims=True)
    labels = rng.integers(0, 3, 400)
    totals = np.where(np.arange(12) < 3, 100.0, 0.0)
    recalibration = open_recalibration(logs, labels, totals)
    scaled, biased = recalibration.fit(np.ones(400), recalibration.start)
    assert scaled.beta == pytest.approx(fit_temperature(LogitRows(logs, labels), np.ones(400)), rel=1e-6)
    assert biased.bias.shape == (3,)
    merged = np.column_stack(
        [scaled.beta * logs[:, :3], np.logaddexp.reduce(scaled.beta * logs[:, 3:], axis=1)]
    )

    fixed = Recalibrator(1.0, np.array([0.0, 0.0, 0.0, 0.25]))
    found = fit_bias(LogitRows(merged, labels), np.ones(400), fixed, last_is_fixed=True)
    assert found.bias[-1] == pytest.approx(0.25, abs=1e-9)
    assert (found.bias[:3] > 0.3).all()  # all labels are of these three


def test_a_block_of_resamples_holds_a_limited_number_of_factors(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_SIZE", 200)
    blocks = list(Resamples(50, 11, seed=3).blocks())
    assert [block.shape[1] for block in blocks] == [4, 4, 3]


def test_the_debiased_error_of_a_large_gap_with_little_noise_has_a_narrow_interval():
    probs = np.tile([[0.9, 0.1]], (4000, 1))
    labels = (np.arange(4000) % 10 >= 7).astype(int)  # 7 of 10 are right
    found = metrics.evaluate(probs, labels, draws=300)["debiased_ece"]
    assert found.value == pytest.approx(0.2, abs=1e-3)
    assert 0.18 < found.low < 0.195
    assert 0.205 < found.high < 0.22


@pytest.mark.parametrize("sharpen", [1.3, 2.0, 4.0])
def test_the_smoothed_residuals_of_the_rows_have_the_smooth_error_as_their_norm(sharpen, simulate):
    probs, labels, _ = simulate(500, 3, sharpen=sharpen)
    value, residuals = smooth_parts(check_rows(probs, labels), np.zeros(500))
    assert np.abs(residuals.mean).sum() == pytest.approx(value, rel=0.02)
    assert len(residuals.mean) >= 4 / value  # four cells in the width of the kernel
