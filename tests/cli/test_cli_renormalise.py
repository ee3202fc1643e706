"""Rounded probabilities and percentages: refused with an option that works, then read alike everywhere."""

import numpy as np
import pandas
import pytest
import torch
from test_cli_labels import save_frame

from temperance import (
    InputError,
    TemperatureScaling,
    load,
    logits_from_probs,
    metrics,
    probability_floor,
    serving,
)
from temperance.data import open_rows, simulate
from temperance.study import find_tasks
from temperance.study.tasks import load_task

NAMES = ["cat", "dog", "owl"]
SCALES = {
    "two decimals": lambda p: p.round(2),
    "percentages": lambda p: (100 * p).round(),
    "votes": lambda p: np.floor(500 * p),
}
TASK = simulate(n_rows=120, n_classes=3, random_state=3)
LABELS = np.array(NAMES)[TASK.labels]


def save(path, probs):
    """Write probabilities by the names of their classes."""
    arrays = {"probs": probs, "labels": TASK.labels}
    if path.endswith(".npz"):
        np.savez(path, **arrays, classes=NAMES)
    elif path.endswith(".pt"):
        torch.save({key: torch.from_numpy(array) for key, array in arrays.items()} | {"classes": NAMES}, path)
    else:
        frame = pandas.DataFrame(probs, columns=[f"prob_{name}" for name in NAMES])
        save_frame(path, frame.assign(label=LABELS))


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".csv", ".parquet", ".xlsx", ".jsonl"])
@pytest.mark.parametrize("scale", SCALES)
def test_every_command_names_the_option_and_then_reads_as_python_does(scale, suffix, run):
    probs, val = SCALES[scale](TASK.probabilities), f"val{suffix}"
    save(val, probs)
    by_hand = probs / probs.sum(axis=1, keepdims=True)
    for words in (
        ("fit", val, "-m", "ts", "-o", "cal.json"),
        ("evaluate", val, "--draws", 2),
        ("compare", val, "-m", "ts"),
    ):
        done = run(*words)
        said = done.err.splitlines()[-1]  # after a line about probabilities of 0
        assert done.code == 2, done
        assert f"{val}, probs: probabilities must be" in said
        assert said.endswith("Pass --renormalise.") or scale == "votes"  # which may be logits
        assert run(*words, "--renormalise", "--json").code == 0
    fitted, wanted = load("cal.json"), TemperatureScaling().fit(by_hand, TASK.labels, from_probs=True)
    assert fitted.temperature_ == pytest.approx(wanted.temperature_, rel=1e-12)
    assert fitted.fitted_on_.renormalised
    assert "divided by their sum" in fitted.summary()
    assert fitted.fitted_on_.floor == pytest.approx(probability_floor(by_hand), rel=1e-12)
    scores = run("evaluate", val, "--renormalise", "--draws", 2, "--json").json["metrics"]
    assert scores["nll"]["value"] == pytest.approx(metrics.nll(by_hand, TASK.labels), rel=1e-12)
    # The calibrator knows how its rows were read.
    assert run("apply", "cal.json", val, "-o", "out.npz").code == 0
    made = np.load("out.npz")["probs"]
    np.testing.assert_allclose(made, wanted.predict_proba(by_hand, from_probs=True), rtol=1e-9)
    for use in (load, serving.load):
        np.testing.assert_array_equal(use("cal.json").predict_proba(probs, from_probs=True), made)
    for words in (("evaluate", val, "-c", "cal.json"), ("check", "cal.json", val)):
        assert run(*words).code == 0
    assert run("adapt", "cal.json", val, "-o", "adapted.json").code == 0
    assert load("adapted.json").fitted_on_ == fitted.fitted_on_


@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", ","), ("\t", ".")])
@pytest.mark.parametrize("sign", ["%", " %", "\u00a0%"])
def test_a_cell_with_a_percent_sign_is_a_fraction(sign, separator, decimal, folder):
    percent = (100 * TASK.probabilities).round(1)
    cells = pandas.DataFrame(percent, columns=[f"prob_{name}" for name in NAMES]).map(
        lambda number: f"{number:.1f}{sign}".replace(".", decimal)
    )
    cells.assign(label=LABELS).to_csv("val.csv", sep=separator, index=False)
    rows = open_rows("val.csv")
    np.testing.assert_allclose(rows.array(), percent / 100, rtol=1e-15)
    with pytest.raises(InputError, match=r"val\.csv, probs: .*sums, such as .* Pass renormalise=True\.$"):
        rows.logits()
    read = open_rows("val.csv", renormalise=True)
    np.testing.assert_allclose(np.exp(read.logits()).sum(axis=1), 1, rtol=0.01)  # zeros are raised
    np.testing.assert_allclose(read.array().sum(axis=1), 1, rtol=1e-12)


def test_a_class_may_be_called_5_percent(run):
    frame = pandas.DataFrame(TASK.logits, columns=["5%", "10%", "more"])
    frame.assign(label=np.array(list(frame))[TASK.labels]).to_csv("val.csv", index=False)
    rows = open_rows("val.csv", kind="logits")
    assert rows.class_names == ("5%", "10%", "more")
    assert rows.labels.tolist() == TASK.labels.tolist()


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [0.5, -0.1, 0.6], [np.inf, 0.0, 1.0], [np.nan, 0.5, 0.5]])
def test_rows_without_shares_are_refused_where_they_are(row, run):
    probs = TASK.probabilities.round(2)
    probs[70] = row
    np.savez("val.npz", probs=probs, labels=TASK.labels)
    for words in (("fit", "val.npz", "-o", "cal.json"), ("evaluate", "val.npz"), ("compare", "val.npz")):
        run(*words, "--renormalise").failed(2, "val.npz, probs: to be divided by its sum", "(first: row 70)")


def test_logits_are_not_renormalised(run, files):
    done = run("fit", "val.npz", "--renormalise", "-o", "cal.json")
    done.failed(2, "must hold probabilities to be renormalised; found logits. Leave --renormalise out")
    with pytest.raises(InputError, match=r"Pass from_probs=True\."):
        TemperatureScaling().fit(TASK.logits, TASK.labels, renormalise=True)


def test_python_without_the_argument_names_what_works():
    rounded = TASK.probabilities.round(2)
    fitted = TemperatureScaling().fit(TASK.probabilities, TASK.labels, from_probs=True)
    for use in (lambda: fitted.predict_proba(rounded, from_probs=True), lambda: metrics.nll(rounded, LABELS)):
        with pytest.raises(InputError, match=r"divide each row by its sum\.$"):
            use()
    for use in (logits_from_probs, probability_floor):
        with pytest.raises(InputError, match=r"Pass renormalise=True\."):
            use(rounded)
        assert np.isfinite(use(rounded, renormalise=True)).all()


def test_a_study_reads_them_too(run):
    probs = TASK.probabilities.round(2)
    np.savez(
        "a__b.npz",
        probs_val=probs[:60],
        labels_val=TASK.labels[:60],
        probs_test=probs[60:],
        labels_test=TASK.labels[60:],
    )
    run("study", "run", "a__b.npz", "-o", "out").failed(2, "a__b.npz", "Pass --renormalise.")
    (task,) = find_tasks(["a__b.npz"], renormalise=True)
    assert task.options.given() == {"renormalise": True}
    rows = load_task(task).test.logits
    np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, rtol=0.02)  # zeros are raised
