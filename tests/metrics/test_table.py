"""The table of metrics: what follows from a record, and that it describes what is computed."""

import dataclasses
import inspect

import numpy as np
import pytest

from temperance import compare, metrics
from temperance.data import simulate as simulate_task
from temperance.display import ScoresDisplay
from temperance.metrics import METRICS, Estimate
from temperance.report import notebook


@pytest.fixture(scope="module")
def result(simulate):
    return metrics.evaluate(*simulate(300, 4, sharpen=2.0)[:2], draws=50)


def public_function(name):
    return getattr(metrics, name, None)


@pytest.mark.parametrize("name", METRICS)
def test_a_value_lies_in_the_range_and_has_the_interval_that_the_record_states(result, name):
    low, high = METRICS[name].range
    assert low <= result[name].value <= high
    assert np.isnan(result[name].low) == (METRICS[name].interval == "none")


@pytest.mark.parametrize("name", [name for name in METRICS if public_function(name)])
def test_a_function_has_its_name_its_signature_and_all_its_parameters_in_the_docstring(name):
    function = public_function(name)
    assert function.__name__ == function.__qualname__ == name
    parameters = inspect.signature(function).parameters
    assert list(parameters)[:2] == ["probs", "labels"]
    sections = inspect.getdoc(function).split("\n\n")
    (described,) = (section for section in sections if section.startswith("Parameters\n----------\n"))
    heads = [line.split(" : ")[0] for line in described.splitlines()[2:] if not line.startswith(" ")]
    assert heads == list(parameters)


def test_only_the_parts_of_losses_have_no_function_of_their_own():
    without = {name for name in METRICS if public_function(name) is None}
    assert without == {
        f"{loss}_{part}" for loss in ("nll", "brier") for part in ("calibration", "refinement")
    }


def test_the_best_value_is_that_of_certain_and_right_predictions():
    found = metrics.evaluate(np.eye(3)[[0, 1, 2] * 20], [0, 1, 2] * 20, draws=20)
    for name, metric in METRICS.items():
        best = {"lowest": metric.range[0], "highest": metric.range[1], "zero": 0}[metric.best]
        assert found[name].value == pytest.approx(best, abs=1e-6), name


def test_a_new_record_is_shown_everywhere(monkeypatch):
    new = dataclasses.replace(
        METRICS["ece"],
        label="halved ECE",
        estimate=lambda given: Estimate(given.diagram.error / 2, np.nan, np.nan),
    )
    monkeypatch.setitem(METRICS, "halved_ece", new)
    task = simulate_task(300, 3)
    comparison = compare(task.logits, task.labels, methods=["ts"], draws=20, progress=False)
    scores = comparison.results["ts"].scores
    assert scores["halved_ece"].value == pytest.approx(scores["ece"].value / 2)
    shown = f"{50 * scores['ece'].value:.2f}"
    assert comparison.shown("ts")["halved ECE %"] == shown
    assert f"halved_ece{shown:>20} %" in str(scores)
    assert "halved ECE" in notebook.evaluation_html(scores)
    assert (
        ScoresDisplay.from_comparison(comparison, "halved_ece").chart().title == "halved ECE of each method"
    )
