"""The buffers of a pass are kept for the next one, one for each core, and change no result."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import temperance
from temperance.core import blocks
from temperance.core.blocks import for_each_block, read_blocks
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate

TASK = simulate(n_rows=3000, n_classes=10, random_state=0)


@pytest.fixture(autouse=True)
def nothing_kept():
    blocks.kept_scratch.clear()


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


def test_one_thread_after_another_uses_the_same_buffers():
    own = scratch_of(TASK.logits)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(scratch_of, TASK.logits).result() is own


@pytest.mark.parametrize(("n_rows", "kept"), [(60_000, True), (2**23 // 40, True), (2**23 // 40 + 1, False)])
def test_the_blocks_of_an_array_up_to_8_mb_use_kept_buffers_too(n_rows, kept):
    several = np.zeros((n_rows, 10), np.float32)  # blocks
    assert (scratch_of(several) is scratch_of(several)) == kept
    assert bool(blocks.kept_scratch) == kept


def test_no_more_buffers_are_kept_than_there_are_cores():
    inside = [read_blocks(TASK.logits) for _ in range(blocks.max_kept + 2)]
    for _ in zip(*inside, strict=True):  # all of them at the same time
        assert blocks.kept_scratch == []
    for blocks_of_one in inside:
        assert list(blocks_of_one) == []
    assert len(blocks.kept_scratch) == blocks.max_kept


def test_a_pass_that_fails_keeps_nothing():
    def fail(z, i, j, scratch):
        raise ZeroDivisionError

    scratch_of(TASK.logits)
    with pytest.raises(ZeroDivisionError):
        for_each_block(TASK.logits, fail)
    assert blocks.kept_scratch == []


def test_no_more_than_one_block_is_kept():
    large = np.zeros((300_000, 10), np.float32)  # 12 MB
    calibrator = temperance.TemperatureScaling().fit(TASK.logits, TASK.labels)
    calibrator.predict_proba(large)
    calibrator.predict_proba(TASK.logits)
    assert blocks.kept_scratch
    assert all(kept.d.nbytes <= blocks.BLOCK_BYTES for kept in blocks.kept_scratch)


@pytest.mark.parametrize("key", ["ts", "hts", "mono", "bayes"])
def test_no_earlier_prediction_changes_a_later_one(key):
    calibrator = temperance.make_calibrator(key).fit(TASK.logits, TASK.labels)
    inputs = [TASK.logits, TASK.logits.astype(np.float32), TASK.logits.astype(np.float16), -TASK.logits]
    expected = []
    for logits in inputs:
        blocks.kept_scratch.clear()
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
    assert not any(np.shares_memory(rows._gap_cache[0], kept.d) for kept in blocks.kept_scratch)
