"""Limits of axes: no extreme value stretches them, and the figure says what is beyond."""

from dataclasses import replace

import numpy as np
import pytest

from temperance.calibrators import method_style
from temperance.comparison import LearningCurve
from temperance.display import (
    DifferencesDisplay,
    LearningCurveDisplay,
    TemperatureDisplay,
)
from temperance.display.chart import MARGIN, Band, Line, Text, outside, robust_limits
from temperance.metrics.intervals import Estimate


def curve_of(nll, uncalibrated=0.9):
    return LearningCurveDisplay.from_curve(LearningCurve((20, 50, 100), nll, uncalibrated, 1000))


def differences(value, half, methods=("bayes", "ets", "bts", "hts", "ts", "none"), recommended="bayes"):
    """Return a display of differences, with intervals of some width."""
    ends = np.broadcast_to(half, len(value))
    estimates = {
        name: Estimate(one, one - end, one + end) for name, one, end in zip(methods, value, ends, strict=True)
    }
    return DifferencesDisplay(estimates, recommended)


def test_limits_include_values_near_the_rest():
    values = np.r_[np.linspace(0, 1, 200), 1.4, -0.4, 9.0, -9.0]
    margin = MARGIN * 1.8
    assert robust_limits(values, rare=0.01, reach=0.5) == pytest.approx((-0.4 - margin, 1.4 + margin))
    assert outside(np.array([0.0, 2.0, -1.0]), (1.4, -0.4)).tolist() == [False, True, True]


def test_a_third_of_the_values_may_be_left_out_and_an_interval_is_cut():
    values = np.array([0.0, 1.0, 2.0, 1.0, 1.5, 40.0, np.inf])
    half = np.array([0.1, 0.1, 30.0, 0.1, 0.1, 0.1, np.nan])
    margin = MARGIN * 2.1
    assert robust_limits(values, values - half, values + half) == pytest.approx((-0.1 - margin, 2 + margin))
    low, high = robust_limits(values, values - half, values + half, near=40.0)
    assert low < -28
    assert high > 40
    assert robust_limits(values, keep=[-3.0, 50.0])[0] < -3
    assert robust_limits(values, keep=[-3.0, 50.0])[1] > 50


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_method_without_a_number_does_not_matter(lost):
    value = np.array([0.0, lost, 0.2])
    chart = differences(value, 0.01, ("none", "ts", "hts"), "none").chart()
    assert chart.x.limits == pytest.approx((-0.01 - MARGIN * 0.22, 0.21 + MARGIN * 0.22))


def test_limits_of_equal_values_and_of_none_have_a_width():
    for values in (np.array([]), np.full(4, 2.0), np.array([np.nan])):
        low, high = robust_limits(values)
        assert low < high
    assert robust_limits(np.array([1.0, 1.0, 1.0, 9.0]))[1] > 9, "others that are the same hide nothing"


def test_one_row_of_tiny_entropy_does_not_stretch_the_axis_but_many_are_shown(rows, comparison):
    before = TemperatureDisplay.from_comparison(comparison)
    lowest = before.chart().x.limits[0]
    logits = rows.logits[600:].copy()
    logits[0] = [80.0, 0, 0, 0]
    cals = {"ts": comparison.results["ts"].calibrator}
    display = TemperatureDisplay.from_calibrators(cals, logits, rows.labels[600:])
    assert display.log_entropy[0] == -20
    assert display.chart().x.limits[0] == pytest.approx(lowest, abs=0.5)
    logits[:60] = [80.0, 0, 0, 0]
    many = TemperatureDisplay.from_calibrators({}, logits, rows.labels[600:])
    assert many.chart().x.limits[0] < -20


