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
