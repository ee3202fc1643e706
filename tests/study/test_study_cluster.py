"""A Dask cluster gives the same numbers, also when a worker dies."""

import os
import signal
import sys

import pytest
from making import DRAWS, METHODS, SEED, SIZES
from test_study_workers import found

from temperance import InputError
from temperance.study import find_tasks, run_study
from temperance.study.runner import check_scheduler

# Warnings about Dask's internals are not tested here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
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


@pytest.mark.parametrize("address", ["carrier-pigeon://1", "pigeon", "tcp://127.0.0.1:1"])
def test_an_address_without_a_scheduler_is_refused_before_anything_is_written(address, task_folder, tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=f"must be the address of a Dask scheduler.*found '{address}'"):
        run_study(find_tasks([task_folder]), tmp_path / "out", scheduler=address)
    assert not (tmp_path / "out").exists()


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    for name in ("distributed", "distributed.comm", "distributed.comm.addressing"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "temperance\[dask\]"'):
        check_scheduler("tcp://127.0.0.1:1")
