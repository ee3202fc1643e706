"""Groups on the command line: a column or an array of ids, and what the rows are worth."""

import numpy as np
import pandas
import pytest

from temperance import load, make_calibrator


@pytest.fixture
def grouped(folder, task):
    """Write 300 rows in 30 groups as arrays and as a table; return their groups."""
    groups = np.random.default_rng(0).permutation(np.arange(300) // 10)
    np.savez("val.npz", logits=task.logits, labels=task.labels, groups=groups)
    frame = pandas.DataFrame(task.logits, columns=[f"logit_{k}" for k in range(4)])
    frame.assign(label=task.labels, patient=[f"p{g}" for g in groups]).to_csv("val.csv", index=False)
    return groups


@pytest.mark.parametrize("words", [["val.npz"], ["val.csv", "--group-column", "patient"]])
def test_fit_uses_the_groups_of_the_file_and_says_so(run, grouped, task, words):
    done = run("fit", *words, "-m", "ts", "-o", "cal.json")
    assert done.code == 0, done
    by_hand = make_calibrator("ts").fit(task.logits, task.labels, groups=grouped)
    cal = load("cal.json")
    assert cal.n_groups_ == 30
    assert cal.standard_errors_["temperature"] == pytest.approx(by_hand.standard_errors_["temperature"])
    assert f"30 groups; design effect {by_hand.design_effect_:.2g}: worth about" in done.out
    shown = run("show", "cal.json").out
    assert "30 groups; design effect" in shown


def test_the_gap_before_the_fit_is_judged_by_groups(run, folder):
    """A fifth of the groups is wrong as a whole: 20 groups do not show that 80% is below 90%; 800 rows do."""
    wrong = np.repeat(np.arange(20) % 5 == 0, 40)
    logits = np.tile([np.log(9.0), 0.0], (800, 1)) + np.random.default_rng(0).normal(0, 0.01, (800, 2))
    np.savez("alone.npz", logits=logits, labels=wrong.astype(int))
    np.savez("together.npz", logits=logits, labels=wrong.astype(int), groups=np.arange(800) // 40)
    assert "Before: overconfident by 10" in run("fit", "alone.npz", "-m", "ts", "-o", "a.json").out
    assert "Before: no clear gap" in run("fit", "together.npz", "-m", "ts", "-o", "b.json").out


def test_a_check_without_the_groups_of_the_fit_warns(run, grouped, task):
    run("fit", "val.csv", "--group-column", "patient", "-m", "ts", "-o", "cal.json").succeeded()
    new = task.logits[:200] + 0.01
    pandas.DataFrame(new, columns=[f"logit_{k}" for k in range(4)]).assign(
        label=task.labels[:200], patient=np.arange(200) // 10
    ).to_csv("new.csv", index=False)
    done = run("check", "cal.json", "new.csv")
    assert "in 30 groups; found rows without groups. Pass --group-column." in done.err
    with_groups = run("check", "cal.json", "new.csv", "--group-column", "patient", "--history", "h.jsonl")
    assert "--group-column" not in with_groups.err
    run("check", "cal.json", "new.csv", "--history", "h.jsonl").failed(
        2, "began with groups; found rows", "Pass --group-column."
    )


def test_a_check_of_the_rows_of_the_fit_warns(run, grouped):
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    assert "found the rows of the fit" in run("check", "cal.json", "val.npz").err
