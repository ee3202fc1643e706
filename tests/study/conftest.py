"""Small tasks and a small study of them, made in this process: only the tests of workers start workers."""

from pathlib import Path

import pytest
from making import DRAWS, METHODS, SEED, SIZES, score_of, write_task

from temperance.calibrators import UNCALIBRATED
from temperance.calibrators.external_methods import find_methods
from temperance.study.protocol import FitKey, plan, run_work_unit
from temperance.study.results import Results
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile, find_tasks


@pytest.fixture(scope="session")
def task_folder(tmp_path_factory):
    """Return two data sets: two models on one, one on the other, with fewer rows than the largest size."""
    folder = tmp_path_factory.mktemp("tasks")
    for seed, model in enumerate(("small", "large")):
        write_task(folder, f"cats__{model}", seed=seed)
    write_task(folder, "dogs__net", n_classes=2, seed=7)
    return folder


@pytest.fixture(scope="session")
def study_folder(task_folder, tmp_path_factory):
    """Return a finished study of these tasks."""
    folder = tmp_path_factory.mktemp("study")
    tasks = find_tasks([task_folder])
    store = ResultStore.create(folder, SEED)
    store.add_tasks(tasks, SIZES)
    for unit in plan(tasks, find_methods(METHODS), SIZES, DRAWS, SEED):
        store.add(run_work_unit(unit))
    return folder


@pytest.fixture
def results(study_folder):
    return Results(study_folder)


@pytest.fixture
def task(results):
    return results.tasks[0]


@pytest.fixture
def made(tmp_path):
    """Return a function that makes a study: {task: {method: a score, or a list with that of each draw}}."""

    def make(scores, metric=None, rows=5000, n=200, sizes=None):
        store = ResultStore.create(tmp_path, 0)
        rows = dict.fromkeys(scores, rows) if isinstance(rows, int) else rows
        tasks = [TaskFile(name, Path(f"{name}.npz"), name, rows[name], 100, 10) for name in scores]
        store.add_tasks(tasks, sizes or [n])
        for task in tasks:
            for method, draws in scores[task.name].items():
                size = 0 if method == UNCALIBRATED else min(n, task.rows)
                fits = enumerate(draws if isinstance(draws, list) else [draws])
                store.add(score_of(FitKey(task.name, size, i, method), value, metric) for i, value in fits)
        return Results(tmp_path)

    return make
