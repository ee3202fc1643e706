"""Our methods with the interface of CalArena: probabilities in, probabilities out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from temperance import InputError, make_calibrator
from temperance.data import simulate


def softmax(logits):
    return np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def calarena(benchmark_script):
    """Return the calibrator of the script."""
    return benchmark_script("calarena").CalArenaCalibrator


@pytest.fixture(scope="module")
def task():
    return simulate(n_rows=400, n_classes=4, random_state=3)


@pytest.fixture(scope="module")
def binary():
    return simulate(n_rows=400, n_classes=2, random_state=4)


@pytest.mark.parametrize("key", ["ts", "ets", "bayes", "bayes-bias"])
def test_probabilities_give_what_their_log_probabilities_give(calarena, task, key):
    logits = np.log(softmax(task.logits))
    direct = make_calibrator(key).fit(logits[:300], task.labels[:300]).predict_proba(logits[300:])
    probs = softmax(task.logits)
    found = calarena(key).fit(probs[:300], task.labels[:300]).predict_proba(probs[300:])
    assert_allclose(found, direct, rtol=1e-9)


def test_binary_probabilities_have_one_column_or_two_and_may_be_zero_and_one(calarena, binary):
    both = softmax(binary.logits)
    of_two = calarena("ts").fit(both, binary.labels).predict_proba(both)
    of_one = calarena("ts").fit(both[:, 1], binary.labels).predict_proba(both[:, 1])
    assert of_one.shape == (400, 2)
    assert_allclose(of_one, of_two, rtol=1e-6)
    certain = np.append(both[:-2, 1], [0, 1])
    found = calarena("ts").fit(certain, binary.labels).predict_proba(certain)
    assert_array_equal(found[-2:].argmax(axis=1), [0, 1])
    assert_allclose(found.sum(axis=1), 1)


def test_a_label_may_have_the_probability_zero(calarena, task):
    probs = softmax(task.logits).astype(np.float32)
    probs[0] = [1, 0, 0, 0]
    labels = task.labels.copy()
    labels[0] = 3
    found = calarena("ts").fit(probs, labels).predict_proba(probs)
    assert np.isfinite(found).all()
    assert 0 < found[0, 3] < found[0, 0]


def test_logits_in_place_of_probabilities_are_refused(calarena, task):
    with pytest.raises(InputError, match="from 0 to 1"):
        calarena("ts").fit(task.logits, task.labels)


def test_it_is_an_estimator_that_says_when_it_is_not_fitted(calarena, task):
    copy = clone(calarena("ets"))
    assert copy.method == "ets"
    with pytest.raises(NotFittedError):
        copy.predict_proba(softmax(task.logits))
