"""A work unit: each method is fitted to the same rows and evaluated on the test rows."""

import dataclasses

import numpy as np
import pytest
from making import write_task

from temperance import InputError, make_calibrator
from temperance.calibrators import UNCALIBRATED
from temperance.calibrators.external_methods import find_methods
from temperance.metrics import brier, ece, nll
from temperance.study import find_tasks
from temperance.study.protocol import WorkUnit, run_work_unit
from temperance.study.tasks import load_task


@pytest.fixture
def task(task_folder):
    return find_tasks([task_folder])[0]


def write_changed(folder, **changes):
    """Write a task of 20 rows with other arrays in the place of some; None leaves one out."""
    write_task(folder, "a__b", n_rows=20)
    arrays = dict(np.load(folder / "a__b.npz")) | changes
    np.savez(folder / "a__b.npz", **{name: array for name, array in arrays.items() if array is not None})


def test_scores_are_those_of_a_fit_by_hand(task):
    unit = WorkUnit(task, 60, 2, 5, find_methods(["hts", "pts"]))
    scores = run_work_unit(unit)
    data = np.load(task.path)
    for key, options in (("hts", {}), ("pts", {"random_state": unit.random_state()})):
        fitted = make_calibrator(key, **options).fit(
            data["logits_val"][unit.rows()], data["labels_val"][unit.rows()]
        )
        probs, labels = fitted.predict_proba(data["logits_test"].astype(np.float64)), data["labels_test"]
        (score,) = [score for score in scores if score.fit.method == key]
        expected = (nll(probs, labels), brier(probs, labels), ece(probs, labels, bins=50), ece(probs, labels))
        assert (score.nll, score.brier, score.ece50, score.ece15) == expected
        assert score.converged
        assert score.iterations == fitted.solution_.iterations
        assert score.fit_seconds > 0


def test_the_uncalibrated_classifier_is_evaluated_without_calibration(task):
    (score,) = run_work_unit(WorkUnit(task, 0, 0, 0, {UNCALIBRATED: None}))
    z, labels = (np.load(task.path)[key] for key in ("logits_test", "labels_test"))
    z = z.astype(np.float64)
    expected = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), labels]
    assert score.nll == pytest.approx(expected.mean(), rel=1e-12)


def test_a_method_that_fails_is_a_result_and_the_others_are_kept(tmp_path):
    write_task(tmp_path, "a__masked", n_rows=50)
    data = dict(np.load(tmp_path / "a__masked.npz"))
    free = data["labels_val"] != 3
    data["logits_val"][free, 3] = -np.inf
    np.savez(tmp_path / "a__masked.npz", **data)
    (task,) = find_tasks([tmp_path])
    lts, ts = run_work_unit(WorkUnit(task, 50, 0, 0, find_methods(["lts", "ts"])))
    assert np.isnan(lts.nll)
    assert "InputError" in lts.message
    assert "-inf" in lts.message
    assert np.isfinite(ts.nll)
    assert ts.message == ""


def test_tasks_are_found_in_folders_and_files_and_described(task_folder):
    tasks = find_tasks([task_folder])
    assert [task.name for task in tasks] == ["cats__large", "cats__small", "dogs__net"]
    assert [(task.dataset, task.model) for task in tasks][-1] == ("dogs", "net")
    assert (tasks[0].rows, tasks[0].test_rows, tasks[0].classes, tasks[2].classes) == (200, 200, 4, 2)
    assert find_tasks([tasks[1].path]) == [tasks[1]]
    for name in ("plain", "__plain", "plain__"):
        assert dataclasses.replace(tasks[0], name=name).dataset == name


def test_a_folder_without_tasks_is_refused_and_so_are_two_tasks_with_the_same_name(tmp_path, task_folder):
    (tmp_path / "notes.txt").write_text("no task")
    np.savez(tmp_path / "rows.npz", logits=np.zeros((3, 2)), labels=[0, 1, 0])
    with pytest.raises(InputError, match=r"must hold task files.*found 1 data files, none of them a task"):
        find_tasks([tmp_path])
    assert len(find_tasks([task_folder, task_folder / "dogs__net.npz"])) == 3, (
        "a file that is given twice is one"
    )
    write_task(tmp_path, "dogs__net", n_rows=20)
    with pytest.raises(InputError, match="two tasks must not have the same name"):
        find_tasks([task_folder, tmp_path / "dogs__net.npz"])


def test_a_copy_is_refused(tmp_path):
    write_task(tmp_path, "a__b", n_rows=20)
    (tmp_path / "c__d.npz").write_bytes((tmp_path / "a__b.npz").read_bytes())
    with pytest.raises(InputError, match="a task must not count twice"):
        find_tasks([tmp_path])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logits_test": None}, r"a__b\.npz must be a task file.*without logits or probs for both"),
        ({"labels_val": None}, r"a__b\.npz must be a task file.*without labels_val"),
        ({"logits_test": np.zeros((20, 7))}, "the same classes"),
    ],
)
def test_an_incomplete_task_is_refused_in_a_folder_too(tmp_path, changes, words):
    write_changed(tmp_path, **changes)
    for path in (tmp_path, tmp_path / "a__b.npz"):
        with pytest.raises(InputError, match=words):
            find_tasks([path])


def test_errors_about_invalid_logits_name_their_file_which_must_not_change(tmp_path):
    spoiled = np.zeros((20, 4))
    spoiled[3, 1] = np.nan
    write_changed(tmp_path, logits_test=spoiled)
    (task,) = find_tasks([tmp_path])
    with pytest.raises(InputError, match=r"a__b\.npz, logits_test.*NaN in 1 row \(first: row 3\)"):
        load_task(task)
    write_task(tmp_path, "a__b", n_rows=20, seed=1)
    with pytest.raises(InputError, match="has changed during the study"):
        load_task(task)
