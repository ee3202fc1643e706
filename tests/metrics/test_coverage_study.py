"""The study of intervals: its truths, its store, its page, and a part of it as a test."""

import json

import numpy as np
import pytest

from temperance import metrics
from temperance.metrics.evaluation import Scorer


@pytest.fixture(scope="module")
def scripts(benchmark_script):
    return {
        name: benchmark_script(f"coverage_{name}")
        for name in ("worlds", "fits", "costs", "page", "of_intervals")
    }


def test_the_truth_of_a_metric_is_its_value_on_many_rows(scripts, monkeypatch):
    worlds = scripts["worlds"]
    monkeypatch.setattr(worlds, "POPULATION", 5000)
    for scenario, n_rows in (
        ("biased", 10_000),
        ("label noise", 20_000),
        ("wave", 20_000),
        ("subgroup", 20_000),
    ):
        truths = worlds.true_values(3, scenario)
        rng = np.random.default_rng(1)
        truth, probs, rival = worlds.draw(n_rows, 3, scenario, rng)
        labels = worlds.draw_labels(truth, rng)
        for name in ("accuracy", "nll", "brier", "aurc", "overconfidence"):
            assert getattr(metrics, name)(probs, labels) == pytest.approx(truths[name], abs=0.02), name
        at = np.arange(n_rows), labels
        gain = np.mean(np.log(rival[at]) - np.log(probs[at]))
        assert gain == pytest.approx(truths["nll difference"], abs=0.01)


def test_a_study_that_was_stopped_goes_on_where_it_was(scripts, tmp_path, monkeypatch):
    study = scripts["of_intervals"]
    monkeypatch.setattr(scripts["worlds"], "POPULATION", 2000)
    monkeypatch.setattr(scripts["fits"], "METHODS", ("ts",))
    monkeypatch.setattr(scripts["fits"], "SIZES", (50,))
    costs = scripts["costs"]
    monkeypatch.setattr(costs, "CELLS", costs.CELLS[:1])
    monkeypatch.setattr(study, "SIZES", (40,))
    monkeypatch.setattr(study, "CLASSES", (3,))
    monkeypatch.setattr(study, "SCENARIOS", ["calibrated"])
    monkeypatch.setattr(study, "AT_ONCE", 2)
    for folder, stops in (("whole", [3]), ("parts", [1, 3])):
        for stop in stops:
            study.Study(study.Store(tmp_path / folder)).run(stop)
    whole, parts = (sorted((tmp_path / folder).iterdir()) for folder in ("whole", "parts"))
    names = [path.name for path in whole]
    assert names[0] == "40-3-calibrated.json"
    assert names[1].startswith("costs-")
    assert names[2:] == ["truth-3-calibrated.json", "ts-50-20.json", "ts-50-4.json"]
    for one, other in zip(whole, parts, strict=True):
        for key, found in json.loads(one.read_text()).items():
            again = json.loads(other.read_text())[key]
            assert again == (pytest.approx(found, rel=1e-9) if isinstance(found, dict) else found), key
    assert json.loads(whole[0].read_text())["n"] == 3
    assert "| `ts` | 50 | 4 | T " in study.Study(study.Store(tmp_path / "whole")).tables()["fits"]


def test_fits_know_the_parameters_that_rows_were_drawn_with(scripts):
    for method in scripts["fits"].METHODS:
        off = scripts["fits"].deviations(method, 3000, 4, np.random.default_rng(0))
        assert np.abs(list(off.values())).max() < 4, method


def test_the_tables_list_what_is_outside_the_target(scripts):
    entry = {"n": 100, "above": {"ece": 2}, "below": {"ece": 3}}
    poor = {"n": 120, "above": {"ece": 12}, "below": {"ece": 6}}
    results = {(200, 2, "calibrated"): entry, (200, 2, "biased"): poor, (200, 2, "99 %"): entry}
    fits = {("ts", 200, 4): {"n": 100, "above": {"T": 1}, "below": {"T": 9}}}
    costs = {("costs", "rare", "calibrated", 200, 2): {"n": 100, "above": {"dear": 4}, "below": {"dear": 2}}}
    tables = scripts["page"].tables(results, fits, costs, ("ece",))
    assert tables["costs"].endswith("| rare | 200 | 2 | 94.0 to 94.0% |")
    assert "with 100 simulations per scenario" in tables["runs"]
    assert tables["metrics"].endswith("| ece | 85.0 to 95.0% |")
    assert tables["narrow"].splitlines()[2:] == ["| ece | biased | 200 | 2 | 85.0% |"]
    assert tables["fits"].endswith("| `ts` | 200 | 4 | T 90.0% |")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["calibrated", "overconfident", "biased", "heavy tails"])
def test_intervals_cover_in_simulations(scripts, scenario):
    study = scripts["of_intervals"]
    truths = scripts["worlds"].true_values(4, scenario)
    scorer = Scorer(15, 0.95, 500, 0)
    above, below, _ = study.misses(scorer, (1000, 4, scenario), truths, range(200))
    for name in study.NAMES:
        # Three standard errors of 200 simulations below 93 %.
        assert 1 - (above[name] + below[name]) / 200 >= 0.88, (name, above[name], below[name])
