"""A gate on work that can be counted, which is the same on every machine: calls, passes and bytes.

A change that needs more than a limit fails here. Raise a limit only with a reason in the commit; lower it
when a change has made something cheaper.
"""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

from temperance import make_calibrator
from temperance.core.blocks import threads
from temperance.data import simulate

CALLS_FOR_ONE_ROW = {"ts": 34, "hts": 68, "bts": 67, "lts": 61, "mono": 84, "pts": 92, "bayes": 200}
"""Calls of Python and of C functions that `predict_proba` of one row makes."""

BYTES_FOR_A_BATCH = {"ts": 3.9, "hts": 4.5, "mono": 7.1, "bayes": 9.1}
"""Memory of `predict_proba` of 10,000 rows of 10 classes, result included, in bytes of the logits."""

PASSES = {
    "ts": (8, 7),
    "hts": (15, 13),
    "ets": (80, 61),
    "lts": (190, 100),  # from four starts
    "bayes": (34, 34),
}
"""Passes over the rows that a fit makes, on 200 and on 2000 rows of 10 classes."""

TASK = simulate(n_rows=2000, n_classes=10, random_state=0)
LOGITS = TASK.logits.astype(np.float32)


@pytest.fixture(scope="module")
def fitted():
    """Return a method fitted to some of the rows, once."""
    found = {}

    def fit(key, n_rows=2000):
        if (key, n_rows) not in found:
            found[key, n_rows] = make_calibrator(key).fit(LOGITS[:n_rows], TASK.labels[:n_rows])
        return found[key, n_rows]

    return fit


def calls_of(function, *arguments):
    """Return how many functions a call runs, itself included."""
    count = 0

    def observe(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(observe)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count - 1  # the end of the observation


@pytest.mark.parametrize("key", CALLS_FOR_ONE_ROW)
def test_one_row_takes_few_calls(key, fitted):
    calibrator, row = fitted(key), LOGITS[:1].copy()
    assert calls_of(calibrator.predict_proba, row) <= CALLS_FOR_ONE_ROW[key]


@pytest.mark.parametrize("n_rows", [200, 2000])
@pytest.mark.parametrize("key", PASSES)
def test_a_fit_takes_few_passes(key, n_rows, fitted):
    assert fitted(key, n_rows).solution_.passes <= PASSES[key][n_rows == 2000]


@pytest.mark.parametrize("key", ["ts", "hts"])
@pytest.mark.filterwarnings("ignore:rows must be different ones")
@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
def test_a_fit_and_a_prediction_copy_no_array(key):
    logits = np.tile(LOGITS, (20, 1)).repeat(20, axis=1)  # 40,000 x 200, 32 MB
    labels = np.tile(TASK.labels * 20, 20)
    calibrator = make_calibrator(key).fit(logits[:2000], labels[:2000])
    assert peak_bytes(calibrator.fit, logits, labels) < logits.nbytes  # buffers and samples of rows
    assert peak_bytes(calibrator.predict_proba, logits) < 1.2 * logits.nbytes  # 1 is the result


@pytest.mark.parametrize("key", BYTES_FOR_A_BATCH)
def test_a_batch_takes_little_new_memory(key, fitted):
    calibrator, batch = fitted(key), np.tile(LOGITS, (5, 1))
    assert peak_bytes(calibrator.predict_proba, batch) <= BYTES_FOR_A_BATCH[key] * batch.nbytes


def peak_bytes(function, *arguments):
    """Return the largest number of bytes that a call has allocated at once."""
    gc.collect()  # cycles of earlier tests would decide when those of this call are collected
    tracemalloc.start()
    try:
        with threads(1):  # each has buffers of its own
            function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
