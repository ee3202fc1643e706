"""A figure looks the same on the page and in matplotlib: limits, ticks, labels, caption, points."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from temperance import display
from temperance.report.page import render_report
from temperance.report.svg import draw_svg

ON_PAGE = {
    "reliability": "ReliabilityDisplay",
    "differences": "DifferencesDisplay",
    "temperature": "TemperatureDisplay",
}


class Drawn:
    """What can be read off an SVG: ticks with their places, the frame, labels, circles."""

    def __init__(self, svg):
        root = ET.fromstring(svg)
        self.caption = root.find("desc").text
        self.axes = [group for group in root if group.get("class") == "axes"][-1]
        box = next(self.axes.iter("rect")).attrib
        left, top, width, height = (float(box[key]) for key in ("x", "y", "width", "height"))
        self.frame = {"x": (left + 4, left + width - 4), "y": (top + height - 4, top + 4)}

    def texts(self, kind, axis):
        return [text for text in self.axes.iter("text") if text.get("class").startswith(f"{kind} {axis}")]

    def limits(self, axis, values, log):
        """Return the limits that the ticks' places imply, given the numbers at them."""
        lines = [line for line in self.axes.iter("line") if line.get("class") == "grid"]
        along = [line for line in lines if line.get(f"{axis}1") == line.get(f"{axis}2")]
        places = [float(line.get(f"{axis}1")) for line in along]
        values = np.log(values) if log else values
        slope, start = np.polyfit(places, values, 1)
        ends = start + slope * np.array(self.frame[axis])
        return np.exp(ends) if log else ends


def assert_same_axes(drawn, ax):
    for axis in ("x", "y"):
        values = getattr(ax, f"get_{axis}ticks")()
        words = [label.get_text() for label in getattr(ax, f"get_{axis}ticklabels")()]
        label = drawn.texts("label", axis)
        if label:  # the x axis of a figure with another below it is labelled there
            assert [text.text or "" for text in label] == [getattr(ax, f"get_{axis}label")()]
            assert [text.text for text in drawn.texts("tick", axis)] == words
        log = getattr(ax, f"get_{axis}scale")() == "log"
        found, wanted = drawn.limits(axis, values, log), getattr(ax, f"get_{axis}lim")()
        if log:
            found, wanted = np.log(found), np.log(wanted)
        np.testing.assert_allclose(
            found, wanted, atol=2e-3 * abs(wanted[1] - wanted[0])
        )  # places are rounded


@pytest.mark.parametrize("name", display.__all__)
def test_svg_and_matplotlib_have_the_same_limits_ticks_labels_and_caption(name, displays):
    chart = displays[name].chart()
    drawn, ax = Drawn(draw_svg(chart, "a")), displays[name].plot()
    assert_same_axes(drawn, ax)
    assert ax.get_title() == chart.title
    assert " ".join(ax.figure.get_supxlabel().split()) == drawn.caption == chart.caption


def test_the_page_has_the_same_figures(comparison, displays):
    html = render_report(comparison)
    for name, kind in ON_PAGE.items():
        assert draw_svg(displays[kind].chart(), f"picture-{name}") in html


@pytest.mark.parametrize("name", display.__all__)
def test_a_display_is_computed_before_it_is_drawn(name, displays, monkeypatch):
    monkeypatch.setattr(
        "temperance.display.temperature.fit_single_temperature", lambda *a, **o: pytest.fail("fitted")
    )
    assert displays[name].chart().marks
