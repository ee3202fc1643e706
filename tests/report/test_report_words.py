"""Words and numbers of the page fit the case: no "-0.00", no 100% that is not, no bins of a single row."""

import numpy as np
import pytest

from temperance import compare
from temperance.comparison import LearningCurve
from temperance.comparison.verdict import accuracy_in_words
from temperance.data import simulate
from temperance.display import ClassReliabilityDisplay, ReliabilityDisplay
from temperance.display.chart import Axis, Chart, Dots, Intervals, Line, tick_labels
from temperance.errors import percent
from temperance.metrics.calibration_tests import cox_in_words
from temperance.metrics.intervals import Estimate
from temperance.report.page import labels_in_words
from temperance.report.svg import draw_svg


@pytest.fixture(scope="module")
def comparison():
    """Return two methods on few rows."""
    task = simulate(60, 3, random_state=5)
    return compare(task.logits, task.labels, methods=["ts", "hts"], folds=3, draws=5)


def test_a_share_below_one_is_not_shown_as_one():
    assert percent(0.9996) == "99.96%"
    assert accuracy_in_words(0.9327, 0.9998) == "accuracy rises from 93.3% to 99.98%"
    assert accuracy_in_words(0.9, 0.8) == "accuracy falls from 90.0% to 80.0%"


def test_a_number_that_rounds_to_zero_has_no_sign():
    near_zero = Estimate(-0.001, -0.002, 0.001)
    assert "-0.00" not in cox_in_words(Estimate(1.0, 0.9, 1.1), near_zero, 0.5)


def diagram_of(counts):
    """Return a diagram of bins with these numbers of rows, all of them right."""
    confidence = np.repeat((np.arange(5) + 0.5) / 5, counts)
    probs = np.c_[confidence, 1 - confidence]
    right = (np.arange(len(probs)) % 2 == 0).astype(int)
    return ReliabilityDisplay.from_probs(probs, right, bins=5)


def test_bins_of_few_rows_are_not_drawn_unless_all_are_small():
    display = diagram_of([0, 0, 9, 2, 20])
    (line,) = (mark for mark in display.chart().marks if isinstance(mark, Line) and mark.method)
    np.testing.assert_allclose(line.x, [0.5, 0.9])
    assert display.chart().caption.endswith("Not drawn: 1 bin of fewer than 5 rows.")
    small = diagram_of([0, 0, 2, 2, 3])
    (line,) = (mark for mark in small.chart().marks if isinstance(mark, Line) and mark.method)
    assert len(line.x) == 3
    assert "Not drawn" not in small.chart().caption


def test_a_single_bin_has_an_interval():
    display = diagram_of([0, 0, 0, 2, 20])
    (point,) = (mark for mark in display.chart().marks if isinstance(mark, Intervals))
    assert point.low[0] < point.value[0] < point.high[0]
    assert point.at[0] == pytest.approx(0.9)


def test_a_long_class_name_is_short_in_the_title_and_whole_in_the_caption(comparison):
    name = "a class whose name is too long for two lines of a title"
    task = simulate(200, 3, random_state=1)
    named = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5, classes=[name, "b", "c"])
    chart = ClassReliabilityDisplay.from_comparison(named, column=0).chart()
    assert len(chart.title) < 40
    assert chart.caption.startswith(f"Class {name}. Mean distance")
    other = ClassReliabilityDisplay.from_comparison(named, column=1).chart()
    assert (other.title, other.caption[:13]) == ("Class b", "Mean distance")


def test_the_labels_are_told_for_the_method_of_the_verdict(comparison):
    curve = LearningCurve((20, 40), {"ts": np.full((2, 2), 0.9), "hts": np.full((2, 2), 0.8)}, 0.9, 60)
    other = "hts" if comparison.verdict.tried == "ts" else "ts"
    assert f"the log loss of {comparison.verdict.tried} went" in labels_in_words(comparison, curve)
    del curve.nll[comparison.verdict.tried]
    assert f"the log loss of {other} went" in labels_in_words(comparison, curve)


def test_a_learning_curve_claims_nothing_that_its_draws_cannot_show(comparison):
    """With three draws a fall has to be 4.3 standard errors; which method is lowest is not told at all."""
    steady, noisy = np.array([0.0, 0.001, -0.001]), np.array([0.0, 0.1, -0.1])
    for noise, answer in ((steady, "Yes: "), (noisy, "No gain that 3 random draws could show: ")):
        curve = LearningCurve((20, 40), {"ts": np.stack([0.9 + noise, 0.8 - noise])}, 0.9, 60)
        words = labels_in_words(comparison, curve)
        assert words.startswith(answer)
        assert "a fall of 0.1000 ±" in words
        assert "owest" not in words


def test_half_a_dot_is_not_drawn_at_the_edge():
    x = np.array([-0.004, 0.0, 0.5, 1.0, 1.004, np.nan])
    axis = Axis("x", (0.0, 1.0))
    svg = draw_svg(Chart("t", "c", axis, axis, [Dots(x, np.full(6, 0.5), method="ts")]), "a")
    assert svg.count("<circle") == 3


def test_ticks_are_at_least_three_and_without_needless_zeros():
    for width in np.geomspace(0.01, 900, 200):
        assert 3 <= len(tick_labels(-width, -0.03 * width)) <= 8
    words = [label for _, label in tick_labels(1e-9, 1.3, log=True)]
    assert words == ["1e-8", "1e-6", "0.0001", "0.01", "1"]
