"""Predictions without labels: p-values that are valid, also over many looks."""

import numpy as np
import pytest
from scipy.stats import fisher_exact, ks_2samp

from temperance import make_calibrator
from temperance.data import simulate
from temperance.errors import InputWarning
from temperance.monitoring.shift import _fisher, compare_with_baseline
from temperance.monitoring.sums import sum_predictions


def test_fishers_test_agrees_with_scipy_on_one_side():
    now, before = np.array([3.0, 30.0, 67.0]), np.array([40.0, 100.0, 260.0])
    found = _fisher(now, 100, before, 400)
    for k in range(3):
        table = [[now[k], 100 - now[k]], [before[k], 400 - before[k]]]
        sides = [fisher_exact(table, side).pvalue for side in ("less", "greater")]
        assert found[k] == pytest.approx(min(1, 2 * min(sides)), rel=1e-9)


def test_the_difference_of_confidence_is_that_of_the_two_samples(world):
    calibrator, logits, _ = world
    sharper = calibrator.predict_proba(1.3 * logits)
    test = compare_with_baseline([sum_predictions(sharper, calibrator.baseline_)], calibrator.baseline_, 0.05)
    exact = ks_2samp(sharper.max(axis=1), calibrator.predict_proba(logits).max(axis=1))
    assert test.alarm
    assert test.tests[0].difference > 0
    assert test.tests[0].difference == pytest.approx(exact.statistic, abs=0.06)


def test_every_look_has_a_smaller_share_of_the_level(world):
    calibrator, logits, _ = world
    sums = sum_predictions(calibrator.predict_proba(logits[:100]), calibrator.baseline_)
    levels = [compare_with_baseline([sums] * n, calibrator.baseline_, 0.05).level for n in range(1, 60)]
    assert sum(levels) < 0.05
    assert levels[0] == 0.025


def test_a_small_shift_is_clearest_in_the_longest_window(world):
    """Of 9 checks, the last 1, 2, 4 and 8 are tested together."""
    calibrator, logits, _ = world
    sums = sum_predictions(calibrator.predict_proba(1.3 * logits[:100]), calibrator.baseline_)
    for checks, window in ((1, 1), (3, 2), (9, 8)):
        assert compare_with_baseline([sums] * checks, calibrator.baseline_, 0.05).tests[0].checks == window


def test_p_values_are_not_too_small_where_nothing_changed(world):
    """At most a tenth of the uncorrected p-values may be below 0.1, up to chance."""
    calibrator, logits, _ = world
    probs, rng = calibrator.predict_proba(logits), np.random.default_rng(0)
    found = []
    for _ in range(200):
        sums = sum_predictions(probs[rng.integers(0, len(probs), 150)], calibrator.baseline_)
        found.append(
            [test.p_value / 3 for test in compare_with_baseline([sums], calibrator.baseline_, 0.05).tests]
        )
    assert (np.mean(np.array(found) < 0.1, axis=0) < 0.16).all()


def test_small_differences_raise_no_alarm_with_any_number_of_rows(world):
    calibrator, logits, _ = world
    probs = calibrator.predict_proba(np.tile(1.01 * logits, (20, 1)))
    found = compare_with_baseline([sum_predictions(probs, calibrator.baseline_)], calibrator.baseline_, 0.05)
    assert not found.alarm


def test_the_rows_of_the_fit_have_no_difference_from_their_own_baseline():
    """Also where rows are tied with a quantile: those count as below it, as in the baseline."""
    task = simulate(n_rows=7000, n_classes=3, random_state=3)
    logits = np.repeat(task.logits[:100], 5, axis=0)
    labels = np.repeat(task.labels[:100], 5)
    with pytest.warns(InputWarning, match="found 100 different rows among 500"):
        calibrator = make_calibrator("ts").fit(logits, labels)
    sums = sum_predictions(calibrator.predict_proba(logits), calibrator.baseline_)
    found = compare_with_baseline([sums], calibrator.baseline_, 0.05)
    np.testing.assert_allclose([test.difference for test in found.tests], 0.0, atol=1e-12)


def confident(rows, distance, seed):
    """Return exact logits of two normal distributions this far apart, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    x = rng.normal(size=rows) + distance * (labels - 0.5)
    return np.stack([np.zeros(rows), distance * x], axis=1), labels


@pytest.mark.parametrize("method", ["ts", "bayes"])
@pytest.mark.parametrize("distance", [2.0, 4.65, 7.0])
@pytest.mark.parametrize("types", [("f8", "f8"), ("f4", "f4"), ("f8", "f4"), ("f4", "f8")])
@pytest.mark.filterwarnings("ignore:All .* rows are classified correctly")
def test_however_confident_and_precise_the_rows_of_the_fit_do_not_differ_from_it(method, distance, types):
    """Where confidence is 1 up to rounding, the distance to 1 is what differs."""
    logits, labels = confident(1000, distance, seed=0)
    calibrator = make_calibrator(method).fit(logits.astype(types[0]), labels)
    sums = sum_predictions(calibrator.predict_proba(logits.astype(types[1])), calibrator.baseline_)
    found = compare_with_baseline([sums], calibrator.baseline_, 0.05)
    assert not found.alarm
    assert max(abs(test.difference) for test in found.tests) <= 0.01
