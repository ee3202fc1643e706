"""The allowed range: an unchanged calibrator is within it, whatever it was fitted to."""

import numpy as np
import pytest

from temperance import TemperatureScaling, make_calibrator, monitoring
from temperance.data import simulate
from temperance.monitoring.sums import allowed, residuals


def rare_and_confusable(rng, rows):
    """Return rows of one frequent class and nine rare ones that look alike, with wrong class biases."""
    frequencies = np.array([0.82] + [0.02] * 9)
    labels, rare = rng.choice(10, rows, p=frequencies), np.arange(10) > 0
    apart = rng.normal(size=(rows, 1)) + 4 * rare[labels, None]
    within = rng.normal(size=(rows, 10))
    within[np.arange(rows), labels] += 0.7
    logits = np.log(frequencies) + rare * (4 * apart - 8 + 0.7 * within - 0.245)
    return logits + 1.5 * rare * np.random.default_rng(5).normal(size=10), labels


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rare_classes_that_look_alike_are_allowed_the_errors_of_their_fit():
    rng = np.random.default_rng(1)
    pool, truth = rare_and_confusable(rng, 20_000)
    outside = 0
    for _ in range(40):
        calibrator = make_calibrator("bayes-bias").fit(*rare_and_confusable(rng, 100))
        limits, mean = (
            allowed(calibrator.model_),
            residuals(calibrator.predict_proba(pool), truth).mean(axis=0),
        )
        outside += bool(((mean < limits.low) | (mean > limits.high)).any())
    assert outside <= 2


@pytest.mark.parametrize("n_classes", [2, 100])
def test_of_many_classes_none_leaves_its_limits_by_the_noise_of_the_fit(n_classes):
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(20):
        logits = 2 * rng.normal(size=(2000, n_classes))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        limits = allowed(make_calibrator("ts").fit(logits, labels).model_)
        outside += bool((limits.low > 0).any() or (limits.high < 0).any())
        spread = np.abs(limits.center[1:])  # of a calibrator whose true residuals are 0
        outside += bool((spread > limits.high[1:] - np.maximum(limits.center[1:], 0)).any())
    assert outside <= 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_words_name_the_standard_errors_that_the_limits_have():
    """Of several classes each has more than 2.5, so that all together have the level of one."""
    fit, now = (simulate(n_rows=200, n_classes=3, random_state=seed) for seed in (0, 1))
    calibrator = TemperatureScaling().fit(fit.logits, fit.labels)
    gap, of_class = (
        monitoring.check(calibrator, now.logits, now.labels, positive=positive) for positive in (None, 0)
    )
    assert "(2.5 standard errors of the fit to 200 rows)" in gap.words
    assert "(2.9 standard errors of the fit to 200 rows)" in of_class.words
