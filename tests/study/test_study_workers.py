"""The same numbers on any number of workers, and whatever process dies meanwhile."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest
from making import DRAWS, METHODS, SEED, SIZES

from temperance import InputError
from temperance.calibrators.external_methods import find_methods
from temperance.study import find_tasks, run_study
from temperance.study.protocol import WorkUnit, plan
from temperance.study.runner import _left_to_parent, run_on_workers
from temperance.study.store import FILE_NAME, ResultStore

SETTINGS = {"methods": METHODS, "sizes": SIZES, "draws": DRAWS, "seed": SEED}


def found(folder):
    """Return all results but their times, as text, in which nan equals itself."""
    return ResultStore(folder).scores().drop(columns=["fit_seconds", "apply_seconds"]).to_csv()


def test_workers_give_the_numbers_of_this_process_and_a_second_run_has_nothing_to_do(
    task_folder, study_folder, tmp_path
):
    tasks, told = find_tasks([task_folder]), []
    results = run_study(tasks, tmp_path, jobs=2, progress=lambda *done: told.append(done), **SETTINGS)
    assert found(tmp_path) == found(study_folder)
    assert told[0] == (0, len(results.scores))
    assert told[-1] == (len(results.scores), len(results.scores))
    told.clear()
    run_study(tasks, tmp_path, jobs=2, progress=lambda *done: told.append(done), **SETTINGS)
    assert told == [(0, 0)]


@pytest.mark.usefixtures("quick_workers")
def test_a_killed_worker_costs_only_its_current_unit(task_folder, study_folder, tmp_path):
    killed = []

    def kill_one(made, to_make):
        if made > 5 and not killed:
            worker = multiprocessing.active_children()[0]
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)

    run_study(find_tasks([task_folder]), tmp_path, jobs=1, progress=kill_one, **SETTINGS)
    assert len(killed) == 1
    assert found(tmp_path) == found(study_folder)
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("quick_workers")
def test_a_pool_that_breaks_while_work_is_submitted_loses_nothing(task_folder, monkeypatch):
    asked = []

    class Fragile(ProcessPoolExecutor):
        def submit(self, *work):
            asked.append(work)
            if len(asked) == 4:
                raise BrokenProcessPool
            return super().submit(*work)

    monkeypatch.setattr("temperance.study.runner.ProcessPoolExecutor", Fragile)
    units = list(plan(find_tasks([task_folder]), find_methods(["ts"]), [20], 2, 0))
    found = [score.fit for scores in run_on_workers(units, 1) for score in scores]
    assert len(asked) > len(units)
    assert sorted(found) == sorted(fit for unit in units for fit in unit.fits())


@pytest.mark.usefixtures("quick_workers")
def test_a_unit_may_hold_objects_that_pickle_cannot_send(task_folder):
    class Mine(WorkUnit):  # as in a notebook: a worker cannot import it
        methods_of = staticmethod(lambda unit: unit.methods)

    unit = next(plan(find_tasks([task_folder]), find_methods(["ts"]), [20], 1, 0))
    mine = Mine(**vars(unit))
    assert [score.fit for scores in run_on_workers([mine], 1) for score in scores] == unit.fits()


@pytest.mark.usefixtures("quick_workers")
def test_results_that_arrive_as_a_worker_dies_are_kept(task_folder, monkeypatch):
    submitted = []

    class Breaking(ProcessPoolExecutor):
        def submit(self, *work):
            future = super().submit(*work)
            if not submitted:  # the first unit is lost, as with a worker that dies
                future.exception()
                future = Future()
                future.set_exception(BrokenProcessPool())
            else:
                future.exception()
            submitted.append(work)
            return future

    monkeypatch.setattr("temperance.study.runner.ProcessPoolExecutor", Breaking)
    units = list(plan(find_tasks([task_folder]), find_methods(["ts"]), [20], 1, 0))[:2]
    found = [score.fit for scores in run_on_workers(units, 1) for score in scores]
    assert sorted(found) == sorted(fit for unit in units for fit in unit.fits())
    assert len(submitted) == 3, "only the lost unit is done again"


class Deadly:
    """A unit that kills the worker which unpacks it."""

    task, n = SimpleNamespace(name="cats__net"), 7

    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.usefixtures("quick_workers")
def test_work_that_kills_its_workers_repeatedly_is_given_up_with_a_message(monkeypatch):
    monkeypatch.setattr("temperance.study.runner.MAX_DEATHS", 2)
    with pytest.raises(ChildProcessError, match="died 2 times in a row, at cats__net, N = 7"):
        list(run_on_workers([Deadly()], 1))


@pytest.mark.usefixtures("quick_workers")
def test_an_error_ends_the_workers(task_folder, tmp_path):
    def stop(made, to_make):
        if made:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(find_tasks([task_folder]), tmp_path, jobs=1, progress=stop, **SETTINGS)
    assert multiprocessing.active_children() == []
    assert len(ResultStore(tmp_path).scores()) >= 1, "what was done is kept"


def study_command(task_folder, out):
    words = ["--methods", ",".join(METHODS), "--sizes", ",".join(map(str, SIZES)), "--draws", str(DRAWS)]
    command = [sys.executable, "-m", "temperance", "study", "run", str(task_folder), "-o", str(out)]
    return [*command, *words, "--seed", str(SEED), "--jobs", "1", "--quiet"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_study_that_is_killed_continues_and_gives_the_same_results(task_folder, study_folder, tmp_path):
    command = study_command(task_folder, tmp_path / "out")
    # `make kill` does this at many random moments
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0)
    wait_for_results(process, tmp_path / "out", more=12)
    assert process.poll() is None, "it is killed in the midst of its work"
    process.kill()
    process.wait()
    wait_until_alone(process.pid)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert found(tmp_path / "out") == found(study_folder)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_a_study_whose_terminal_closes_ends_at_once_without_output(task_folder, tmp_path):
    command = study_command(task_folder, tmp_path / "out")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0)
    wait_for_results(process, tmp_path / "out", more=1)
    os.killpg(process.pid, signal.SIGHUP)
    assert (*process.communicate(timeout=20), process.returncode) == (b"", b"", 128 + signal.SIGHUP)
    wait_until_alone(process.pid)


def results_in(folder):
    return len(ResultStore(folder).fits()) if (folder / FILE_NAME).exists() else 0


def wait_for_results(process, folder, more):
    """Wait until there are so many more results, or the study is done."""
    try:
        before = results_in(folder)
    except InputError:
        before = 0  # killed before its store was made
    while process.poll() is None:
        try:
            if results_in(folder) >= before + more:
                return
        except InputError:
            pass  # the store is being made
        time.sleep(0.01)


def wait_until_alone(group):
    """Wait until the workers of a killed study are gone too; fail if they stay."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("workers outlive the study")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sizes": []}, "sizes is empty"),
        ({"sizes": [0]}, "sizes must be"),
        ({"draws": 0}, "draws must be"),
        ({"jobs": 0}, "jobs must be"),
        ({"methods": ["none of them"]}, "there is no method 'none of them'"),
    ],
)
def test_an_invalid_study_is_refused_before_anything_is_written(task_folder, tmp_path, settings, words):
    with pytest.raises(InputError, match=words):
        run_study(find_tasks([task_folder]), tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signal masks")
def test_a_worker_ignores_ctrl_c_from_the_start():
    ask = "import signal; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))"
    with _left_to_parent():
        inside = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert inside.stdout == f"{sorted([int(signal.SIGINT), int(signal.SIGHUP)])}\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []), "here it is heard again"
