"""Run a study, or the rest of it: plan, distribute the work, and store each result at once.

Worker processes run one work unit after another, on the cores of this machine or on a Dask cluster. If a
worker dies, only its current unit is lost: a new worker replaces it, and the unit runs again. When this
process ends for any reason, the workers end with it. We do not use joblib: its workers outlive a killed
parent, print the trace of a crash, and warn when a worker's memory grows.

On a cluster, the scheduler distributes the units, and repeats the units of a lost worker. Its workers need
this package, and the task files under the same paths.
"""

from __future__ import annotations

import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from joblib import wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

from temperance.calibrators.external_methods import Methods
from temperance.errors import InputError
from temperance.inputs.validation import check_number
from temperance.loaders import import_optional
from temperance.metrics.evaluation import Metrics, named_metrics
from temperance.study.paper import DRAWS, SIZES
from temperance.study.protocol import Score, WorkUnit, plan, run_work_unit, study_methods
from temperance.study.results import Results
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile

MAX_DEATHS = 3  # deaths in a row, without any work done
ANSWER_TIMEOUT = 10.0  # seconds to wait for a scheduler's answer

Progress = Callable[[int, int], None]
"""Called with the number of fits done in this run so far, and the number to do."""


def run_study(
    tasks: Sequence[TaskFile],
    folder: str | Path,
    *,
    methods: Methods | None = None,
    metrics: Metrics | None = None,
    sizes: Sequence[int] = SIZES,
    draws: int = DRAWS,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Results:
    """Fit each method to `draws` subsamples of each size of each task, and evaluate it on the test rows.

    Parameters
    ----------
    tasks
        As `find_tasks` returns them.
    folder : path
        Where results are stored. Existing results are not computed again.
    methods : sequence or mapping, optional
        As for `compare`. By default the registry's methods, and ETS with the Brier score. The paper's
        training is slow and runs only if named, as `lts-sgd`.
    metrics : sequence or mapping, optional
        Functions of (probs, labels), or a mapping of names to these, in addition to ECE, NLL and Brier score.
    sizes : sequence of int
        Numbers of validation rows; all rows if a task has fewer.
    draws : int
        Number of subsamples of each size.
    seed : int
        Random seed.
    jobs : int
        Number of worker processes. Results do not depend on it.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers are used instead.
    progress : function of (fits done, fits to do), optional
        Called after each subsample.

    Notes
    -----
    The workers are new processes, so a script that calls this needs `if __name__ == "__main__":`.

    Examples
    --------
    Without tasks there is nothing to do; see docs/command-line.md for a study:

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> run_study([], f"{folder.name}/study", methods=["ts"], sizes=[200], draws=2).methods
    []
    >>> folder.cleanup()
    """
    chosen, extra = study_methods(methods), named_metrics(metrics)
    if not sizes:
        raise InputError("sizes is empty. Pass at least one number of rows.")
    for name, value in (*(("sizes", size) for size in sizes), ("draws", draws), ("jobs", jobs)):
        check_number(name, value, ">= 1", lambda n: n >= 1, whole=True)
    if scheduler is not None:
        check_scheduler(scheduler)
    store = ResultStore.create(folder, seed)
    store.add_tasks(tasks, sizes)
    units = list(plan(tasks, chosen, sizes, draws, seed, store.fits(), extra))
    made, to_make = 0, sum(len(unit.methods) for unit in units)
    report = progress or (lambda made, to_make: None)
    report(0, to_make)
    work = run_on_workers(units, jobs) if scheduler is None else run_on_cluster(units, scheduler)
    with closing(work):  # on any exception, the workers end at once
        for scores in work:
            store.add(scores)
            made += len(scores)
            report(made, to_make)
    return Results(folder)


# ---- worker processes


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
                    f"N = {queue[0].n}. They might lack memory: use fewer jobs. Finished work is kept."
                ) from None


def _until_a_death(queue: deque[WorkUnit], jobs: int) -> Generator[list[Score], None, None]:
    """Yield results until all are done, or a worker dies, which puts unfinished units back into the queue."""
    context = get_context("spawn")  # a fork of a process with threads can hang
    with _left_to_parent():  # this starts the process that cleans up resources
        pool = ProcessPoolExecutor(jobs, context, _begin)
    running = dict[Future[list[Score]], WorkUnit]()
    with pool:
        try:
            while queue or running:
                with _left_to_parent():
                    while queue and len(running) < 2 * jobs:  # few, so that it can stop soon
                        # A unit can contain objects defined in a notebook, which pickle cannot send.
                        unit = wrap_non_picklable_objects(queue[0], keep_wrapper=False)
                        running[pool.submit(run_work_unit, unit)] = queue[0]
                        queue.popleft()  # only now: submitting might fail and break the pool
                done = wait(running, return_when=FIRST_COMPLETED).done
                for future in sorted(done, key=lambda ended: ended.exception() is not None):  # results first
                    result = future.result()
                    del running[future]
                    yield result
        finally:
            queue.extendleft(reversed(running.values()))
            for process in list(pool._processes.values()):  # Python 3.14 has pool.kill_workers()
                process.kill()


@contextmanager
def _left_to_parent() -> Iterator[None]:
    """Block the terminal's signals in processes that start here, since they end with their parent.

    A new process inherits the block; in this process, a blocked signal arrives afterwards.
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
    os.environ["OMP_NUM_THREADS"] = "1"  # for modules imported later
    _limit_threads()

    def end_with_parent() -> None:
        parent = parent_process()
        assert parent is not None  # this runs only in a worker
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()


def _limit_threads() -> None:
    """Limit this process to one thread, since several share the cores."""
    os.environ["TEMPERANCE_THREADS"] = "1"
    threadpool_limits(1)


def check_scheduler(address: str) -> None:
    """Raise unless Dask is installed and a scheduler answers at the address."""
    addressing = import_optional("distributed.comm.addressing", "dask", "a cluster")
    try:
        host, port = addressing.get_address_host_port(address, strict=True)
        socket.create_connection((host, port), timeout=ANSWER_TIMEOUT).close()
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            "the scheduler must be the address of a Dask scheduler, such as tcp://host:8786; "
            f"found {address!r} ({error})."
        ) from None


def run_on_cluster(units: Iterable[WorkUnit], address: str) -> Generator[list[Score], None, None]:
    """Yield the results of each work unit as it is done, in any order."""
    distributed = import_optional("distributed", "dask", "a cluster")
    with distributed.Client(address, timeout=ANSWER_TIMEOUT, set_as_default=False) as client:
        futures = client.map(_run_alone, list(units), pure=False)
        for future in distributed.as_completed(futures, loop=client.loop):
            try:
                result = future.result()
            except distributed.KilledWorker as error:
                raise ChildProcessError(
                    f"the cluster gave up on work whose workers died each time ({error}). They might need "
                    "more memory. Finished work is kept."
                ) from None
            yield result
            future.release()  # the store has its result now


def _run_alone(unit: WorkUnit) -> list[Score]:
    _limit_threads()
    return run_work_unit(unit)
