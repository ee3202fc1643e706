"""The reliability of single classes, against an independent computation."""

import numpy as np
import pytest

from temperance.comparison import compare
from temperance.comparison.method_result import MAX_CLASSES, MIN_ROWS
from temperance.data import simulate
from temperance.display import ClassReliabilityDisplay
from temperance.display.chart import Line
from temperance.errors import InputError


def test_the_bins_are_those_of_the_probabilities_of_the_class(rows, comparison):
    for column in range(4):
        display = ClassReliabilityDisplay.from_comparison(comparison, ["ts"], column=column)
        diagram = display.diagrams["ts"]
        probs = comparison.results["ts"].calibrator.predict_proba(rows.logits[600:])[:, column]
        is_class = rows.labels[600:] == column
        index = np.clip(np.ceil(probs * 10).astype(int) - 1, 0, 9)
        for b in range(10):
            inside = index == b
            assert diagram.count[b] == inside.sum()
            if inside.any():
                assert diagram.confidence[b] == pytest.approx(probs[inside].mean())
                assert diagram.accuracy[b] == pytest.approx(is_class[inside].mean())


def test_bins_of_few_rows_are_kept_but_not_drawn(comparison):
    display = ClassReliabilityDisplay.from_comparison(comparison)
    counts = display.diagrams["none"].count
    assert ((counts > 0) & (counts < 5)).any(), "the rows of this test leave some bins nearly empty"
    line = next(mark for mark in display.chart().marks if isinstance(mark, Line) and mark.method == "none")
    assert len(line.x) == (counts >= 5).sum()


def test_of_two_classes_the_second_one_is_shown(binary):
    result = compare(*binary, methods=["ts"], draws=5, classes=["no", "yes"])
    assert list(result.results["ts"].class_reliability) == [1]
    display = ClassReliabilityDisplay.from_comparison(result)
    assert (display.column, display.name, display.chart().title) == (1, "yes", "Class yes")


def test_of_many_classes_those_with_the_most_rows_are_kept():
    task = simulate(1500, 25, random_state=1)
    result = compare(task.logits, task.labels, methods=["ts"], draws=5, folds=2)
    kept = list(result.results["none"].class_reliability)
    rows = np.bincount(task.labels, minlength=25)
    assert len(kept) == MAX_CLASSES
    assert kept == sorted(kept)
    assert rows[kept].min() >= max(rows[[k for k in range(25) if k not in kept]].max(), MIN_ROWS)
    with pytest.raises(InputError, match=r"column must be a class with enough test rows, .*; found 99"):
        ClassReliabilityDisplay.from_comparison(result, column=99)


def test_classes_of_few_rows_have_no_diagram():
    task = simulate(40, 3, random_state=1)
    result = compare(task.logits, task.labels, methods=["ts"], draws=5, folds=2)
    assert result.results["ts"].class_reliability == {}
    with pytest.raises(InputError, match="no class has the 30 test rows"):
        ClassReliabilityDisplay.from_comparison(result)


def test_rows_of_weight_0_are_not_counted(weighted):
    for column, diagram in weighted.results["ts"].class_reliability.items():
        assert diagram.count.sum() == pytest.approx(weighted.judged.weights.sum())
        of_class = weighted.judged.weights[weighted.judged.labels == column].sum()
        assert np.nansum(diagram.count * diagram.accuracy) == pytest.approx(of_class)
