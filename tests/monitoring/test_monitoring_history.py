"""The history: continued exactly, incomplete lines recognised, one writer at a time, no row counted twice."""

import errno
import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import norm

from temperance import InputError, make_calibrator, monitoring
from temperance.monitoring.evidence import cumulate, evidence_of
from temperance.monitoring.history import LOCKED_BYTE, OPENING, open_history, read_record, write_record
from temperance.report.history import confidence_chart

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checks.jsonl"


def daily(world, path, days, size=100, labels=None, **options):
    calibrator, logits, own = world
    labels = own if labels is None else labels
    for day in range(days):
        part = slice(day * size, (day + 1) * size)
        found = monitoring.check(calibrator, logits[part], labels[part], history=path, **options)
    return found


def test_a_history_continues_what_separate_sums_give(world, path):
    found = daily(world, path, 5)
    assert (found.labelled_checks, found.labelled_rows, len(path.read_bytes().splitlines())) == (5, 500, 5)
    whole = sum(record.labelled.residuals for record in found.records)
    again = monitoring.check(world[0], world[1][:500], world[2][:500]).records[0].labelled.residuals
    np.testing.assert_allclose(whole, again, rtol=1e-12)


def test_a_change_is_dated_and_the_alarm_stays(world, noisy, path):
    mixed = np.where(np.arange(6000) < 2000, world[2], noisy)
    found = daily(world, path, 12, 400, mixed)
    assert found.action == "refit"
    assert found.since is not None
    calm = monitoring.check(world[0], world[1][5000:], world[2][5000:], history=path)
    assert calm.alarm
    assert calm.acts
    assert calm.highest_log_e >= found.highest_log_e


def test_a_record_survives_its_line_to_the_bit(world, path):
    record = daily(world, path, 1).records[0]
    line = path.read_bytes()
    assert line.startswith(OPENING.encode())
    assert write_record(read_record(line)) == line
    np.testing.assert_array_equal(read_record(line).labelled.capitals, record.labelled.capitals)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.5, 0.99])
def test_an_incomplete_line_is_reported_skipped_and_left_in_place(world, path, share):
    daily(world, path, 2)
    first, second = path.read_bytes().splitlines(keepends=True)
    torn = second[: max(1, int(len(second) * share))]
    path.write_bytes(first + torn)
    calibrator, logits, labels = world
    found = monitoring.check(calibrator, logits[200:300], labels[200:300], history=path)
    assert found.torn_lines == (2,)
    assert "Line 2 of the history is incomplete and was skipped." in found.words
    assert found.labelled_checks == 2
    lines = path.read_bytes().split(b"\n")
    assert lines[1] == torn
    assert read_record(lines[2]).rows_digest == found.records[-1].rows_digest
    assert monitoring.check(calibrator, logits[300:400], labels[300:400], history=path).labelled_checks == 3


def test_an_incomplete_line_is_recognised_wherever_it_is_cut(world, path, tmp_path):
    daily(world, path, 1)
    line = path.read_bytes()
    for end in {*range(1, 60), *range(60, len(line) - 1, 97), len(line) - 2}:
        path.write_bytes(line[:end])
        with open_history(path) as history:
            assert (history.records, history.torn_lines) == ((), (1,)), end


