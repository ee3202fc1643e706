"""`temperance check`: exit codes, words, the command to paste, the history and what is refused."""

import json
import shlex

import jsonschema
import numpy as np
import pytest
from running import SCHEMA

from temperance import load, make_calibrator
from temperance.data import simulate


@pytest.fixture
def week(folder):
    """Write a calibrator and weeks of rows: unchanged, other frequencies, wrong labels, no labels."""
    task = simulate(n_rows=9000, n_classes=4, random_state=3)
    make_calibrator("bayes-bias").fit(task.logits[:4500], task.labels[:4500]).save("cal.json")
    logits, labels = task.logits[4500:], task.labels[4500:]
    rng = np.random.default_rng(0)
    weight = np.where(labels == 0, 4.0, 1.0)
    often = rng.choice(len(labels), 1000, p=weight / weight.sum(), replace=False)
    np.savez("same.npz", logits=logits[:1000], labels=labels[:1000])
    np.savez("often.npz", logits=logits[often], labels=labels[often])
    np.savez("wrong.npz", logits=logits, labels=(labels + (rng.random(len(labels)) < 0.3)) % 4)
    np.savez("bare.npz", logits=logits[:1000])
    np.savez("bare_often.npz", logits=logits[often])
    np.savez("bad.npz", logits=logits[:10], labels=np.full(10, 9))
    return folder


@pytest.mark.parametrize(
    ("name", "code", "action"),
    [
        ("same", 0, "keep"),
        ("often", 3, "adapt"),
        ("wrong", 3, "refit"),
        ("bare", 0, "keep"),
        ("bare_often", 3, "label"),
    ],
)
def test_the_exit_code_says_whether_to_act(week, run, name, code, action):
    words = run("check", "cal.json", f"{name}.npz")
    assert (words.code, words.err) == (code, "")
    told = run("check", "cal.json", f"{name}.npz", "--json")
    content = json.loads(told.out)
    jsonschema.validate(content, SCHEMA)
    assert (told.code, content["action"]) == (code, action)
    assert content["state"] == {0: "keep", 3: "act"}[code]
    lines = [line for line in words.out.splitlines() if not line.startswith("  temperance adapt")]
    assert max(map(len, lines)) <= 80
    assert content["words"][0] in " ".join(words.out.split())


def test_a_gap_without_enough_evidence_is_watched(week, run):
    """Yellow and exit code 0: the last files are outside the allowed range, and there is no alarm yet."""
    rows = np.load("wrong.npz")
    for number in (1, 2):
        part = slice(40 * number, 40 * number + 40)
        np.savez(f"week{number}.npz", logits=rows["logits"][part], labels=rows["labels"][part])
    run("check", "cal.json", "week1.npz", "--history", "checks.jsonl").succeeded()
    told = run("check", "cal.json", "week2.npz", "--history", "checks.jsonl", "--json").succeeded().json
    jsonschema.validate(told, SCHEMA)
    assert (told["state"], told["action"], told["alarm"]) == ("watch", "watch", False)
    assert [(gap["name"], gap["checks"]) for gap in told["gaps"]] == [("week2.npz", 1), ("week1.npz", 2)]
    assert "settle it." in told["words"][0]
    words = run("check", "cal.json", "week2.npz", "--history", "checks.jsonl").succeeded().out
    assert words.startswith("Watch. Confidence is too high: ")


def test_the_command_to_adapt_can_be_pasted_and_helps(week, run):
    done = run("check", "cal.json", "often.npz")
    line = next(line for line in done.out.splitlines() if line.startswith("  temperance adapt"))
    run(*shlex.split(line)[1:]).succeeded()
    assert load("cal-adapted.json").model_.log_prior_ratio is not None
    assert run("check", "cal-adapted.json", "often.npz").code == 0


