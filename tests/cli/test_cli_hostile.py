"""Odd names, odd places, odd numbers: either it works, or it is one sentence."""

import html
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from temperance import load
from temperance.errors import on_one_line

NAMES = {
    "spaces": " a  b .npz",
    "other letters": "ü漢字🙂.npz",
    "markup of rich": "[bold]x.npz",
    "template": "%s{0}$HOME.npz",
    "markup of pages": "<b>&amp;.npz",
    "two lines": "two\nlines.npz",
    "steers a terminal": "red\x1b[31m\r.npz",
    "no text at all": os.fsdecode(b"\xff\xfe.npz"),
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_file_may_have_any_name(name, run, files, calibrator, task):
    np.savez(name, logits=task.logits, labels=task.labels)
    shown = on_one_line(name)
    assert shown.isprintable()
    done = run("apply", "cal.json", name, "-o", f"probs-{name}").succeeded()
    assert done.out.endswith(f"Saved to probs-{shown}\n")
    assert np.load(f"probs-{name}")["probs"].shape == (300, 4)
    run("apply", "cal.json", name, "-o", f"probs-{name}").failed(2, f"probs-{shown} already exists")
    told = run("evaluate", f"probs-{name}", "--draws", 5, "--json").succeeded().json
    assert told["file"]["path"] == f"probs-{name}"
    run("evaluate", f"no-{name}").failed(2, f"no-{shown}: there is no such file")
    run("fit", name, "-m", "ts", "-o", f"{name}.json").succeeded()
    assert load(f"{name}.json").n_rows_ == 300


@pytest.mark.parametrize("name", [NAMES["markup of pages"], NAMES["no text at all"]])
def test_a_report_names_a_file_of_any_name(name, run, files):
    Path("val.npz").rename(name)
    done = run("compare", name, "-m", "ts", "--report", f"{name}.html").succeeded()
    assert f"\nReport: {on_one_line(name)}.html\n" in done.out
    page = Path(f"{name}.html").read_text()
    assert html.escape(on_one_line(name)) in page
    assert "<b>&amp;.npz" not in page


def test_a_name_that_starts_with_a_dash(run, files, calibrator, task):
    np.savez("-x.npz", logits=task.logits, labels=task.labels)
    run("evaluate", "-x.npz").failed(2, "No such option")
    run("apply", "-o", "-probs.npz", "--", "cal.json", "-x.npz").succeeded()
    assert Path("-probs.npz").exists()


@pytest.mark.parametrize("name", ["x" * 300 + ".npz", "val.npz/x.npz", "no/x.npz", "", "."])
def test_an_impossible_file_name_is_refused(name, run, files, calibrator, folder):
    before = {path.name for path in folder.iterdir()}
    run("evaluate", name).failed(2)
    run("apply", "cal.json", "val.npz", "-o", name).failed(2)
    run("fit", "val.npz", "-m", "ts", "-o", name).failed(2)
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize("methods", ["", ",", " , "])
def test_an_empty_list_of_methods_is_refused(methods, run, files):
    run("compare", "val.npz", "-m", methods).failed(2, "-m", "must have at least one name", repr(methods))


ODD = {
    "two rows": lambda z, y: (z[:2], y[:2]),
    "two classes": lambda z, y: (z[:50, :2], y[:50] % 2),
    "many classes": lambda z, y: (np.random.default_rng(0).standard_normal((60, 300)), np.arange(60)),
    "huge": lambda z, y: (z[:50] * 1e30, y[:50]),
    "tiny": lambda z, y: (z[:50] * 1e-9, y[:50]),
    "all the same": lambda z, y: (np.zeros((50, 4)), y[:50]),
    "masked": lambda z, y: (np.where(np.eye(4)[(y + 1) % 4] > 0, -np.inf, z), y),
    "labels of one byte": lambda z, y: (z[:50], y[:50].astype(np.uint8)),
}


@pytest.mark.parametrize("n_rows", [10, 50])
def test_rows_of_one_class_are_scored_and_not_fitted(n_rows, run, task):
    np.savez("odd.npz", logits=task.logits[:n_rows], labels=np.zeros(n_rows, int))
    for words in (("fit", "odd.npz", "-m", "ts", "-o", "cal.json"), ("compare", "odd.npz")):
        run(*words).failed(2, "needs labels of at least two classes; found only 0")
    run("evaluate", "odd.npz", "--draws", 5).succeeded()


@pytest.mark.parametrize("make", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("method", ["ts", "bayes"])
def test_unusual_rows_are_fitted_calibrated_and_scored(make, method, run, task):
    logits, labels = make(task.logits, task.labels)
    np.savez("odd.npz", logits=logits, labels=labels)
    assert run("fit", "odd.npz", "-m", method, "-o", "cal.json").code == 0
    run("apply", "cal.json", "odd.npz", "-o", "probs.npz").succeeded()
    probs = np.load("probs.npz")["probs"]
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)
    top = probs[np.arange(len(probs)), logits.argmax(axis=1)]
    assert (top == probs.max(axis=1)).all()
    told = run("evaluate", "probs.npz", "--draws", 5, "--json").succeeded().json
    assert told["metrics"]["accuracy"]["value"] == pytest.approx((logits.argmax(axis=1) == labels).mean())
    if method == "ts" and len(labels) > 1:
        told = run("compare", "odd.npz", "-m", "ts", "--folds", 2, "--json").json
        assert list(told["methods"]) == ["none", "ts"]


def test_a_closed_output_is_not_a_failure(folder):
    command = f"{shlex.quote(sys.executable)} -m temperance completion bash >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert "this should not have happened" not in done.stderr
    assert (done.returncode, done.stderr) == (0, "")
