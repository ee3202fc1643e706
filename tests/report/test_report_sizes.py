"""Pages of many classes stay small, and the methods that are shown at first come from the comparison."""

import numpy as np
import pytest

from temperance import compare
from temperance.comparison import Outcome
from temperance.data import simulate
from temperance.report import render_report
from temperance.report.shown_methods import shown_at_first
from temperance.report.verdict_box import SYMBOLS


@pytest.mark.parametrize("n_classes", [1000, pytest.param(50_257, marks=pytest.mark.slow)])
def test_a_page_of_many_classes_is_small(n_classes):
    rng = np.random.default_rng(0)
    labels = rng.integers(n_classes, size=24)
    logits = rng.standard_normal((24, n_classes), np.float32)
    logits[np.arange(24), labels] += 9
    names = [f"token {k}" for k in range(n_classes)]
    result = compare(logits, labels, methods=["ts", "hts"], folds=2, draws=2, classes=names)
    page = render_report(result)
    assert len(page.encode()) < 250_000
    assert "No class has at least 30 test rows" in page


def test_the_first_methods_are_the_best_the_simplest_and_one_with_a_map():
    task = simulate(400, 4, random_state=2)
    result = compare(task.logits, task.labels, methods=["lts", "hts", "bts", "mono"], folds=2, draws=5)
    nll = {name: r.scores["nll"].value for name, r in result.results.items() if name != "none"}
    shown = shown_at_first(result)
    assert {min(nll, key=nll.get), "hts", "mono", result.verdict.tried} == shown
    assert "bts" not in shown


def test_a_comparison_without_methods_of_ours_can_be_reported():
    task = simulate(100, 3, random_state=2)
    result = compare(task.logits, task.labels, methods=[], folds=2, draws=5)
    assert shown_at_first(result) == set()
    assert "No method was tried." in render_report(result)


def test_every_outcome_has_its_own_symbol():
    assert len(set(SYMBOLS.values())) == len(SYMBOLS) == len(Outcome)
