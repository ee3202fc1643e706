"""Tests of calibration: under the null, at extremes and in words; test_exact*.py has their definitions."""

import functools

import numpy as np
import pytest
from scipy import stats

from temperance import InputError, metrics
from temperance.metrics import Evaluation, calibration_tests, cox
from temperance.metrics.calibration_tests import CalibrationTest, verdict
from temperance.metrics.intervals import Estimate


@pytest.mark.parametrize(
    ("p_value", "shown", "words"),
    [
        (0.001, "0.001", "p = 0.001: not calibrated."),
        (0.00105, "0.001", "p = 0.001: not calibrated."),
        (0.00099, "< 0.001", "p < 0.001: not calibrated."),
        (0.052, "0.052", "p = 0.052: compatible with calibration."),
        (0.05, "0.050", "p = 0.050: compatible with calibration."),
    ],
)
def test_a_p_value_is_shown_down_to_a_thousandth(p_value, shown, words):
    test = CalibrationTest(2.0, p_value, "")
    evaluation = Evaluation({"nll": Estimate(1, 1, 1)}, 10, 2, 15, 100, 0.95, {"cox": test})
    assert evaluation.shown_tests() == [("cox", "2.00", shown)]
    assert verdict(p_value) == words


def binary(n_rows, seed, slope=1.0):
    """Return probabilities of the second class and labels: of slope 1, calibrated."""
    rng = np.random.default_rng(seed)
    logit = 1.5 * rng.normal(size=n_rows)
    labels = (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-slope * logit))).astype(int)
    return 1 / (1 + np.exp(-logit)), labels


TESTS = {
    "spiegelhalter": metrics.spiegelhalter,
    "cox": metrics.cox,
    "kuiper": metrics.cumulative_differences,
    "ks": lambda *rows, **options: metrics.cumulative_differences(*rows, statistic="ks", **options),
}


@pytest.mark.parametrize("name", TESTS)
def test_p_values_of_a_calibrated_classifier_are_uniform(name):
    found = [TESTS[name](*binary(1000, seed)).p_value for seed in range(300)]
    assert stats.kstest(found, "uniform").pvalue > 0.005, np.mean(found)


@pytest.mark.parametrize("name", TESTS)
def test_p_values_of_an_overconfident_classifier_are_small(name):
    found = [TESTS[name](*binary(1000, seed, slope=0.6)).p_value for seed in range(20)]
    assert np.mean(np.array(found) < 0.05) > 0.9


@pytest.mark.parametrize("name", TESTS)
def test_weights_have_no_scale_and_equal_weights_change_nothing(name):
    p, y = binary(200, 3, slope=0.8)
    plain = TESTS[name](p, y)
    weighted = TESTS[name](p, y, sample_weight=np.full(200, 7.0))
    assert weighted.statistic == pytest.approx(plain.statistic, rel=1e-9)
    twice = TESTS[name](np.tile(p, 2), np.tile(y, 2))
    assert twice.p_value < plain.p_value  # copies of rows are observations, weights are not


@pytest.mark.parametrize("name", ["spiegelhalter", "cox"])
def test_p_values_are_uniform_with_weights_that_do_not_depend_on_the_outcome(name):
    weight = np.random.default_rng(5).uniform(0.2, 2, size=1000)
    found = [TESTS[name](*binary(1000, seed), sample_weight=weight).p_value for seed in range(200)]
    assert stats.kstest(found, "uniform").pvalue > 0.005


@pytest.mark.parametrize("name", TESTS)
def test_extremes_give_a_p_value_and_a_sentence(name):
    right = TESTS[name]([[0.9, 0.1]] * 100, [0] * 100)
    assert 0 < right.p_value < 0.05
    one = TESTS[name]([[0.9, 0.1]], [0])
    assert 0.05 < one.p_value <= 1
    certain = TESTS[name]([[1.0, 0.0]] * 5, [0] * 5)
    assert certain.p_value == pytest.approx(1)
    wrong = TESTS[name]([[1.0, 0.0]] * 5, [0, 0, 0, 0, 1])
    assert wrong.p_value < 1e-6
    assert wrong.words.endswith("p < 0.001: not calibrated.")


def test_a_class_is_named_or_counted():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    by_name = metrics.spiegelhalter(p, ["cat", "dog", "emu"], class_="dog", classes=["cat", "dog", "emu"])
    assert by_name == metrics.spiegelhalter(p, [0, 1, 2], class_=1)
    with pytest.raises(InputError, match=r"found 'dog'\. Pass the names of the columns as classes"):
        metrics.cox(p, [0, 1, 2], class_="dog")
    with pytest.raises(InputError, match="class_ must be one of 'cat', 'dog', 'emu'; found 'fox'"):
        metrics.cox(p, [0, 1, 2], class_="fox", classes=["cat", "dog", "emu"])
    with pytest.raises(InputError, match="from 0 to 2; found 3"):
        metrics.cox(p, [0, 1, 2], class_=3)


def test_the_tests_of_an_evaluation_are_those_of_the_top_label(simulate):
    probs, labels, _ = simulate(300, 4, sharpen=2.0)
    result = metrics.evaluate(probs, labels, draws=10)
    assert result.tests["spiegelhalter"] == metrics.spiegelhalter(probs, labels)
    assert result.tests["cox"] == metrics.cox(probs, labels)
    assert result.tests["kuiper"] == metrics.cumulative_differences(probs, labels)
    assert "spiegelhalter" not in result
    assert result.tests_to_dict()["cox"]["slope"]["value"] < 1
    assert max(map(len, str(result).splitlines())) <= 80


def test_probabilities_of_one_half_give_no_spiegelhalter_statistic():
    half = metrics.spiegelhalter([[0.5, 0.5]] * 100, [0] * 100)
    assert half.words == "Not informative: every probability is 1/2."
    assert half.p_value == 1


def test_a_maximum_that_the_steps_do_not_reach_has_no_position(monkeypatch):
    solve = functools.partial(calibration_tests.fisher_scoring, max_iterations=0)
    monkeypatch.setattr(calibration_tests, "fisher_scoring", solve)
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 200)
    found = cox(np.column_stack([1 - p, p]), rng.uniform(size=200) < p)
    assert np.isnan(
        [found.slope.value, found.slope_error, found.intercept.value, found.intercept_error]
    ).all()
    assert found.statistic == 0
