"""A history that was changed: a line is what a check writes, or it is refused; never counted as evidence."""

import json

import pytest

from temperance import InputError, make_calibrator
from temperance.monitoring import check

CHANGES = [
    ("alpha", None, "None as alpha"),
    ("tolerance", True, "True as tolerance"),
    ("log_e", {}, "{} as log_e"),
    ("highest_log_e", float("nan"), "nan as highest_log_e"),
    ("highest_log_e", 10**30, "as highest_log_e"),
    ("date", 5, "5 as date"),
    ("shift_alarm", 0, "0 as shift_alarm"),
    ("predictions.rows", 0, "0 as rows"),
    ("predictions.rows", 1e3, "1000.0 as rows"),
    ("predictions.predicted", [1e308, 0, 0, 0], "predicted that 100 rows cannot add up to"),
    ("predictions.predicted", [1, 2], "predicted classes of another number of rows"),
    ("predictions.entropy", [[1]], "other numbers than those of a check as entropy"),
    ("labelled.rows", 99, "of another number of rows"),
    ("labelled.confidence", 1e308, "as confidence"),
    ("labelled.residuals", [1, 2, "x", 4, 5], "other numbers than those of a check as residuals"),
    ("labelled.squares", [-1, 0, 0, 0, 0], "squares that 100 rows cannot add up to"),
    ("labelled.score", [float("nan")] * 5, "score that 100 rows cannot add up to"),
    ("labelled.information", [[1e308] * 5] * 5, "information that 100 rows cannot add up to"),
    ("labelled.capitals", [], "other numbers than those of a check as capitals"),
]


@pytest.fixture(scope="module")
def calibrator(task):
    return make_calibrator("ts").fit(task.logits, task.labels)


@pytest.fixture
def history(calibrator, task, tmp_path):
    path = tmp_path / "checks.jsonl"
    check(calibrator, task.logits[:100], task.labels[:100], history=path)
    return path


@pytest.mark.parametrize(("place", "value", "words"), CHANGES)
def test_a_value_that_no_check_writes_is_refused(place, value, words, history, calibrator, task):
    record = json.loads(history.read_bytes())
    *outer, name = place.split(".")
    (record[outer[0]] if outer else record)[name] = value
    history.write_text(json.dumps(record))
    with pytest.raises(InputError) as caught:
        check(calibrator, task.logits[100:], task.labels[100:], history=history)
    assert "line 1: must be a check written by this version; found " in str(caught.value)
    assert words in str(caught.value)


def test_a_check_of_fewer_quantiles_is_refused(history, calibrator, task):
    record = json.loads(history.read_bytes())
    for name in ("confidence", "entropy"):
        record["predictions"][name].pop()
    history.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"must count \(classes, quantiles\) = \(4, 21\); found \(4, 20\)"):
        check(calibrator, task.logits[100:], task.labels[100:], history=history)
