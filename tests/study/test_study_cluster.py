"""A Dask cluster gives the same numbers, also when a worker dies."""

import os
import signal
import sys

import pytest
from making import DRAWS, METHODS, SEED, SIZES
from test_study_workers import found

from temperance import InputError
from temperance.study import find_tasks, run_study
from temperance.study.cluster import run_on_cluster

# Dask warns of its own inner life, and this is no test of it.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_cluster_gives_the_same_numbers_though_a_worker_is_killed(task_folder, study_folder, tmp_path):
    distributed = pytest.importorskip("distributed")
    killed = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        workers = [worker.pid for worker in cluster.workers.values()]

        def kill_one(made, to_make):
            if made > to_make // 3 and not killed:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(made)

        run_study(
            find_tasks([task_folder]), tmp_path, methods=METHODS, sizes=SIZES, draws=DRAWS, seed=SEED,
            scheduler=cluster.scheduler_address, progress=kill_one,
        )  # fmt: skip
    assert killed
    assert found(tmp_path) == found(study_folder)


def test_an_address_that_is_none_is_refused(monkeypatch):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="must be a Dask scheduler's address; got 'carrier-pigeon://1'"):
        next(run_on_cluster([], "carrier-pigeon://1"))


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "temperance\[dask\]"'):
        next(run_on_cluster([], "tcp://127.0.0.1:1"))
