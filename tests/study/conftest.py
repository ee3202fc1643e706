"""Small tasks and a small study of them, made in this process: only the tests of workers start workers."""

import pytest
from making import DRAWS, METHODS, SEED, SIZES, write_task

from temperance.calibrators.external_methods import find_methods
from temperance.study.protocol import plan
from temperance.study.results import Results
from temperance.study.scoring import run_work_unit
from temperance.study.store import ResultStore
from temperance.study.tasks import find_tasks


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
