"""Cells on the cores of this machine: processes that take one after the other.

A worker that dies takes only what it was at with it: new workers take its place, and the work is done again.
When this process ends, in whatever way, the workers end with it.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread

from threadpoolctl import threadpool_limits

from temperance.study.protocol import WorkUnit
from temperance.study.scoring import Score, run_work_unit

__all__ = ["limit_threads", "run_on_workers"]

_MOST_DEATHS = 3  # in a row, without any work done


def run_on_workers(units: Iterable[WorkUnit], jobs: int) -> Generator[list[Score], None, None]:
    """Yield the results of each work unit as it is done, in any order."""
    left, deaths = list(units), 0
    while left:
        lost: list[WorkUnit] = []
        for result in _until_a_death(left, jobs, lost):
            deaths = 0
            yield result
        left, deaths = lost, deaths + 1
        if left and deaths == _MOST_DEATHS:
            first = left[0]
            raise ChildProcessError(
                f"the worker processes died {deaths} times in a row, at {first.task.name}, N = {first.n}. "
                "They may lack memory: use fewer jobs. What was done is kept."
            )


def _until_a_death(
    units: list[WorkUnit], jobs: int, lost: list[WorkUnit]
) -> Generator[list[Score], None, None]:
    """Yield results until all are there, or until a worker dies: then `lost` has what is left."""
    context = get_context("spawn")  # a fork of a process with threads may hang
    lifeline, ours = context.Pipe(duplex=False)
    with ProcessPoolExecutor(jobs, context, _begin, (lifeline,)) as pool:
        queue, running = deque(units), dict[Future[list[Score]], WorkUnit]()
        try:
            while True:
                with _left_to_parent():
                    while queue and len(running) < 2 * jobs:  # few, so that an end comes soon
                        running[pool.submit(run_work_unit, queue[0])] = queue[0]
                        queue.popleft()  # not before: a pool may break while it is asked
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    del running[future]
                    yield result
        except BrokenProcessPool:
            for future, unit in running.items():
                if future.done() and future.exception() is None:
                    yield future.result()
                else:
                    lost.append(unit)
            lost.extend(queue)
        finally:
            ours.close()
            lifeline.close()


@contextmanager
def _left_to_parent() -> Iterator[None]:
    """Keep signals of the terminal from processes that are started here: they end with their parent.

    What is blocked stays so in a new process, from its first moment on; here it arrives afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover  Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(lifeline: Connection) -> None:
    """Prepare a worker: one thread, and an end with its parent."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for what is imported later
    limit_threads()
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)  # nothing is ever sent: this returns when the other end is closed
    os._exit(1)


def limit_threads() -> None:
    """Let this process use one thread, since it is one of several on the same cores."""
    os.environ["TEMPERANCE_THREADS"] = "1"
    threadpool_limits(1)
