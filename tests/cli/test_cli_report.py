"""The report of the command line: the verdict of the terminal, and commands that work when pasted."""

import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from temperance import compare, load
from temperance.data import simulate


def blocks(page):
    """Return the blocks of commands by their titles."""
    found = re.findall(r"<h3>([^<]*)</h3><button[^>]*class=\"copy.*?<code>(.*?)</code>", page, re.DOTALL)
    return {title: unescape(code) for title, code in found}


def commands(block):
    return [shlex.split(line)[1:] for line in block.splitlines() if not line.startswith("#")]


def words_of(page):
    text = unescape(re.sub("<[^>]+>", "", page)).replace("\N{NO-BREAK SPACE}", " ")
    return " ".join(text.split())


BIASED = 4 * np.eye(4)[0]
TASKS = {
    "better": (simulate(400, 4, random_state=3), 0.0, ["ts"]),
    "a class bias": (simulate(150, 4, random_state=5), BIASED, ["ts", "bayes-bias"]),
    "worse": (
        simulate(400, 4, temperature=1, entropy_slope=0, class_spread=0, random_state=6),
        0.0,
        ["bts"],
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_page_terminal_json_and_python_say_the_same(name, run):
    task, shift, methods = TASKS[name]
    np.savez("val.npz", logits=task.logits + shift, labels=task.labels)
    verdict = compare(task.logits + shift, task.labels, methods=methods, draws=20).verdict
    assert name == verdict.outcome or verdict.alternative == "ts"
    command = ("compare", "val.npz", "-m", ",".join(methods))
    terminal = " ".join(run(*command, "--report", "page.html").out.split())
    told = run(*command, "--json").json
    page = words_of(Path("page.html").read_text())
    for sentence in verdict.sentences:
        assert sentence in terminal
        assert sentence in told["verdict"]
        assert sentence in str(verdict)
    for sentence in (verdict.advice, verdict.remaining_in_words, *verdict.notes):
        assert sentence in page  # the numbers of the others are in its tiles
    assert f"Calibration: {verdict.outcome}" in page
    assert told["outcome"] == verdict.outcome
    assert f'class="verdict {verdict.outcome.replace(" ", "-")}"' in Path("page.html").read_text()
    assert told["nll_gain"]["value"] == verdict.nll_gain.value
    assert told["alternative"] == verdict.alternative
    for number in (verdict.before.nll, verdict.after.nll, verdict.nll_gain.low):
        assert f"{abs(number):.4f}" in page
    assert told["before"] == verdict.before.to_dict()
    assert told["after"] == verdict.after.to_dict()


def paste(run, page):
    """Run the commands of the shell, and then the lines of Python; return what these define."""
    for words in commands(blocks(page)["Shell"]):
        run(*words).succeeded()
    return blocks(page)["Python"]


def test_the_commands_work_when_they_are_pasted(run, folder, task, judged):
    np.save("val logits.npy", task.logits)
    np.save("val labels.npy", task.labels)
    np.save("test's.npy", judged.logits)
    np.save("test labels.npy", judged.labels)
    names = "a cat,dog,$emu,fox"
    run(
        *("compare", "val logits.npy", "test's.npy", "--labels", "val labels.npy"),
        *("--test-labels", "test labels.npy", "--input", "logits", "--classes", names),
        *("-m", "ts", "--report", "page.html"),
    ).succeeded()
    page = Path("page.html").read_text()
    assert "<h1>Calibration report: val logits.npy and test&#39;s.npy</h1>" in page
    python = paste(run, page)
    found = {"logits": judged.logits}
    exec(python, found)  # the lines that a reader pastes
    with np.load("probs.npz") as written:
        np.testing.assert_allclose(written["probs"], found["probs"], rtol=1e-5)
        np.testing.assert_array_equal(written["labels"], np.array(names.split(","))[judged.labels])
    assert load("cal.json").class_names_ == tuple(names.split(","))
    assert commands(blocks(page)["Export to ONNX or PyTorch"]) == [
        ["export", "cal.json", "cal.onnx"],
        ["export", "cal.json", "cal.pt2"],
    ]


def test_names_of_classes_from_a_file_may_have_commas(run, files):
    Path("names.txt").write_text("cat\ndog, small\nemu\nfox\n")
    options = ("-m", "ts", "--classes", "@names.txt", "--report", "page.html")
    run("compare", "val.npz", "test.npz", *options).succeeded()
    paste(run, Path("page.html").read_text())
    assert load("cal.json").class_names_ == ("cat", "dog, small", "emu", "fox")


def test_probabilities_are_calibrated_as_probabilities(run, folder, task, judged):
    for name, rows in (("val.npz", task), ("test.npz", judged)):
        odds = np.exp(rows.logits - rows.logits.max(axis=1, keepdims=True))
        np.savez(name, probs=odds / odds.sum(axis=1, keepdims=True), labels=rows.labels)
    run("compare", "val.npz", "test.npz", "-m", "ts", "--report", "page.html").succeeded()
    python = paste(run, Path("page.html").read_text())
    with np.load("test.npz") as test:
        found = {"classifier_probs": test["probs"]}
    exec(python, found)
    with np.load("probs.npz") as written:
        np.testing.assert_allclose(written["probs"], found["probs"], rtol=1e-6)


def test_a_task_file_is_fitted_and_applied_by_its_parts(run, files, judged):
    run("compare", "task.npz", "-m", "ts", "--report", "page.html").succeeded()
    page = Path("page.html").read_text()
    paste(run, page)
    assert "<h1>Calibration report: task.npz</h1>" in page
    with np.load("probs.npz") as written:
        assert len(written["probs"]) == len(judged.labels)


def test_without_a_test_file_a_name_is_proposed(run, files):
    run("compare", "val.npz", "-m", "ts", "--report", "page.html").succeeded()
    fit, apply = commands(blocks(Path("page.html").read_text())["Shell"])
    assert fit == ["fit", "val.npz", "-m", "ts", "-o", "cal.json"]
    assert apply == ["apply", "cal.json", "new.npz", "-o", "probs.npz"]


def test_the_date_is_that_of_the_environment(run, files, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    run("compare", "val.npz", "-m", "ts", "--report", "page.html").succeeded()
    assert "<time>1970-01-02</time>" in Path("page.html").read_text()
