"""Intervals: the same everywhere, with the right coverage, and computed only from summaries of rows."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from temperance import compare, metrics
from temperance.data import simulate as simulate_task
from temperance.metrics import bins as metric_bins
from temperance.metrics.bootstrap import (
    Resamples,
    Residuals,
    binomial_deviation,
    bootstrap,
    expected_noise,
    kept_scales,
    plausible_shapes,
)
from temperance.metrics.decomposition import Recalibrations
from temperance.metrics.predictions import Predictions, check_rows, risk_curve


def test_compare_and_evaluate_give_the_same_bits():
    task = simulate_task(600, 4, random_state=3)
    val, test = slice(0, 300), slice(300, 600)
    result = compare(task.logits[val], task.labels[val], task.logits[test], task.labels[test], ["ts"])
    probs = result.results["ts"].calibrator.predict_proba(task.logits[test].astype(np.float64))
    alone = metrics.evaluate(probs, task.labels[test])
    assert repr(alone) == repr(result.results["ts"].scores)
    assert alone.draws == 1000


def test_resamples_depend_on_their_seed_and_are_drawn_again_alike(monkeypatch):
    kept = np.hstack(list(Resamples(50, 300, 7).blocks()))
    monkeypatch.setattr("temperance.metrics.bootstrap._MAX_KEPT", 0)
    again = Resamples(50, 300, 7)
    np.testing.assert_array_equal(np.hstack(list(again.blocks())), kept)
    np.testing.assert_array_equal(np.hstack(list(again.blocks())), kept)
    assert abs(kept.mean()) < 0.04
    assert (np.hstack(list(Resamples(50, 300, 8).blocks())) != kept).any()


def test_draws_are_those_of_weighted_residuals():
    rng = np.random.default_rng(0)
    residual, weight = rng.normal(size=(3, 40)), rng.uniform(0.5, 2, 40)
    resamples = Resamples(40, 20, 1)
    mean = residual @ weight / weight.sum()
    noise = bootstrap(weight, {"x": Residuals(mean, lambda w: residual @ w, mean)}, resamples)
    factors = np.hstack(list(resamples.blocks()))
    direct = ((residual - mean[:, None]) * weight) @ factors / weight.sum()
    np.testing.assert_allclose(noise["x"], direct, atol=1e-6)


@pytest.mark.parametrize("n_classes", [3, 30])
def test_the_recalibrated_confidence_is_that_of_the_shrunk_model(simulate, n_classes):
    probs, labels, _ = simulate(300, n_classes, sharpen=2.0)
    rows = check_rows(probs, labels % 3, np.random.default_rng(3).uniform(1, 2, 300))
    recalibrations = Recalibrations(rows)
    model, precision = recalibrations._of_all_rows
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    log_temperature, *bias = theta * np.maximum(1 - 1 / (precision * theta**2), 0)
    of_classes = np.zeros(n_classes)  # with 30 classes, those without labels have no bias
    of_classes[getattr(recalibrations._family, "own", np.arange(n_classes))] = bias
    q = softmax(np.exp(-log_temperature) * np.log(np.asarray(probs, np.float64)) + of_classes, axis=1)
    found = recalibrations.confidence()
    np.testing.assert_allclose(found, q[np.arange(300), rows.top], atol=1e-6)
    assert np.abs(found - rows.confidence).max() > 0.01


def test_the_expected_noise_of_bins_is_that_of_simulated_labels():
    rng = np.random.default_rng(0)
    stated, true = np.array([0.02, 0.3, 0.6]), np.array([0.02, 0.3, 0.5])
    shares, n_rows, n = np.array([0.7, 0.299, 0.001]), 300, 20_000
    counts = rng.multinomial(n_rows, shares, size=n)
    residual = rng.binomial(counts, true) - counts * stated
    direct = np.abs(residual - n_rows * shares * (true - stated)).mean(axis=0) / n_rows
    count = n_rows * shares
    found = expected_noise(count, count * stated, count * (true - stated), np.ones(n_rows))
    np.testing.assert_allclose(found[:2], direct[:2], rtol=0.02)
    doubled = expected_noise(2 * count, 2 * count * stated, 2 * count * (true - stated), np.full(n_rows, 2.0))
    np.testing.assert_allclose(doubled, found, rtol=1e-9)


def test_noise_that_is_too_small_is_scaled_to_what_is_expected():
    noise = np.array([[1.0, -1.0], [3.0, 3.0], [5.0, 5.0]], np.float32)
    for expected, factor in (([4.0, 4.0, 0.0], 2.0), ([1.0, 1.0, 0.0], 1.0)):
        residuals = Residuals(np.zeros(3), lambda w: w, np.zeros(3), expected=np.array(expected))
        np.testing.assert_allclose(residuals.scaled(noise), factor * noise)


def test_classes_that_do_not_occur_are_one_residual_and_the_error_is_the_same(simulate):
    probs, _, _ = simulate(50, 30, sharpen=1.5)
    labels = np.arange(50) % 4
    rows = check_rows(probs, labels)
    assert len(metric_bins._residuals(rows, 15)) == 4 * 15 + 1
    residual = np.eye(30)[labels] - probs
    index = np.clip(np.ceil(probs * 15).astype(int) - 1, 0, 14)
    direct = sum(np.abs(np.bincount(index[:, k], residual[:, k])).sum() for k in range(30)) / (50 * 30)
    assert metric_bins.classwise_error(rows, 15) == pytest.approx(direct, rel=1e-10)


def test_the_influence_of_a_row_on_the_risk_curve_is_a_derivative(simulate):
    probs, labels, _ = simulate(60, 3)
    probs[:10] = probs[0]  # ties
    area, influence = risk_curve(check_rows(probs, labels))
    for row in (0, 5, 30, 59):
        weight = np.ones(60)
        weight[row] += 1e-6
        moved, _ = risk_curve(check_rows(probs, labels, weight))
        assert influence[row] == pytest.approx(60 * (moved - area) / 1e-6, abs=1e-4)
    assert influence.sum() == pytest.approx(0, abs=1e-9)


def test_binomial_deviations_are_sums_over_counts():
    count, rate = np.array([1.0, 7.0, 50.0, 400.0]), np.array([0.2, 0.3, 0.01, 0.5])
    direct = [
        (np.abs(np.arange(n + 1) - n * p) * stats.binom.pmf(np.arange(n + 1), n, p)).sum()
        for n, p in zip(count.astype(int), rate, strict=True)
    ]
    np.testing.assert_allclose(binomial_deviation(count, rate), direct, rtol=1e-9)


@pytest.mark.parametrize("n_true", [1, 6])
@pytest.mark.parametrize("truth", [0.0, 3.0, 12.0, 60.0])
@pytest.mark.parametrize("seen", [True, False])
def test_kept_scales_cover_the_norm_of_a_normal_vector(truth, n_true, seen):
    rng = np.random.default_rng(2)
    hits, n = 0, 300
    noise = rng.normal(size=(6, 400)).astype(np.float32)
    true = truth / n_true * (np.arange(6) < n_true)
    for _ in range(n):
        mean = true + rng.normal(size=6)
        size = np.abs(mean).sum()
        shapes = plausible_shapes(mean, true if seen else np.zeros(6), noise)
        low, high = kept_scales(size, mean, shapes, noise, 0.95)
        hits += low * size <= truth <= max(high, 1.0) * size
    # One large residual that no recalibrator sees: noise of the others looks like residuals.
    assert (0.92 if seen or n_true > 1 else 0.82) <= hits / n <= 0.99, hits / n


def test_where_noise_dominates_the_interval_still_misses_at_its_level():
    # 40 residuals, each far below its noise: the observed norm is always above the truth.
    rng, n, missed = np.random.default_rng(5), 400, 0
    noise, true = rng.normal(size=(40, 400)).astype(np.float32), np.full(40, 0.2)
    for mean in true + rng.normal(size=(n, 40)):
        size = np.abs(mean).sum()
        assert size > true.sum()
        low, high = kept_scales(size, mean, plausible_shapes(mean, true, noise), noise, 0.95)
        missed += not low * size <= true.sum() <= max(high, 1.0) * size
    assert 0.02 <= missed / n <= 0.08


def test_the_debiased_error_has_its_own_interval(simulate):
    result = metrics.evaluate(*simulate(400, 4, sharpen=1.3)[:2], draws=300)
    plain, debiased = result["ece"], result["debiased_ece"]
    assert debiased.value < plain.value
    assert (debiased.low, debiased.high) != (plain.low, plain.high)
    assert debiased.low <= debiased.value <= debiased.high


class CountingArray(np.ndarray):
    """An array that counts how many numbers of it are read by ufuncs and other functions."""

    read = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        for one in inputs:
            if isinstance(one, CountingArray):
                CountingArray.read += one.size
        plain = [np.asarray(one) if isinstance(one, CountingArray) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **options)


def test_resamples_do_not_read_the_probabilities_again(simulate):
    probs, labels, _ = simulate(300, 50)
    found = []
    for draws in (10, 400):
        CountingArray.read = 0
        rows = Predictions(probs.view(CountingArray), labels, np.ones(300))
        metrics.evaluation.Scorer(15, 0.95, draws, 0).evaluate(rows)
        found.append(CountingArray.read / probs.size)
    assert found[0] == found[1] <= 6
