"""Every figure is drawn on the given axes or on new ones, is labelled, and changes nothing else."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from temperance import CALIBRATORS, InputError, display, metrics
from temperance.calibrators import method_style
from temperance.display.axes import draw_chart
from temperance.display.chart import Axis, Chart, Line

NAMES = display.__all__
GROUNDS = ["#ffffff", "#1b1f24"]


@pytest.mark.parametrize("name", NAMES)
def test_it_makes_a_new_figure_that_cuts_off_no_text_and_changes_no_setting(name, displays):
    before = dict(mpl.rcParams)
    ax = displays[name].plot()
    assert dict(mpl.rcParams) == before
    assert isinstance(ax, Axes)
    assert pyplot.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()
    box, (width, height) = ax.figure.get_tightbbox(), ax.figure.get_size_inches()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= width
    assert box.y1 <= height


@pytest.mark.parametrize("name", NAMES)
def test_it_draws_on_the_given_axes_with_a_title_labels_and_a_name_for_every_method(name, displays):
    shown, (figure, (ax, other)) = displays[name], pyplot.subplots(1, 2)
    assert shown.plot(ax) is ax
    assert figure.axes == [ax, other]
    assert pyplot.get_fignums() == [figure.number]
    assert not other.has_data()
    assert ax.get_title()
    assert ax.get_xlabel()
    if name == "GapsDisplay":
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["3", "2", "1", "0"]
        return
    if name == "DifferencesDisplay":
        words = [tick.get_text() for tick in ax.get_yticklabels()]
        assert words == [method_style(method).label for method in shown.differences]
        return
    assert ax.get_ylabel()
    words = " ".join(text.get_text() for text in ax.get_legend().get_texts())
    fields = ("temperature", "diagrams", "calibrators", "mean", "methods")
    for method in next(getattr(shown, field) for field in fields if hasattr(shown, field)):
        assert method_style(method).label in words


def test_a_single_reliability_diagram_has_the_shares_below(displays):
    top = displays["ReliabilityDisplay"].plot()
    assert top.figure.axes[0] is top
    assert top.figure.axes[1].get_ylabel() == "share of rows"


def test_the_recommended_method_is_in_bold(displays):
    ticks = displays["DifferencesDisplay"].plot().get_yticklabels()
    bold = [tick.get_text() for tick in ticks if tick.get_fontweight() == "bold"]
    assert bold == [method_style(displays["DifferencesDisplay"].recommended).label]


def test_lines_go_through_the_numbers(displays):
    ax = displays["ReliabilityDisplay"].plot()
    diagram = displays["ReliabilityDisplay"].diagrams["none"]
    x, y = next(line for line in ax.lines if line.get_label() == "Uncalibrated").get_data()
    held = diagram.count >= 5
    np.testing.assert_array_equal(x, diagram.confidence[held])
    np.testing.assert_array_equal(y, diagram.accuracy[held])


def linear_channels(colour):
    """Return the channels of a colour in sRGB, proportional to light."""
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    """Return the relative luminance as WCAG 2 defines it."""
    return float(linear_channels(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("name", ["none", *CALIBRATORS, "mine", "yours", "classifier", "other", "a"])
def test_every_colour_is_visible_on_a_light_and_a_dark_background(name, ground):
    dark, light = sorted([luminance(method_style(name).colour), luminance(ground)])
    assert (light + 0.05) / (dark + 0.05) >= 3


def lightness_and_hue(colour):
    """Return L*, a*, b* of a colour, with the white of D65."""
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175]]
    xyz = np.array([*to_xyz, [0.0193339, 0.119192, 0.9503041]]) @ linear_channels(colour)
    x, y, z = xyz / [0.95047, 1.0, 1.08883]
    return np.array([116 * np.cbrt(y) - 16, 500 * (np.cbrt(x) - np.cbrt(y)), 200 * (np.cbrt(y) - np.cbrt(z))])


def test_every_method_has_its_own_marker_and_no_two_have_colours_that_look_alike():
    styles = {name: method_style(name) for name in ("none", *CALIBRATORS)}
    assert len({style.marker for style in [*styles.values(), method_style("mine")]}) == len(styles) + 1
    places = {name: lightness_and_hue(style.colour) for name, style in styles.items()}
    near = [
        (one, two)
        for one, two in combinations(places, 2)
        if np.linalg.norm(places[one] - places[two]) < 20  # a just noticeable difference is 2.3
    ]
    assert near == []


def test_a_variant_has_another_line_style_than_its_method():
    assert {key: method_style(key).dash for key in ("ets", "ets-brier", "hts", "hts-sgd")} == {
        "ets": "-", "ets-brier": "-.", "hts": "-", "hts-sgd": ":",
    }  # fmt: skip
    ax = mpl.figure.Figure().subplots()
    marks = [Line(np.arange(3.0), np.arange(3.0), method=key) for key in ("ets", "ets-brier")]
    draw_chart(ax, Chart("", "", Axis("x", (0, 2)), Axis("y", (0, 2)), marks))
    assert [line.get_linestyle() for line in ax.lines] == ["-", "-."]


def test_other_names_have_all_of_the_other_colours_and_always_the_same():
    others = [method_style(f"name {i}") for i in range(50)]
    assert len({(style.colour, style.marker) for style in others}) == 3
    assert method_style("mine").colour == "#16868f"


def test_a_picture_of_gaps_needs_values():
    with pytest.raises(InputError, match=r"has no values of `by`"):
        display.GapsDisplay.from_evaluation(metrics.evaluate([0.6, 0.7], [1, 0], draws=10))
