"""Columns of a table that are no scores of a class ask for a word, and the advice works."""

import re
import shlex

import numpy as np
import pandas
import pytest
from test_cli_labels import save_frame

from temperance import InputError, TemperatureScaling, load
from temperance.data import open_rows, simulate

NAMES = ["cat", "dog", "owl"]
OTHERS = {
    "fold": lambda n: np.arange(n) % 5,
    "sample_weight": lambda n: np.linspace(0.5, 2.0, n),
    "row_id": lambda n: np.arange(n) + 0.5,
    "number": np.arange,
    "flag": lambda n: np.arange(n) % 2,
    "version": lambda n: np.full(n, 2.5),
}


@pytest.fixture
def frame():
    task = simulate(n_rows=100, n_classes=3, random_state=2)
    return pandas.DataFrame(task.logits, columns=NAMES).assign(label=np.array(NAMES)[task.labels])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".jsonl"])
@pytest.mark.parametrize("other", OTHERS)
def test_a_column_unlike_the_others_is_no_class_until_the_user_says_so(other, suffix, run, frame):
    save_frame(f"val{suffix}", frame.assign(**{other: OTHERS[other](100)}))
    words = ("fit", f"val{suffix}", "--input", "logits", "-m", "ts", "-o", "cal.json")
    done = run(*words)
    done.failed(2, f"column {other!r} might not be the scores of a class", "Pass --classes cat,dog,owl or")
    remedies = re.findall(r"--classes \S+", done.err.strip().removesuffix("."))
    run(*words, *shlex.split(remedies[0])).succeeded()
    wanted = TemperatureScaling().fit(frame[NAMES], frame["label"]).temperature_
    assert load("cal.json").temperature_ == pytest.approx(wanted, rel=1e-9)
    assert run(*words, "-f", *shlex.split(remedies[1])).code == 0  # with a warning, if it was none
    assert load("cal.json").class_names_ == (*NAMES, other)


@pytest.mark.filterwarnings("ignore:The labels agree with the logits no better than chance")
@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
@pytest.mark.parametrize("other", OTHERS)
def test_the_same_holds_for_a_frame_in_python(other, frame):
    logits = frame[NAMES].assign(**{other: OTHERS[other](100)})
    with pytest.raises(InputError, match=f"column '{other}' might not be the logits of a class"):
        TemperatureScaling().fit(logits, frame["label"])
    assert TemperatureScaling().fit(logits, frame["label"], classes=list(logits)).n_classes_ == 4


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
@pytest.mark.filterwarnings("ignore:The labels agree with the logits no better than chance")
@pytest.mark.parametrize(
    "change",
    [
        lambda logits: logits.round(),
        lambda logits: logits.assign(cat=0.0),
        lambda logits: logits.assign(cat=-np.inf),
        lambda logits: logits.iloc[:5].round(),
        lambda logits: logits * 0 + [1, 2, 3],
    ],
    ids=["whole", "a reference class", "an impossible class", "few rows", "all constant"],
)
def test_columns_that_look_alike_are_classes(change, folder, frame):
    logits = change(frame[NAMES])
    logits.to_csv("new.csv", index=False)
    assert open_rows("new.csv", kind="logits", need_labels=False).shape == logits.shape
    TemperatureScaling().fit(logits, np.resize([1, 2], len(logits)))


def test_the_sums_of_probabilities_tell(run, frame):
    probs = frame[NAMES].rank(axis=1).div(6).assign(cat=0.0)
    probs = probs.div(probs.sum(axis=1), axis=0).assign(label=frame["label"].replace("cat", "dog"))
    probs.to_csv("val.csv", index=False)
    run("evaluate", "val.csv", "--input", "probs", "--draws", 2).succeeded()
    probs.assign(flag=np.arange(100) % 2).to_csv("val.csv", index=False)
    run("evaluate", "val.csv", "--input", "probs", "--draws", 2).failed(2, "rows sum to 1")
