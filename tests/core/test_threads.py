"""The same bits for any number of threads; as many predictions at a time as there are cores."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread, get_ident
from time import sleep

import numpy as np
import pytest
from core_reference import draw

import temperance
from temperance.core import blocks, logit_rows, row_block
from temperance.core.blocks import available_cores, prediction_slot, run_together
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate
from temperance.errors import InputError

N_ROWS = 523
RNG = np.random.default_rng(7)
BETA = np.exp(RNG.normal(size=N_ROWS))
SHARE = RNG.uniform(size=N_ROWS)
PAIRS = np.column_stack([BETA, SHARE])

PASSES: dict[str, Callable[[LogitRows], tuple[np.ndarray, ...]]] = {
    "moments": lambda x: tuple(vars(x.moments(BETA)).values()),
    "entropy": lambda x: (x.log_entropy(), x.log_confidence()),
    "shape": lambda x: x.shape_at(0.5),
    "mean": lambda x: (x.mean(),),
    "largest": lambda x: (x.topk(3),),
    "project": lambda x: (x.project(np.linspace(-1, 2, x.n_classes) ** 2),),
    "gram": lambda x: x.gram(PAIRS, SHARE),
    "cross": lambda x: x.gram(PAIRS, None)[:1],
    "softmax": lambda x: (x.softmax(0.7),),
    "mixture": lambda x: (x.map(lambda rows: rows.mixture([0.4, 1.3], np.array([0.3, 0.7]))),),
    "log_mixture": lambda x: (x.map(lambda rows: rows.mixture([0.4, 1.3], np.array([0.3, 0.7])), log=True),),
    "scaled": lambda x: (x.map(lambda rows: rows.divide(3.0), log=True),),
}
EACH_PASS = pytest.mark.parametrize("name", PASSES)


def run(name: str, z: np.ndarray, n_threads: int) -> tuple[np.ndarray, ...]:
    with blocks.threads(n_threads):
        return PASSES[name](LogitRows(z))


@EACH_PASS
@pytest.mark.parametrize("n_classes", [7, 60])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_bit_identical_results(kernel, monkeypatch, name, n_classes, dtype):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2048)
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", 2048)
    z = draw(N_ROWS, n_classes)[0].astype(dtype)
    assert 5 * blocks.block_rows(n_classes, z.itemsize) < N_ROWS  # every thread has a block
    alone = run(name, z, 1)
    for n_threads in (2, 3, 5):
        for got, want in zip(run(name, z, n_threads), alone, strict=True):
            assert got.tobytes() == want.tobytes(), n_threads


@EACH_PASS
@pytest.mark.parametrize(("size", "gram_size"), [(1, 1), (3000, 777), (1 << 24, 1 << 24)])
def test_the_size_of_a_block_does_not_matter(kernel, monkeypatch, name, size, gram_size):
    z = draw(N_ROWS, 12)[0]
    want = run(name, z, 2)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", gram_size)
    for got, expected in zip(run(name, z, 2), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_more_threads_than_blocks_are_allowed():
    z = draw(2, 3)[0]
    with blocks.threads(16):
        assert LogitRows(z).gram(np.ones((2, 1)), None)[0].shape == (3, 1)
        assert LogitRows(z).moments(1.0).mu.shape == (2,)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_no_more_blocks_are_worked_on_at_once_than_there_are_threads(n_threads, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4 * 3 * 8)  # four rows of three classes
    running, most, lock = 0, 0, Lock()

    def work(z, i, j, scratch):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)  # long enough for other threads to begin
        with lock:
            running -= 1
        return (np.array([float(j - i)]),)

    z = np.zeros((36, 3))
    with blocks.threads(n_threads):
        blocks.for_each_block(z, work)
        assert most == n_threads
        most = 0
        (n_rows,) = blocks.sum_blocks(z, work, 4)
    assert most == n_threads
    assert n_rows == 36


@pytest.mark.parametrize(("n_rows", "size", "held"), [(1000, 50, 50), (20, 50, 20)])
def test_the_buffers_of_a_pass_hold_one_block(n_rows, size, held):
    for *_, scratch in blocks.read_blocks(np.zeros((n_rows, 4), np.float16), size):
        assert scratch.d.shape == scratch.e.shape == (held, 4)


def test_blocks_hold_block_bytes_and_at_least_one_row():
    assert blocks.block_rows(1000, 4) == blocks.BLOCK_BYTES // 4000
    assert blocks.block_rows(10**9, 8) == 1


def test_number_of_threads_is_the_context_then_the_environment_then_the_cores(monkeypatch):
    monkeypatch.setenv("TEMPERANCE_THREADS", "3")
    assert blocks.number_of_threads() == 3
    with blocks.threads(5):
        assert blocks.number_of_threads() == 5
    assert blocks.number_of_threads() == 3
    monkeypatch.setenv("TEMPERANCE_THREADS", "1024")
    assert blocks.number_of_threads() == 1024
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(7)), raising=False)
    monkeypatch.setenv("TEMPERANCE_THREADS", "")
    assert blocks.number_of_threads() == 7
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert blocks.number_of_threads() == 1


def test_kernels_are_chosen_by_size_by_default(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.delenv("TEMPERANCE_KERNEL", raising=False)

    def name(size: int) -> str:
        return row_block.block_type(size).__name__

    assert name(row_block.COMPILED_FROM - 1) == "RowBlock"
    assert name(row_block.COMPILED_FROM) == "CompiledBlock"
    monkeypatch.setenv("TEMPERANCE_KERNEL", "compiled")
    assert name(1) == "CompiledBlock"
    monkeypatch.setenv("TEMPERANCE_KERNEL", "numpy")
    assert name(row_block.COMPILED_FROM) == "RowBlock"


def test_without_numba_all_sizes_use_numpy(monkeypatch):
    monkeypatch.delenv("TEMPERANCE_KERNEL", raising=False)
    monkeypatch.setattr(row_block, "find_spec", lambda name: None)
    assert row_block.block_type(1 << 40) is row_block.RowBlock


@pytest.mark.parametrize("n_classes", [2, 5, 31, 32, 40, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_of_a_row_do_not_depend_on_the_other_rows(kernel, n_classes, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 16)
    rng = np.random.default_rng(0)
    z = rng.normal(scale=3, size=(700, n_classes)).astype(dtype)

    def results(rows):
        moments, shape = rows.moments(0.7), rows.shape_at(0.5)
        weights = np.arange(n_classes, dtype=float)
        found = [moments.log_s, moments.mu, moments.v, rows.log_entropy(), shape[2]]
        return [*found, rows.mean(), rows.project(weights), rows.topk(2), rows.softmax(0.3)]

    whole = results(LogitRows(z))
    for _ in range(5):
        start = int(rng.integers(0, 699))
        part = slice(start, int(rng.integers(start + 1, 701)))
        for all_rows, some in zip(whole, results(LogitRows(z[part])), strict=True):
            np.testing.assert_array_equal(some, all_rows[part])


@pytest.mark.parametrize("text", ["0", "two", "²", "3.0", "-1", " ", "9" * 30, "1 2", "1025"])
def test_a_number_of_threads_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv("TEMPERANCE_THREADS", text)
    with pytest.raises(InputError, match=r"TEMPERANCE_THREADS must be a whole number from 1 to 1024; found"):
        blocks.number_of_threads()


@pytest.fixture(autouse=True)
def free_slots():
    blocks._free_all_slots()


def most_inside(threads):
    """Return how many of the threads were in the context at the same time."""
    lock, inside, most = Lock(), 0, 0

    def work(_):
        nonlocal inside, most
        with prediction_slot():
            with lock:
                inside += 1
                most = max(most, inside)
            sleep(0.01)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(2 * threads)))
    return most


def number_of_free_slots():
    """Return how many slots are free."""
    taken = 0
    while blocks.prediction_slots.acquire(blocking=False):
        taken += 1
    blocks.prediction_slots.release(taken) if taken else None
    return taken


def test_no_more_predictions_than_cores_have_a_slot_at_a_time():
    assert most_inside(2 * available_cores() + 2) == available_cores()


def test_a_slot_is_given_back_by_a_failure():
    for _ in range(available_cores() + 1):
        with pytest.raises(ZeroDivisionError), prediction_slot():
            raise ZeroDivisionError
    assert number_of_free_slots() == available_cores()


def test_a_prediction_that_goes_on_without_a_slot_gives_none_back(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_WAIT", 0.01)
    for _ in range(available_cores()):
        blocks.prediction_slots.acquire()
    for _ in range(3):
        with prediction_slot():
            assert number_of_free_slots() == 0
    assert number_of_free_slots() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_all_slots(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_WAIT", 60.0)
    for _ in range(available_cores()):
        blocks.prediction_slots.acquire()
    child = os.fork()
    if child == 0:
        signal.alarm(5)  # the end of a child that waits
        with prediction_slot():
            os._exit(0 if number_of_free_slots() == available_cores() - 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_predictions_of_many_rows_take_a_slot_and_of_one_row_do_not(monkeypatch):
    task = simulate(n_rows=3000, n_classes=10, random_state=0)
    calibrator = temperance.make_calibrator("hts").fit(task.logits, task.labels)
    for _ in range(available_cores()):
        blocks.prediction_slots.acquire()
    waits = []
    monkeypatch.setattr(blocks.prediction_slots, "acquire", lambda timeout: waits.append(timeout))
    calibrator.predict_proba(task.logits[:1])
    assert waits == []
    calibrator.predict_proba(task.logits)
    assert waits == [blocks.MAX_WAIT]


def test_calls_run_together_each_in_a_thread_and_the_first_in_this_one():
    threads = [None] * 3

    def note(i):
        threads[i] = get_ident()
        return 10 * i

    assert run_together(note, 3) == [0, 10, 20]
    assert threads[0] == get_ident()
    assert None not in threads[1:]
    assert get_ident() not in threads[1:]


@pytest.mark.parametrize("which", [0, 1])
def test_a_failure_in_any_thread_is_raised_after_the_others_have_ended(which):
    ended = []

    def work(i):
        if i == which:
            raise ZeroDivisionError
        sleep(0.02)
        ended.append(i)

    with pytest.raises(ZeroDivisionError):
        run_together(work, 2)
    assert ended == [1 - which]


def test_without_more_threads_all_calls_run_in_this_one(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    done = []
    run_together(done.append, 3)
    assert done == [0, 1, 2]
