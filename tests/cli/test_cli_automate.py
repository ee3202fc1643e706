"""`temperance automate` and `evaluate --costs`: as in the library, written to a file, or refused."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from running import plain_and_narrow

from temperance import decisions, load, serving


def test_the_rule_is_that_of_the_library_and_is_in_the_file(run, cal, judged):
    wanted = cal.automate(judged.logits, judged.labels, 0.4).automation_
    assert wanted.threshold is not None
    done = run("automate", "cal.json", "test.npz", "--max-error", "0.4", "-o", "rule.json").succeeded()
    plain_and_narrow(done.out)
    assert wanted.words in " ".join(done.out.split())
    assert "Saved to rule.json" in done.out
    np.testing.assert_array_equal(
        serving.load("rule.json").decide(judged.logits),
        cal.automate(judged.logits, judged.labels, 0.4).decide(judged.logits),
    )
    assert wanted.words in " ".join(run("show", "rule.json").succeeded().out.split())
    assert not hasattr(load("cal.json"), "automation_")
    told = run("automate", "cal.json", "test.npz", "--max-error", "0.4", "--json").json
    assert {name: told[name] for name in wanted.to_dict()} == wanted.to_dict()
    assert told["out"] is None


def test_a_class_is_given_by_name_or_column(run, cal, judged):
    by_column = run("automate", "cal.json", "test.npz", "--positive", "1", "--json").json
    assert (by_column["positive"], by_column["positive_name"]) == (1, None)
    run("automate", "cal.json", "test.npz", "--positive", "cat").failed(
        2, "positive must be a column from 0 to 3"
    )
    content = json.loads(Path("cal.json").read_text()) | {"class_names": ["cat", "1", "dog", "cow"]}
    Path("named.json").write_text(json.dumps(content))
    by_name = run("automate", "named.json", "test.npz", "--positive", "dog", "--json").json
    assert (by_name["positive"], by_name["positive_name"]) == (2, "dog")
    assert run("automate", "named.json", "test.npz", "--positive", "1", "--json").json["positive_name"] == "1"


def test_without_a_threshold_nothing_is_saved(run, cal, judged):
    np.savez("few.npz", logits=judged.logits[:30], labels=judged.labels[:30])
    done = run("automate", "cal.json", "few.npz", "-o", "rule.json")
    assert (done.code, Path("rule.json").exists()) == (1, False)
    assert done.out.startswith("No threshold: 30 rows")
    assert done.out.endswith("Not saved: there is no rule.\n")
    assert run("automate", "cal.json", "few.npz").succeeded()


def test_positives_that_are_decided_against_are_told(run):
    rng = np.random.default_rng(0)
    odds = rng.normal(-3, 2, 4000)
    labels = (rng.uniform(size=4000) < 1 / (1 + np.exp(-odds))).astype(int)
    logits = np.column_stack([0 * odds, odds])
    np.savez("val.npz", logits=logits[:2000], labels=labels[:2000])
    np.savez("test.npz", logits=logits[2000:], labels=labels[2000:])
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    told = run("automate", "cal.json", "test.npz", "--max-error", 0.05, "--json").json
    decided = load("cal.json").automate(logits[2000:], labels[2000:], 0.05).decide(logits[2000:])
    missed = (decided == 0)[labels[2000:] == 1].mean()
    assert told["missed"] == pytest.approx(missed)
    assert missed > 0.1
    said = " ".join(run("automate", "cal.json", "test.npz", "--max-error", 0.05).out.split())
    assert f"{100 * missed:.1f}% of the rows of class 1 are above the threshold and decided against." in said
    assert "a person: --positive 1" in said
    said = run("automate", "cal.json", "test.npz", "--max-error", 0.05, "--positive", 1).out
    assert "decided against" not in said


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".npy"])
def test_apply_writes_the_decisions_of_the_rule(suffix, run, cal, judged):
    run("automate", "cal.json", "test.npz", "--max-error", 0.2, "-o", "rule.json").succeeded()
    wanted = load("rule.json").decide(judged.logits)
    assert 0 < (wanted >= 0).mean() < 1
    out = f"out{suffix}"
    done = run("apply", "rule.json", "test.npz", "-o", out, "--json").json
    assert done["decided"] == pytest.approx((wanted >= 0).mean())
    if suffix == ".npz":
        np.testing.assert_array_equal(np.load(out)["decision"], wanted)
    elif suffix != ".npy":
        frame = pandas.read_csv(out) if suffix == ".csv" else pandas.read_parquet(out)
        assert list(frame.columns[-3:]) == ["label", "decision", "calibrated_by"]
        cells = [str(one) if one >= 0 else "ask a person" for one in wanted]
        assert frame["decision"].tolist() == cells
    if suffix != ".npy":
        run("evaluate", out, "--draws", 10).succeeded()
    assert run("apply", "cal.json", "test.npz", "-o", f"plain{suffix}", "--json").json["decided"] is None


@pytest.mark.parametrize("name", ["costs.csv", "costs.npy"])
def test_costs_are_those_of_the_library(run, cal, judged, name):
    costs = np.column_stack([1 - np.eye(4), np.full(4, 0.3)])
    if name.endswith("npy"):
        np.save(name, costs)
    else:
        np.savetxt(name, costs, delimiter=",")
    wanted = decisions.evaluate_costs(cal.predict_proba(judged.logits), judged.labels, costs)
    told = run("evaluate", "test.npz", "-c", "cal.json", "--draws", "20", "--costs", name, "--json").json
    assert told["costs"] == json.loads(json.dumps(wanted.to_dict()))
    shown = run("evaluate", "test.npz", "-c", "cal.json", "--draws", "20", "--costs", name).succeeded().out
    assert f"Mean cost of the cheapest decisions: {wanted.realised.value:.4g} (" in shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2\n3,x\n", "bad.csv: must hold a matrix of numbers without names"),
        ("1,2\n3,4\n", "costs must be a matrix with 4 rows, one per true class"),
    ],
)
def test_a_file_without_costs_is_refused(run, files, content, message):
    Path("bad.csv").write_text(content)
    run("evaluate", "test.npz", "--draws", "20", "--costs", "bad.csv").failed(2, message)


def test_groups_of_the_file_count(run, cal, judged):
    groups = np.arange(len(judged.labels)) // 5
    np.savez("grouped.npz", logits=judged.logits, labels=judged.labels, groups=groups)
    wanted = cal.automate(judged.logits, judged.labels, 0.6, groups=groups).automation_
    told = run("automate", "cal.json", "grouped.npz", "--max-error", "0.6", "--json").json
    assert {name: told[name] for name in wanted.to_dict()} == wanted.to_dict()
    assert told["groups"] == groups.max() + 1
