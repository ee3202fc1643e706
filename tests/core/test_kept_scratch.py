"""The buffers of a pass are kept for the next one, one for each core, and change no result."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import temperance
from temperance.core import blocks
from temperance.core.blocks import Scratch, for_each_block
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate

TASK = simulate(n_rows=3000, n_classes=10, random_state=0)


@pytest.fixture(autouse=True)
def nothing_kept():
    blocks._scratch_pool.free.clear()


def scratch_of(values):
    """Return the scratch that a pass over the values uses."""
    used = []
    for_each_block(values, lambda z, i, j, scratch: used.append(scratch))
    return used[0]


def test_passes_over_one_shape_and_type_use_the_same_buffers_one_after_another_in_any_thread():
    values = TASK.logits.astype(np.float32)
    first = scratch_of(values)
    assert scratch_of(values + 1) is first
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(scratch_of, values).result() is first
    for other in (values[:-1], values[:, :-1], TASK.logits):
        assert scratch_of(other) is not first
    used = []
    for_each_block(TASK.logits, lambda z, i, j, own: used.extend([own, scratch_of(TASK.logits)]))
    assert used[0] is not used[1], "a pass inside another has its own"


def test_threads_at_the_same_time_have_buffers_of_their_own():
    both_inside = Barrier(2, timeout=10)

    def scratch_while_another_thread_works(_):
        used = []

        def work(z, i, j, scratch):
            both_inside.wait()
            used.append(scratch)

        for_each_block(TASK.logits, work)
        return used[0]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(scratch_while_another_thread_works, range(2))
    assert one is not other


@pytest.mark.parametrize(("n_rows", "kept"), [(60_000, True), (2**23 // 40, True), (2**23 // 40 + 1, False)])
def test_the_blocks_of_an_array_up_to_8_mb_use_kept_buffers_too(n_rows, kept):
    several = np.zeros((n_rows, 10), np.float32)  # blocks
    assert (scratch_of(several) is scratch_of(several)) == kept
    assert bool(blocks._scratch_pool.free) == kept


def test_no_more_buffers_are_kept_than_there_are_cores():
    for _ in range(blocks._scratch_pool.max_free + 2):
        blocks._scratch_pool.give_back(Scratch(2, 2, np.dtype(np.float32)))
    assert len(blocks._scratch_pool.free) == blocks._scratch_pool.max_free


def test_a_pass_that_fails_keeps_nothing():
    def fail(z, i, j, scratch):
        raise ZeroDivisionError

    scratch_of(TASK.logits)
    with pytest.raises(ZeroDivisionError):
        for_each_block(TASK.logits, fail)
    assert blocks._scratch_pool.free == []


def test_no_more_than_one_block_is_kept():
    large = np.zeros((300_000, 10), np.float32)  # 12 MB
    calibrator = temperance.TemperatureScaling().fit(TASK.logits, TASK.labels)
    calibrator.predict_proba(large)
    calibrator.predict_proba(TASK.logits)
    assert blocks._scratch_pool.free
    assert all(kept.d.nbytes <= blocks.BLOCK_BYTES for kept in blocks._scratch_pool.free)


@pytest.mark.parametrize("key", ["ts", "hts", "mono", "bayes"])
def test_no_earlier_prediction_changes_a_later_one(key):
    calibrator = temperance.make_calibrator(key).fit(TASK.logits, TASK.labels)
    inputs = [TASK.logits, TASK.logits.astype(np.float32), TASK.logits.astype(np.float16), -TASK.logits]
    expected = []
    for logits in inputs:
        blocks._scratch_pool.free.clear()
        expected.append(calibrator.predict_proba(logits).tobytes())
    masked = TASK.logits.copy()
    masked[::2, 3] = -np.inf
    calibrator.predict_proba(masked)
    for logits, bits in zip(inputs, expected, strict=True):
        first = calibrator.predict_proba(logits)
        calibrator.predict_proba(logits[::-1].copy())  # in the same buffers
        assert first.tobytes() == bits


def test_a_fit_keeps_its_own_gaps():
    rows = LogitRows(TASK.logits, TASK.labels)
    first = rows.moments(1.0)
    calibrator = temperance.TemperatureScaling().fit(TASK.logits[::-1], TASK.labels[::-1])
    calibrator.predict_proba(-TASK.logits)
    np.testing.assert_array_equal(rows.moments(1.0).mu, first.mu)
    assert not any(np.shares_memory(rows._gap_cache[0], kept.d) for kept in blocks._scratch_pool.free)
