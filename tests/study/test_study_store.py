"""The store: all results of a work unit or none, each once, and no mixed studies."""

import dataclasses
import math
import sqlite3

import pytest

from temperance import InputError
from temperance.study.protocol import FitKey, Score
from temperance.study.results import Results
from temperance.study.store import FILE_NAME, ResultStore

ONE = Score(FitKey("a__b", 20, 0, "ts"), 0.1, 0.2, 0.3, 0.4, True, 7, "", 0.5, 0.6)
INFINITE = dataclasses.replace(ONE, fit=FitKey("a__b", 20, 0, "bts"), nll=math.inf)
FAILED = Score(FitKey("a__b", 20, 0, "lts"), message="ValueError: why")


@pytest.fixture
def store(tmp_path):
    return ResultStore.create(tmp_path, 0)


def stored(store):
    return [Score(FitKey(*line[:4]), *line[4:]) for line in store.scores().itertuples(index=False)]


def test_another_process_can_read_what_was_written(tmp_path):
    ResultStore.create(tmp_path, 3).add([ONE, INFINITE])
    again = ResultStore(tmp_path)
    assert stored(again) == [INFINITE, ONE]
    assert list(again.scores()["fit_seconds"]) == [0.5, 0.5]
    assert again.fits() == {ONE.fit, INFINITE.fit}
    assert again.seed == 3


def test_a_fit_that_failed_has_no_scores(store):
    store.add([FAILED])
    (score,) = stored(store)
    assert math.isnan(score.nll)
    assert score.message == "ValueError: why"


def test_a_result_is_there_once_and_the_first_one_stays(store):
    store.add([ONE])
    store.add([dataclasses.replace(ONE, nll=9.0), INFINITE])
    assert stored(store) == [INFINITE, ONE]


def test_results_of_a_work_unit_are_written_together_or_not_at_all(store):
    with pytest.raises(sqlite3.IntegrityError):
        store.add([ONE, dataclasses.replace(INFINITE, message=None)])  # what cannot be stored comes second
    assert stored(store) == []


def test_the_same_command_continues_and_another_seed_or_version_is_refused(tmp_path, monkeypatch):
    ResultStore.create(tmp_path, 0).add([ONE])
    assert ResultStore.create(tmp_path, 0).fits() == {ONE.fit}
    with pytest.raises(InputError, match="began with seed 0; found 1"):
        ResultStore.create(tmp_path, 1)
    monkeypatch.setattr("temperance.__version__", "99.0")
    with pytest.raises(InputError, match=r"began with temperance .*; found 99\.0"):
        ResultStore.create(tmp_path, 0)


def test_a_task_of_which_there_are_results_must_not_change(store, results):
    store.add_tasks(results.tasks, [20, 30])
    first, *_ = results.tasks
    mended = dataclasses.replace(first, sha256="other")
    store.add_tasks([mended], [30, 50])
    assert store.tasks() == [mended, *results.tasks[1:]]
    assert store.sizes() == [20, 30, 50]
    store.add([dataclasses.replace(ONE, fit=FitKey(first.name, 20, 0, "ts"))])
    with pytest.raises(InputError, match="has changed since the study began"):
        store.add_tasks([first], [20])
    with pytest.raises(InputError, match=f"is a copy of {first.name}"):
        store.add_tasks([dataclasses.replace(mended, name="another__name")], [20])


def test_a_task_without_results_is_not_shown(store, tmp_path, results):
    store.add_tasks(results.tasks, [20, 30])
    assert (Results(tmp_path).tasks, Results(tmp_path).sizes) == ([], [])
    store.add([dataclasses.replace(ONE, fit=FitKey(results.tasks[1].name, 30, 0, "ts"))])
    assert (Results(tmp_path).tasks, Results(tmp_path).sizes) == ([results.tasks[1]], [30])


def test_a_folder_without_a_store_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"it has no {FILE_NAME}"):
        ResultStore(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="results must go to a folder"):
        ResultStore.create(tmp_path / "file", 0)


def test_a_file_that_is_not_a_store_is_refused(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"this is not a database" * 100)
    for as_rows in (lambda: ResultStore(tmp_path), lambda: ResultStore.create(tmp_path, 0)):
        with pytest.raises(InputError, match="must be the store of a study"):
            as_rows()


def test_another_programs_database_is_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    with connection:
        connection.execute("CREATE TABLE setting (x)")
    with pytest.raises(InputError, match="another program's database"):
        ResultStore.create(tmp_path, 0)
    with pytest.raises(InputError, match="it has no tables of results"):
        ResultStore(tmp_path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("setting",)]
    connection.close()


def test_a_store_whose_creation_was_killed_is_created_again(tmp_path):
    (tmp_path / FILE_NAME).touch()
    with pytest.raises(InputError, match="it has no tables of results"):
        ResultStore(tmp_path)
    assert ResultStore.create(tmp_path, 4).seed == 4


def test_a_store_of_another_format_is_refused(tmp_path):
    ResultStore.create(tmp_path, 0)
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    with connection:
        connection.execute("UPDATE setting SET value = '2' WHERE name = 'format'")
    connection.close()
    with pytest.raises(InputError, match="format 1; found '2'"):
        ResultStore(tmp_path)
