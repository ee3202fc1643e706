"""A figure looks the same on the page and in matplotlib: limits, ticks, labels, caption, points."""

import inspect
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from temperance import compare, display
from temperance.comparison import learning_curve
from temperance.data import simulate
from temperance.display.axes import plot_chart
from temperance.display.base import Display
from temperance.metrics import evaluate
from temperance.report.page import render_report
from temperance.report.svg import draw_svg

KINDS = {
    name: kind for name, kind in vars(display).items() if inspect.isclass(kind) and name.endswith("Display")
}
ON_PAGE = {
    "reliability": "ReliabilityDisplay",
    "differences": "DifferencesDisplay",
    "temperature": "TemperatureDisplay",
    "classes": "ClassTemperatureDisplay",
    "map": "MapDisplay",
    "labels": "LearningCurveDisplay",
}


@pytest.fixture(autouse=True)
def _tidy():
    before = mpl.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture(scope="module")
def comparison():
    val, test = (simulate(n, 4, random_state=seed) for n, seed in ((300, 3), (400, 8)))
    return compare(val.logits, val.labels, test.logits, test.labels, ["ts", "hts", "bayes"], draws=5)


@pytest.fixture(scope="module")
def curve(comparison):
    return learning_curve(comparison, draws=2)


@pytest.fixture(scope="module")
def displays(comparison, curve):
    learnt = ("TemperatureDisplay", "ClassTemperatureDisplay")  # the page has the method of the verdict
    shown = {
        name: kind.from_comparison(comparison, *([[comparison.verdict.tried]] if name in learnt else []))
        for name, kind in KINDS.items()
        if hasattr(kind, "from_comparison")
    }
    fewer_bins = KINDS["TemperatureDisplay"].from_comparison(comparison, [comparison.verdict.tried], bins=10)
    shown["TemperatureDisplay"] = fewer_bins
    gaps = evaluate(np.tile([0.6, 0.9], 200), np.arange(400) % 3 > 0, by=np.arange(400) % 4, draws=5)
    shown["GapsDisplay"] = KINDS["GapsDisplay"].from_evaluation(gaps)
    return {**shown, "LearningCurveDisplay": KINDS["LearningCurveDisplay"].from_curve(curve)}


@pytest.fixture(scope="module")
def page(comparison, curve):
    """Return the figures of the page by their name."""
    found = re.findall(
        r'<figure id="figure-([\w-]+)".*?</figure>',
        html := render_report(replace(comparison, learning_curve=curve)),
        re.DOTALL,
    )
    return {
        name: re.search(rf'<figure id="figure-{name}".*?</figure>', html, re.DOTALL).group(0)
        for name in found
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


def test_every_display_is_tested_for_one_layout(displays):
    assert set(displays) == set(KINDS)
    assert all(issubclass(kind, Display) and "plot" not in vars(kind) for kind in KINDS.values())


@pytest.mark.parametrize("name", KINDS)
def test_svg_and_matplotlib_have_the_same_limits_ticks_labels_and_caption(name, displays):
    chart = displays[name].chart()
    drawn, ax = Drawn(draw_svg(chart, "a")), displays[name].plot()
    assert_same_axes(drawn, ax)
    assert ax.get_title() == chart.title
    assert " ".join(ax.figure.get_supxlabel().split()) == drawn.caption == displays[name].caption


@pytest.mark.parametrize("name", ON_PAGE)
def test_the_page_has_the_plotted_figure(name, page, displays):
    chart = displays[ON_PAGE[name]].chart()
    drawn = Drawn(re.search(r"<svg.*</svg>", page[name], re.DOTALL).group(0))
    assert_same_axes(drawn, plot_chart(chart, pyplot.subplots()[1]))
    assert drawn.caption == chart.caption


@pytest.mark.parametrize("name", KINDS)
def test_a_display_is_computed_before_it_is_drawn(name, displays, monkeypatch):
    monkeypatch.setattr(
        "temperance.display.temperature.fit_single_temperature", lambda *a, **o: pytest.fail("fitted")
    )
    assert displays[name].chart().marks
