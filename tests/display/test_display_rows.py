"""Reliability, confidence, scores and learning curves hold the numbers of a computation by hand."""

import numpy as np
import pytest

from temperance import InputError, metrics
from temperance.comparison.method_result import Difference
from temperance.display import DifferencesDisplay, LearningCurveDisplay, ReliabilityDisplay
from temperance.display.chart import Band, Line, Rule

PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
LABELS = np.array([0, 1, 1, 0])
WEIGHTS = np.array([1.0, 2.0, 0.0, 1.0])
BINNED = ["edges", "count", "confidence", "accuracy", "low", "high"]


def assert_same_diagram(one, other):
    for field in BINNED:
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), atol=1e-12)


def test_a_reliability_diagram_is_that_of_the_metrics():
    options = {"bins": 3, "strategy": "mass", "sample_weight": WEIGHTS}
    display = ReliabilityDisplay.from_probs(PROBS, LABELS, name="mine", **options)
    assert list(display.diagrams) == ["mine"]
    assert_same_diagram(display.diagrams["mine"], metrics.reliability(PROBS, LABELS, **options))


def test_the_diagrams_of_a_comparison_are_those_of_its_probabilities(comparison, rows):
    display = ReliabilityDisplay.from_comparison(comparison, ["bayes", "ts"], bins=7)
    assert list(display.diagrams) == ["bayes", "ts"]
    for name, diagram in display.diagrams.items():
        probs = comparison.results[name].calibrator.predict_proba(rows.logits[600:])
        assert_same_diagram(diagram, metrics.reliability(probs, rows.labels[600:], bins=7))


def test_by_default_before_and_after_are_shown(comparison):
    wanted = list(dict.fromkeys(["none", comparison.recommended]))
    assert len(wanted) == 2
    assert list(ReliabilityDisplay.from_comparison(comparison).diagrams) == wanted


def test_the_weights_of_the_test_rows_are_used(weighted):
    diagram = ReliabilityDisplay.from_comparison(weighted, ["ts"]).diagrams["ts"]
    assert diagram.count.sum() == pytest.approx(weighted.judged.weights.sum())
    ece = weighted.results["ts"].scores["ece"].value
    assert float(diagram.share @ np.abs(diagram.gap)) == pytest.approx(ece, rel=1e-9)


def test_differences_are_means_over_the_same_rows(comparison):
    differences = DifferencesDisplay.from_comparison(comparison).differences
    losses = [comparison.results[name].row_nll.mean() for name in differences]
    assert losses == sorted(losses)
    assert set(differences) == set(comparison.results)
    reference = comparison.results[next(iter(differences))]
    for name, one in differences.items():
        rows = comparison.results[name].row_nll - reference.row_nll
        assert one.value == pytest.approx(rows.mean(), abs=1e-12)
        assert one == Difference.of_nll(comparison.results[name], reference).interval(0.95)


def test_a_learning_curve_has_one_standard_error_on_each_side(curve):
    chart = LearningCurveDisplay.from_curve(curve).chart()
    line, band = (
        next(mark for mark in chart.marks if isinstance(mark, kind) and mark.method == "lts")
        for kind in (Line, Band)
    )
    np.testing.assert_allclose(line.x, [20, 50])
    np.testing.assert_allclose(line.y, [7, 0.5])
    np.testing.assert_allclose([band.low[1], band.high[1]], [0.4, 0.6])
    (alone,) = (mark for mark in chart.marks if isinstance(mark, Rule))
    assert alone.at == 0.9
    assert LearningCurveDisplay.from_curve(curve, ["ts"]).methods == ["ts"]


def test_an_impossible_display_is_refused_with_a_message(comparison):
    with pytest.raises(InputError, match=r"methods must be one of 'none', 'ts', .*; found 'pts'"):
        ReliabilityDisplay.from_comparison(comparison, ["ts", "pts"])
    with pytest.raises(InputError, match="bins must be a whole number from 1 to 10000; found 0"):
        ReliabilityDisplay.from_comparison(comparison, bins=0)
    with pytest.raises(InputError, match="bins must be a whole number from 1 to 10000; found 0"):
        ReliabilityDisplay.from_probs(PROBS, LABELS, bins=0)
    with pytest.raises(InputError, match="probabilities must be"):
        ReliabilityDisplay.from_probs(3 * PROBS, LABELS)
