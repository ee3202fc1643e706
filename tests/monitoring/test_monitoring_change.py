"""A change is explained by confidence, class frequencies or both; a factor is told if it is small."""

import numpy as np
import pytest
from scipy.special import softmax

from temperance import TemperatureScaling, monitoring
from temperance.data import simulate


def draw(rng, n_rows, frequencies):
    """Return rows of a calibrated classifier with these class frequencies, about."""
    logits = 2 * rng.normal(size=(n_rows, len(frequencies))) + np.log(frequencies)
    below = softmax(logits, axis=1).cumsum(axis=1) < rng.uniform(size=(n_rows, 1))
    return logits, np.minimum(below.sum(axis=1), len(frequencies) - 1)


def keep_fewer_of_class_0(rng, logits, labels):
    kept = (labels != 0) | (rng.random(len(labels)) < 0.5)
    return logits[kept], labels[kept]


def explanations(factor, n_classes, *, fewer=False, draws=4):
    """Return how changes of confidence by `factor`, and of the frequency of class 0, are explained."""
    found, rng = [], np.random.default_rng(0)
    frequencies = 1 / np.arange(1, n_classes + 1)
    frequencies /= frequencies.sum()
    for _ in range(draws):
        cal = TemperatureScaling().fit(*draw(rng, 2000, frequencies))
        logits, labels = draw(rng, 2000, frequencies)
        if fewer:
            logits, labels = keep_fewer_of_class_0(rng, logits, labels)
        found.append(monitoring.check(cal, factor * logits, labels).change.explanation)
    return found


@pytest.mark.parametrize("factor", [0.5, 2.0, 3.0])
def test_a_large_change_of_confidence_alone_is_not_called_both(factor):
    assert explanations(factor, 10) == ["confidence"] * 4


def test_many_rare_classes_hide_no_change_of_confidence():
    assert explanations(2.0, 50) == ["confidence"] * 4


def test_a_change_of_frequencies_alone_is_called_that():
    assert explanations(1.0, 10, fewer=True).count("class frequencies") >= 3


def test_both_changes_are_called_both():
    assert explanations(2.0, 10, fewer=True) == ["both"] * 4


def test_the_factor_of_a_small_change_is_near_that_of_a_new_fit():
    task = simulate(n_rows=40000, n_classes=3, random_state=1)
    calibrator = TemperatureScaling().fit(task.logits[:20000], task.labels[:20000])
    logits, labels = 1.25 * task.logits[20000:], task.labels[20000:]
    found = monitoring.check(calibrator, logits, labels, tolerance=0.0)
    (told,) = [sentence for sentence in found.sentences if "dividing its logits by" in sentence]
    factor = float(told.split(" by ")[1].split(" ")[0])
    again = TemperatureScaling().fit(logits, labels)
    assert factor == pytest.approx(again.temperature_ / calibrator.temperature_, rel=0.06)
