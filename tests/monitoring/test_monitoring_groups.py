"""Rows that belong together: a group counts as one row, with the mean of its rows."""

import json

import numpy as np
import pytest
from scipy.special import softmax

from temperance import InputError, TemperatureScaling, monitoring
from temperance.monitoring.evidence import cumulate, evidence_of
from temperance.monitoring.sums import allowed, share_of_rows, sum_labelled

WEIGHTS = np.random.default_rng(0).uniform(0, 3, 400)


def numbers_of(found):
    """Return what a check computes from its sums, without words, dates and digests.

    The finding, the repairs and the interval of rows without groups come from the rows at hand.
    """
    left_out = ("words", "groups", "since", "finding", "repairs", "gaps")
    told = {key: value for key, value in found.to_dict().items() if key not in left_out}
    if found.change is not None:
        del told["change"]["gap"]
    told["means"] = [(gap.rows, gap.predicted, gap.observed, gap.gap) for gap in found.gaps]
    return [number for key in sorted(told) for number in numbers_in(told[key])]


def numbers_in(value):
    """Return the numbers in nested dictionaries, lists and arrays."""
    if isinstance(value, dict):
        return [number for key in sorted(value) if key != "date" for number in numbers_in(value[key])]
    if isinstance(value, (list, tuple, np.ndarray)):
        return [number for one in value for number in numbers_in(one)]
    return [float(value)] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_groups_of_one_row_change_nothing(world, labelled, weights):
    calibrator, logits, labels = world[0], world[1][:400], world[2][:400] if labelled else None
    plain = monitoring.check(calibrator, logits, labels, sample_weight=weights)
    ids = np.random.default_rng(1).permutation(400)
    found = monitoring.check(calibrator, logits, labels, sample_weight=weights, groups=ids)
    assert (found.groups, plain.groups) == (True, False)
    assert numbers_of(found) == pytest.approx(numbers_of(plain), rel=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("times", [3, 50])
def test_copies_of_rows_in_groups_are_the_evidence_of_the_rows(world, times, weights):
    calibrator, logits, labels = world[0], world[1][:400], (world[2][:400] + (np.arange(400) % 3 == 0)) % 3
    order = np.random.default_rng(2).permutation(400 * times)
    at = np.repeat(np.arange(400), times)[order]
    plain = monitoring.check(calibrator, logits, labels, sample_weight=weights)
    copied = None if weights is None else weights[at]
    found = monitoring.check(calibrator, logits[at], labels[at], sample_weight=copied, groups=at)
    assert numbers_of(found) == pytest.approx(numbers_of(plain), rel=1e-9)
    without = monitoring.check(calibrator, logits[at], labels[at], sample_weight=copied)
    assert without.log_e > plain.log_e + 10


@pytest.mark.parametrize("first", [0, 1])
def test_images_are_groups_and_ignored_pixels_are_left_out(world, first):
    calibrator, labels = world[0], world[2][:400].reshape(4, 10, 10).copy()
    labels[0, :5] = 255
    labels[1] = 255  # a group that is left out as a whole
    images = np.moveaxis(world[1][:400].reshape(4, 10, 10, 3), -1, 1)
    kept, rows = labels.ravel() != 255, world[1][:400]
    images, labels, kept, rows = images[first:], labels[first:], kept[100 * first :], rows[100 * first :]
    found = monitoring.check(calibrator, images, labels, dim=1, ignore_index=255)
    ids = np.repeat(np.arange(4 - first), 100)[kept]
    wanted = monitoring.check(calibrator, rows[kept], labels.ravel()[kept], groups=ids)
    assert found.rows == 3 - first
    assert numbers_of(found) == pytest.approx(numbers_of(wanted), rel=1e-9)


def test_a_check_may_have_a_single_group(world, tmp_path):
    calibrator, logits, labels = world
    history = tmp_path / "checks.jsonl"
    for day in range(3):
        part = slice(20 * day, 20 * day + 20)
        found = monitoring.check(calibrator, logits[part], labels[part], groups=[day] * 20, history=history)
    assert (found.labelled_rows, found.gaps[-1].rows) == (3, 3)


@pytest.mark.parametrize("begins_with_groups", [True, False])
def test_a_history_has_groups_in_all_checks_or_in_none(world, tmp_path, begins_with_groups):
    calibrator, logits, labels = world
    groups = [np.arange(100) // 5, None]
    first, second = groups if begins_with_groups else groups[::-1]
    history = tmp_path / "checks.jsonl"
    monitoring.check(calibrator, logits[:100], labels[:100], groups=first, history=history)
    before = history.read_bytes()
    found = r"began with groups; found rows\." if begins_with_groups else r"began with rows; found groups\."
    with pytest.raises(InputError, match=found):
        monitoring.check(calibrator, logits[100:200], labels[100:200], groups=second, history=history)
    assert history.read_bytes() == before
    found = monitoring.check(calibrator, logits[100:200], labels[100:200], groups=first, history=history)
    assert found.labelled_rows == (40 if begins_with_groups else 200)


def test_the_words_count_groups(world):
    calibrator, logits, labels = world
    patient = np.arange(600) // 20
    keep = monitoring.check(calibrator, logits[:600], labels[:600], groups=patient)
    assert "observed in 30 groups (O/E " in keep.sentences[0]
    assert "A group counts as one row, with the mean of its rows." in keep.sentences
    wrong = np.where(patient % 3 == 0, (labels[:600] + 1) % 3, labels[:600])
    watch = monitoring.check(calibrator, logits[:600], wrong, groups=patient)
    assert watch.action == "watch"
    assert f"about {watch.labels.number:,} more labelled groups" in watch.sentences[0]
    without = monitoring.check(calibrator, logits[:600], groups=patient)
    assert without.sentences[0] == "Keep the calibrator, as far as 30 groups without labels can show."


def test_the_command_reads_a_column_of_groups(world, tmp_path, run_command):
    calibrator, logits, labels = world[0], np.round(world[1][:100], 6), world[2][:100]
    calibrator.save(tmp_path / "cal.json")
    patient = np.repeat(["anna", "ben", "cem", "dora"], 25)
    lines = [f"{a},{b},{c},{y},{who}" for (a, b, c), y, who in zip(logits, labels, patient, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["logit_0,logit_1,logit_2,label,patient", *lines]))
    np.savez(tmp_path / "rows.npz", logits=logits, labels=labels, groups=patient)
    wanted = monitoring.check(calibrator, logits, labels, groups=patient)
    for name, options in (("rows.csv", ["--group-column", "patient"]), ("rows.npz", [])):
        code, out, _ = run_command("check", tmp_path / "cal.json", tmp_path / name, *options, "--json")
        told = json.loads(out)
        assert (code, told["groups"], told["rows"], told["labelled_rows"]) == (0, True, 4, 4)
        assert told["log_e"] == pytest.approx(wanted.log_e)


def correlated(n_groups, size, correlation, rng):
    """Return logits of two classes, labels and groups; outcomes of a group agree with this correlation.

    All rows of a group are equally probable. With probability `correlation`, a row copies the outcome of its
    group, so the probabilities are exactly right, and labels given them are correlated.
    """
    groups = np.repeat(np.arange(n_groups), size)
    z = np.column_stack([np.zeros(n_groups), rng.normal(0, 2, n_groups)])[groups]
    p = softmax(z, axis=1)[:, 1]
    copies = rng.random(len(groups)) < np.sqrt(correlation)
    u = np.where(copies, rng.random(n_groups)[groups], rng.random(len(groups)))
    return z, (u < p).astype(int), groups


@pytest.mark.slow
def test_unchanged_calibrators_rarely_alarm():
    """A year of 52 checks of 10 groups of 20 rows, intra-group correlation 0.5, 200 calibrators."""
    alarms = unchanged(200, 52)
    assert alarms["groups"] <= 0.05 * 200
    assert alarms["rows"] >= 0.5 * 200


def test_a_few_unchanged_calibrators_do_not_alarm():
    alarms = unchanged(4, 26)
    assert alarms["groups"] == 0
    assert alarms["rows"] >= 1


def unchanged(runs, checks):
    """Return how many unchanged calibrators alarm, with groups and without."""
    alarms = {"groups": 0, "rows": 0}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        z, y, _ = correlated(2000, 1, 0.0, rng)
        calibrator = TemperatureScaling().fit(z, y)
        weeks = [correlated(10, 20, 0.5, rng) for _ in range(checks)]
        for name in alarms:
            alarms[name] += ever_alarms(calibrator, weeks, name == "groups")
    return alarms


def ever_alarms(calibrator, weeks, with_groups):
    """Say whether one of the looks after each week reaches the alarm."""
    limits, sums = allowed(calibrator.model_), []
    for z, y, ids in weeks:
        groups = ids if with_groups else None
        share = share_of_rows(len(y), None, groups)
        sums.append(sum_labelled(calibrator.predict_proba(z), y, limits, share, groups))
    cumulated = cumulate(sums)
    looks = ([column[:end] for column in cumulated] for end in range(2, len(weeks) + 2))
    return any(evidence_of(look, limits.low, limits.high)[0] >= np.log(20) for look in looks)
