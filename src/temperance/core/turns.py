"""Threads: several for one pass, and as many predictions at a time as there are cores.

NumPy gives up Python's lock in every operation on many numbers. Threads beyond the number of cores would make
it wait for that lock again and again, and evict each other's buffers from the cache: eight threads on two
cores predicted little more than one. A thread that waits for its turn costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread

# A turn may be lost to an interrupt, or taken for long: rather than wait longer, go on without one.
_LONGEST_WAIT = 1.0


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Turns:
    """A context that as many threads as there are cores can be in at a time."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Make all turns free, as in a forked process: the threads that had some are not in it."""
        self.number = available_cores()
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(self.number):
            self._free.put(None)

    def __enter__(self) -> None:
        try:
            self._free.get(timeout=_LONGEST_WAIT)
        except Empty:
            return

    def __exit__(self, *error: object) -> None:
        self._free.put(None)


turns = Turns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=turns.reset)


def run_together(calls: Sequence[Callable[[], None]]) -> None:
    """Run the calls at the same time, each in a thread of its own, the first in this one.

    An executor would do, but importing it takes long. In a service, that would be at the first prediction,
    and a process forked at that moment would wait for the import for ever.
    """
    failures: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as failure:  # raised again by the thread that waits
            failures.append(failure)

    here, elsewhere, threads = [calls[0]], calls[1:], []
    for call in elsewhere:
        thread = Thread(target=run, args=(call,))
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            here.append(call)
        else:
            threads.append(thread)
    for call in here:
        run(call)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
