"""Means over draws with their errors, by task, method, number of rows and metric."""

import csv
import gzip
import math
from dataclasses import replace

import numpy as np
import pytest

from temperance import InputError
from temperance.calibrators import UNCALIBRATED
from temperance.study.protocol import FitKey, Score
from temperance.study.results import Results
from temperance.study.store import ResultStore


def test_a_mean_has_its_standard_error(results, task):
    values = results.draws("nll", 30)[task.name, "hts"]
    summary = results.summary("nll", 30).loc[(task.name, "hts")]
    assert summary["draws"] == len(values) == 3
    assert summary["mean"] == results.means("nll", 30).at[task.name, "hts"] == pytest.approx(np.mean(values))
    assert summary["error"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))


def test_a_task_with_fewer_rows_counts_with_all_its_rows(results, task):
    assert task.rows < 400
    summary = results.summary("nll", 400).loc[task.name]
    assert summary.at["ts", "draws"] == 1, "all rows, no chance: fitted once"
    assert math.isnan(summary.at["ts", "error"])
    assert summary.at["pts", "draws"] == 3, "from another start each time"


def test_the_uncalibrated_classifier_is_the_same_at_every_size(results):
    few, many = (results.means("ece", n)[UNCALIBRATED] for n in (30, 400))
    assert few.equals(many)


def test_each_metric_is_another_score(results, task):
    found = {
        metric: results.means(metric, 30).at[task.name, "ts"] for metric in ("nll", "ece", "ece15", "brier")
    }
    assert len(set(found.values())) == 4
    assert found["ece"] > found["ece15"], "more bins see more"


def test_methods_and_data_sets_come_in_the_order_of_tables(results):
    assert results.methods == ["ts", "hts", "pts", "bayes"]
    assert {name: len(tasks) for name, tasks in results.datasets().items()} == {"cats": 2, "dogs": 1}


def test_a_data_set_whose_name_begins_another_comes_first(results, task):
    results.tasks = [replace(task, name=name) for name in ("cifar100__a", "cifar10__b", "cifar10__a")]
    groups = {name: [task.model for task in tasks] for name, tasks in results.datasets().items()}
    assert list(groups.items()) == [("cifar10", ["a", "b"]), ("cifar100", ["a"])]


def test_a_missing_result_has_no_row(results):
    assert "lts" not in results.means("nll", 30)


def test_an_infinite_score_makes_the_mean_infinite_and_has_no_error(made):
    summary = made({"a__b": {"ts": [0.5, math.inf]}}, n=5).summary("nll", 5).loc[("a__b", "ts")]
    assert summary["mean"] == math.inf
    assert math.isnan(summary["error"])


def test_times_count_fits_and_how_they_ended(tmp_path):
    store = ResultStore.create(tmp_path, 0)
    store.add(
        [
            Score(FitKey("a", 5, 0, "ts"), 0.1, 0.1, 0.5, 0.2, True, 4, "", 2.0, 1.0),
            Score(FitKey("a", 5, 1, "ts"), 0.1, 0.1, 0.5, 0.2, False, 9, "too long", 3.0, 1.0),
            Score(FitKey("a", 5, 2, "ts"), message="ValueError: no"),
        ]
    )
    results = Results(tmp_path)
    (time,) = results.times().itertuples()
    assert (time.fits, time.failed, time.unconverged) == (3, 1, 1)
    assert (time.fit_seconds, time.apply_seconds) == (5.0, 2.0)
    assert list(results.failures()["message"]) == ["ValueError: no"]


# ---- all results as a CSV file


@pytest.fixture
def small(tmp_path):
    store = ResultStore.create(tmp_path / "study", 0)
    store.add(
        [
            Score(FitKey("a__b", 20, 0, "bts"), 0.1, 0.2, math.inf, 1 / 3, True, 7, "", 0.5, 0.25),
            Score(FitKey("a__b", 20, 0, "lts"), message='ValueError: "no", it said'),
        ]
    )
    return Results(tmp_path / "study")


def test_every_result_is_a_line_with_all_its_digits(small, tmp_path):
    small.export(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == {
        "task": "a__b", "n": "20", "draw": "0", "method": "bts", "ece50": "0.1", "ece15": "0.2", "nll": "inf",
        "brier": "0.3333333333333333", "converged": "1", "iterations": "7", "message": "",
        "fit_seconds": "0.5", "apply_seconds": "0.25",
    }  # fmt: skip
    assert (second["nll"], second["converged"], second["message"]) == ("", "0", 'ValueError: "no", it said')


def test_a_compressed_file_has_the_same_bytes_each_time(small, tmp_path):
    for name in ("one.csv.gz", "two.csv.gz", "plain.csv"):
        small.export(tmp_path / name)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.csv.gz").read_bytes()) == (tmp_path / "plain.csv").read_bytes()


def test_other_formats_are_refused(small, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.csv or \.csv\.gz; found '\.xlsx'"):
        small.export(tmp_path / "all.xlsx")
