"""Limits of axes: neither one extreme value nor a method out of focus stretches them, and captions say so."""

from dataclasses import replace

import numpy as np
import pytest

from temperance.comparison import LearningCurve, compare
from temperance.data import simulate
from temperance.display import (
    ClassTemperatureDisplay,
    ConfidenceDisplay,
    DifferencesDisplay,
    LearningCurveDisplay,
    TemperatureDisplay,
)
from temperance.display.base import focused
from temperance.display.chart import MARGIN, Band, Dots, Intervals, Line, Text, outside, robust_limits


def curve_of(nll, uncalibrated=0.9):
    return LearningCurveDisplay.from_curve(LearningCurve((20, 50, 100), nll, uncalibrated, 1000))


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
    value = np.array([0.1, lost, 0.2])
    chart = DifferencesDisplay("none", ("none", "ts", "hts"), value, value - 0.01, value + 0.01).chart()
    assert chart.x.limits == pytest.approx((0.0 - MARGIN * 0.21, 0.21 + MARGIN * 0.21))


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
    assert "of the 400 rows drawn, 1 row has a log entropy of -20.0." in display.caption
    assert "Not shown" not in before.caption
    logits[:60] = [80.0, 0, 0, 0]
    many = TemperatureDisplay.from_calibrators({}, logits, rows.labels[600:])
    assert many.chart().x.limits[0] < -20
    assert "Not shown" not in many.caption


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


def test_one_bad_method_does_not_compress_the_differences_and_a_cut_interval_is_mentioned():
    bad, fine = ([0.02, 0.01, 0.008, far, 0.01, 0.0] for far in (7.0, 0.015))
    chart = differences(bad).chart()
    assert chart.x.limits[1] < 0.03
    assert "Beyond the right edge: BTS, +7.0000." in chart.caption
    assert any(isinstance(mark, Text) and mark.method == "bts" for mark in chart.marks)
    assert "Beyond" not in differences([0.02, 0.01, 0.008, 0.03, 0.01, 0.0]).caption
    uncertain = np.array([0.001] * 3 + [9.0] + [0.001] * 2)
    assert differences(bad, uncertain).chart().x.limits[0] > -0.01
    assert differences(fine, uncertain).chart().x.limits[1] < 0.03
    assert "Intervals that reach beyond an edge are cut there." in differences(fine, uncertain).caption


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


def test_bands_are_inside_the_figure_or_reported_as_cut():
    calm = np.array([[0.5, 0.6], [0.45, 0.5], [0.4, 0.42]])
    wide = curve_of({"ts": calm, "lts": np.array([[0.1, 1.1], [0.5, 0.52], [0.45, 0.46]])})
    narrow = curve_of({"ts": calm})
    low, high = narrow.chart().y.limits
    assert low < narrow.low["ts"].min() < narrow.high["ts"].max() < high
    assert "cut" not in narrow.caption
    assert "Bands that reach beyond an edge are cut there." in wide.caption


def test_without_a_focus_or_with_none_in_it_all_methods_count():
    values = {"ts": np.ones(2), "hts": np.zeros(2)}
    assert list(focused(values, None)) == list(focused(values, {"bts"})) == ["ts", "hts"]
    assert list(focused(values, {"hts", "bts"})) == ["hts"]


@pytest.mark.parametrize("kind", [TemperatureDisplay, ClassTemperatureDisplay])
def test_temperatures_out_of_focus_do_not_stretch_the_axis(kind, comparison):
    display = kind.from_comparison(comparison)
    field = "temperature" if kind is TemperatureDisplay else "mean"
    calm = getattr(display, field)["ts"]
    wild = replace(display, **{field: {"ts": calm, "hts": 5 * calm}})

    def ends(chart):
        return (chart.y if kind is TemperatureDisplay else chart.x).limits

    assert ends(wild.chart())[1] > 1.2 * ends(wild.chart({"ts"}))[1]
    assert ends(wild.chart({"ts"})) == ends(replace(display, **{field: {"ts": calm}}).chart())
    assert "Partly beyond the edges: HTS." in wild.chart({"ts"}).caption


def test_a_method_may_differ_by_a_factor_of_ten_from_the_best_temperatures(comparison):
    display = TemperatureDisplay.from_comparison(comparison)
    best, calm = display.optimum[display.identified], display.temperature["ts"]
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


@pytest.mark.parametrize("kind", [TemperatureDisplay, ClassTemperatureDisplay])
def test_a_temperature_after_a_map_is_not_expected_to_follow_the_best_ones(kind, comparison):
    display = kind.from_comparison(comparison)
    assert display.mapped == ("bayes",)
    assert "so dots need not follow the circles: Bayes." in display.caption
    assert "after a map" not in replace(display, mapped=()).caption


