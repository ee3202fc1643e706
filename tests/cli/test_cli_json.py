"""With --json every command prints one JSON document, which the schema in docs/ describes."""

import hashlib
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from running import SCHEMA

from temperance import __version__, load, make_calibrator, metrics
from temperance.data.tasks import Task


@pytest.fixture
def small_demo(task, judged, monkeypatch):
    """Replace the built-in task by a small one, and all methods by two."""
    from temperance.comparison import compare

    small = Task(
        task.logits, task.labels, judged.logits, judged.labels, tuple("abcdefghij"[: task.logits.shape[1]])
    )
    monkeypatch.setattr("temperance.data.tasks.demo_task", lambda: small)
    monkeypatch.setattr(
        "temperance.comparison.compare",
        lambda *rows, **options: compare(*rows, **({"methods": ["ts", "hts"]} | options)),
    )


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


COMMANDS = {
    "demo": ("demo",),
    "compare": ("compare", "val.npz", "test.npz", "-m", "ts"),
    "compare with a report": ("compare", "task.npz", "-m", "ts", "--report", "new.html"),
    "compare without a test file": ("compare", "val.npz", "-m", "ts", "--folds", "3"),
    "fit": ("fit", "val.npz", "-o", "new.json"),
    "apply": ("apply", "cal.json", "test.npz", "-o", "new.npz"),
    "check": ("check", "cal.json", "test.npz", "--history", "new.jsonl"),
    "evaluate": ("evaluate", "test.npz", "--draws", "20"),
    "evaluate by group": ("evaluate", "visits.npz", "--by", "hospital", "--draws", "20"),
    "compare by groups": ("compare", "visits.npz", "-m", "ts"),
    "evaluate with a calibrator": ("evaluate", "task.npz", "-c", "cal.json", "--draws", "20"),
    "automate": ("automate", "cal.json", "test.npz", "--max-error", "0.4", "-o", "rule.json"),
    "export": ("export", "cal.json", "new.onnx"),
    "show": ("show", "cal.json"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_every_command_prints_one_document(words, run, files, calibrator, small_demo, task):
    names, rows = np.array(["north", "south"]), np.arange(len(task.labels))
    np.savez(
        "visits.npz", logits=task.logits, labels=task.labels, groups=rows // 5, hospital=names[rows // 50 % 2]
    )
    done = run(*words, "--json").succeeded()
    assert (done.json["temperance"], done.json["command"]) == (__version__, words[0])


def test_the_schema_is_one_and_refuses_what_it_does_not_name(run, files):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    content = run("evaluate", "test.npz", "--draws", 20, "--json").json
    for wrong in ({"more": 1}, {"metrics": {}}, {"command": "fit"}, {"classes": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content | wrong, SCHEMA)


def test_fit_reports_the_file_and_the_fitted_numbers(run, files):
    told = run("fit", "val.npz", "-m", "hts", "-o", "cal.json", "--json", "--quiet").json
    assert told["file"] == {"path": "val.npz", "key": "logits", "rows": 300, "sha256": digest("val.npz")}
    assert (told["method"], told["out"], told["warnings"]) == ("hts", "cal.json", [])
    assert told["parameters"] == json.loads(Path("cal.json").read_text())["parameters"]
    assert told["summary"] == load("cal.json").summary()


def test_show_has_the_key_numbers_notes_and_rule(run, files):
    run("fit", "val.npz", "-m", "bayes-bias", "-o", "cal.json", "--metadata", "by=me").succeeded()
    run("automate", "cal.json", "test.npz", "--max-error", 0.6, "-o", "rule.json").succeeded()
    told = run("show", "rule.json", "--json").succeeded().json
    assert told["calibrator"] == {"path": "rule.json", "method": "bayes-bias"}
    content = json.loads(Path("rule.json").read_text())
    assert told["parameters"] == content["parameters"]
    assert (told["rows"], told["classes"], told["metadata"]) == (300, 4, {"by": "me"})
    assert told["automation"]["threshold"] == content["automation"]["threshold"]
    assert told["summary"].startswith("BayesianTemperatureScaling (bayes-bias)\n")


def test_warnings_are_in_the_document_and_on_standard_error(run, files, task):
    np.savez("right.npz", logits=task.logits, labels=task.logits.argmax(axis=1))
    done = run("fit", "right.npz", "-m", "ts", "-o", "cal.json", "--json")
    assert len(done.json["warnings"]) >= 1
    assert done.err.splitlines() == [f"warning: {words}" for words in done.json["warnings"]]
    compared = run("compare", "right.npz", "test.npz", "-m", "ts", "--json")
    assert compared.json["methods"]["ts"]["warnings"] == done.json["warnings"]
    assert compared.err.splitlines() == [f"warning: ts: {words}" for words in done.json["warnings"]]


def test_an_infinite_loss_is_null(run, judged):
    probs = np.eye(4)[np.zeros(200, int)]
    np.savez("sure.npz", probs=probs, labels=judged.labels)
    told = run("evaluate", "sure.npz", "--draws", 20, "--json").succeeded().json
    assert told["metrics"]["nll"] == {"value": None, "low": 0.0, "high": None}
    assert told["metrics"]["accuracy"]["value"] == (judged.labels == 0).mean()
    huge = np.zeros((200, 4))
    huge[:, 0] = 1e6
    np.savez("huge.npz", logits=huge, labels=judged.labels)
    compared = run("compare", "huge.npz", "-m", "ts", "--json").json
    assert compared["methods"]["none"]["scores"]["nll"]["value"] is None


def test_compare_reports_the_digests_of_its_files(run, files):
    told = run("compare", "val.npz", "test.npz", "-m", "ts", "--json").json["files"]
    assert told == [
        {"name": "val.npz", "role": "validation, logits", "rows": 300, "sha256": digest("val.npz")},
        {"name": "test.npz", "role": "test, logits", "rows": 200, "sha256": digest("test.npz")},
    ]
    run("compare", "val.npz", "test.npz", "-m", "ts", "--report", "report.html").succeeded()
    assert digest("test.npz") in Path("report.html").read_text()


def test_a_task_file_is_both_files(run, files):
    two = run("compare", "val.npz", "test.npz", "-m", "ts", "--json").json
    one = run("compare", "task.npz", "-m", "ts", "--json").json
    assert one["methods"]["ts"]["scores"] == two["methods"]["ts"]["scores"]
    assert one["judged_on"] == "the test set"
    assert [file["role"] for file in one["files"]] == ["validation, logits_val", "test, logits_test"]
    assert {file["sha256"] for file in one["files"]} == {digest("task.npz")}


# ---- compare, for people


def test_compare_prints_the_numbers_of_the_library(run, files, task, judged):
    from temperance import compare

    told = run("compare", "val.npz", "test.npz", "-m", "ts,hts", "--bins", 9, "--seed", 2, "--json").json
    methods = ["ts", "hts"]
    result = compare(
        *(task.logits, task.labels, judged.logits, judged.labels, methods), bins=9, random_state=2
    )
    wanted = json.loads(json.dumps(result.to_dict()))
    for content in (told, wanted):
        for method in content["methods"].values():
            method.pop("seconds")
    assert {name: told[name] for name in wanted} == wanted
    assert list(told["methods"]) == ["none", "ts", "hts"]
    assert told["report"] is None
    assert "300 rows" not in run("compare", "val.npz", "test.npz", "-m", "ts").out


def test_without_a_test_file_the_report_says_that_rows_were_held_out(run, files):
    done = run("compare", "val.npz", "-m", "ts", "--folds", 4).succeeded()
    assert "Evaluated on 4-fold cross-validation: 300 rows, 4 classes." in done.out


def test_all_methods_are_compared_unless_some_are_named(run, files, monkeypatch):
    asked = []

    def stop(*arrays, **options):
        asked.append(options["methods"])
        raise KeyboardInterrupt

    monkeypatch.setattr("temperance.comparison.compare", stop)
    run("compare", "val.npz")
    run("compare", "val.npz", "-m", " ts, hts,")
    assert asked == [None, ["ts", "hts"]]


def test_the_recommended_method_is_marked_and_explained(run, files):
    done = run("compare", "val.npz", "test.npz", "-m", "ts,bts").succeeded()
    told = run("compare", "val.npz", "test.npz", "-m", "ts,bts", "--json").json
    marked = [line.split()[0] for line in done.out.splitlines() if line.split()[1:2] == ["*"]]
    assert marked == [told["recommended"]]
    words = " ".join(done.out.split())
    assert words.startswith(f"Calibrate with {told['recommended']}. ")
    assert f"Why {told['recommended']}: {told['reason']}" in words


# ---- demo


def test_the_demo_takes_a_seed_and_writes_a_report_under_the_next_free_name(run, small_demo, task, judged):
    for name in ("temperance-demo.html", "temperance-demo-2.html"):
        done = run("demo").succeeded()
        assert f"Report: {name}\n" in done.out
        assert Path(name).read_text().lower().startswith("<!doctype html>")
        assert "300 validation images" in done.out
        assert max(map(len, done.out.splitlines())) <= 80
    assert len(list(Path().iterdir())) == 2
    told = run("demo", "--seed", 1, "--json").json["methods"]["ts"]["scores"]
    probs = make_calibrator("ts").fit(task.logits, task.labels).predict_proba(judged.logits)
    wanted = metrics.evaluate(probs, judged.labels, draws=20, random_state=1).to_dict()
    assert told == json.loads(json.dumps(wanted))


def test_compare_takes_metrics_of_the_users_own(run, files):
    Path("mine.py").write_text(
        "def wrong(probs, labels):\n    return float((probs.argmax(1) != labels).mean())\n"
    )
    words = ("compare", "val.npz", "test.npz", "-m", "ts", "--metrics", "mine:wrong")
    assert "wrong" in run(*words).succeeded().out
    for method in run(*words, "--json").json["methods"].values():
        scores = method["scores"]
        assert abs(scores["wrong"]["value"] + scores["accuracy"]["value"] - 1) < 1e-12
    run("compare", "val.npz", "-m", "ts", "--metrics", "mine:right").failed(2, "'mine:right' must name")
