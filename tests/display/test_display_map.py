"""The figure of a map of log-probabilities: its numbers, its band, and the error without a map."""

from dataclasses import replace

import numpy as np
import pytest

from temperance import InputError, MonotoneScaling, TemperatureScaling
from temperance.comparison import compare
from temperance.display import MapDisplay
from temperance.display.chart import Band, Dots, Line
from temperance.display.map import mapped
from temperance.report.page import render_report

SLOPES = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 0.1, 0.2, 3.0, 1.0])
ERRORS = np.array([0.1, 0.2, 0.05, 0.1, 0.3, 0.02, 0.1, 0.4, 0.5])


@pytest.fixture(scope="module")
def cal(rows):
    """Return a calibrator with a map that is known."""
    fitted = MonotoneScaling().fit(rows.logits, rows.labels)
    formula = replace(fitted.model_.formula, map_slopes=SLOPES)
    fitted.model_ = replace(fitted.model_, formula=formula, standard_errors={"map_slopes": ERRORS})
    return fitted


def test_the_map_gives_the_calibrated_probability_for_a_top_class_near_1(cal):
    before = np.geomspace(1e-6, 1e-4, 40)
    logits = np.zeros((40, 4))
    logits[:, 1] = cal.reference_ * np.log(before)
    logits[:, 2:] = -1e4
    log_p = cal.transform(logits)
    after = mapped(cal, before)
    np.testing.assert_allclose(np.exp(log_p[:, 1] - log_p[:, 0]), after, rtol=2e-3)


def test_the_band_is_two_standard_errors_of_the_slopes_on_each_side(cal):
    e = 2.0  # 0.1, 0.6 and 0.8 in the first segments, 0.5 in the fourth
    lengths = np.array([0.1, 0.6, 0.8, 0.5])
    middle, half = lengths @ SLOPES[:4], 2 * np.linalg.norm(lengths * ERRORS[:4])
    at = np.exp([-e])
    found = [mapped(cal, at, deviations)[0] for deviations in (-2, 0, 2)]
    np.testing.assert_allclose(found, np.exp([-middle - half, -middle, -middle + half]), rtol=1e-12)
    _, band, line, _ = MapDisplay.from_calibrator(cal).chart().marks
    assert line.x[[0, -1]].tolist() == [pytest.approx(1e-6), 1.0]
    assert line.y[-1] == 1.0
    assert (np.diff(line.y) > 0).all()
    np.testing.assert_array_equal(band.low, mapped(cal, line.x, -2))
    np.testing.assert_array_equal(band.high, mapped(cal, line.x, 2))


def test_the_chart_has_the_diagonal_and_a_band_line_and_knots_of_each_map(cal, comparison):
    display = MapDisplay({"mono": cal, "bayes": comparison.results["bayes"].calibrator})
    diagonal, *others = display.chart().marks
    np.testing.assert_array_equal(diagonal.x, diagonal.y)
    assert [(type(mark), mark.method) for mark in others] == [
        (kind, name) for name in ("mono", "bayes") for kind in (Band, Line, Dots)
    ]
    np.testing.assert_allclose(others[2].x, np.exp(-cal.map_knots_[:-1]))  # the last is beyond the axis
    assert others[1].label == f"Mono, from T0 = {cal.reference_:.3g}"


def test_the_caption_gives_the_mapped_value_of_a_small_probability_of_equal_maps_once(cal):
    value = mapped(cal, np.array([1e-3]))[0]
    caption = MapDisplay({"bayes": cal, "mono": cal}).chart().caption
    assert (
        f"probability of 0.001 at the best single temperature T0 becomes {value:.2g} with Bayes, Mono."
        in caption
    )


def test_a_calibrator_without_a_map_is_refused(rows):
    ts = TemperatureScaling().fit(rows.logits, rows.labels)
    with pytest.raises(InputError, match=r"must have a map.*; found ts\. Fit MonotoneScaling"):
        MapDisplay.from_calibrator(ts)


def test_a_comparison_shows_all_its_maps_and_the_page_has_a_section_only_for_some(comparison, rows):
    assert list(MapDisplay.from_comparison(comparison).calibrators) == ["bayes"]
    assert 'id="figure-map"' in render_report(comparison)
    for method in ("ts", "none"):
        with pytest.raises(InputError, match="must have a map"):
            MapDisplay.from_comparison(comparison, [method])
    without = compare(rows.logits, rows.labels, methods=["ts"], folds=2, draws=5)
    with pytest.raises(InputError, match=r"must have a map .*; found no method"):
        MapDisplay.from_comparison(without)
    assert 'id="figure-map"' not in render_report(without)
