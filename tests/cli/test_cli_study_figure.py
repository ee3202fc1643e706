"""`temperance study figure`: files, names, refusals."""

import pytest
from running import half_written, save_task

from temperance.calibrators.external_methods import find_methods
from temperance.data import simulate
from temperance.study.figures import FIGURES, ON_A_TASK
from temperance.study.protocol import plan, run_work_unit
from temperance.study.store import ResultStore
from temperance.study.tasks import find_tasks, load_task


@pytest.fixture
def study(folder):
    """Return the name of a folder with a study of one task."""
    save_task("cats__net.npz", simulate(100, 3, random_state=1), simulate(100, 3, random_state=2))
    tasks = find_tasks(["cats__net.npz"])
    store = ResultStore.create("study", 0)
    store.add_tasks(tasks, [30])
    for unit in plan(tasks, find_methods(["ts", "hts"]), [30], 2, 0):
        store.add(run_work_unit(unit))
    return folder / "study"


def test_by_default_a_png_in_the_folder_of_the_study(study, run):
    done = run("study", "figure", "study", "avg_NLL").succeeded()
    assert done.out == "Saved to study/avg_NLL.png\n"
    assert (study / "avg_NLL.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ON_A_TASK)
def test_a_figure_of_a_task_names_the_chosen_task(name, study, run):
    done = run("study", "figure", "study", name)
    assert (done.code, done.out) == (0, f"Saved to study/{name}.png\n")
    assert done.err == "note: the task is cats__net; --task chooses another\n"
    assert (study / f"{name}.png").exists()


def test_a_named_task_is_not_reported_and_a_quiet_command_reports_none(study, run):
    run("study", "figure", "study", "h_HTS", "--task", "cats__net", "-o", "a.svg").succeeded()
    assert run("study", "figure", "study", "h_HTS", "-o", "b.svg", "-q").succeeded().out == ""
    assert (study.parent / "a.svg").read_bytes() == (study.parent / "b.svg").read_bytes()


def test_a_figure_has_a_name_and_overwrites_only_with_force(study, run):
    (study / "avg_NLL.png").write_text("old")
    run("study", "figure", "study", "nll").failed(2, "the figure must be", "avg_NLL", "'nll'")
    run("study", "figure", "study", "avg_NLL").failed(2, "already exists", "--force")
    assert (study / "avg_NLL.png").read_text() == "old"
    run("study", "figure", "study", "avg_NLL", "--force").succeeded()
    assert (study / "avg_NLL.png").read_bytes().startswith(b"\x89PNG")
    assert half_written(study) == []


def test_a_missing_task_file_is_named(study, run):
    (study.parent / "cats__net.npz").unlink()
    load_task.cache_clear()
    run("study", "figure", "study", "h_HTS").failed(2, "cats__net.npz")


def test_the_help_explains_every_name(run):
    text = run("study", "figure", "--help").succeeded().out
    assert all(name in text for name in FIGURES)
