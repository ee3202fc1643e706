"""A small share of the kills and of the storage faults, from a fixed seed; `make kill` does many."""

import os
import random
import signal
import tempfile
from pathlib import Path

import pytest

if not hasattr(os, "fork"):  # pragma: no cover
    pytest.skip("needs fork", allow_module_level=True)

import storage_faults
from kill_jobs import make_jobs, write_inputs
from kill_processes import fork
from kill_runner import check_left, kill_all


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:  # those of pytest are closed to other users
        found = Path(name).resolve()
        found.chmod(0o755)
        (found / "inputs").mkdir()
        write_inputs(found / "inputs", n_rows=300)
        yield found


@pytest.fixture(scope="module")
def jobs(folder):
    return {job.out: job for job in make_jobs(folder / "inputs", folder, groups=("save", "apply", "check"))}


def test_kills_leave_an_old_file_or_a_complete_one(jobs, folder):
    ended = kill_all(list(jobs.values()), folder, 12, random.Random(1))
    assert ended["hits"] == 12
    assert all(ended[f"hits: {job.group}"] for job in jobs.values())


def test_a_command_that_writes_in_place_would_be_found(jobs, folder, monkeypatch):
    def write_in_place(path, content, **options):
        path.write_bytes(content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("temperance.calibrator_file.write_atomically", write_in_place)
    (place := folder / "in-place").mkdir()
    code = fork(jobs["saved.json"].words, place).wait()
    assert code == -signal.SIGKILL
    with pytest.raises(AssertionError, match="half a file"):
        check_left(jobs["saved.json"], place, None, code)


@pytest.mark.parametrize("name", storage_faults.FAULTS)
def test_storage_that_fails_gives_one_sentence(name, jobs, folder):
    runs = 0
    for job in (jobs["saved.json"], jobs["checks.jsonl"]):
        (place := folder / f"{name.replace(' ', '-')}-{job.out}").mkdir()
        runs += storage_faults.FAULTS[name](job, place)
    assert runs or "disk" in name
