"""The table of metrics: what follows from a record, and what the scores of rows are."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

from temperance import compare, metrics
from temperance.data import simulate as simulate_task
from temperance.errors import InputError
from temperance.metrics import METRICS
from temperance.metrics.intervals import Estimate
from temperance.metrics.predictions import check_rows, risk_curve

FUNCTIONS = {name: getattr(metrics, name) for name in METRICS}
BINNED = [name for name, function in FUNCTIONS.items() if "bins" in inspect.signature(function).parameters]


def test_the_influence_of_a_row_on_the_risk_curve_is_a_derivative(simulate):
    probs, labels, _ = simulate(60, 3)
    probs[:10] = probs[0]  # ties
    area, influence, if_wrong = risk_curve(check_rows(probs, labels))
    for row in (0, 5, 30, 59):
        weight = np.ones(60)
        weight[row] += 1e-6
        moved, *_ = risk_curve(check_rows(probs, labels, weight))
        assert influence[row] == pytest.approx(60 * (moved - area) / 1e-6, abs=1e-4)
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    rows = check_rows(probs, labels)
    np.testing.assert_allclose(if_wrong[rows.correct == 0], influence[rows.correct == 0])
    assert (if_wrong[rows.correct == 1] > influence[rows.correct == 1]).all()


def test_the_interval_of_the_risk_area_of_a_few_rows_ends_at_1():
    probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    area = metrics.evaluate(probs, [1, 1, 0, 0], draws=20)["aurc"]
    assert 0 <= area.low < area.value < area.high == 1


@pytest.fixture(scope="module")
def result(simulate):
    return metrics.evaluate(*simulate(300, 4, sharpen=2.0)[:2], draws=50)


@pytest.mark.parametrize("name", METRICS)
def test_a_value_lies_in_the_range_and_has_the_interval_that_the_record_states(result, name):
    low, high = METRICS[name].range
    assert low <= result[name].value <= high
    if METRICS[name].interval == "none":
        assert np.isnan([result[name].low, result[name].high]).all()
    else:
        assert result[name].low <= result[name].value <= result[name].high


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_its_name_its_signature_and_all_its_parameters_in_the_docstring(name):
    function = FUNCTIONS[name]
    assert function.__name__ == function.__qualname__ == name
    parameters = inspect.signature(function).parameters
    assert list(parameters)[:2] == ["probs", "labels"]
    sections = inspect.getdoc(function).split("\n\n")
    (described,) = (section for section in sections if section.startswith("Parameters\n----------\n"))
    heads = [line.split(" : ")[0] for line in described.splitlines()[2:] if not line.startswith(" ")]
    assert heads == list(parameters)


def test_the_best_value_is_that_of_certain_and_right_predictions():
    found = metrics.evaluate(np.eye(3)[[0, 1, 2] * 20], [0, 1, 2] * 20, draws=20)
    for name, metric in METRICS.items():
        best = {"lowest": metric.range[0], "highest": metric.range[1], "zero": 0}[metric.best]
        assert found[name].value == pytest.approx(best, abs=1e-6), name


def test_a_new_record_is_shown_everywhere(monkeypatch):
    new = dataclasses.replace(
        METRICS["ece"],
        label="halved ECE",
        estimate=lambda rows, diagram, level: Estimate(diagram.error / 2, np.nan, np.nan),
    )
    monkeypatch.setitem(METRICS, "halved_ece", new)
    task = simulate_task(300, 3)
    comparison = compare(task.logits, task.labels, methods=["ts"], draws=20, progress=False)
    scores = comparison.results["ts"].scores
    assert scores["halved_ece"].value == pytest.approx(scores["ece"].value / 2)
    shown = f"{50 * scores['ece'].value:.2f}"
    assert re.search(rf"^halved_ece +{shown}%", str(scores), re.MULTILINE)
    assert "halved ECE" in scores._repr_html_()


def test_one_dimension_is_the_probability_of_the_second_class():
    p = np.array([0.2, 0.9, 0.6])
    for metric in FUNCTIONS.values():
        assert metric(p, [0, 1, 0]) == metric(np.column_stack([1 - p, p]), [0, 1, 0])


@pytest.mark.parametrize("name", [*FUNCTIONS, "reliability", "evaluate"])
@pytest.mark.parametrize(
    ("probs", "labels", "weight"),
    [
        ([[2.0, -1.0]], [0], None),
        ([[0.5, 0.4]], [0], None),
        ([[np.nan, 0.5]], [0], None),
        (np.empty((0, 2)), [], None),
        ([[0.5, 0.5]], [2], None),
        ([[0.5, 0.5]], [0.5], None),
        ([[0.5, 0.5]], [0, 1], None),
        ([[0.5, 0.5]], [0], [-1.0]),
        ([[0.5, 0.5]], [0], [0.0]),
    ],
)
def test_bad_rows_are_input_errors(name, probs, labels, weight):
    with pytest.raises(InputError, match="must be"):
        getattr(metrics, name)(probs, labels, sample_weight=weight)


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {"bins": bins}) for name in [*BINNED, "reliability", "evaluate"] for bins in (0, 1.5, True)]
    + [(name, {"strategy": "quantile"}) for name in [*BINNED, "reliability"]]
    + [("reliability", {"level": 95})]
    + [("evaluate", {"draws": 0}), ("evaluate", {"confidence": 0.0}), ("evaluate", {"confidence": 1.0})],
)
def test_bad_options_are_input_errors_that_show_the_value(name, options):
    with pytest.raises(InputError, match=str(next(iter(options.values())))):
        getattr(metrics, name)([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]], [0, 2], **options)
