"""Groups and --by on the command line: what is printed, and the numbers of the library."""

from pathlib import Path

import numpy as np
import pytest

from temperance import compare, metrics


@pytest.fixture
def visits(folder, task):
    """Return a table of visits of 40 patients in three hospitals, and what it holds."""
    rng, n = np.random.default_rng(0), len(task.labels)
    patient = rng.integers(0, 40, n)
    hospital = np.array(["north", "south", "hill"])[np.where(patient < 20, 0, np.where(patient < 39, 1, 2))]
    logits = task.logits.astype(np.float64).round(4)
    lines = [
        ",".join([*map(str, row), str(label), f"p{p}", h])
        for row, label, p, h in zip(logits.tolist(), task.labels, patient, hospital, strict=True)
    ]
    head = [*(f"logit_{k}" for k in range(logits.shape[1])), "label", "patient", "hospital"]
    Path("visits.csv").write_text("\n".join([",".join(head), *lines]))
    return logits, task.labels, patient, hospital


def test_evaluate_shows_calibration_by_hospital(visits, run):
    logits, labels, patient, hospital = visits
    words = ("evaluate", "visits.csv", "--group-column", "patient", "--by", "hospital", "--draws", 50)
    done = run(*words).succeeded()
    assert "Intervals and tests are by groups: 40 groups." in done.out
    assert "Calibration by hospital" in done.out
    table = [
        line.split() for line in done.out.splitlines() if line.split()[:1] and line.split()[0] in hospital
    ]
    assert {row[0]: int(row[1]) for row in table} == {
        name: int((hospital == name).sum()) for name in set(hospital)
    }
    assert run(*words, "-q").out.count("between the 3 values") == 1
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    expected = metrics.evaluate(probs, labels, groups=patient, by=hospital, draws=50)
    found = run(*words, "--json").json
    assert found["groups"] == 40
    assert found["by_group"]["by"] == "hospital"
    assert found["by_group"]["p_value"] == pytest.approx(expected.by_group.p_value, rel=1e-6)
    assert [one["value"] for one in found["by_group"]["values"]] == [
        one.value for one in expected.by_group.values
    ]
    assert found["metrics"]["accuracy"] == pytest.approx(expected.to_dict()["accuracy"], rel=1e-6)
    plain = run("evaluate", "visits.csv", "--classes", "0,1,2,3", "--draws", 50, "--json")
    assert (plain.json["groups"], plain.json["by_group"]) == (None, None)


def test_many_values_are_cut_in_the_table_and_whole_in_json(folder, task, run):
    rows = np.arange(len(task.labels))
    np.savez("many.npz", logits=task.logits, labels=task.labels, day=rows % 30)
    done = run("evaluate", "many.npz", "--by", "day", "--draws", 20)
    assert "10 more values: --json lists all." in done.out
    content = run("evaluate", "many.npz", "--by", "day", "--draws", 20, "--json").json
    assert len(content["by_group"]["values"]) == 30


def test_compare_reads_the_groups_of_both_files(folder, task, run):
    n = len(task.labels) // 2
    val, test = slice(0, n), slice(n, 2 * n)
    ids = np.arange(n) // 4
    for name, part in (("val", val), ("test", test)):
        np.savez(f"{name}.npz", logits=task.logits[part], labels=task.labels[part], groups=ids)
    done = run("compare", "val.npz", "test.npz", "-m", "ts")
    assert f"{n:,} rows in {ids.max() + 1} groups" in done.out
    found = run("compare", "val.npz", "test.npz", "-m", "ts", "--json").json
    expected = compare(
        task.logits[val], task.labels[val], task.logits[test], task.labels[test], ["ts"], groups=ids,
        test_groups=ids,
    )  # fmt: skip
    assert found["nll_gain"]["low"] == pytest.approx(expected.verdict.nll_gain.low)
    assert (found["groups_fitted"], found["groups_judged"]) == (ids.max() + 1, ids.max() + 1)
