"""Calibration by group: tests of their size, corrected p-values, and small groups that are shrunk."""

import json

import numpy as np
import pytest
from scipy import stats

from temperance import InputError, metrics
from temperance.inputs.groups import MAX_VALUES, check_by
from temperance.metrics.by_group import calibration_by_group, holm, shrunk_gaps
from temperance.metrics.predictions import check_rows


def by_group(confidence, right, by, groups=None):
    probs = np.column_stack([1 - confidence, confidence])
    return calibration_by_group(check_rows(probs, np.asarray(right).astype(int), by=by, groups=groups), 0.95)


def drawn(rng, n_values, n_rows, low=0.6, size=1, shared=0.0):
    """Return rows of calibrated values in groups, of which a share has the random number of its group."""
    n = n_values * n_rows
    confidence, group = rng.uniform(low, 1, n), np.arange(n) // size
    chance = np.where(rng.uniform(size=n) < shared, rng.uniform(size=n)[group], rng.uniform(size=n))
    return confidence, chance < confidence, np.repeat(np.arange(n_values), n_rows), group


def test_holm_is_what_one_computes_by_hand():
    # Sorted: 0.005 x 4 = 0.02, 0.01 x 3 = 0.03, 0.03 x 2 = 0.06, 0.04 x 1 = 0.04, but not below 0.06.
    assert holm(np.array([0.04, 0.01, 0.03, 0.005])).tolist() == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm(np.array([0.6, 0.7])).tolist() == [1, 1]


@pytest.mark.parametrize("wrong", [0, 3, 12])
def test_equal_confidences_have_the_mid_p_value_of_a_binomial_count(wrong):
    right = np.append(np.arange(50) >= wrong, np.arange(50) >= 8)
    found = by_group(np.full(100, 0.85), right, np.repeat(["a", "b"], 50))
    of_a = next(one for one in found.values if one.value == "a")
    count = stats.binom(50, 0.15)
    upper = count.sf(wrong) + count.pmf(wrong) / 2
    assert of_a.p_value == pytest.approx(2 * min(upper, 1 - upper), rel=1e-6)


@pytest.mark.parametrize(
    ("n", "n_values", "n_rows", "size", "shared"),
    [
        (80, 6, 80, 1, 0.0),
        (80, 6, 80, 8, 0.6),
        pytest.param(1000, 6, 80, 1, 0.0, marks=pytest.mark.slow),
        pytest.param(1000, 6, 80, 8, 0.6, marks=pytest.mark.slow),
        pytest.param(1000, 5, 200, 20, 0.5, marks=pytest.mark.slow),
    ],
)
def test_both_tests_have_their_size(n, n_values, n_rows, size, shared):
    rng = np.random.default_rng(3)
    differ, single, any_corrected = 0, 0, 0
    for _ in range(n):
        confidence, right, by, groups = drawn(rng, n_values, n_rows, size=size, shared=shared)
        found = by_group(confidence, right, by, None if size == 1 else groups)
        differ += found.p_value < 0.05
        single += np.mean([one.p_value < 0.05 for one in found.values])
        any_corrected += min(one.corrected for one in found.values) < 0.05
    error = np.sqrt(0.05 * 0.95 / n)
    assert differ / n < 0.06 + 2 * error
    assert 0.02 < single / n < 0.06 + error  # of several values
    assert any_corrected / n < 0.06 + 2 * error


def test_without_groups_values_that_are_equal_seem_to_differ():
    rng = np.random.default_rng(3)
    found = [by_group(*drawn(rng, 5, 200, size=20, shared=0.7)[:3]).p_value for _ in range(60)]
    assert np.mean(np.array(found) < 0.05) > 0.3


