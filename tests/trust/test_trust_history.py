"""A history that was changed: a line is what a check writes, or it is refused; never counted as evidence."""

import json

import pytest

from temperance import InputError, TemperatureScaling
from temperance.monitoring import check

CHANGES = [
    ("alpha", None, "alpha must be a number from 0 to 0.5; found None"),
    ("tolerance", True, "tolerance must be a number from 0 to 0.5; found True"),
    ("log_e", {}, "log_e must be a number from -1e+18 to 1e+18; found {}"),
    ("highest_log_e", float("nan"), "highest_log_e must be finite; found nan"),
    ("highest_log_e", 10**30, "highest_log_e must be a number from -1e+18 to 1e+18; found"),
    ("date", 5, "date must be text; found 5"),
    ("shift_alarm", 0, "shift_alarm must be true or false; found 0"),
    ("surprise", 1, "it has the unknown 'surprise'"),
    ("temperance_history", 3, "temperance_history must be from 1 to 2"),
    ("predictions", [], "predictions must be a JSON object; found list"),
    ("predictions.rows", 0, "predictions.rows must be above 0; found 0"),
    ("predictions.rows", 1e16, "predictions.rows must be a number from 0 to 1e+15; found 1e+16"),
    ("predictions.predicted", [1e308, 0, 0, 0], "predictions.predicted must be <= 100.1; found 1e+308"),
    ("predictions.predicted", [1, 2], "predictions.predicted must add up to 100 rows; found 3"),
    ("predictions.entropy", [[1]], "predictions.entropy must have the shape (21,); found (1, 1)"),
    ("labelled.rows", 99, "must add up to 99 rows; found 100"),
    ("labelled.confidence", 1e308, "labelled.confidence must be a number from 0 to 100.1; found 1e+308"),
    ("labelled.residuals", [1, 2, "x", 4, 5], "labelled.residuals must hold numbers only"),
    ("labelled.squares", [-1, 0, 0, 0, 0], "labelled.squares must be >= 0; found -1"),
    ("labelled.score", [float("nan")] * 5, "labelled.score must be finite; found nan"),
    ("labelled.information", [[1e308] * 5] * 5, "labelled.information must be <= 40040; found 1e+308"),
    ("labelled.capitals", [], "labelled.capitals must have the shape"),
    ("labelled.surprise", [], "labelled has the unknown 'surprise'"),
]


@pytest.fixture
def calibrator(fitted):
    return fitted("ts")


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
    assert "line 1: must be a check written by this version: " in str(caught.value)
    assert words in str(caught.value)


def test_a_check_of_fewer_classes_is_refused(history, calibrator, task):
    own = json.loads(history.read_bytes())["calibrator"]
    history.unlink()
    fewer = TemperatureScaling().fit(task.logits[:, :3], task.labels % 3)
    check(fewer, task.logits[:100, :3], history=history)
    record = json.loads(history.read_bytes()) | {"calibrator": own}
    history.write_text(json.dumps(record))
    with pytest.raises(InputError, match="must be a history of this calibrator; found checks of another"):
        check(calibrator, task.logits[100:], task.labels[100:], history=history)