def test_the_command_reads_the_rows_as_the_check_did_if_the_classes_are_many(folder, run):
    task = simulate(n_rows=8000, n_classes=25, random_state=3)
    make_calibrator("ts").fit(task.logits[:6000], task.labels[:6000]).save("cal.json")
    weight = np.where(task.labels == 0, 8.0, 1.0)
    often = np.random.default_rng(0).choice(len(weight), 2000, p=weight / weight.sum(), replace=False)
    np.savez("task.npz", logits_val=task.logits[often], labels_val=task.labels[often])
    (folder / "my names.txt").write_text("\n".join(f"class {k}" for k in range(25)))
    done = run("check", "cal.json", "task.npz", "--part", "val", "--classes", "@my names.txt")
    line = next(line for line in done.out.splitlines() if line.startswith("  temperance adapt"))
    words = "task.npz -o cal-adapted.json --part val --classes '@my names.txt'"
    assert line == f"  temperance adapt cal.json {words}"
    run(*shlex.split(line)[1:]).succeeded()


def test_a_history_continues_and_the_page_shows_it(week, run):
    words = ("--history", "checks.jsonl", "--report", "page.html")
    run("check", "cal.json", "same.npz", *words).succeeded()
    run("check", "cal.json", "bare_often.npz", *words).failed(2, "page.html already exists", "--force")
    assert len((week / "checks.jsonl").read_bytes().splitlines()) == 1
    assert run("check", "cal.json", "wrong.npz", *words, "--force").code == 3
    assert (week / "page.html").read_text().count("<svg") == 4
    again = run("check", "cal.json", "wrong.npz", "--history", "checks.jsonl")
    assert again.code == 3
    assert "not counted again" in again.out


def test_the_class_that_people_act_on_can_be_named(folder, run):
    rng = np.random.default_rng(0)
    x = rng.normal(-1.9, 1.9, 3000)
    labels = np.where(rng.random(3000) < 1 / (1 + np.exp(-x)), "default", "no")
    rows = np.column_stack([-x / 2, x / 2])
    make_calibrator("ts").fit(rows[:2000], labels[:2000], classes=["no", "default"]).save("cal.json")
    lines = [f"{a},{b},{y}" for (a, b), y in zip(rows[2000:], labels[2000:], strict=True)]
    (folder / "week.csv").write_text("\n".join(["logit_no,logit_default,label", *lines]))
    words = ("check", "cal.json", "week.csv", "--history", "checks.jsonl")
    assert run(*words, "--json").succeeded().json["words"][0].startswith("Keep. P(default) fits: ")
    run(*words, "--positive", "no").failed(2, "positive must be the same", "Pass --positive default")
    named = run("check", "cal.json", "week.csv", "--positive", "no", "--json").succeeded().json
    jsonschema.validate(named, SCHEMA)
    assert named["words"][0].startswith("Keep. P(no) fits: ")
    evaluated = run("evaluate", "week.csv", "-c", "cal.json", "--positive", "no", "--json").succeeded().json
    assert named["finding"] == evaluated["finding"]


def test_labels_that_are_wrong_are_an_error_and_not_left_out(week, run):
    run("check", "cal.json", "bad.npz").failed(2, "bad.npz", "labels must be", "such as 9, in 10 rows")


def test_a_history_is_a_separate_file_with_settings_of_its_own(week, run):
    run("check", "cal.json", "same.npz", "--history", "cal.json").failed(2, "must not be an input file")
    run("check", "cal.json", "same.npz", "--history", "checks.jsonl").succeeded()
    run("check", "cal.json", "same.npz", "--history", "a.html", "--report", "a.html").failed(
        2, "must not be an input file"
    )
    (week / "page.html").write_text("old")
    run("check", "cal.json", "same.npz", "--history", "new.jsonl", "--report", "page.html", "-f").succeeded()
    run("check", "cal.json", "often.npz", "--history", "checks.jsonl", "--tolerance", "0.05").failed(
        2, "Pass --tolerance 0.02"
    )
    run("check", "cal.json", "same.npz", "--history", "no/checks.jsonl").failed(2, "folder no does not exist")
