"""Intervals: the same everywhere, with the right coverage, and computed only from summaries of rows."""

import numpy as np
import pytest
from scipy import stats

from temperance import compare, metrics
from temperance.data import simulate as simulate_task
from temperance.metrics.bootstrap import Residuals, binomial_deviation, bootstrap, kept_scales, norms
from temperance.metrics.class_bins import ClassBins
from temperance.metrics.predictions import Predictions, check_rows
from temperance.metrics.resamples import Resamples
from temperance.metrics.selective import RiskCurve


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
    monkeypatch.setattr("temperance.metrics.resamples._MOST_KEPT", 0)
    again = Resamples(50, 300, 7)
    np.testing.assert_array_equal(np.hstack(list(again.blocks())), kept)
    np.testing.assert_array_equal(np.hstack(list(again.blocks())), kept)
    assert (kept.sum(axis=0) == 50).all()
    assert (np.hstack(list(Resamples(50, 300, 8).blocks())) != kept).any()


def test_draws_are_those_of_weighted_residuals():
    rng = np.random.default_rng(0)
    residual, weight = rng.normal(size=(3, 40)), rng.uniform(0.5, 2, 40)
    resamples = Resamples(40, 20, 1)
    mean = residual @ weight / weight.sum()
    noise = bootstrap(weight, {"x": Residuals(mean, lambda w: residual @ w)}, resamples)
    counts = np.hstack(list(resamples.blocks())) * weight[:, None]
    np.testing.assert_allclose(noise["x"], residual @ counts / counts.sum(axis=0) - mean[:, None], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_noise_of_classes_is_that_of_their_residuals_in_bins(simulate, weighted):
    probs, labels, _ = simulate(500, 3, sharpen=1.5)
    weight = np.random.default_rng(1).uniform(0.5, 2, 500) if weighted else np.ones(500)
    rows = check_rows(probs, labels, weight)
    bins = ClassBins(rows, 10)
    plain = Residuals(bins.mean, bins.residuals().sums, bins.residuals().shift)
    resamples = Resamples(500, 300, 1)
    noise = bootstrap(weight, {"classes": plain}, resamples)
    direct = []
    for counts in np.hstack(list(resamples.blocks())).T:
        kept = counts > 0
        direct.append(
            metrics.classwise_ece(probs[kept], labels[kept], bins=10, sample_weight=(counts * weight)[kept])
        )
    drawn = norms(bins.mean[:, None] + noise["classes"])
    # Small probabilities stand for their mean, which is the only difference.
    assert np.corrcoef(drawn, direct)[0, 1] > 0.98
    assert drawn.mean() == pytest.approx(np.mean(direct), rel=0.02)
    assert drawn.std() == pytest.approx(np.std(direct), rel=0.1)


def test_the_noise_of_small_probabilities_that_do_not_vary_is_exact():
    rng = np.random.default_rng(4)
    labels, weight = rng.integers(3, size=80), rng.uniform(0.2, 3, 80)
    bins = ClassBins(check_rows(np.full((80, 30), 1 / 30), labels, weight), 15)
    plain = Residuals(bins.mean, bins.residuals().sums, bins.residuals().shift)
    resamples = Resamples(80, 20, 1)
    noise = bootstrap(weight, {"classes": plain}, resamples)
    counts = np.hstack(list(resamples.blocks())) * weight[:, None]
    share = np.eye(3)[labels].T @ counts / counts.sum(axis=0)
    direct = (share - 1 / 30) / 30
    np.testing.assert_allclose((bins.mean[:, None] + noise["classes"])[:3], direct, atol=1e-7)


def test_classes_that_do_not_occur_are_one_residual_and_the_error_is_the_same(simulate):
    probs, _, _ = simulate(50, 30, sharpen=1.5)
    labels = np.arange(50) % 4
    bins = ClassBins(check_rows(probs, labels), 15)
    assert len(bins.occurring) == 4
    residual = np.eye(30)[labels] - probs
    index = np.clip(np.ceil(probs * 15).astype(int) - 1, 0, 14)
    direct = sum(np.abs(np.bincount(index[:, k], residual[:, k])).sum() for k in range(30)) / (50 * 30)
    assert np.abs(bins.mean).sum() == pytest.approx(direct, rel=1e-10)


def test_the_influence_of_a_row_on_the_risk_curve_is_a_derivative(simulate):
    probs, labels, _ = simulate(60, 3)
    probs[:10] = probs[0]  # ties
    curve = RiskCurve(check_rows(probs, labels))
    for row in (0, 5, 30, 59):
        weight = np.ones(60)
        weight[row] += 1e-6
        moved = RiskCurve(check_rows(probs, labels, weight)).area
        assert curve.influence[row] == pytest.approx(60 * (moved - curve.area) / 1e-6, abs=1e-4)
    assert curve.influence.sum() == pytest.approx(0, abs=1e-9)


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
    for _ in range(n):
        mean = truth / n_true * (np.arange(6) < n_true) + rng.normal(size=6)
        size = np.abs(mean).sum()
        low, high = kept_scales(size, mean, noise, 0.95)
        hits += low * size <= truth <= max(high, 1.0) * size
    # A norm with one large residual: noise of the others looks like residuals, which reduces coverage.
    assert (0.91 if n_true > 1 or truth == 0 else 0.85) <= hits / n <= 0.99, hits / n


@pytest.mark.parametrize(
    ("n_residuals", "correlation", "size"),
    [
        pytest.param(40, 0.0, 1.5, id="many residuals, each close to its noise"),
        pytest.param(12, 0.9, 0.5, id="residuals of one sign whose noise moves together"),
    ],
)
def test_the_upper_end_is_cautious_where_noise_adds_little(n_residuals, correlation, size):
    rng, n, below = np.random.default_rng(5), 400, 0

    def draw(count):
        own, shared = rng.normal(size=(n_residuals, count)), rng.normal(size=count)
        return np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared

    noise, truth = draw(400).astype(np.float32), size * n_residuals
    for mean in size + draw(n).T:
        length = np.abs(mean).sum()
        below += max(kept_scales(length, mean, noise, 0.95)[1], 1.0) * length < truth
    # Multiples of the observed residuals would miss 16 % in the first case and 24 % in the second.
    assert below / n <= 0.04


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
