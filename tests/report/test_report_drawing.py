"""Axes and marks: numbers land where they belong, and ticks are few and round."""

import re

import numpy as np
import pytest

from temperance.report.markup import element, table, text
from temperance.report.scales import Scale
from temperance.report.svg import Plot


@pytest.mark.parametrize("log", [False, True])
def test_the_ends_of_an_axis_are_drawn_at_its_ends(log):
    scale = Scale(0.5, 8.0, 100, 20, log)
    assert scale.place(0.5) == pytest.approx(100)
    assert scale.place(8.0) == pytest.approx(20)
    middle = 2.0 if log else 4.25
    assert scale.place(middle) == pytest.approx(60)


def test_what_is_far_outside_stays_near_the_picture():
    scale = Scale(0, 1, 0, 100)
    assert scale.place(np.array([-1e9, 1e9])).tolist() == [-200, 300]


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
    scale = Scale(low, high, 0, 100, log)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-3 * abs(low) <= tick <= high + 1e-3 * abs(high) for tick in ticks)
    labels = [scale.label(tick) for tick in ticks]
    assert len(set(labels)) == len(labels)
    assert all(
        float(label.replace("\u202f", "")) == pytest.approx(t, rel=1e-6)
        for label, t in zip(labels, ticks, strict=True)
    )


def test_a_line_breaks_where_a_number_is_missing():
    plot = Plot((0, 4), (0, 1), ("x", "y"))
    plot.line(np.arange(5.0), np.array([0, 1, np.nan, 1, 0]), "red")
    assert plot.svg("a", "t", "d").count("<polyline") == 2


def test_points_without_a_number_are_left_out_and_methods_are_marked():
    plot = Plot((0, 1), (0, 1), ("x", "y"))
    plot.points(np.array([0.5, np.nan]), np.array([0.5, 0.5]), "red", ["a < b", ""], "ts")
    picture = plot.svg("a", "t", "d")
    assert picture.count("<circle") == 1
    assert '<g data-method="ts">' in picture
    assert "a &lt; b" in picture


def test_bars_reach_from_low_to_high():
    plot = Plot((0, 1), (0, 10), ("x", "y"), size=(164 + 16, 14 + 52 + 100))
    plot.bars(np.array([0, 0.5, 1]), np.array([0.0, 0.0]), np.array([10.0, 0.0]), "red")
    bars = re.findall(r"<rect class=\"bar\"[^>]*>", plot.svg("a", "t", "d"))
    assert len(bars) == 1, "an empty bar is not drawn"
    assert 'height="100"' in bars[0]


def test_markup_is_escaped():
    assert text('<a href="x">') == '&lt;a href="x"&gt;'
    assert element("p", text("&"), title='"<') == '<p title="&quot;&lt;">&amp;</p>'
    assert element("input", checked=True, disabled=False) == "<input checked>"
    assert "&lt;b&gt;" in table(["<b>"], [["<b>", "<b>"]], "<b>")
    assert "<b>" not in table(["<b>"], [["<b>", "<b>"]], "<b>")
