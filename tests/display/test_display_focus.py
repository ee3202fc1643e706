"""The methods in focus set the limits of an axis, and what says nothing is not drawn."""

from dataclasses import replace

import numpy as np
import pytest

from temperance.comparison import LearningCurve
from temperance.display import (
    ClassTemperatureDisplay,
    ConfidenceDisplay,
    DifferencesDisplay,
    LearningCurveDisplay,
    TemperatureDisplay,
)
from temperance.display.base import focused
from temperance.display.chart import Dots, Intervals, Line, Text


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


def curve_display():
    good, bad = np.array([[0.5], [0.45], [0.4]]), np.array([[0.9], [0.7], [0.6]])
    return LearningCurveDisplay.from_curve(LearningCurve((20, 50, 100), {"ts": good, "lts": bad}, 0.55, 900))


def test_a_learning_curve_out_of_focus_does_not_stretch_the_axis():
    assert curve_display().chart().y.limits[1] > 0.6
    chart = curve_display().chart({"ts"})
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
