"""Fixtures of the tests of the command line: commands run in this process, in a folder with small files."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from running import Done, save_task

from temperance import load
from temperance.comparison import compare
from temperance.data import simulate


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch):
    """Set the default number of resamples to 20, in the commands and in the library."""
    monkeypatch.setitem(compare.__kwdefaults__, "draws", 20)


@pytest.fixture(scope="session")
def judged():
    """Return 200 test rows of 4 classes, of the same classifier as `task`."""
    return simulate(n_rows=200, n_classes=4, random_state=8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a new folder, with nothing in the environment that changes what is printed."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, run_command):
    """Run a command in this process and return its exit code and outputs."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    yield lambda *words: Done(*run_command(*words))
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)


@pytest.fixture
def files(folder, task, judged):
    """Return the names of the files in the folder: val, test, both as a task, and a calibrator."""
    np.savez("val.npz", logits=task.logits, labels=task.labels)
    np.savez("test.npz", logits=judged.logits, labels=judged.labels)
    save_task("task.npz", task, judged)
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def calibrator(folder, fitted):
    """Return a calibrator of one temperature, which is in the file cal.json."""
    fitted("ts").save("cal.json")
    return load("cal.json")


@pytest.fixture
def cal(files, calibrator):
    """Return the calibrator in the file cal.json, beside the files of rows."""
    return calibrator


@pytest.fixture
def start(folder):
    """Start a command in a separate process, with pipes; it is ended with the test."""
    started = []

    def start(*words, environment=None, **options):
        # Background processes of a script ignore Ctrl-C, and so do their children.
        heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | heard | options
        process = subprocess.Popen(
            [sys.executable, "-m", "temperance", *map(str, words)],
            env=os.environ | (environment or {}),
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
