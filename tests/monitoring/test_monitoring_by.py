"""Calibration per value of `by` in a check: what evaluate says of the same rows, of the class of the fit."""

import numpy as np
import pytest
from scipy.special import softmax

from temperance import make_calibrator, metrics, monitoring


@pytest.fixture(scope="module")
def cal():
    """Return a calibrator that was fitted to calibrated rows."""
    rng = np.random.default_rng(0)
    z = 1.8 * rng.normal(size=20_000)
    answer = np.where(rng.uniform(size=len(z)) < 1 / (1 + np.exp(-z)), "yes", "no")
    return make_calibrator("ts").fit(as_logits(z), answer, classes=["no", "yes"])


def as_logits(z):
    return np.column_stack([np.zeros_like(z), z])


def test_a_check_names_the_value_that_is_off_as_evaluate_does(cal, west):
    p, answer, hospital = west
    logits = as_logits(np.log(p / (1 - p)))
    found = monitoring.check(cal, logits, answer, by=hospital)
    words = (
        "P(yes) is too high in West: 49.2% on average, 38.3% observed (O/E 0.78, 0.75 to 0.81). "
        "Not detectable in East, North, South. The values differ (p < 0.001)."
    )
    assert found.by_group.words == words
    assert f"{words} This is about the rows of this check alone." in found.sentences
    probs = cal.predict_proba(logits)
    same = metrics.evaluate(probs, answer, classes=["no", "yes"], by=hospital, draws=5).by_group
    assert found.by_group.words == same.words
    assert [one.alone.p_value for one in found.by_group.values] == pytest.approx(
        [one.alone.p_value for one in same.values]
    )


def test_the_class_that_is_judged_is_the_callers_and_else_that_of_the_fit(cal, west):
    p, answer, hospital = west
    logits = as_logits(np.log(p / (1 - p)))
    found = monitoring.check(cal, logits, answer, by=hospital, positive="no").by_group
    assert found.words.startswith("P(no) is too low in West: ")
    rng = np.random.default_rng(1)
    z, ward = rng.normal(0, 1.8, (4000, 3)), np.repeat(["A", "B"], 2000)
    y = np.array([rng.choice(3, p=row) for row in softmax(z, axis=1)])
    three = make_calibrator("ts").fit(z, y, positive=2)
    assert monitoring.check(three, z + 0.01, y, by=ward).by_group.table()[0][2] == "class 2"