def test_a_learning_curve_out_of_focus_does_not_stretch_the_axis():
    good, bad = np.array([[0.5], [0.45], [0.4]]), np.array([[0.9], [0.7], [0.6]])
    display = curve_of({"ts": good, "lts": bad}, uncalibrated=0.55)
    assert display.chart().y.limits[1] > 0.6
    chart = display.chart({"ts"})
    assert chart.y.limits[1] < 0.6
    assert "Above the figure: LTS with up to 100 rows." in chart.caption


def test_confidences_out_of_focus_are_cut_and_their_height_is_written():
    edges = np.linspace(0, 1, 6)
    calm, wild = np.array([0.0, 0.1, 0.1, 0.15, 0.15]), np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    sides = {"ts": calm, "lts": wild}
    display = ConfidenceDisplay(
        edges, sides, sides, dict.fromkeys(sides, 0.5), dict.fromkeys(sides, 0.5), 1e6
    )
    assert display.chart(["lts"]).y.limits[0] < -0.5
    chart = display.chart(["lts"], {"ts"})
    assert chart.y.limits[0] > -0.2
    words = [mark.words for mark in chart.marks if isinstance(mark, Text)]
    assert [text[-1] for text in words] == ["\N{UPWARDS ARROW}", "\N{DOWNWARDS ARROW}"]
    assert all(text.startswith("50.0 % of rows at 0.80 to 1.00") for text in words)


def test_the_recommended_method_is_inside_the_axis_of_differences():
    value = np.array([0.171, 0.164, 0.06, 0.164, 0.164, 0.164, 0.06, 0.164, 0.164, 0.164, 0.05, 0.0])
    methods = ("none", "ts", "lts", "hts", "pts", "bts", "hnlts", "ets", "mono", "pts-ece", "bayes")
    methods += ("bayes-bias",)
    chart = DifferencesDisplay("bayes-bias", methods, value, value - 1e-3, value + 1e-3).chart()
    assert chart.x.limits[0] < 0 < chart.x.limits[1]
    assert "Beyond" not in chart.caption


def classes(identified, n_classes=6, n_large=4):
    """Return a display of four classes, of which some are identified."""
    optimum = np.array([1.0, 1.5, 2.0, 2.5])
    low, high = np.where(identified, optimum / 1.2, 1e-6), np.where(identified, optimum * 1.2, 1e6)
    mean = {"ts": np.full(4, 1.4), "hts": optimum, "bts": optimum + 0.1}
    index, count = np.arange(4), np.full(4, 30)
    return ClassTemperatureDisplay(index, count, optimum, low, high, mean, 1.4, n_classes, n_large=n_large)


def test_classes_that_are_not_identified_are_not_drawn():
    chart = classes([True, False, True, True]).chart()
    assert [words for _, words in chart.y.tick_labels()] == ["0", "2", "3"]
    assert chart.y.label == "true class (3 of 6)"
    (best,) = (mark for mark in chart.marks if isinstance(mark, Intervals))
    np.testing.assert_array_equal(best.value, [1.0, 2.0, 2.5])
    assert "Not identified, and not drawn: 1 of 4 classes." in chart.caption
    nothing = classes([False] * 4).chart()
    words = [mark.words for mark in nothing.marks if isinstance(mark, Text)]
    assert words == ["no class has an identified best temperature"]


def test_the_caption_says_why_classes_are_left_out():
    every = [True] * 4
    assert "4 of 6 classes are shown: the others have fewer than 10 rows." in classes(every).caption
    many = classes(every, 100, 90).caption
    assert "4 of 100 classes are shown: of those with at least 10 rows, the ones that differ most" in many
    assert "shown" not in classes(every, 4).caption


def test_methods_in_focus_are_drawn_far_from_each_other():
    dots = [mark for mark in classes([True] * 4).chart({"ts", "hts", "bts"}).marks if isinstance(mark, Dots)]
    assert [mark.method for mark in dots] == ["hts", "bts"]
    assert dots[1].y[0] - dots[0].y[0] == pytest.approx(0.6)


def test_of_many_classes_identified_ones_are_preferred(comparison):
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(8), 40)
    logits = rng.normal(size=(320, 8)) + 2 * np.eye(8)[labels]
    always_right = labels < 3
    logits[always_right] = 9 * np.eye(8)[labels[always_right]]
    shown = ClassTemperatureDisplay.from_calibrators({}, logits, labels, most=4)
    assert shown.identified.all()
    assert set(shown.classes) <= set(range(3, 8))
    assert shown.n_large == 8
