"""How a notebook shows calibrators, comparisons and evaluations.

Each output is self-contained: its styles affect nothing else. Translucent colours keep it readable in light
and dark themes, without a script that detects the theme.
"""

from __future__ import annotations

from math import isnan

from markupsafe import Markup

from temperance.calibrators import Calibrator
from temperance.comparison import Comparison
from temperance.comparison.table import cells
from temperance.metrics import METRICS, Evaluation
from temperance.report.markup import element, read_asset, table
from temperance.report.page import verdict_box


def comparison_html(comparison: Comparison) -> str:
    """Return the verdict and the table of methods."""
    verdict, (head, *rows) = comparison.verdict, cells(comparison)
    box = verdict_box(verdict, [one for one in verdict.sentences if one != verdict.advice])
    listed = table(head, rows, comparison.heading)
    return _card(box, listed, element("p", comparison.heading), element("p", comparison.why))


def calibrator_html(calibrator: Calibrator) -> str:
    """Return the calibrator's name and, if it is fitted, its summary."""
    name = element("b", repr(calibrator))
    if not hasattr(calibrator, "n_classes_"):
        return _card(element("p", name, ", not fitted yet"))
    return _card(element("p", name), element("pre", calibrator.summary()))


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the metrics with their intervals, and the tests of calibration."""
    heading, *_ = str(evaluation).splitlines()
    rows = []
    for name, estimate in evaluation.items():
        value, low, high = (evaluation.shown(name, x) for x in (estimate.value, estimate.low, estimate.high))
        interval = "" if isnan(estimate.low) else f"{low} to {high}"  # some metrics have no interval
        label = METRICS[name].label if name in METRICS else name.replace("_", " ")
        rows.append([label, value, interval])
    metrics = table(["metric", "value", "interval"], rows, "Metrics")
    tests = [[name.replace("_", " "), *cells] for name, *cells in evaluation.shown_tests()]
    found = [table(["test", "statistic", "p-value"], tests, "Tests of calibration")] if tests else []
    return _card(element("p", heading, class_="about"), metrics, *found)


def _card(*content: Markup) -> str:
    style = element("style", read_asset("notebook.css"))
    return str(element("div", style, *content, class_="temperance-card"))
