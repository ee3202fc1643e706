"""`temperance automate` and `evaluate --costs`: as in the library, written to a file, or refused."""

import json
import re
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


def two_classes(odds, rng, name, n_fit):
    """Save rows to fit and to hold out, whose classes no and yes are drawn from their log-odds."""
    labels = (rng.uniform(size=len(odds)) < 1 / (1 + np.exp(-odds))).astype(int)
    logits = np.column_stack([0 * odds, odds])
    names = {"class_names": np.array(["no", "yes"])}
    np.savez("val.npz", logits=logits[:n_fit], labels=labels[:n_fit], **names)
    np.savez(name, logits=logits[n_fit:], labels=labels[n_fit:], **names)
    return logits[n_fit:], labels[n_fit:]


def test_what_is_missed_is_told_wherever_the_rule_is(run):
    rng = np.random.default_rng(0)
    logits, labels = two_classes(rng.normal(-3, 2, 4000), rng, "test.npz", 2000)
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    make = ("automate", "cal.json", "test.npz", "--max-error", 0.05)
    told = run(*make, "--json").json["missed"]
    decided = load("cal.json").automate(logits, labels, 0.05).decide(logits)
    missed = [((decided == 1 - k)[labels == k]).mean() for k in (0, 1)]
    assert told == pytest.approx(missed)
    assert missed[1] > 0.1
    made = run(*make, "-o", "rule.json").succeeded()
    words = (
        f"Of the held-out rows, decided against their class: {100 * missed[1]:.1f}% of yes, "
        f"{100 * missed[0]:.1f}% of no."
    )
    shown = run("show", "rule.json").succeeded()
    applied = run("apply", "rule.json", "test.npz", "-o", "out.npz").succeeded()
    for done in (made, shown, applied):
        assert words in " ".join(done.out.split())
        plain_and_narrow(done.out)
    assert run("show", "rule.json", "--json").json["automation"]["missed"] == told
    content = json.loads(Path("rule.json").read_text())
    del content["automation"]["missed"]
    Path("old.json").write_text(json.dumps(content | {"version": 2}))  # as files of 0.3.0
    for words in (("show", "old.json"), ("apply", "old.json", "test.npz", "-o", "again.npz")):
        out = " ".join(run(*words).succeeded().out.split())
        assert "Of the held-out rows, decided against their class: not recorded." in out
    assert run("show", "old.json", "--json").json["automation"]["missed"] is None


def test_a_rule_that_loses_most_of_the_rare_class_is_refused_and_the_remedies_work(run):
    """Of 2% positives, half are certain, and half are hardly seen: a promise of 2% would lose these."""
    rng = np.random.default_rng(0)
    odds = np.where(rng.random(46_000) < 0.0085, rng.normal(6, 1, 46_000), rng.normal(-5.1, 1.1, 46_000))
    two_classes(odds, rng, "test.npz", 6_000)
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    before = Path("cal.json").read_bytes()
    Path("rule.json").write_text("old")
    make = ("automate", "cal.json", "test.npz", "-o", "rule.json", "--force")
    refused = run(*make, "--max-error", "0.02")
    refused.failed(2, "a rule with at most 2% errors is no rule here: it would decide 5", "% of the yes rows")
    assert (Path("rule.json").read_text(), Path("cal.json").read_bytes()) == ("old", before)
    advice = re.search(r"against yes\. Pass (--max-error \S+) or (--positive yes)\.$", refused.err.strip())
    for words in advice.groups():
        told = run(*make, "--max-error", "0.02", *words.split(), "--json").json
        assert told["out"] == "rule.json"
        assert max(told["missed"]) < 0.5
        assert serving.load("rule.json").automation.threshold == told["threshold"]


def test_a_constant_answer_that_keeps_the_promise_is_said(run):
    rng = np.random.default_rng(1)
    two_classes(rng.normal(-5.5, 1, 6000), rng, "test.npz", 2000)
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    refused = run("automate", "cal.json", "test.npz", "--max-error", "0.05")
    refused.failed(2, "no rule here: answering no to every row has 0.", "Pass --max-error 0.00")
    run("automate", "cal.json", "test.npz", "--max-error", "0.05", "--positive", "yes").succeeded()


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
    np.save("costs.npy", 1 - np.eye(4))
    told = run(
        "evaluate", "grouped.npz", "-c", "cal.json", "--draws", 20, "--costs", "costs.npy", "--json"
    ).json
    probs = cal.predict_proba(judged.logits)
    costs = decisions.evaluate_costs(probs, judged.labels, 1 - np.eye(4), groups=groups)
    assert told["costs"] == json.loads(json.dumps(costs.to_dict()))
    alone = decisions.evaluate_costs(probs, judged.labels, 1 - np.eye(4))
    assert told["costs"]["realised"]["low"] != alone.realised.low
