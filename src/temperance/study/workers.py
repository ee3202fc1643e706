"""Work units on the cores of this machine: processes that take one after the other.

A worker that dies takes only what it was at with it: new workers take its place, and the work is done again.
When this process ends, in whatever way, the workers end with it. The workers of joblib outlive a parent that
is killed. They also print the trace of a crash, and a warning when a worker's memory grows.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread

from joblib import wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

from temperance.study.protocol import WorkUnit
from temperance.study.scoring import Score, run_work_unit

_MOST_DEATHS = 3  # in a row, without any work done


def run_on_workers(units: Iterable[WorkUnit], jobs: int) -> Generator[list[Score], None, None]:
    """Yield the results of each work unit as it is done, in any order."""
    queue, deaths = deque(units), 0
    while queue:
        try:
            for result in _until_a_death(queue, jobs):
                deaths = 0
                yield result
        except BrokenProcessPool:
            deaths += 1
            if deaths == _MOST_DEATHS:
                raise ChildProcessError(
                    f"the worker processes died {deaths} times in a row, at {queue[0].task.name}, "
                    f"N = {queue[0].n}. They may lack memory: use fewer jobs. What was done is kept."
                ) from None


def _until_a_death(queue: deque[WorkUnit], jobs: int) -> Generator[list[Score], None, None]:
    """Yield results until all are there, or a worker dies: what was not done is in the queue again."""
    context = get_context("spawn")  # a fork of a process with threads may hang
    with _left_to_parent():  # here starts the process that cleans up after us
        pool = ProcessPoolExecutor(jobs, context, _begin)
    running = dict[Future[list[Score]], WorkUnit]()
    with pool:
        try:
            while queue or running:
                with _left_to_parent():
                    while queue and len(running) < 2 * jobs:  # few, so that an end comes soon
                        # A unit may hold what a notebook defined, which pickle alone cannot send.
                        unit = wrap_non_picklable_objects(queue[0], keep_wrapper=False)
                        running[pool.submit(run_work_unit, unit)] = queue[0]
                        queue.popleft()  # not before: a pool may break while it is asked
                done = wait(running, return_when=FIRST_COMPLETED).done
                for future in sorted(done, key=lambda ended: ended.exception() is not None):  # results first
                    result = future.result()
                    del running[future]
                    yield result
        finally:
            queue.extendleft(reversed(running.values()))
            for process in list(pool._processes.values()):  # pool.kill_workers() from Python 3.14 on
                process.kill()


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


def _begin() -> None:
    """Prepare a worker: one thread, and an end with its parent."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for what is imported later
    limit_threads()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None  # a worker has one
    parent.join()
    os._exit(1)


def limit_threads() -> None:
    """Let this process use one thread, since it is one of several on the same cores."""
    os.environ["TEMPERANCE_THREADS"] = "1"
    threadpool_limits(1)
