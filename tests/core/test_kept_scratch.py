"""The buffers of a prediction are kept for the next one of the same thread, and change no result."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import temperance
from temperance.core import blocks
from temperance.core.blocks import Scratch, for_each_block
from temperance.data import simulate

TASK = simulate(n_rows=3000, n_classes=10, random_state=0)


@pytest.fixture(autouse=True)
def nothing_kept():
    blocks._kept.scratch = None


def scratch_of(values):
    """Return the scratch that a pass over the values uses."""
    used = []
    for_each_block(values, lambda z, i, j, scratch: used.append(scratch))
    return used[0]


def test_the_same_shape_and_type_use_the_same_buffers():
    values = TASK.logits.astype(np.float32)
    first = scratch_of(values)
    assert scratch_of(values + 1) is first
    for other in (values[:-1], values[:, :-1], TASK.logits):
        assert scratch_of(other) is not first


def test_a_pass_inside_another_has_buffers_of_its_own():
    used = []
    scratch_of(TASK.logits)

    def outer(z, i, j, scratch):
        used.extend([scratch, scratch_of(TASK.logits)])

    for_each_block(TASK.logits, outer)
    assert used[0] is not used[1]


def test_every_thread_has_buffers_of_its_own():
    own = scratch_of(TASK.logits)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(scratch_of, TASK.logits).result() is not own


def test_a_pass_that_fails_keeps_nothing():
    def fail(z, i, j, scratch):
        raise ZeroDivisionError

    scratch_of(TASK.logits)
    with pytest.raises(ZeroDivisionError):
        for_each_block(TASK.logits, fail)
    assert blocks._kept.scratch is None


def test_no_more_than_one_block_is_kept():
    large = np.zeros((300_000, 10), np.float32)  # 12 MB
    calibrator = temperance.TemperatureScaling().fit(TASK.logits, TASK.labels)
    calibrator.predict_proba(large)
    kept = blocks._kept.scratch
    assert kept is None or kept.d.nbytes <= blocks.BLOCK_BYTES
    calibrator.predict_proba(TASK.logits)
    assert blocks._kept.scratch.d.nbytes <= blocks.BLOCK_BYTES


@pytest.mark.parametrize("key", ["ts", "hts", "mono", "bayes"])
def test_no_earlier_prediction_changes_a_later_one(key):
    calibrator = temperance.make_calibrator(key).fit(TASK.logits, TASK.labels)
    inputs = [TASK.logits, TASK.logits.astype(np.float32), TASK.logits.astype(np.float16), -TASK.logits]
    expected = []
    for logits in inputs:
        blocks._kept.scratch = None
        expected.append(calibrator.predict_proba(logits).tobytes())
    masked = TASK.logits.copy()
    masked[::2, 3] = -np.inf
    calibrator.predict_proba(masked)
    for logits, bits in zip(inputs, expected, strict=True):
        first = calibrator.predict_proba(logits)
        calibrator.predict_proba(logits[::-1].copy())  # in the same buffers
        assert first.tobytes() == bits


def test_a_fit_keeps_its_own_gaps():
    gaps = {}
    scratch = []
    for_each_block(TASK.logits, lambda z, i, j, used: scratch.append(used), gaps)
    assert blocks._kept.scratch is None
    assert isinstance(scratch[0], Scratch)
