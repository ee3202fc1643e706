"""As many predictions at a time as there are cores, whatever the number of threads."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread, get_ident
from time import sleep

import numpy as np
import pytest

import temperance
from temperance.core import turns as module
from temperance.core.turns import Turns, available_cores, run_together
from temperance.data import simulate


def most_inside(turns, threads):
    """Return how many of the threads were in the context at the same time."""
    lock, inside, most = Lock(), 0, 0

    def work(_):
        nonlocal inside, most
        with turns:
            with lock:
                inside += 1
                most = max(most, inside)
            sleep(0.01)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(2 * threads)))
    return most


def test_no_more_threads_than_cores_have_a_turn_at_a_time():
    assert most_inside(Turns(), 2 * available_cores() + 2) == available_cores()


def test_a_turn_is_given_back_by_a_failure():
    turns = Turns()
    for _ in range(turns.number + 1):
        with pytest.raises(ZeroDivisionError), turns:
            raise ZeroDivisionError
    assert turns._free.qsize() == turns.number


def test_a_lost_turn_is_replaced_after_a_while(monkeypatch):
    monkeypatch.setattr(module, "_LONGEST_WAIT", 0.01)
    turns = Turns()
    for _ in range(turns.number):
        turns.__enter__()
    with turns:
        assert turns._free.qsize() == 0
    assert turns._free.qsize() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_all_turns(monkeypatch):
    monkeypatch.setattr(module, "_LONGEST_WAIT", 60.0)
    turns = module.turns
    for _ in range(turns.number):
        turns.__enter__()
    try:
        child = os.fork()
        if child == 0:
            signal.alarm(5)  # the end of a child that waits
            with turns:
                os._exit(0 if turns._free.qsize() == turns.number - 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        for _ in range(turns.number):
            turns.__exit__()


def test_predictions_of_many_rows_take_turns_and_of_one_row_do_not(monkeypatch):
    task = simulate(n_rows=3000, n_classes=10, random_state=0)
    calibrator = temperance.make_calibrator("hts").fit(task.logits, task.labels)
    taken = []
    monkeypatch.setattr(Turns, "__enter__", lambda self: taken.append(self))
    monkeypatch.setattr(Turns, "__exit__", lambda self, *error: None)
    calibrator.predict_proba(task.logits[:1])
    assert taken == []
    calibrator.predict_proba(task.logits)
    assert taken == [module.turns]


def test_many_threads_give_the_bits_of_one():
    task = simulate(n_rows=3000, n_classes=10, random_state=0)
    calibrator = temperance.make_calibrator("hts").fit(task.logits, task.labels)
    parts = [np.ascontiguousarray(task.logits[i:]) for i in range(16)]
    expected = [calibrator.predict_proba(part).tobytes() for part in parts]
    with ThreadPoolExecutor(8) as pool:
        found = [probs.tobytes() for probs in pool.map(calibrator.predict_proba, parts)]
    assert found == expected


def test_calls_run_together_each_in_a_thread_and_the_first_in_this_one():
    threads = [None] * 3

    def note(i):
        threads[i] = get_ident()

    run_together([lambda i=i: note(i) for i in range(3)])
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
