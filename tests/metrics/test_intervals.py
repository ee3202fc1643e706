"""Intervals of means: of their level also for skewed rows, and never silently too narrow."""

from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from temperance import metrics
from temperance.metrics.intervals import (
    distances,
    mean_interval,
    proportion_interval,
    spread,
)
from temperance.metrics.predictions import check_rows


def transformed(t, skewness):
    """Return Hall's transformation, as the paper has it."""
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


@pytest.mark.parametrize("skewness", [-0.09, -1e-3, 1e-3, 0.09])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_ends_of_slightly_skewed_rows_are_where_the_transformation_has_the_quantiles_of_t(
    skewness, confidence
):
    below, above = distances(skewness, 30.0, confidence)
    quantile = stats.t.ppf((1 + confidence) / 2, 29)
    assert transformed(below, skewness) == pytest.approx(quantile, rel=1e-9)
    assert transformed(-above, skewness) == pytest.approx(-quantile, rel=1e-9)


@pytest.mark.parametrize("events", [1, 2, 4])
def test_a_handful_of_events_has_the_upper_end_of_a_poisson_count(events):
    values = np.repeat([1.0, 0.0], [events, 10_000 - events])
    found = mean_interval(values, np.ones(10_000), 0.95)
    exact = stats.chi2.ppf(0.975, 2 * events + 2) / 2
    assert 10_000 * found.high == pytest.approx(exact, rel=1e-3)
    mirrored = mean_interval(-values, np.ones(10_000), 0.95, -1, 0)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_rows_without_skewness_have_the_interval_of_student():
    half = np.random.default_rng(0).normal(size=10)
    values = 3 + np.concatenate([half, -half])
    found = mean_interval(values, np.ones(20), 0.9)
    expected = stats.t.interval(0.9, 19, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_the_mean_of_skewed_rows_is_covered_on_both_sides():
    rng, n_rows, n = np.random.default_rng(1), 60, 3000
    above = below = plain_below = 0
    for values in rng.exponential(size=(n, n_rows)):
        found = mean_interval(values, np.ones(n_rows), 0.95)
        above, below = above + (found.low > 1), below + (found.high < 1)
        plain_below += values.mean() + 1.96 * stats.sem(values) < 1
    # The standard error of 2.5 % is 0.3 %.
    assert above / n == pytest.approx(0.025, abs=0.012)
    assert below / n == pytest.approx(0.025, abs=0.012)
    assert plain_below / n > 0.045


def test_weighted_rows_have_the_error_and_the_skewness_of_resamples():
    rng = np.random.default_rng(2)
    values, weight = rng.exponential(size=80), rng.uniform(0.2, 3, 80)
    share = weight / weight.sum()
    found = mean_interval(values, weight, 0.95)
    counts = rng.multinomial(80, np.full(80, 1 / 80), size=40_000) * weight
    drawn = counts @ values / counts.sum(axis=1)
    error = drawn.std() / np.sqrt(1 - share @ share)
    below, above = distances(stats.skew(drawn), 1 / (share @ share), 0.95)
    assert found.value - found.low == pytest.approx(below * error, rel=0.03)
    assert found.high - found.value == pytest.approx(above * error, rel=0.03)


def test_the_skewness_of_a_mean_falls_with_the_root_of_the_rows():
    values = np.random.default_rng(3).exponential(size=500)
    share = np.full(500, 1 / 500)
    error, skewness, rows = spread(values - values.mean(), share)
    assert (error, rows) == pytest.approx((stats.sem(values), 500), rel=1e-9)
    assert skewness == pytest.approx(stats.skew(values) / np.sqrt(500), rel=1e-9)
    assert spread(np.zeros(5), np.full(5, 0.2))[:2] == (0, 0)


def test_a_pseudo_row_adds_its_moments_like_a_row():
    values, weight = np.random.default_rng(4).exponential(size=30), np.ones(30)
    chance, of_error = np.repeat([0.0, 1.0], [29, 1]), np.append(np.full(29, np.inf), 7.0)
    _, skewness, rows = spread(values - values.mean(), weight / 30, (of_error, chance))
    moves = np.append(values - values.mean(), 7.0) / 30
    assert skewness == pytest.approx(np.sum(moves**3) / np.sum(moves**2) ** 1.5, rel=1e-9)
    found = mean_interval(values, weight, 0.95, pseudo=(of_error + values.mean(), chance))
    below, above = distances(skewness, rows, 0.95)
    error = np.sqrt(np.sum(moves**2) * 30 / 29)
    assert (found.low, found.high) == pytest.approx(
        (max(values.mean() - below * error, 0), values.mean() + above * error)
    )


def test_an_estimate_is_inside_its_interval_at_any_level():
    values = np.append(np.zeros(40), 1.0)
    for confidence in (0.01, 0.1, 0.95):
        found = mean_interval(values, np.ones(41), confidence)
        assert found.low <= found.value <= found.high


def test_a_single_row_has_no_interval():
    found = mean_interval(np.array([0.3]), np.ones(1), 0.95)
    assert found.value == 0.3
    assert np.isnan([found.low, found.high]).all()
    assert spread(np.zeros(1), np.ones(1)) == (np.inf, 0, 1)


def test_infinite_rows_leave_the_lower_end_of_the_others():
    values = np.array([1.0, 2.0, np.inf, 1.5])
    found = mean_interval(values, np.ones(4), 0.95)
    assert found.value == found.high == np.inf
    assert found.low == mean_interval(np.array([1.0, 2.0, 0.0, 1.5]), np.ones(4), 0.95).low


@pytest.mark.parametrize("right", [0, 12, 40])
def test_a_proportion_has_the_interval_of_wilson(right):
    values = np.arange(40) < right
    found = proportion_interval(values.astype(float), np.ones(40), 0.95)
    expected = stats.binomtest(right, 40).proportion_ci(0.95, "wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_proportion_with_a_handful_of_errors_is_covered():
    n_rows, rates = 100, np.linspace(0.001, 0.02, 20)
    ends = [proportion_interval((np.arange(100) >= x).astype(float), np.ones(100), 0.95) for x in range(101)]
    for rate in rates:
        covered = [end.low <= 1 - rate <= end.high for end in ends]
        assert stats.binom.pmf(np.arange(101), n_rows, rate) @ covered >= 0.93, rate


def test_a_weighted_proportion_has_as_many_rows_as_its_variance_says():
    values = np.array([1.0] * 30 + [0.0] * 10 + [1.0])
    weight = np.array([1.0] * 40 + [0.0])
    alone = proportion_interval(values[:40], weight[:40], 0.95)
    assert proportion_interval(values, weight, 0.95) == alone
    uneven = proportion_interval(values[:40], np.repeat([1.0, 9.0], 20), 0.95)
    assert uneven.high - uneven.low > alone.high - alone.low


def test_predictions_that_are_all_right_have_an_accuracy_below_1_in_their_interval():
    found = metrics.evaluate([[0.9, 0.1]] * 50, [0] * 50, draws=20)["accuracy"]
    assert found.value == found.high == 1
    assert 0.9 < found.low < 0.95


def test_weights_that_go_with_being_right_count_at_most_as_effective_rows():
    """The resamples do not know that weights need not tell whether a row is right; the interval must not."""
    rng = np.random.default_rng(6)
    values = np.repeat([1.0, 0.0], [140, 60])
    weight = np.where(values == 1, 1.0, 5.0)
    found = proportion_interval(values, weight, 0.95)
    counts = rng.multinomial(200, np.full(200, 1 / 200), size=10_000) * weight
    low, high = np.quantile(counts @ values / counts.sum(axis=1), [0.025, 0.975])
    assert high - low <= found.high - found.low <= 1.3 * (high - low)


def test_a_pseudo_error_without_a_finite_cost_adds_nothing():
    influence, share = np.array([-1.0, 0.5, 0.5]), np.full(3, 1 / 3)
    chance = np.array([0.5, 0.5])
    with_infinite = spread(influence, share, (np.array([np.inf, 2.0]), chance))
    assert with_infinite == spread(influence, share, (np.array([0.0, 2.0]), chance))


# ---- accuracy with weights, and few correct predictions


def test_rounding_does_not_make_endless_rows_of_weights():
    weights = np.random.default_rng(0).exponential(size=300)
    found = proportion_interval(np.ones(300), weights, 0.95)
    rows = weights.sum() ** 2 / (weights**2).sum()
    equal = proportion_interval(np.ones(100), np.ones(100), 0.95)
    assert found.value == found.high == 1
    assert 1 - found.low == pytest.approx((1 - equal.low) * 100 / rows, rel=0.05)


def test_an_error_of_a_small_weight_does_not_show_that_all_are_small():
    correct, weights = np.ones(20), np.ones(20)
    correct[0], weights[0] = 0, 0.001
    found = proportion_interval(correct, weights, 0.95)
    without = proportion_interval(np.ones(19), np.ones(19), 0.95)
    assert found.low == pytest.approx(without.low, abs=0.02)
    assert without.low < 0.9


def test_equal_weights_give_the_interval_of_rows():
    correct = (np.arange(50) % 7 > 0).astype(float)
    found, scaled = (proportion_interval(correct, np.full(50, weight), 0.9) for weight in (1.0, 0.37))
    assert astuple(scaled) == pytest.approx(astuple(found), rel=1e-12)


@pytest.mark.parametrize("accuracy", [0.05, 0.8, 0.95, 0.99, 0.998])
@pytest.mark.parametrize("kind", ["exponential", "lognormal", "a few are twenty times as large"])
@pytest.mark.parametrize("n_rows", [30, 100])
def test_the_accuracy_of_weighted_rows_is_covered(accuracy, kind, n_rows):
    rng, covered = np.random.default_rng(0), 0
    for _ in range(200):
        weights = {
            "exponential": rng.exponential(size=n_rows),
            "lognormal": np.exp(rng.normal(size=n_rows)),
            "a few are twenty times as large": np.where(rng.uniform(size=n_rows) < 0.1, 20.0, 1.0),
        }[kind]
        found = proportion_interval((rng.uniform(size=n_rows) < accuracy).astype(float), weights, 0.95)
        covered += found.low <= accuracy <= found.high
    assert covered >= 180  # 95% of 200, minus four standard errors


@pytest.mark.parametrize(
    ("n_classes", "spread", "n_rows"), [(100, 0.6, 30), (100, 0.4, 100), (500, 0.8, 100)]
)
def test_a_calibrated_classifier_that_is_seldom_correct_is_not_overconfident(n_classes, spread, n_rows):
    rng, above, covered = np.random.default_rng(1), 0, 0
    for _ in range(200):
        probs = softmax(spread * rng.normal(size=(n_rows, n_classes)), axis=1)
        labels = (probs.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
        found = check_rows(probs, np.minimum(labels, n_classes - 1)).gap(0.95)
        above += found.low > 0
        covered += found.low <= 0 <= found.high
    assert above <= 10
    assert covered >= 180
