"""Names from files cannot control a terminal, and a bad random seed is refused in one sentence."""

from pathlib import Path

import numpy as np
import pytest

from temperance import InputError, compare, make_calibrator
from temperance.comparison import learning_curve
from temperance.metrics import evaluate
from temperance.report.markup import element

STEERS = ["cat\x1b[31m", "two\nlines", "\x07bell", "\x9b2J"]


@pytest.mark.parametrize("key", ["lts", "ts"])
def test_class_names_cannot_control_a_terminal(key, task):
    calibrator = make_calibrator(key).fit(task.logits, task.labels, classes=STEERS)
    summary = calibrator.summary()
    assert all(sign.isprintable() or sign == "\n" for sign in summary)
    assert r"cat\x1b[31m" in summary
    assert calibrator.classes_.tolist() == STEERS  # the names themselves stay


def test_an_element_has_no_control_characters():
    page = element("td", *STEERS, title="\x1b]0;title")
    assert all(sign.isprintable() or sign == "\n" for sign in page)
    assert r"cat\x1b[31m" in page


def test_a_report_has_no_control_characters_from_a_file(command, task):
    np.savez("rows.npz", logits=task.logits, labels=task.labels, classes=np.array(STEERS))
    assert command("compare", "rows.npz", "-m", "ts", "--report", "report.html").code == 0
    page = Path("report.html").read_text()
    assert r"cat\x1b[31m" in page
    assert not [sign for sign in page if ord(sign) < 32 and sign not in "\n\t\r"]


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, 10**30, np.random.RandomState(0), [1, 2]])
def test_an_invalid_random_seed_is_refused(seed, task):
    probs = np.full((300, 4), 0.25)
    with pytest.raises(InputError, match="random_state must be a whole number >= 0, or None; found"):
        evaluate(probs, task.labels, draws=5, random_state=seed)
    with pytest.raises(InputError, match="random_state must be a whole number >= 0; found"):
        compare(task.logits, task.labels, methods=["ts"], random_state=seed)


def test_generators_and_none_are_seeds(task):
    probs = np.full((300, 4), 0.25)
    for seed in (None, 3, np.int64(3), np.random.default_rng(0), np.random.SeedSequence(1)):
        assert evaluate(probs, task.labels, draws=5, random_state=seed).n_rows == 300


def test_a_learning_curve_with_a_bad_seed_is_refused(task):
    comparison = compare(task.logits, task.labels, methods=["ts"], draws=5)
    with pytest.raises(InputError, match="random_state must be a whole number >= 0; found 'x'"):
        learning_curve(comparison, random_state="x")