def test_a_common_gap_is_no_difference_and_a_gap_of_one_value_is():
    rng = np.random.default_rng(4)
    confidence, by = rng.uniform(0.6, 1, 4000), np.repeat(["a", "b", "c", "d"], 1000)
    right = rng.uniform(size=4000) < confidence - 0.06
    everywhere = by_group(confidence, right, by)
    assert everywhere.p_value > 0.05
    assert {one.in_words for one in everywhere.values} == {"overconfident"}
    right = rng.uniform(size=4000) < confidence - 0.1 * (by == "c") + 0.05 * (by == "b")
    found = by_group(confidence, right, by)
    assert found.p_value < 0.001
    assert [one.value for one in found.values][:2] == ["c", "b"], "the most evidence is first"
    assert (found.values[0].in_words, found.values[1].in_words) == ("overconfident", "underconfident")
    assert found.words.startswith("Calibration differs between the 4 values (chi-squared test, p < 0.001).")
    assert "Overconfident: c. Underconfident: b." in found.words
    assert found.degrees_of_freedom == 3


def test_gaps_and_losses_are_those_of_the_rows(simulate):
    probs, labels, _ = simulate(300, 3, sharpen=1.5)
    by, weight = np.arange(300) % 3, np.random.default_rng(0).uniform(0.5, 2, 300)
    found = metrics.evaluate(probs, labels, by=by, sample_weight=weight, draws=20).by_group
    for one in found.values:
        part = by == int(one.value)
        alone = metrics.evaluate(probs[part], labels[part], sample_weight=weight[part], draws=20)
        assert (one.gap, one.nll) == (alone["overconfidence"], alone["nll"])
        assert (one.n_rows, one.accuracy) == (100, pytest.approx(alone["accuracy"].value))


def test_few_rows_are_said_to_be_few_and_moved_towards_the_others():
    rng = np.random.default_rng(5)
    by = np.repeat(["a", "b", "c", "d", "e", "f"], [600, 600, 600, 600, 600, 5])
    confidence = rng.uniform(0.6, 0.9, len(by))
    right = rng.uniform(size=len(by)) < confidence
    right[-5:] = [False, False, False, True, True]
    found = by_group(confidence, right, by)
    few = next(one for one in found.values if one.value == "f")
    assert (few.too_few, few.in_words) == (True, "too few rows")
    assert "Too few rows to show a gap of 10 points: f." in found.words
    assert abs(few.shrunk.value) < 0.6 * abs(few.gap.value)
    assert few.shrunk.high - few.shrunk.low < few.gap.high - few.gap.low
    many = next(one for one in found.values if one.value == "a")
    assert not many.too_few


@pytest.mark.parametrize("n_values", [2, 3, 5])
def test_shrunk_gaps_are_the_posterior_of_a_model_of_random_effects(n_values):
    """By brute force over the mean m and the standard deviation t of the true gaps."""
    gaps, errors = (
        np.array([0.12, -0.03, 0.05, 0.01, 0.2])[:n_values],
        np.array([0.02, 0.03, 0.02, 0.05, 0.1]),
    )
    errors = errors[:n_values]
    t, m = np.linspace(0, 0.6, 601)[:, None, None], np.linspace(-1, 1, 2001)[None, :, None]
    variance = errors**2 + t**2
    log_posterior = (
        np.sum(-((gaps - m) ** 2) / variance - np.log(variance), axis=2) / 2 - (t / 0.2)[..., 0] ** 2 / 2
    )
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    mean = (t**2 * gaps + errors**2 * m) / variance
    square = t**2 * errors**2 / variance + mean**2
    wanted = np.einsum("tm,tmv->v", posterior, mean)
    spread = np.sqrt(np.einsum("tm,tmv->v", posterior, square) - wanted**2)
    found, spreads = shrunk_gaps(gaps, errors)
    np.testing.assert_allclose(found, wanted, atol=2e-4)
    np.testing.assert_allclose(spreads, spread, rtol=0.01)
    if n_values == 5:
        assert spreads[4] < errors[4]
        moved, wide = shrunk_gaps(np.append(gaps, 0.9), np.append(errors, np.inf))
        assert moved[5] == pytest.approx(np.sum(posterior * m[..., 0]), abs=2e-4)
        assert wide[5] > spreads.max()


