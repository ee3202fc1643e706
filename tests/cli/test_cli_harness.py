"""Samples of lm-evaluation-harness as tasks of a study, and in the commands."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from temperance import CALIBRATORS, InputError, load, make_calibrator
from temperance.data import open_rows
from temperance.study import Results, find_tasks
from temperance.study.protocol import WorkUnit, run_work_unit
from temperance.study.tasks import load_task

SMALL = ["-m", "ts", "--sizes", "20", "--draws", "1", "-j", "1"]


def sample(rng, number, n_answers):
    scores = rng.normal(-10, 3, n_answers).round(3)
    weights = np.exp((scores - scores.max()) / 3)
    right = int(rng.choice(n_answers, p=weights / weights.sum()))
    answers = [f" answer {k * 'x'}" for k in range(n_answers)]
    return {
        "doc_id": number,
        "doc": {"question": "?"},
        "target": str(right),
        "arguments": {f"gen_args_{k}": {"arg_0": "?", "arg_1": text} for k, text in enumerate(answers)},
        "filtered_resps": [[str(score), "False"] for score in scores],
        "acc": float(right == np.argmax(scores)),
    }


@pytest.fixture
def model_folder(tmp_path):
    """Return the folder of a model as the harness leaves it, with a task that generates text in it."""
    model_folder = tmp_path / "org__model"
    model_folder.mkdir()
    rng = np.random.default_rng(0)
    lines = [json.dumps(sample(rng, number, 3 + (number % 3 > 0))) for number in range(101)]
    (model_folder / "samples_quiz_2026-01-01T00-00-00.123.jsonl").write_text("\n".join(lines))
    generated = {"doc_id": 0, "target": "4", "resps": [["It is 4."]], "filtered_resps": ["4"]}
    (model_folder / "samples_sums_2026-01-01T00-00-00.123.jsonl").write_text(json.dumps(generated))
    (model_folder / "results_2026-01-01T00-00-00.123.json").write_text("{}")
    return model_folder


def test_a_folder_of_the_harness_is_a_folder_of_tasks(model_folder):
    (task,) = find_tasks([model_folder])
    assert (task.name, task.dataset, task.model) == ("quiz__org__model", "quiz", "org/model")
    assert (task.rows, task.test_rows, task.classes) == (51, 50, 4)
    whole = open_rows(task.path)
    loaded = load_task(task)
    for rows, start in ((loaded.val, 0), (loaded.test, 1)):
        np.testing.assert_array_equal(rows.labels, whole.labels[start::2])
        assert rows.has_masks()
    with pytest.raises(InputError, match="must be a task file"):  # it generates
        find_tasks([model_folder / "samples_sums_2026-01-01T00-00-00.123.jsonl"])
    task.path.rename(model_folder / "mine__gpt.jsonl")
    assert [task.name for task in find_tasks([model_folder])] == ["mine__gpt"]


def test_a_study_of_samples_by_length(run, model_folder, tmp_path):
    (task,) = find_tasks([model_folder], length_normalised=True)
    whole = open_rows(task.path, length_normalised=True)
    np.testing.assert_array_equal(load_task(task).val.logits, whole.logits()[::2])
    assert not np.array_equal(load_task(task).val.logits, open_rows(task.path).logits()[::2])
    words = ("study", "run", model_folder, "--out", tmp_path / "s", *SMALL)
    assert run(*words, "--length-normalised", "--json").json["failures"] == []
    assert Results(tmp_path / "s").tasks == [task]
    assert run(*words, "--length-normalised").code == 0  # the run continues
    run(*words).failed(2, "must be read as when the study began")


def test_rows_that_are_no_samples_are_not_normalised_by_length(run, model_folder):
    rows = {"logits_val": np.zeros((4, 3)), "labels_val": [0, 1, 2, 0]}
    np.savez("a__b.npz", **rows, **{name.replace("val", "test"): array for name, array in rows.items()})
    for words in (("study", "run", "a__b.npz", "--out", "s"), ("fit", "a__b.npz", "-o", "s")):
        run(*words, "--length-normalised").failed(2, "Leave --length-normalised out")
    assert not Path("s").exists()
    refused = run("evaluate", model_folder / "samples_sums_2026-01-01T00-00-00.123.jsonl")
    refused.failed(2, "line 1: 'filtered_resps' must have one log-likelihood")


def test_the_page_has_commands_that_run(run, model_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = model_folder / "samples_quiz_2026-01-01T00-00-00.123.jsonl"
    (tmp_path / "samples_quiz.jsonl").write_bytes(path.read_bytes())
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "language-models.md").read_text(encoding="utf-8")
    section = page.partition("## Multiple choice")[2].partition("\n## ")[0]
    commands = [line.split()[1:] for line in section.splitlines() if line.startswith("    temperance ")]
    assert [command[0] for command in commands] == ["compare", "fit", "study"]
    for command in commands[:2]:
        done = run(*command, *(["-m", "ts"] if command[0] == "compare" else []))
        assert done.code == 0, done.err


USES = {
    "apply": ("apply", "cal.json", "quiz.jsonl", "-o", "out.npz", "-f"),
    "evaluate": ("evaluate", "quiz.jsonl", "-c", "cal.json", "--draws", "2"),
    "check": ("check", "cal.json", "quiz.jsonl"),
}
BY_LENGTH = "--length-normalised"


@pytest.fixture
def quiz(run, model_folder):
    """Copy the samples of a task to the folder of the commands."""
    content = (model_folder / "samples_quiz_2026-01-01T00-00-00.123.jsonl").read_text()
    Path("quiz.jsonl").write_text(content)


@pytest.mark.parametrize("command", USES)
@pytest.mark.parametrize("at_fit", [[], [BY_LENGTH]], ids=["plain", "by length"])
def test_a_calibrator_reads_samples_as_its_fit_did(run, quiz, command, at_fit):
    run("fit", "quiz.jsonl", "-m", "ts", "-o", "cal.json", *at_fit).succeeded()
    done, said = run(*USES[command], "--json"), run(*USES[command], "--json", BY_LENGTH)
    assert done.code == 0, done.err
    if at_fit:
        assert said == done
    else:
        said.failed(2, "not divided by the length of the answers", f"Leave {BY_LENGTH} out")
    logits = open_rows("quiz.jsonl", length_normalised=bool(at_fit)).logits()
    if command == "apply":
        np.testing.assert_array_equal(np.load("out.npz")["probs"], load("cal.json").predict_proba(logits))


def test_the_file_keeps_how_samples_were_read_and_that_columns_are_positions(run, quiz):
    run("fit", "quiz.jsonl", "-m", "ts", "-o", "cal.json", BY_LENGTH).succeeded()
    fitted_on = {"kind": "logits", "length_normalised": True, "positions": True}
    assert json.loads(Path("cal.json").read_text())["fitted_on"] == fitted_on
    refused = run("adapt", "cal.json", "--priors", "0.4,0.3,0.2,0.1", "-o", "adapted.json")
    refused.failed(2, "adapt is for class frequencies", "fitted on positions")
    assert "logits divided by the length of the answers" in " ".join(load("cal.json").summary().split())


def test_positions_are_not_classes(run, quiz):
    """A file with class names is for other calibrators than those of samples; without names, who knows."""
    rows = {"logits": np.zeros((6, 4)), "labels": np.arange(6) % 4}
    np.savez("named.npz", **rows, classes=["ant", "bee", "cow", "dog"])
    np.savez("nameless.npz", **rows)
    run("fit", "quiz.jsonl", "-m", "ts", "-o", "samples.json", BY_LENGTH).succeeded()
    run("fit", "named.npz", "-m", "ts", "-o", "named.json")
    refused = run("apply", "samples.json", "named.npz", "-o", "out.npz")
    refused.failed(2, "must be positions of answers", "found classes 'ant', 'bee', 'cow', 'dog'")
    refused = run("apply", "named.json", "quiz.jsonl", "-o", "out.npz")
    refused.failed(2, "must be classes 'ant', 'bee', 'cow', 'dog'", "found positions of answers")
    done = run("apply", "samples.json", "nameless.npz", "-o", "out.npz")
    assert done.code == 0
    assert "nameless.npz: used as it is" in done.err


def test_a_study_skips_samples_with_two_targets_and_says_so(run, model_folder):
    """The folder of a model often has tasks with several correct answers, as truthfulqa_mc2."""
    two = model_folder / "samples_two_2026-01-01T00-00-00.123.jsonl"
    line = sample(np.random.default_rng(1), 0, 4) | {"target": "[0, 1]"}
    two.write_text(f"{json.dumps(line)}\n" * 3)
    done = run("study", "run", model_folder, "--out", "s", *SMALL, "--json")
    assert done.json["tasks"] == ["quiz__org__model"]
    assert "exactly one answer must be correct; found the targets [0, 1]" in done.err
    assert "The file is skipped." in done.err
    refused = run("study", "run", two, "--out", "other", *SMALL)
    refused.failed(2, "exactly one answer must be correct; found the targets [0, 1]", "Leave this file out")
    assert "--labels" not in refused.err
    (model_folder / "samples_quiz_2026-01-01T00-00-00.123.jsonl").unlink()
    run("study", "run", model_folder, "--out", "other", *SMALL).failed(2, "Leave this file out")


@pytest.mark.parametrize("n_options", [2, 5])
def test_commands_take_samples_with_other_numbers_of_answers(run, quiz, n_options):
    rng = np.random.default_rng(n_options)
    lines = [json.dumps(sample(rng, number, n_options)) for number in range(40)]
    Path("other.jsonl").write_text("\n".join(lines))
    run("fit", "quiz.jsonl", "-m", "bayes-bias", "-o", "cal.json").succeeded()
    logits = open_rows("other.jsonl").logits()
    assert logits.shape == (40, n_options)
    for command in USES.values():
        run(*(word.replace("quiz", "other") for word in command), "--json").succeeded()
    np.testing.assert_array_equal(np.load("out.npz")["probs"], load("cal.json").predict_proba(logits))
    assert run("compare", "quiz.jsonl", "other.jsonl", "-m", "ts", "--json").code == 0


def test_samples_are_fitted_as_positions(run, quiz):
    rows = open_rows("quiz.jsonl")
    assert rows.positions
    run("fit", "quiz.jsonl", "-m", "bayes-bias", "-o", "cal.json").succeeded()
    wanted = make_calibrator("bayes-bias").fit(rows.logits(), rows.labels, positions=True)
    got = load("cal.json")
    np.testing.assert_array_equal(got.predict_proba(rows.logits()), wanted.predict_proba(rows.logits()))
    refused = run("fit", "quiz.jsonl", "-m", "lts", "-o", "lts.json")
    refused.failed(2, "columns must be classes; found positions. Use bayes, ts or hts.")
    tried = run("compare", "quiz.jsonl", "-m", "all", "--json").json
    assert "found positions" in tried["failures"]["lts"]


def test_the_user_says_that_named_columns_are_positions(run):
    rng = np.random.default_rng(0)
    for name, options in (("four.csv", "ABCD"), ("five.csv", "ABCDE")):
        table = pd.DataFrame(
            rng.normal(0, 2, (60, len(options))), columns=[f"logit_{one}" for one in options]
        )
        table.assign(label=rng.choice(list(options), 60)).to_csv(name, index=False)
    run("fit", "four.csv", "-m", "ts", "-o", "classes.json")
    run("apply", "classes.json", "five.csv", "-o", "out.npz").failed(2, "found 'A', 'B', 'C', 'D', 'E'")
    run("fit", "four.csv", "-m", "ts", "--positions", "-o", "cal.json")
    assert load("cal.json").fitted_on_.positions
    refused = run("apply", "cal.json", "five.csv", "-o", "out.npz")
    refused.failed(2, "must be positions of answers", "say that they are positions", "--positions")
    run("apply", "cal.json", "five.csv", "--positions", "-o", "out.npz").succeeded()
    assert np.load("out.npz")["probs"].shape == (60, 5)


def test_a_study_of_samples_has_no_terms_of_positions(model_folder):
    (task,) = find_tasks([model_folder])
    loaded = load_task(task)
    assert loaded.val.positions
    assert loaded.test.positions
    unit = WorkUnit(task, 40, 0, 0, {key: CALIBRATORS[key] for key in ("lts", "bayes", "bayes-bias")})
    lts, bayes, bias = run_work_unit(unit)
    assert "found positions" in lts.message
    assert bias.nll == bayes.nll
