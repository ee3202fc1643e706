"""Work units on the cores of this machine, or on a Dask cluster: processes that do one after the other.

If a worker dies, only its current unit is lost: new workers replace it, and the unit is done again. When this
process ends, in whatever way, the workers end with it. joblib is not used: its workers outlive a parent that
is killed, print the trace of a crash, and warn when a worker's memory grows.

On a cluster, the scheduler distributes the units, and repeats those of a lost worker. Its workers need this
package, and the task files under the same paths.
"""

from __future__ import annotations

import os
import signal
import socket
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread

from joblib import wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

from temperance.errors import InputError
from temperance.loaders import import_optional
from temperance.study.protocol import WorkUnit
from temperance.study.scoring import Score, run_work_unit

MAX_DEATHS = 3  # deaths in a row, without any work done
TIMEOUT = 10.0  # seconds to wait for an answer of a scheduler


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
            if deaths == MAX_DEATHS:
                raise ChildProcessError(
                    f"the worker processes died {deaths} times in a row, at {queue[0].task.name}, "
                    f"N = {queue[0].n}. They may lack memory: use fewer jobs. Finished work is kept."
                ) from None


def _until_a_death(queue: deque[WorkUnit], jobs: int) -> Generator[list[Score], None, None]:
    """Yield results until all are done, or a worker dies: unfinished units are then in the queue again."""
    context = get_context("spawn")  # a fork of a process with threads may hang
    with _left_to_parent():  # this starts the process that cleans up resources
        pool = ProcessPoolExecutor(jobs, context, _begin)
    running = dict[Future[list[Score]], WorkUnit]()
    with pool:
        try:
            while queue or running:
                with _left_to_parent():
                    while queue and len(running) < 2 * jobs:  # few, so that it can stop soon
                        # A unit may contain objects defined in a notebook, which pickle cannot send.
                        unit = wrap_non_picklable_objects(queue[0], keep_wrapper=False)
                        running[pool.submit(run_work_unit, unit)] = queue[0]
                        queue.popleft()  # not before: submitting may break the pool
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
    """Block signals of the terminal in processes that are started here: they end with their parent.

    A new process inherits the block from the start; in this process, a signal arrives afterwards.
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
    """Prepare a worker: use one thread, and end with the parent."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for what is imported later
    limit_threads()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None  # the thread of the worker
    parent.join()
    os._exit(1)


def limit_threads() -> None:
    """Limit this process to one thread, since several share the cores."""
    os.environ["TEMPERANCE_THREADS"] = "1"
    threadpool_limits(1)


def check_scheduler(address: str) -> None:
    """Raise unless Dask is installed and a scheduler answers at the address."""
    addressing = import_optional("distributed.comm.addressing", "dask", "a cluster")
    try:
        host, port = addressing.get_address_host_port(address, strict=True)
        socket.create_connection((host, port), timeout=TIMEOUT).close()
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            "the scheduler must be the address of a Dask scheduler, such as tcp://host:8786; "
            f"found {address!r} ({error})."
        ) from None


def run_on_cluster(units: Iterable[WorkUnit], address: str) -> Generator[list[Score], None, None]:
    """Yield the results of each work unit as it is done, in any order."""
    from distributed import Client, KilledWorker, as_completed

    with Client(address, timeout=TIMEOUT, set_as_default=False) as client:
        futures = client.map(_run_alone, list(units), pure=False)
        for future in as_completed(futures, loop=client.loop):
            try:
                result = future.result()
            except KilledWorker as error:
                raise ChildProcessError(
                    f"the cluster gave up on work whose workers died each time ({error}). They may need more "
                    "memory. Finished work is kept."
                ) from None
            yield result
            future.release()  # the store has its result now


def _run_alone(unit: WorkUnit) -> list[Score]:
    limit_threads()
    return run_work_unit(unit)
