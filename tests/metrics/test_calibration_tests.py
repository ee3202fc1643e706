"""Tests of calibration: against independent computations, under the null, and at extremes."""

import functools

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.stats import norm

from temperance import InputError, metrics
from temperance.metrics import Evaluation, calibration_tests, cox
from temperance.metrics.calibration_tests import CalibrationTest, maximum_survival, range_survival, verdict
from temperance.metrics.intervals import Estimate


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


def binary(n_rows, seed, slope=1.0):
    """Return probabilities of the second class and labels: of slope 1, calibrated."""
    rng = np.random.default_rng(seed)
    logit = 1.5 * rng.normal(size=n_rows)
    labels = (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-slope * logit))).astype(int)
    return 1 / (1 + np.exp(-logit)), labels


def test_spiegelhalter_is_its_formula_and_the_same_for_both_classes_and_the_top_label():
    p, y = binary(300, 0, slope=0.6)
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    for class_ in (None, 0, 1):
        test = metrics.spiegelhalter(p, y, class_=class_)
        assert test.statistic == pytest.approx(z, rel=1e-12)
        assert test.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)


def test_cox_is_the_maximum_of_the_likelihood():
    p, y = binary(400, 1, slope=0.6)
    logit = np.log(p / (1 - p))

    def loss(theta):
        odds = theta[0] + theta[1] * logit
        return (np.logaddexp(0, odds) - y * odds).sum()

    best = optimize.minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-8})
    test = metrics.cox(p, y, class_=1)
    assert [test.intercept.value, test.slope.value] == pytest.approx(best.x, abs=1e-5)
    ratio = 2 * (loss([0.0, 1.0]) - best.fun)
    assert test.statistic == pytest.approx(ratio, rel=1e-8)
    assert test.p_value == pytest.approx(stats.chi2.sf(ratio, 2), rel=1e-7)
    rate = 1 / (1 + np.exp(-best.x[0] - best.x[1] * logit))
    design = np.column_stack([np.ones(400), logit])
    errors = np.sqrt(np.linalg.inv((design.T * rate * (1 - rate)) @ design).diagonal())
    assert [test.intercept_error, test.slope_error] == pytest.approx(errors, rel=1e-4)
    assert test.slope.high - test.slope.low == pytest.approx(2 * 1.959964 * errors[1], rel=1e-4)


def test_cumulated_residuals_by_hand():
    p, y = np.array([0.2, 0.6, 0.6, 0.9]), np.array([1, 0, 1, 1])
    # In order of p: 0.8, then the tied pair -0.6 + 0.4, then 0.1.
    deviation = np.sqrt(0.16 + 0.24 + 0.24 + 0.09)
    kuiper = metrics.cumulative_differences(p, y, class_=1)
    largest = metrics.cumulative_differences(p, y, class_=1, statistic="ks")
    assert kuiper.statistic == largest.statistic == pytest.approx(0.8 / deviation, rel=1e-12)
    assert kuiper.p_value > largest.p_value


def test_the_order_of_rows_with_equal_probabilities_does_not_matter():
    p, y = np.repeat([0.3, 0.7], 20), np.tile([0, 1], 20)
    sorted_within = np.concatenate([np.sort(y[:20]), np.sort(y[20:])])
    first, other = (metrics.cumulative_differences(p, one).statistic for one in (y, sorted_within))
    assert first == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("x", [0.5, 0.8, 1.0, 1.5, 2.5, 4.0])
def test_the_maximum_of_brownian_motion_by_the_other_series(x):
    k = np.arange(200)
    below = (
        4 / np.pi * ((-1.0) ** k / (2 * k + 1) * np.exp(-((2 * k + 1) ** 2) * np.pi**2 / (8 * x**2))).sum()
    )
    assert maximum_survival(x) == pytest.approx(1 - below, abs=1e-12)


def test_the_range_of_brownian_motion_has_the_density_of_feller_and_its_mean():
    x = np.linspace(0.3, 12, 4000)
    survival = np.array([range_survival(one) for one in x])
    k = np.arange(1, 200)[:, None]
    density = 8 * ((-1.0) ** (k - 1) * k**2 * stats.norm.pdf(k * x)).sum(axis=0)
    np.testing.assert_allclose(-np.gradient(survival, x)[2:-2], density[2:-2], atol=2e-5)
    mean = 0.3 + np.trapezoid(survival, x)
    assert mean == pytest.approx(2 * np.sqrt(2 / np.pi), abs=1e-4)
    assert range_survival(0.0) == 1.0
    assert range_survival(np.inf) == maximum_survival(np.inf) == 0.0


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


def test_separated_outcomes_have_no_slope():
    test = metrics.cox([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 0, 1, 1, 1], class_=1)
    assert np.isnan([test.slope.value, test.intercept.value, test.slope_error]).all()
    null = -2 * np.log([0.9, 0.8, 0.7, 0.7, 0.8, 0.9]).sum()
    assert test.statistic == pytest.approx(null, rel=1e-6)
    assert "not identified" in test.words


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
    assert half.words == "It says nothing: every probability is 1/2."
    assert half.p_value == 1


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (0.001, "p = 0.001: not calibrated."),
        (0.00105, "p = 0.001: not calibrated."),
        (0.00099, "p < 0.001: not calibrated."),
        (0.052, "p = 0.052: compatible with calibration."),
    ],
)
def test_a_p_value_in_words_has_three_digits_from_a_thousandth_on(p_value, words):
    assert verdict(p_value) == words


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
