"""A study of two tasks and two fits, for the examples of this package."""

from __future__ import annotations

import tempfile
from pathlib import Path

from temperance.study.protocol import FitKey
from temperance.study.results import Results
from temperance.study.scoring import Score
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile


def example_results() -> Results:
    """Return the results of `ts` and of the uncalibrated classifier, as `run_study` writes them.

    Examples
    --------
    >>> [task.name for task in example_results().tasks]
    ['cifar10__a', 'cifar10__b']
    """
    folder = Path(tempfile.mkdtemp())
    store = ResultStore.create(folder, 0)
    scores = {"cifar10__a": 0.4, "cifar10__b": 0.2}
    store.add_tasks([TaskFile(name, folder / name, "9f86", 500, 1000, 10) for name in scores], [200])
    store.add([Score(FitKey(name, 0, 0, "none"), nll=0.8) for name in scores])
    store.add([Score(FitKey(name, 200, 0, "ts"), nll=nll) for name, nll in scores.items()])
    return Results(folder)
