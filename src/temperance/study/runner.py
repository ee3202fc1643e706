"""Run a study, or the rest of it: plan, distribute the work, and store each result at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from temperance.calibrators.external_methods import Methods
from temperance.errors import InputError
from temperance.inputs.validation import check_number
from temperance.metrics.evaluation import Metrics, named_metrics
from temperance.study.paper import DRAWS, SIZES
from temperance.study.protocol import plan, study_methods
from temperance.study.results import Results
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile
from temperance.study.workers import check_scheduler, run_on_cluster, run_on_workers

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
        As for `compare`. By default those of the registry and ETS with the Brier score. The paper's training
        is slow and runs only if named, as `lts-sgd`.
    metrics : sequence or mapping, optional
        Functions of (probs, labels), or a mapping of names to these, in addition to ECE, NLL and Brier score.
    sizes : sequence of int
        Numbers of validation rows; all rows if a task has fewer.
    draws : int
        Subsamples of each size.
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
        raise InputError("sizes must have at least one number of rows; found none.")
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
