"""One extreme value must not stretch an axis, and the caption says what is left out."""

from dataclasses import replace

import numpy as np
import pytest

from temperance.comparison import LearningCurve, compare
from temperance.data import simulate
from temperance.display import (
    ConfidenceDisplay,
    DifferencesDisplay,
    LearningCurveDisplay,
    TemperatureDisplay,
)
from temperance.display.chart import Band, Text
from temperance.display.limits import MARGIN, outside, robust_limits


def test_one_row_of_tiny_entropy_does_not_stretch_the_axis(rows, comparison):
    before = TemperatureDisplay.from_comparison(comparison)
    lowest = before.chart().x.limits[0]
    logits = rows.logits[600:].copy()
    logits[0] = [80.0, 0, 0, 0]
    cals = {"ts": comparison.results["ts"].calibrator}
    display = TemperatureDisplay.from_calibrators(cals, logits, rows.labels[600:])
    assert display.log_entropy[0] == -20
    assert display.chart().x.limits[0] == pytest.approx(lowest, abs=0.5)
    assert "of the 400 rows drawn, 1 row has a log entropy of -20.0." in display.caption
    assert "Not shown" not in before.caption


def test_many_rows_of_tiny_entropy_are_shown(rows, comparison):
    logits = rows.logits[600:].copy()
    logits[:60] = [80.0, 0, 0, 0]
    display = TemperatureDisplay.from_calibrators({}, logits, rows.labels[600:])
    assert display.chart().x.limits[0] < -20
    assert "Not shown" not in display.caption


def test_a_method_with_extreme_temperatures_is_left_out_of_the_limits(comparison):
    display = TemperatureDisplay.from_comparison(comparison)
    usual = display.temperature["ts"]
    calm = replace(display, temperature={f"m{i}": usual for i in range(5)})
    wild = replace(
        display, temperature={**calm.temperature, "bts": usual * np.geomspace(1e-3, 1e3, len(usual))}
    )
    assert wild.chart().y.limits == pytest.approx(calm.chart().y.limits)
    assert "Partly beyond the edges: BTS." in wild.caption
    assert "beyond" not in calm.caption


def curve_of(nll, uncalibrated=0.9):
    return LearningCurveDisplay.from_curve(LearningCurve((20, 50, 100), nll, uncalibrated, 1000))


@pytest.mark.parametrize("diverged", [1e6, np.inf])
def test_one_diverged_draw_does_not_flatten_the_learning_curve(diverged):
    good = {"ts": np.full((3, 4), 0.5) + np.array([[0.05], [0.02], [0.0]]), "hts": np.full((3, 4), 0.52)}
    one = good["hts"].copy()
    one[0, 2] = diverged
    with np.errstate(invalid="ignore"):
        display = curve_of({**good, "hts": one})
    chart = display.chart()
    assert chart.y.limits[1] < 1
    assert "Above the figure: HTS with 20 rows." in chart.caption
    band = next(mark for mark in chart.marks if isinstance(mark, Band) and mark.method == "hts")
    assert np.isnan(band.high).tolist() == [True, False, False], "a band would cover the others"
    assert "Above the figure" not in curve_of(good).chart().caption


def test_a_classifier_far_worse_than_its_calibrations_is_named_at_the_edge():
    display = curve_of({"ts": np.array([[0.52, 0.5], [0.5, 0.5], [0.49, 0.49]])}, uncalibrated=20.0)
    chart = display.chart()
    assert chart.y.limits[1] < 1
    assert "The classifier itself, at 20.0000, is above the figure." in chart.caption
    assert any(isinstance(mark, Text) and "20.0000" in mark.words for mark in chart.marks)


def differences(value, half=0.001):
    value = np.asarray(value, float)
    methods = ("none", "ts", "hts", "bts", "ets", "bayes")
    return DifferencesDisplay("bayes", methods, value, value - half, value + half)


def test_one_bad_method_does_not_compress_the_differences():
    display = differences([0.02, 0.01, 0.008, 7.0, 0.01, 0.0])
    chart = display.chart()
    assert chart.x.limits[1] < 0.03
    assert "Beyond the right edge: BTS, +7.0000." in chart.caption
    assert any(isinstance(mark, Text) and mark.method == "bts" for mark in chart.marks)
    assert "Beyond" not in differences([0.02, 0.01, 0.008, 0.03, 0.01, 0.0]).caption


def test_an_uncertain_bad_method_does_not_stretch_the_left_either():
    display = differences([0.02, 0.01, 0.008, 7.0, 0.01, 0.0], np.array([0.001] * 3 + [9.0] + [0.001] * 2))
    assert display.chart().x.limits[0] > -0.01


def test_a_cut_interval_is_mentioned():
    display = differences([0.02, 0.01, 0.008, 0.015, 0.01, 0.0], np.array([0.001] * 3 + [9.0] + [0.001] * 2))
    assert display.chart().x.limits[1] < 0.03
    assert "Intervals that reach beyond an edge are cut there." in display.caption


def test_one_high_bar_leaves_room_for_the_others():
    confidence = np.r_[np.full(900, 0.99), np.linspace(0.51, 0.94, 100)]
    labels = np.r_[np.zeros(900, int), np.arange(100) % 2]
    display = ConfidenceDisplay.from_probs(np.c_[confidence, 1 - confidence], labels)
    chart = display.chart()
    assert chart.y.limits[1] < 0.2
    assert any(
        isinstance(mark, Text) and "90.0 % of rows at 0.95 to 1.00" in mark.words for mark in chart.marks
    )
    assert "written in a corner" in chart.caption


def test_each_method_has_the_accuracy_of_its_own_decisions():
    task = simulate(800, 4, random_state=5)
    result = compare(task.logits + 4 * np.eye(4)[0], task.labels, methods=["bayes-bias"], folds=2, draws=5)
    display = ConfidenceDisplay.from_comparison(result)
    for name, accuracy in display.accuracies.items():
        assert accuracy == pytest.approx(result.results[name].accuracy)
        assert display.right[name].sum() == pytest.approx(accuracy)
    assert display.accuracies["bayes-bias"] > display.accuracy + 0.05


def test_limits_include_values_near_the_rest():
    values = np.r_[np.linspace(0, 1, 200), 1.4, -0.4, 9.0, -9.0]
    margin = MARGIN * 1.8
    assert robust_limits(values, rare=0.01, reach=0.5) == pytest.approx((-0.4 - margin, 1.4 + margin))
    assert outside(np.array([0.0, 2.0, -1.0]), (1.4, -0.4)).tolist() == [False, True, True]


def test_bands_are_inside_the_figure_or_reported_as_cut():
    calm = np.array([[0.5, 0.6], [0.45, 0.5], [0.4, 0.42]])
    wide = curve_of({"ts": calm, "lts": np.array([[0.1, 1.1], [0.5, 0.52], [0.45, 0.46]])})
    narrow = curve_of({"ts": calm})
    low, high = narrow.chart().y.limits
    assert low < narrow.low["ts"].min() < narrow.high["ts"].max() < high
    assert "cut" not in narrow.caption
    assert "Bands that reach beyond an edge are cut there." in wide.caption
