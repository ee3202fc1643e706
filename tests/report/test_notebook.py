"""What a notebook shows of calibrators and comparisons."""

import re

import numpy as np
import pytest
from markupsafe import escape

from temperance import TemperatureScaling, compare
from temperance.comparison.table import cells as cells_of
from temperance.metrics import METRICS


def test_a_fitted_calibrator_shows_what_it_has_learnt(fitted, method):
    cal = fitted(method)
    html = cal._repr_html_()
    assert cal.summary().splitlines()[0] in html
    assert cal._repr_mimebundle_()["text/html"] == html
    assert cal._repr_mimebundle_()["text/plain"] == repr(cal)


def test_a_calibrator_that_is_not_fitted_says_so():
    assert "not fitted yet" in TemperatureScaling()._repr_html_()


@pytest.mark.parametrize("name", ["<b>", "a&b"])
def test_options_are_escaped(name, tmp_path):
    from temperance import BayesianTemperatureScaling

    assert f"prior='{name}'" not in BayesianTemperatureScaling(prior=name)._repr_html_()


@pytest.fixture(scope="module")
def shown(task):
    """Return what a notebook shows, by its name."""
    result = compare(task.logits, task.labels, methods=["ts", "hts"], draws=20)
    scores = result.results["ts"].scores
    return {"comparison": result, "calibrator": result.calibrator, "evaluation": scores}


@pytest.mark.parametrize("name", ["comparison", "calibrator", "evaluation"])
def test_notebook_output_is_complete_small_and_affects_nothing_else(name, shown):
    html = shown[name]._repr_html_()
    style = re.search("<style>(.*?)</style>", html, re.DOTALL).group(1)
    selectors = re.findall(r"(?:^|\})\s*([^{}]+)\{", style)
    assert selectors
    assert all(part.strip().startswith(".temperance-card") for s in selectors for part in s.split(","))
    assert html.startswith('<div class="temperance-card">')
    assert not re.search(r"<script|https?://|@import|\bon\w+=", html)
    assert len(html.encode()) < 20_000
    assert html.count("<div") == html.count("</div>")


def test_an_evaluation_shows_each_metric_with_its_interval(shown):
    scores = shown["evaluation"]
    html = scores._repr_html_()
    for name, estimate in scores.items():
        row = re.search(rf"<tr><th scope=\"row\">{METRICS[name].label}</th>(.*?)</tr>", html).group(1)
        assert f"<td>{scores.shown(name, estimate.value)}</td>" in row
        assert np.isnan(estimate.low) or scores.shown(name, estimate.low) in row
    assert str(scores).splitlines()[0] in html
    assert any(np.isnan(estimate.low) for estimate in scores.values())
    assert "- to -" not in html


def test_a_comparison_shows_its_table_and_the_verdict_as_the_page_does(shown):
    result = shown["comparison"]
    html = result._repr_html_()
    assert all(str(escape(sentence)) in html for sentence in result.verdict.sentences)
    assert f"Calibration: {result.verdict.outcome}" in html
    assert str(escape(result.why)) in html
    for cells in cells_of(result):
        assert all(f">{escape(cell)}<" in html for cell in cells)