def test_a_method_with_extreme_temperatures_is_left_out_of_the_limits(comparison):
    display = TemperatureDisplay.from_comparison(comparison)
    usual = display.temperature["ts"]
    calm = replace(display, temperature={f"m{i}": usual for i in range(5)})
    wild = replace(
        display, temperature={**calm.temperature, "bts": usual * np.geomspace(1e-3, 1e3, len(usual))}
    )
    assert wild.chart().y.limits == pytest.approx(calm.chart().y.limits)


@pytest.mark.parametrize("diverged", [1e6, np.inf])
def test_one_diverged_draw_does_not_flatten_the_learning_curve(diverged):
    good = {"ts": np.full((3, 4), 0.5) + np.array([[0.05], [0.02], [0.0]]), "hts": np.full((3, 4), 0.52)}
    one = good["hts"].copy()
    one[0, 2] = diverged
    with np.errstate(invalid="ignore"):
        chart = curve_of({**good, "hts": one}).chart()
    assert chart.y.limits[1] < 1
    assert "Above the figure: HTS with 20 rows." in chart.caption
    assert "Above the figure" not in curve_of(good).chart().caption
    band = next(mark for mark in chart.marks if isinstance(mark, Band) and mark.method == "hts")
    assert np.isnan(band.high).tolist() == [True, False, False], "a band would cover the others"


def test_a_classifier_far_worse_than_its_calibrations_is_named_at_the_edge():
    display = curve_of({"ts": np.array([[0.52, 0.5], [0.5, 0.5], [0.49, 0.49]])}, uncalibrated=20.0)
    chart = display.chart()
    assert chart.y.limits[1] < 1
    assert any(isinstance(mark, Text) and "20.0000" in mark.words for mark in chart.marks)


def test_one_bad_method_does_not_compress_the_differences_and_is_written_at_the_edge():
    bad, fine = ([0.0, 0.01, far, 0.008, 0.01, 0.02] for far in (7.0, 0.03))
    chart = differences(bad, 0.001).chart()
    assert chart.x.limits[1] < 0.03
    assert [(mark.method, mark.words[:7]) for mark in chart.marks if isinstance(mark, Text)] == [
        ("bts", "7.0000 ")
    ]
    assert not any(isinstance(mark, Text) for mark in differences(fine, 0.001).chart().marks)
    uncertain = [0.001, 0.001, 0.001, 9.0, 0.001, 0.001]
    assert differences(bad, uncertain).chart().x.limits[0] > -0.01
    assert differences(fine, uncertain).chart().x.limits[1] < 0.04


def test_a_method_may_differ_by_a_factor_of_ten_from_the_best_temperatures(comparison):
    display = TemperatureDisplay.from_comparison(comparison)
    best, calm = display.optimum, display.temperature["ts"]
    for factor in (1e-3, 1e3):
        low, high = replace(display, temperature={"ts": factor * calm}).chart().y.limits
        assert low > best.min() / 20
        assert high < best.max() * 20


def test_the_line_is_the_geometric_mean_of_neighbouring_rows(comparison):
    display = TemperatureDisplay.from_comparison(comparison)
    values = np.where(np.arange(len(display.log_entropy)) % 2, 0.5, 8.0)
    chart = replace(display, temperature={"ts": values}).chart()
    (line,) = (mark for mark in chart.marks if isinstance(mark, Line))
    np.testing.assert_allclose(line.y, 2.0, rtol=0.1)


def test_the_recommended_method_is_inside_the_axis_of_differences():
    value = np.array([0.171, 0.164, 0.06, 0.164, 0.164, 0.164, 0.06, 0.164, 0.164, 0.164, 0.05, 0.0])
    methods = [f"method {i}" for i in range(10)] + ["bayes", "bayes-bias"]
    order = np.argsort(value, kind="stable")
    methods, value = [methods[i] for i in order], value[order]
    for recommended, at in (("bayes-bias", 0.0), ("method 0", 0.171)):
        chart = differences(value, 1e-3, methods, recommended).chart()
        assert chart.x.limits[0] < at < chart.x.limits[1]
        assert chart.bold == method_style(recommended).label
