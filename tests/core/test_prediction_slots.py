"""As many predictions at a time as there are cores, whatever the number of threads."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread, get_ident
from time import sleep

import pytest

import temperance
from temperance.core import threads as module
from temperance.core.threads import available_cores, prediction_slot, run_together
from temperance.data import simulate


@pytest.fixture(autouse=True)
def free_slots():
    module._free_all_slots()


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
    while module.prediction_slots.acquire(blocking=False):
        taken += 1
    module.prediction_slots.release(taken) if taken else None
    return taken


def test_no_more_predictions_than_cores_have_a_slot_at_a_time():
    assert most_inside(2 * available_cores() + 2) == available_cores()


def test_a_slot_is_given_back_by_a_failure():
    for _ in range(available_cores() + 1):
        with pytest.raises(ZeroDivisionError), prediction_slot():
            raise ZeroDivisionError
    assert number_of_free_slots() == available_cores()


def test_a_prediction_that_goes_on_without_a_slot_gives_none_back(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAIT", 0.01)
    for _ in range(available_cores()):
        module.prediction_slots.acquire()
    for _ in range(3):
        with prediction_slot():
            assert number_of_free_slots() == 0
    assert number_of_free_slots() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_all_slots(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAIT", 60.0)
    for _ in range(available_cores()):
        module.prediction_slots.acquire()
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
        module.prediction_slots.acquire()
    waits = []
    monkeypatch.setattr(module.prediction_slots, "acquire", lambda timeout: waits.append(timeout))
    calibrator.predict_proba(task.logits[:1])
    assert waits == []
    calibrator.predict_proba(task.logits)
    assert waits == [module.MAX_WAIT]


def test_calls_run_together_each_in_a_thread_and_the_first_in_this_one():
    threads = [None] * 3

    def note(i):
        threads[i] = get_ident()
        return 10 * i

    assert run_together([lambda i=i: note(i) for i in range(3)]) == [0, 10, 20]
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
        run_together([lambda i=i: work(i) for i in range(2)])
    assert ended == [1 - which]


def test_without_more_threads_all_calls_run_in_this_one(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    done = []
    run_together([lambda i=i: done.append(i) for i in range(3)])
    assert done == [0, 1, 2]