def test_a_file_that_is_not_a_history_is_refused_and_unchanged(world, path):
    for content in (b"a,b\n1,2\n", b'{"more": 1}\n', b'{"temperance_history": 2, "x": 1}\n', b"\x89PNG\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"line 1: must be a check written by this version: "):
            daily(world, path, 1)
        assert path.read_bytes() == content


def test_the_same_rows_are_counted_once_and_labels_may_come_later(world, path):
    calibrator, logits, labels = world
    part = slice(0, 300)
    monitoring.check(calibrator, logits[part], history=path)
    late = monitoring.check(calibrator, logits[part], labels[part], history=path)
    assert (late.counted_before, late.labelled_checks) == (None, 1)
    again = monitoring.check(calibrator, logits[part], labels[part], history=path)
    assert again.counted_before is not None
    assert (again.labelled_checks, again.log_e) == (1, late.log_e)
    assert late.shift.level == again.shift.level == 0.025  # one look
    unlabelled = monitoring.check(calibrator, logits[part], history=path)
    assert "are not counted again" in unlabelled.words
    assert len(path.read_bytes().splitlines()) == 2


def test_a_week_that_is_checked_again_is_told_first(world, path):
    calibrator, logits, labels = world
    weeks = [slice(300 * week, 300 * week + 300) for week in range(3)]
    for number, week in enumerate(weeks):
        found = monitoring.check(
            calibrator, logits[week], labels[week], history=path, name=f"week {number}.csv"
        )
        assert found.sentences[0].startswith("Keep. ")
        assert found.recheck is None
    again = monitoring.check(calibrator, logits[weeks[0]], labels[weeks[0]], history=path, name="week 0.csv")
    assert again.sentences[0].startswith("Keep. "), "the verdict is that of all checks"
    assert "are not counted again" in again.sentences[1]
    assert again.sentences[2].startswith("week 0.csv on ")
    last = monitoring.check(calibrator, logits[weeks[2]], labels[weeks[2]], history=path, name="week 2.csv")
    assert last.recheck is None, "it is the first of the gaps"
    assert last.gaps == again.gaps
    assert last.gaps[1:] == found.gaps[1:]
    assert last.gaps[0].gap == found.gaps[0].gap


@pytest.mark.parametrize(("name", "counted"), [("", 40), ("monday.npz", 1)])
def test_equal_rows_count_once_under_a_name_and_each_time_without(world, path, name, counted):
    for _ in range(40):
        found = monitoring.check(world[0], [[3.0, 0.0, 0.0]], [1], history=path, name=name)
    assert found.labelled_rows == counted
    assert found.alarm == (counted == 40)
    assert (found.counted_before is None) == (counted == 40)


def test_equal_logits_under_another_name_or_with_other_labels_count_and_are_told(world, path):
    part = world[0], world[1][:20]
    monitoring.check(*part, world[2][:20], history=path, name="a")
    named = monitoring.check(*part, world[2][:20], history=path, name="b")
    relabelled = monitoring.check(*part, (world[2][:20] + 1) % 3, history=path, name="b")
    for found, rows in ((named, 40), (relabelled, 60)):
        assert found.labelled_rows == rows
        assert "both are counted" in found.words


@pytest.mark.parametrize("labels", [np.arange(30) % 2, None], ids=["the same labels", "other labels"])
@pytest.mark.parametrize("named", [True, False])
def test_a_stuck_classifier_raises_the_alarm(world, path, labels, named):
    """It says the same every day, and is right half of the time."""
    calibrator, logits, _ = world
    confident = logits[np.abs(calibrator.predict_proba(logits).max(axis=1) - 0.79).argmin()]
    top, rng = int(confident.argmax()), np.random.default_rng(0)
    for day in range(25):
        right = rng.random(30) < 0.5 if labels is None else labels
        name = f"day {day}" if named else ""
        rows, classes = np.tile(confident, (30, 1)), np.where(right, top, (top + 1) % 3)
        found = monitoring.check(calibrator, rows, classes, history=path, name=name)
        if found.acts:
            break
    assert found.alarm
    assert "might be stuck" in found.words


def test_days_that_are_equal_by_chance_count_whatever_their_labels(world, path):
    """Were days without an error left out, those with one would look too frequent."""
    calibrator, rng = world[0], np.random.default_rng(1)
    row = np.array([[6.0, 0.0, 0.0]])
    probs = calibrator.predict_proba(row)[0]
    for _ in range(60):
        labels = rng.choice(3, 25, p=probs)
        found = monitoring.check(calibrator, np.repeat(row, 25, axis=0), labels, history=path)
    assert found.labelled_rows == 60 * 25
    assert not found.alarm


def begin_as_the_first_version_did(world, path, days, monkeypatch):
    """Write a history with the first limits, without what lines lacked then."""
    with monkeypatch.context() as first:
        first.setattr("temperance.monitoring.checks.EDITION", 1)
        daily(world, path, days)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        del line["positive"], line["labelled"]["by_label"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def test_a_history_of_the_first_version_keeps_its_limits_and_says_so(path, monkeypatch):
    rng = np.random.default_rng(0)
    logits = np.column_stack([np.zeros(4000), rng.normal(-2, 1.9, 4000)])
    labels = (rng.random(4000) < 1 / (1 + np.exp(-logits[:, 1]))).astype(int)
    world = make_calibrator("bayes-bias").fit(logits[:2000], labels[:2000]), logits[2000:], labels[2000:]
    (line, _) = begin_as_the_first_version_did(world, path, 2, monkeypatch)
    assert line["temperance_history"] == 1
    assert len(line["labelled"]["residuals"]) == 3
    found = monitoring.check(world[0], logits[2500:2800], labels[2500:2800], history=path)
    assert (found.edition, found.labelled_checks, found.records[-1].edition) == (1, 3, 1)
    assert sum("This history keeps the limits that it began with" in said for said in found.sentences) == 1
    baseline, (low, high) = world[0].baseline_, found.gap_limits
    p, rows = baseline.class_variances[1], baseline.effective_rows
    residual = baseline.label_frequencies[1] - baseline.mean_probabilities[1]
    error = np.sqrt((p + 1 / rows) / rows)
    own = 0.02 + norm.isf(norm.sf(2) / 2) * error
    assert (-high, -low) == pytest.approx((min(0, residual) - own, max(0, residual) + own))
    sums = cumulate([record.labelled for record in found.records])
    assert found.log_e == pytest.approx(evidence_of(sums, found.limits.low, found.limits.high)[0])
    wrong = monitoring.check(world[0], logits[:1500], 1 - labels[:1500], history=path)
    assert wrong.alarm
    assert wrong.action != "adapt"
    with pytest.raises(InputError, match="must be from 1 to 2; found 3"):
        read_record(path.read_bytes().splitlines()[0].replace(b'history": 1', b'history": 3'))
    new = monitoring.check(world[0], logits[2500:2800], labels[2500:2800])
    assert new.edition == 2
    assert not any("This history keeps" in said for said in new.sentences)


def test_the_first_histories_continue(world, path, monkeypatch):
    """They lack the digest of the labels, groups and the mean confidence, which the page draws of others."""
    (line,) = begin_as_the_first_version_did(world, path, 1, monkeypatch)
    del line["labels_digest"], line["groups"], line["predictions"]["said"], line["predictions"]["variance"]
    path.write_text(json.dumps(line) + "\n")
    assert daily(world, path, 1).counted_before is not None
    found = monitoring.check(world[0], world[1][500:600], history=path)
    assert [record.groups for record in found.records] == [False, False]
    drawn = confidence_chart(found).marks[1]
    assert drawn.x.tolist() == [2.0]
    np.testing.assert_allclose(drawn.y, 100 * found.expected_accuracy[0])


def test_an_alarm_of_earlier_checks_is_reported_as_such(world, path):
    calibrator, logits, labels = world
    monitoring.check(calibrator, logits[:200], (labels[:200] + 1) % 3, history=path)
    for day in range(9):
        rows = slice(200 + 300 * day, 500 + 300 * day)
        found = monitoring.check(calibrator, logits[rows], labels[rows], history=path)
    assert found.alarm
    assert found.log_e < np.log(20)
    assert re.match(r"Act: \w+( with bayes-bias)?\. An earlier check raised the alarm", found.words)


def test_another_calibrator_tolerance_or_alpha_is_refused(world, path):
    _, logits, labels = world
    daily(world, path, 1)
    other = make_calibrator("ts").fit(logits[:-1], labels[:-1])
    with pytest.raises(InputError, match="must be a history of this calibrator; found checks of another"):
        monitoring.check(other, logits, labels, history=path)
    with pytest.raises(InputError, match=r"began with 0\.02; found 0\.05.*Pass tolerance=0\.02"):
        daily(world, path, 1, tolerance=0.05)
    with pytest.raises(InputError, match=r"Pass alpha=0\.05"):
        daily(world, path, 1, alpha=0.01)
    assert len(path.read_bytes().splitlines()) == 1


class ByteLocks:
    """What Windows has: a lock of one byte until the file is closed. It waits a while, then raises."""

    LK_LOCK = 1

    @staticmethod
    def locking(number, mode, n_bytes):
        assert (mode, n_bytes, os.lseek(number, 0, os.SEEK_CUR)) == (1, 1, LOCKED_BYTE)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001)
            raise OSError(errno.EDEADLOCK, "Resource deadlock avoided") from None


@pytest.mark.parametrize("system", ["posix", "nt"])
def test_two_writers_do_not_interleave(world, path, system, monkeypatch):
    """The lock is that of the open file, so that threads wait for each other as processes do."""
    if system == "nt":
        monkeypatch.setattr("temperance.monitoring.history.fcntl", None)
        monkeypatch.setattr("temperance.monitoring.history.msvcrt", ByteLocks, raising=False)
    calibrator, logits, labels = world

    def check(i):
        part = slice(20 * i, 20 * i + 20)
        return len(monitoring.check(calibrator, logits[part], labels[part], history=path).records)

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(check, range(24)))
    assert sorted(numbers) == list(range(1, 25))  # each has seen all before it
    with open_history(path) as history:
        assert (len(history.records), history.torn_lines) == (24, ())
