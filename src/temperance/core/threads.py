"""Threads: how many a pass uses, several for one pass, and as many predictions at a time as there are cores.

NumPy gives up Python's lock in every operation on many numbers. Threads beyond the number of cores would make
it wait for that lock again and again, and evict each other's buffers from the cache: eight threads on two
cores predicted little more than one. A thread that waits for its slot costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property
from threading import Lock, Semaphore, Thread
from typing import Any

from temperance.errors import InputError, excerpt

MAX_THREADS = 1024
# A slot may be lost to an interrupt, or taken for long: rather than wait longer, go on without one.
MAX_WAIT = 1.0

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a variable to a value inside the context."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def threads(n: int) -> AbstractContextManager[None]:
    """Use `n` threads inside the context."""
    return setting(_threads, n)


def number_of_threads() -> int:
    """Threads used for a pass: `threads(n)`, else TEMPERANCE_THREADS, else the cores this process may use."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    text = os.environ.get("TEMPERANCE_THREADS", "")
    if not text:
        return available_cores()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_THREADS)) else 0
    if not 1 <= number <= MAX_THREADS:
        raise InputError(
            "the environment variable TEMPERANCE_THREADS must be a whole number from 1 to "
            f"{MAX_THREADS}; found {excerpt(text)}. Correct it, or unset it to use all cores."
        )
    return number


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


prediction_slots = Semaphore(available_cores())


def _free_all_slots() -> None:
    """Begin anew in a forked process: the threads that had slots are not in it."""
    global prediction_slots
    prediction_slots = Semaphore(available_cores())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all_slots)


@contextmanager
def prediction_slot() -> Iterator[None]:
    """Hold one of the slots inside the context; wait for a free one, but not for long."""
    slots = prediction_slots
    acquired = slots.acquire(timeout=MAX_WAIT)
    try:
        yield
    finally:
        if acquired:  # else the number of slots would grow
            slots.release()


def run_together(call: Callable[[int], Any], n: int) -> list[Any]:
    """Run call(0), ..., call(n - 1) at the same time, the first in this thread; return the results.

    An executor would do, but importing it takes long. In a service, that would be at the first prediction,
    and a process forked at that moment would wait for the import for ever.
    """
    if n == 1:
        return [call(0)]
    results: list[Any] = [None] * n
    failures: list[BaseException] = []

    def run(i: int) -> None:
        try:
            results[i] = call(i)
        except BaseException as failure:  # raised again by the thread that waits
            failures.append(failure)

    here, started = [0], []
    for i in range(1, n):
        thread = Thread(target=run, args=(i,))
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            here.append(i)
        else:
            started.append(thread)
    for i in here:
        run(i)
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
    return results


class _OneBlasThread:
    """Limit the linear algebra library to one thread inside the context, whichever thread enters it.

    The limit applies to the whole process: the first pass to start sets it, the last to end removes it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    @cached_property
    def _controller(self) -> Any:
        from threadpoolctl import ThreadpoolController  # for a fit: a prediction needs NumPy alone

        return ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()
