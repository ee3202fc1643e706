"""All results as a CSV file that other programs read."""

import csv
import gzip
import math

import pytest

from temperance import InputError
from temperance.study.protocol import FitKey, Score
from temperance.study.results import Results
from temperance.study.store import ResultStore


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
