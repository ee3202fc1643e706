"""Checks of few rows, and the message after a past alarm or a large change."""

import numpy as np
import pytest

from temperance import TemperatureScaling, monitoring
from temperance.data import simulate

TASK = simulate(n_rows=4000, n_classes=3, random_state=0)
ROW = [[3.0, 0.0, 0.0]]


@pytest.fixture(scope="module")
def calibrator():
    return TemperatureScaling().fit(TASK.logits[:1000], TASK.labels[:1000])


def test_equal_rows_of_several_checks_are_counted(calibrator, tmp_path):
    for _ in range(40):
        found = monitoring.check(calibrator, ROW, [1], history=tmp_path / "h.jsonl")
    assert found.labelled_rows == 40
    assert found.alarm


def test_a_file_that_is_checked_twice_is_counted_once_however_few_its_rows(calibrator, tmp_path):
    for _ in range(2):
        found = monitoring.check(calibrator, ROW, [1], history=tmp_path / "h.jsonl", name="monday.npz")
    assert found.labelled_rows == 1
    assert found.counted_before is not None


def test_many_equal_rows_are_counted_once_under_any_name(calibrator, tmp_path):
    rows = TASK.logits[1000:1020], TASK.labels[1000:1020]
    for name in ("a", "b"):
        found = monitoring.check(calibrator, *rows, history=tmp_path / "h.jsonl", name=name)
    assert found.labelled_rows == 20


@pytest.mark.parametrize("scale", [3.0, 10.0])
def test_no_factor_is_reported_for_a_large_change(calibrator, scale):
    found = monitoring.check(calibrator, scale * TASK.logits[1000:], TASK.labels[1000:])
    assert "It is overconfident." in found.sentences
    assert not any("would fit" in sentence for sentence in found.sentences)


def test_the_factor_of_a_small_change_is_near_that_of_a_new_fit():
    task = simulate(n_rows=40000, n_classes=3, random_state=1)
    calibrator = TemperatureScaling().fit(task.logits[:20000], task.labels[:20000])
    logits, labels = 1.25 * task.logits[20000:], task.labels[20000:]
    found = monitoring.check(calibrator, logits, labels, tolerance=0.0)
    (told,) = [sentence for sentence in found.sentences if "dividing its logits by" in sentence]
    factor = float(told.split(" by ")[1].split(" ")[0])
    again = TemperatureScaling().fit(logits, labels)
    assert factor == pytest.approx(again.temperature_ / calibrator.temperature_, rel=0.06)


def test_an_alarm_of_earlier_checks_is_reported_as_such(calibrator, tmp_path):
    history = tmp_path / "h.jsonl"
    wrong = (TASK.labels[1000:1200] + 1) % 3
    monitoring.check(calibrator, TASK.logits[1000:1200], wrong, history=history)
    for day in range(9):
        rows = slice(1200 + 300 * day, 1500 + 300 * day)
        found = monitoring.check(calibrator, TASK.logits[rows], TASK.labels[rows], history=history)
    assert found.alarm
    assert found.log_e < np.log(20)
    assert found.sentences[0].startswith("Act: an earlier check raised the alarm, which remains.")