def test_a_single_value_with_an_error_is_not_moved():
    found, spreads = shrunk_gaps(np.array([0.2, 0.1]), np.array([0.05, np.inf]))
    assert found.tolist() == [0.2, 0.1]
    assert spreads[0] == 0.05
    assert np.isnan(spreads[1])


def test_values_of_a_single_group_have_no_interval_but_a_p_value_if_others_have_several():
    rng = np.random.default_rng(6)
    confidence, right, by, groups = drawn(rng, 3, 100, size=10, shared=0.5)
    groups = np.where(by == 2, 1000, groups)
    found = {one.value: one for one in by_group(confidence, right, by, groups).values}
    assert (found["2"].n_groups, found["0"].n_groups) == (1, 10)
    assert np.isnan(found["2"].gap.low)
    assert 0 < found["2"].p_value <= 1
    nothing = by_group(confidence, right, by, by)
    assert all(np.isnan(one.p_value) and one.in_words == "a single group" for one in nothing.values)
    json.dumps(nothing.to_dict(), allow_nan=False)


def test_copies_of_rows_in_one_group_count_once():
    rng = np.random.default_rng(7)
    confidence, right, by, _ = drawn(rng, 5, 60)
    once = by_group(confidence, right, by)
    groups = np.repeat(np.arange(300), 4)
    often = by_group(np.repeat(confidence, 4), np.repeat(right, 4), np.repeat(by, 4), groups)
    assert often.p_value == pytest.approx(once.p_value, rel=0.02)
    for one, other in zip(once.values, often.values, strict=True):
        assert other.value == one.value
        assert other.p_value == pytest.approx(one.p_value, rel=0.05)
        assert other.gap.low == pytest.approx(one.gap.low, abs=1e-9)


def test_predictions_that_are_all_right_show_no_difference():
    found = by_group(np.full(60, 0.99), np.ones(60, bool), np.repeat(["a", "b"], 30))
    assert found.p_value == pytest.approx(1)
    assert found.values[0].p_value > 0.5


def test_the_result_prints_as_a_table_and_is_json(simulate):
    probs, labels, _ = simulate(200, 3, sharpen=2.0)
    result = metrics.evaluate(probs, labels, by=np.where(np.arange(200) < 150, "old", "young"), draws=20)
    lines = str(result).splitlines()
    assert lines[-3].split() == [
        "value",
        "rows",
        "gap",
        "95%",
        "interval",
        "shrunk",
        "log",
        "loss",
        "p",
        "(Holm)",
    ]
    assert lines[-2].split()[:2] == ["old", "150"]
    assert lines[-2].split()[-2:] == ["<", "0.001"]
    plain = json.loads(json.dumps(result.by_group.to_dict(), allow_nan=False))
    assert (plain["correction"], plain["values"][0]["value"]) == ("Holm", "old")
    assert metrics.evaluate(probs, labels, draws=20).by_group is None


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["a", "b"], r"one value per row.*; found shape \(2,\) for 3 rows"),
        (["a", "a", "a"], "from 2 to 1,000 different ones; found 1. Leave it out"),
        (np.array(["a", None, "b"], object), "found rows without one.*Give them a value such as unknown"),
    ],
)
def test_a_mistake_is_named(by, message):
    with pytest.raises(InputError, match=message):
        check_by(by, 3)


def test_numbers_must_be_cut_into_ranges():
    with pytest.raises(InputError, match=r"found 1,001\. Cut numbers into ranges first"):
        check_by(np.arange(MAX_VALUES + 1), MAX_VALUES + 1)


def test_values_of_a_single_group_each_cannot_be_compared_and_no_p_value_is_shown():
    rng = np.random.default_rng(0)
    probs, labels, patient = rng.uniform(0.1, 0.9, 80), rng.integers(0, 2, 80), np.arange(80) // 20
    found = metrics.evaluate(probs, labels, groups=patient, by=patient, draws=5).by_group
    assert found.words.startswith("Too few rows of the 4 values to test whether they differ.")
    assert "nan" not in found.words
