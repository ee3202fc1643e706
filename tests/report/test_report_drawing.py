"""Axes and marks: numbers land where they belong, and ticks are few and round."""

import re

import numpy as np
import pytest
from markupsafe import Markup

from temperance.display.chart import Axis, Bars, Chart, Dots, Intervals, Line, tick_labels
from temperance.report.markup import element, table
from temperance.report.svg import Scale, draw_svg

UNIT = Axis("x", (0.0, 1.0))


def picture(*marks, x=UNIT, y=UNIT, **options):
    """Return a chart of some marks as SVG."""
    return draw_svg(Chart("title", "caption", x, y, marks, **options), "a")


@pytest.mark.parametrize("log", [False, True])
def test_the_ends_of_an_axis_are_drawn_at_its_ends(log):
    scale = Scale(Axis("", (0.5, 8.0), log), 100, 20)
    assert scale.place(0.5) == pytest.approx(100)
    assert scale.place(8.0) == pytest.approx(20)
    middle = 2.0 if log else 4.25
    assert scale.place(middle) == pytest.approx(60)


def test_values_far_outside_are_drawn_just_outside_the_axes():
    assert Scale(UNIT, 0, 100).place(np.array([-1e9, 1e9])).tolist() == [-200, 300]


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (0, 1, False),
        (0.4381, 0.4483, False),
        (-15.9, 0, False),
        (0.85, 3.6, True),
        (20, 5000, True),
        (1e-8, 1e8, True),
    ],
)
def test_ticks_are_few_round_and_within(low, high, log):
    ticks, labels = zip(*tick_labels(low, high, log=log), strict=True)
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-3 * abs(low) <= tick <= high + 1e-3 * abs(high) for tick in ticks)
    assert len(set(labels)) == len(labels)
    assert all(
        float(label.replace(",", "")) == pytest.approx(t, rel=1e-6)
        for label, t in zip(labels, ticks, strict=True)
    )


def test_a_line_breaks_where_a_number_is_missing():
    line = Line(np.arange(5.0), np.array([0, 1, np.nan, 1, 0]), method="ts")
    assert picture(line, x=Axis("x", (0.0, 4.0))).count("<polyline") == 2


def test_points_without_a_number_are_left_out_and_tips_are_escaped():
    dots = Dots(np.array([0.5, np.nan]), np.array([0.5, 0.5]), method="ts", tips=["a < b", ""])
    drawn = picture(dots)
    assert drawn.count("<circle") == 1
    assert "a &lt; b" in drawn


@pytest.mark.parametrize(("method", "shade"), [("ts", "dot"), ("", "ring dot")])
def test_an_interval_beyond_the_axes_is_cut_there_and_its_point_is_left_out(method, shade):
    value = np.array([0.5, 7.0])
    marks = Intervals(np.array([0.2, 0.8]), value, value - 0.2, value + 9, method=method)
    drawn = picture(marks)
    top = float(re.search(r"<clipPath.*?<rect .*?y=\"([0-9.]+)\"", drawn).group(1)) + 4
    assert re.findall(r'class="(?:ring )?dot"', drawn) == [f'class="{shade}"']
    (high,) = re.findall(r'class="whisker".*?y2="([0-9.]+)"', drawn)
    assert float(high) == pytest.approx(top, abs=0.1)


def test_bars_reach_from_0_to_their_heights():
    bars = Bars(np.array([0, 0.3, 0.6, 1]), np.array([10.0, 0.0, 5.0]), method="ts")
    drawn = picture(bars, y=Axis("y", (0.0, 10.0)))
    frame = re.search(r"<clipPath.*?<rect .*?y=\"([0-9.]+)\" .*?height=\"([0-9.]+)\"", drawn).groups()
    top, height = float(frame[0]) + 4, float(frame[1]) - 8
    places = re.findall(r"<rect class=\"bar\".*? y=\"([0-9.]+)\" height=\"([0-9.]+)\"", drawn)
    found = [tuple(map(float, place)) for place in places]
    wanted = [(top, height), (top + height / 2, height / 2)]
    np.testing.assert_allclose(found, wanted, atol=0.2, err_msg="an empty bar is not drawn")


def test_plain_text_is_escaped_and_markup_is_kept():
    assert element("p", "&", title='"<') == '<p title="&#34;&lt;">&amp;</p>'
    assert element("p", element("b", "<"), Markup("<br>")) == "<p><b>&lt;</b><br></p>"
    assert element("input", checked=True, disabled=False) == "<input checked>"
    assert "&lt;b&gt;" in table(["<b>"], [["<b>", "<b>"]], "<b>")
    assert "<b>" not in table(["<b>"], [["<b>", "<b>"]], "<b>")
