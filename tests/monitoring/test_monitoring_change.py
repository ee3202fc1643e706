"""What has changed, and the repair for it; a factor of confidence is told if it is small."""

import numpy as np
import pytest
from scipy.special import softmax

from temperance import TemperatureScaling, make_calibrator, monitoring
from temperance.data import simulate


def draw(rng, n_rows, frequencies):
    """Return rows of a calibrated classifier with these class frequencies, about."""
    logits = 2 * rng.normal(size=(n_rows, len(frequencies))) + np.log(frequencies)
    below = softmax(logits, axis=1).cumsum(axis=1) < rng.uniform(size=(n_rows, 1))
    return logits, np.minimum(below.sum(axis=1), len(frequencies) - 1)


def keep_fewer_of_class_0(rng, logits, labels):
    kept = (labels != 0) | (rng.random(len(labels)) < 0.5)
    return logits[kept], labels[kept]


def most_changed(factor, n_classes, *, n_rows=2000, fewer=False, draws=3):
    """Return what has changed most, after changes of confidence and of the frequency of class 0."""
    found, rng = [], np.random.default_rng(0)
    frequencies = 1 / np.arange(1, n_classes + 1)
    frequencies /= frequencies.sum()
    for _ in range(draws):
        cal = make_calibrator("bayes-bias").fit(*draw(rng, 5000, frequencies))
        logits, labels = draw(rng, n_rows, frequencies)
        if fewer:
            logits, labels = keep_fewer_of_class_0(rng, logits, labels)
        check = monitoring.check(cal, factor * logits, labels)
        found.append((check.action, check.change.gap.column))
    return found


@pytest.mark.parametrize("factor", [0.5, 2.0, 3.0])
def test_a_change_of_confidence_asks_for_a_new_fit(factor):
    assert most_changed(factor, 4) == [("refit", None)] * 3


def test_many_rare_classes_hide_no_change_of_confidence():
    assert most_changed(2.0, 50, draws=1) == [("refit", None)]


def test_a_change_of_frequencies_alone_asks_to_adapt():
    assert most_changed(1.0, 4, fewer=True).count(("adapt", 0)) >= 2


def test_both_changes_ask_for_a_new_fit():
    assert [action for action, _ in most_changed(2.0, 4, fewer=True)] == ["refit"] * 3


def test_the_factor_of_a_small_change_is_near_that_of_a_new_fit():
    task = simulate(n_rows=40000, n_classes=3, random_state=1)
    calibrator = TemperatureScaling().fit(task.logits[:20000], task.labels[:20000])
    logits, labels = 1.25 * task.logits[20000:], task.labels[20000:]
    found = monitoring.check(calibrator, logits, labels, tolerance=0.0)
    (told,) = [sentence for sentence in found.sentences if "dividing its logits by" in sentence]
    factor = float(told.split(" by ")[1].split(" ")[0])
    again = TemperatureScaling().fit(logits, labels)
    assert factor == pytest.approx(again.temperature_ / calibrator.temperature_, rel=0.06)
