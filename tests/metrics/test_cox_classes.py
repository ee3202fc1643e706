"""Cox's test of all classes: its derivatives, its optimum, and how often it rejects true probabilities."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, chi2, kstest

from temperance import metrics
from temperance.metrics.calibration_tests import _ClassLoss, _log_ratios
from temperance.metrics.predictions import check_rows


def draw(n_rows, n_classes, rng, sharpness=2.0):
    logits = sharpness * rng.standard_normal((n_rows, n_classes))
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    below = probs.cumsum(axis=1) < rng.random((n_rows, 1))
    return probs, np.minimum(below.sum(axis=1), n_classes - 1)


def test_the_derivatives_are_those_of_the_value():
    rng = np.random.default_rng(0)
    rows = check_rows(*draw(60, 5, rng), rng.uniform(0.5, 2, 60))
    loss = _ClassLoss(*_log_ratios(rows, np.array([0, 2, 3])), rows.weight, 2)
    theta, h = rng.standard_normal(4), 1e-4
    gradient, fisher = loss.evaluate(theta, with_fisher=True)[1:]
    steps = h * np.eye(4)

    def difference(f):
        """Return central differences of order 4."""
        near = [(f(theta + s) - f(theta - s)) / (2 * h) for s in steps]
        far = [(f(theta + 2 * s) - f(theta - 2 * s)) / (4 * h) for s in steps]
        return (4 * np.array(near) - np.array(far)) / 3

    np.testing.assert_allclose(difference(lambda t: loss.evaluate(t, False).value), gradient, atol=1e-10)
    np.testing.assert_allclose(difference(lambda t: loss.evaluate(t, False).gradient), fisher, atol=1e-10)


def test_the_ratio_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    probs, labels = draw(400, 4, rng)
    probs[:, 3], probs[:, 1] = 0.9 * probs[:, 3], probs[:, 1] + 0.1 * probs[:, 3]

    def nll(theta):
        x = np.log(probs / probs[:, 3:])
        odds = x * np.append(theta[3:], 1.0) + np.append(theta[:3], 0.0)
        return np.sum(np.log(np.exp(odds).sum(axis=1)) - odds[np.arange(400), labels])

    best = minimize(nll, np.repeat([0.0, 1.0], 3), method="BFGS", tol=1e-10).fun
    wanted = 2 * (nll(np.repeat([0.0, 1.0], 3)) - best)
    test = metrics.cox_classes(probs, labels)
    assert test.statistic == pytest.approx(wanted, rel=1e-6)
    assert test.p_value == pytest.approx(chi2.sf(wanted, 6), rel=1e-6)
    assert "with 6 degrees of freedom" in test.words


def test_two_classes_give_coxs_own_test():
    probs, labels = draw(300, 2, np.random.default_rng(2))
    own = metrics.cox(probs, labels, class_=1)
    assert metrics.cox_classes(probs, labels).statistic == pytest.approx(own.statistic, abs=1e-7)


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 200), (3, 300), (10, 800)])
def test_true_probabilities_are_rejected_at_the_level(n_classes, n_rows):
    rng = np.random.default_rng(3)
    p_values = [metrics.cox_classes(*draw(n_rows, n_classes, rng)).p_value for _ in range(200)]
    assert binom.ppf(0.001, 200, 0.05) <= np.sum(np.array(p_values) < 0.05) <= binom.ppf(0.999, 200, 0.05)
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_it_detects_what_the_confidence_does_not_show():
    """Class 0 is too likely and class 1 too unlikely by the same factor."""
    rng = np.random.default_rng(4)
    probs, labels = draw(5000, 3, rng)
    wrong = probs * np.array([1.3, 1 / 1.3, 1.0])
    wrong /= wrong.sum(axis=1, keepdims=True)
    assert metrics.cox_classes(wrong, labels).p_value < 1e-6
    assert metrics.cox(wrong, labels).p_value > 1e-3


def test_a_class_is_tested_by_its_variance_not_by_its_number_of_rows():
    probs = np.tile([0.6, 0.4], (40, 1))
    labels = np.repeat([0, 1], [24, 16])
    few = metrics.cox_classes(probs[:30], labels[:30])  # 0.24 each, 7.2 together
    assert few.words == "Not informative: each class has too few rows."
    assert metrics.cox_classes(np.tile(probs, (2, 1)), np.tile(labels, 2)).words != few.words


def test_classes_with_few_rows_are_not_tested():
    rng = np.random.default_rng(5)
    probs, labels = draw(1000, 3, rng)
    rare = np.column_stack([probs * 0.999, np.full(1000, 0.001)])
    assert "with 4 degrees" in metrics.cox_classes(rare, labels).words
    few = metrics.cox_classes(probs[:10], labels[:10])
    assert (few.statistic, few.p_value) == (0.0, 1.0)
    assert "too few rows" in few.words
    many = metrics.cox_classes(*draw(3000, 30, rng))
    assert "with 38 degrees" in many.words  # 20 classes


def test_a_common_factor_of_the_weights_changes_nothing_and_separated_labels_end():
    probs, labels = draw(500, 3, np.random.default_rng(6))
    plain = metrics.cox_classes(probs, labels)
    weighted = metrics.cox_classes(probs, labels, sample_weight=np.full(500, 0.1))
    assert weighted.statistic == pytest.approx(plain.statistic, rel=1e-6)
    certain = metrics.cox_classes(probs, probs.argmax(axis=1))
    assert certain.p_value < 1e-10
    assert np.isfinite(certain.statistic)
