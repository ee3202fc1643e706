"""Reliability, confidence, scores and learning curves hold the numbers of a computation by hand."""

import numpy as np
import pytest

from temperance import InputError, metrics
from temperance.comparison import LearningCurve
from temperance.comparison.method_result import Difference
from temperance.display import (
    DifferencesDisplay,
    LearningCurveDisplay,
    ReliabilityDisplay,
)

PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
LABELS = np.array([0, 1, 1, 0])
WEIGHTS = np.array([1.0, 2.0, 0.0, 1.0])
BINNED = ["edges", "count", "confidence", "accuracy", "low", "high"]


def assert_same_diagram(one, other):
    for field in BINNED:
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), atol=1e-12)


def test_a_reliability_diagram_is_that_of_the_metrics():
    options = {"bins": 3, "strategy": "mass", "level": 0.8, "sample_weight": WEIGHTS}
    display = ReliabilityDisplay.from_probs(PROBS, LABELS, name="mine", **options)
    assert list(display.diagrams) == ["mine"]
    assert_same_diagram(display.diagrams["mine"], metrics.reliability(PROBS, LABELS, **options))


def test_the_diagrams_of_a_comparison_are_those_of_its_probabilities(comparison, rows):
    display = ReliabilityDisplay.from_comparison(comparison, ["bayes", "ts"], bins=7, level=0.9)
    assert list(display.diagrams) == ["bayes", "ts"]
    for name, diagram in display.diagrams.items():
        probs = comparison.results[name].calibrator.predict_proba(rows.logits[600:])
        assert_same_diagram(diagram, metrics.reliability(probs, rows.labels[600:], bins=7, level=0.9))


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
    display = DifferencesDisplay.from_comparison(comparison)
    losses = [comparison.results[name].row_nll.mean() for name in display.methods]
    assert losses == sorted(losses)
    assert set(display.methods) == set(comparison.results)
    reference = comparison.results[display.methods[0]]
    for at, name in enumerate(display.methods):
        rows = comparison.results[name].row_nll - reference.row_nll
        interval = Difference.of_nll(comparison.results[name], reference).interval(0.95)
        half = 1.96 * rows.std(ddof=1) / np.sqrt(len(rows))
        assert display.value[at] == pytest.approx(rows.mean(), abs=1e-12)
        assert display.low[at] == pytest.approx(interval.low, abs=1e-12)
        assert display.high[at] == pytest.approx(interval.high, abs=1e-12)
        assert display.high[at] - display.low[at] == pytest.approx(2 * half, rel=0.1, abs=1e-12)


def test_a_learning_curve_has_one_standard_error_on_each_side(curve):
    display = LearningCurveDisplay.from_curve(curve)
    assert display.sizes == (20, 50)
    assert display.uncalibrated == 0.9
    np.testing.assert_allclose(display.mean["lts"], [7, 0.5])
    np.testing.assert_allclose(display.low["lts"], [5, 0.4])
    np.testing.assert_allclose(display.high["lts"], [9, 0.6])
    assert list(LearningCurveDisplay.from_curve(curve, ["ts"]).mean) == ["ts"]


def test_one_draw_has_no_error():
    display = LearningCurveDisplay.from_curve(LearningCurve((20,), {"ts": np.array([[0.5]])}, 0.9, 100))
    assert display.mean["ts"] == [0.5]
    assert np.isnan([display.low["ts"], display.high["ts"]]).all()
    display.plot()


def test_an_impossible_display_is_refused_with_a_message(comparison):
    with pytest.raises(InputError, match="among none, ts, hts, ets, bayes; found 'pts'"):
        ReliabilityDisplay.from_comparison(comparison, ["ts", "pts"])
    with pytest.raises(
        InputError, match=r"methods must be a list of names, such as .*; found the string 'ts'"
    ):
        ReliabilityDisplay.from_comparison(comparison, "ts")
    with pytest.raises(InputError, match=r"methods is empty\. Name at least one of none, ts, "):
        ReliabilityDisplay.from_comparison(comparison, [])
    with pytest.raises(InputError, match="bins must be a whole number from 1 to 10000; found 0"):
        ReliabilityDisplay.from_comparison(comparison, bins=0)
    with pytest.raises(InputError, match="bins must be a whole number from 1 to 10000; found 0"):
        ReliabilityDisplay.from_probs(PROBS, LABELS, bins=0)
    with pytest.raises(InputError, match="probabilities must be"):
        ReliabilityDisplay.from_probs(3 * PROBS, LABELS)


def test_other_bad_options_are_refused_with_a_message(comparison, curve):
    with pytest.raises(InputError, match=r"level must be a number between 0 and 1; found 95"):
        ReliabilityDisplay.from_comparison(comparison, level=95)
    with pytest.raises(InputError, match="among ts, lts; found 'none'"):
        LearningCurveDisplay.from_curve(curve, ["none"])
