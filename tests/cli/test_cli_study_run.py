"""`temperance study run`: what it prints, what it refuses, and that it continues where it stopped."""

from pathlib import Path

import numpy as np
import pytest
from running import save_task
from test_cli_help import examples

from temperance.study import Results

QUICK = ("--methods", "ts", "--sizes", "20", "--draws", "2", "--jobs", "1")


@pytest.fixture
def tasks(folder, task, judged):
    """Work beside a folder with one task."""
    (folder / "tasks").mkdir()
    save_task(folder / "tasks" / "cats__net.npz", task, judged)
    return folder / "tasks"


@pytest.mark.usefixtures("quick_workers")
def test_a_study_runs_reports_and_continues(run, tasks, monkeypatch):
    monkeypatch.setattr("temperance.cli.study._EVERY", float("inf"))  # a slow machine says no more
    first = run("study", "run", "tasks", "--out", "study", *QUICK)
    assert first.code == 0
    assert first.err == "note: 3 fits to do\n"
    assert "1 task, N = 20, seed 0" in first.out
    assert " ts " in first.out
    assert "Next: temperance study table study --metric nll --n 20" in first.out
    more = run("study", "run", "tasks/cats__net.npz", "-o", "study", *QUICK[:-4], "--draws", "3", "--json")
    assert more.err == "note: 1 fits to do\n"
    assert more.json["methods"][0] | {"fit_seconds": 0, "apply_seconds": 0} == {
        "method": "ts", "fits": 3, "failed": 0, "unconverged": 0, "fit_seconds": 0, "apply_seconds": 0,
    }  # fmt: skip
    assert more.json["tasks"] == ["cats__net"]
    assert len(Results("study").scores) == 4
    quiet = run("study", "run", "tasks", "-o", "study", *QUICK, "-q").succeeded().out
    assert quiet.startswith("1 task, N = 20, seed 0\n")


@pytest.mark.usefixtures("quick_workers")
def test_a_failed_fit_is_reported(run, tasks):
    data = dict(np.load("tasks/cats__net.npz"))
    data["logits_test"][np.arange(200), (data["labels_test"] + 1) % 4] = -np.inf
    np.savez("tasks/cats__net.npz", **data)
    done = run("study", "run", "tasks", "-o", "study", *QUICK[2:], "-m", "lts")
    assert done.code == 0
    assert "2 fits failed. The first: lts on cats__net with 20 rows: InputError" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tasks", "-o", "study", "--sizes", "20,many"), "must be whole numbers separated by commas"),
        (("tasks", "-o", "study", "-m", "tss"), "there is no method 'tss'. Did you mean 'ts'?"),
        (("tasks", "-o", "no/study", *QUICK), "no/study: no such file or directory"),
        (("tasks", "-o", "tasks/cats__net.npz"), "is a file. Choose another name"),
        (("empty", "-o", "study"), "must hold task files"),
    ],
)
def test_an_invalid_study_is_refused_in_one_sentence(run, tasks, words, said):
    (tasks.parent / "empty").mkdir()
    run("study", "run", *words).failed(2, said)
    assert not (tasks.parent / "study").exists()


@pytest.mark.parametrize("line", examples("study", "run"))
def test_every_example_of_the_help_parses(line, run, tasks, monkeypatch):
    asked = {}
    monkeypatch.setattr("temperance.study.find_tasks", lambda paths, **how: asked.update(paths=paths) or [])
    monkeypatch.setattr(
        "temperance.study.run_study", lambda *given, **settings: asked.update(settings) or 1 / 0
    )
    program, *words = line.split()
    assert program == "temperance"
    for name in words:
        if name.endswith(".npz"):
            Path(name).touch()
    done = run(*words)
    assert "ZeroDivisionError" in done.err, "all was understood before the work began"
    assert asked["paths"]
    assert (asked["scheduler"] is None) != ("--scheduler" in words)
