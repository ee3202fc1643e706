"""`bayes` on real-world cases: few rows, all of them right; wrong labels; zeros on labels; scales."""

import numpy as np
import pytest
from scipy.special import softmax

from temperance import BayesianTemperatureScaling, TemperatureScaling, logits_from_probs, metrics
from temperance.data import simulate

SURE = simulate(n_rows=6000, n_classes=10, class_spread=0.0, temperature=0.6, random_state=5)


def scores(logits, labels, new_logits, new_labels):
    """Return the NLL of bayes and of TS on new rows."""
    fits = [method().fit(logits, labels) for method in (BayesianTemperatureScaling, TemperatureScaling)]
    return [metrics.nll(fit.predict_proba(new_logits), new_labels) for fit in fits]


@pytest.mark.filterwarnings("ignore:All 20 rows are classified right")  # of TS
def test_a_classifier_that_is_nearly_always_right_with_20_rows():
    right = SURE.logits.argmax(axis=1) == SURE.labels
    rows = np.flatnonzero(right)[:20]
    kept = np.r_[np.flatnonzero(right)[20:2000], np.flatnonzero(~right)[:20]]  # 99 % of the new rows
    bayes, ts = scores(SURE.logits[rows], SURE.labels[rows], SURE.logits[kept], SURE.labels[kept])
    assert np.isfinite(bayes)
    assert bayes < 1.05 * ts


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_wrong_labels(share):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(1000) < share, rng.integers(10, size=1000), SURE.labels[:1000])
    bayes, ts = scores(SURE.logits[:1000], labels, SURE.logits[1000:], SURE.labels[1000:])
    assert bayes < 1.02 * ts


def test_zeros_on_true_labels():
    task = simulate(n_rows=6000, n_classes=10, temperature=3.0, random_state=5)
    probs = np.round(softmax(task.logits, axis=1), 2)
    probs /= probs.sum(axis=1, keepdims=True)
    logits = logits_from_probs(probs)
    assert (probs[np.arange(200), task.labels[:200]] == 0).any()
    bayes, ts = scores(logits[:200], task.labels[:200], logits[200:], task.labels[200:])
    assert bayes < 1.02 * ts


@pytest.mark.parametrize("factor", [1e-3, 100.0])
def test_logits_of_any_scale(factor):
    fits = [BayesianTemperatureScaling().fit(SURE.logits[:500] * f, SURE.labels[:500]) for f in (1.0, factor)]
    near, far = (fit.predict_proba(SURE.logits * f) for fit, f in zip(fits, (1.0, factor), strict=True))
    assert metrics.nll(far, SURE.labels) == pytest.approx(metrics.nll(near, SURE.labels), rel=0.01)
