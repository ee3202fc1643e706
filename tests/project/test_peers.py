"""The comparison with other libraries: its reference, its verdicts, and a run with the libraries at hand."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks" / "peers"

pytestmark = pytest.mark.skipif(not PEERS.is_dir(), reason="the benchmarks are not beside the tests")


@pytest.fixture(scope="module")
def hard(benchmark_script):
    return benchmark_script("hard_inputs").hard_inputs()


@pytest.fixture
def runner(benchmark_script, tmp_path):
    """Return a runner for which all libraries are in this environment."""
    return benchmark_script("run_peers").Runner(
        tmp_path / "results", lambda contender: Path(sys.executable), limit=120
    )


def slope(logits, labels, temperature):
    """Return the derivative of the NLL in 1 / T with 40 digits."""
    total = mp.mpf(0)
    with mp.workdps(40):
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
            weights = [mp.exp(value / mp.mpf(temperature)) for value in row]
            total += mp.fsum(map(mp.fmul, weights, row)) / mp.fsum(weights) - row[label]
    return total


def test_the_best_temperature_is_where_the_derivative_changes_its_sign(benchmark_script, hard):
    logits, labels = hard["float64"].logits[:60], hard["float64"].labels[:60]
    best = benchmark_script("optimum").best_temperature(logits, labels)
    assert slope(logits, labels, best * (1 + 1e-13)) < 0 < slope(logits, labels, best * (1 - 1e-13))


def test_a_guess_does_not_change_the_best_temperature(benchmark_script, hard):
    rows = hard["-inf masks a third of the rows"]
    best = benchmark_script("optimum").best_temperature
    assert best(rows.logits, rows.labels, 7.0) == pytest.approx(best(rows.logits, rows.labels), rel=1e-15)


def test_rows_that_are_all_right_have_no_best_temperature(benchmark_script, hard):
    rows = hard["all rows right"]
    with pytest.raises(ArithmeticError, match="no minimum"):
        benchmark_script("optimum").best_temperature(rows.logits, rows.labels)


def softmax_at(rows, temperature):
    weights = np.exp(rows.logits / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("off", "word"), [(1.0, "right"), (1.0005, "right"), (1.01, "wrong"), (math.inf, "wrong")]
)
def test_a_temperature_is_right_near_the_best_one(benchmark_script, hard, off, word):
    rows = hard["float64"]
    temperature = off * benchmark_script("optimum").best_temperature(rows.logits, rows.labels)
    answer = benchmark_script("verdicts").Answer(temperature, softmax_at(rows, temperature))
    assert benchmark_script("verdicts").verdict(rows, answer) == word


@pytest.mark.parametrize("damage", [lambda p: p * 1.01, lambda p: -p, lambda p: p * np.nan, lambda p: p[1:]])
def test_what_is_no_probability_is_wrong_whatever_is_said(benchmark_script, hard, damage):
    rows = hard["all rows right"]
    answer = benchmark_script("verdicts").Answer(
        2.0, damage(softmax_at(rows, 2.0)), said="All rows are classified correctly."
    )
    assert benchmark_script("verdicts").verdict(rows, answer) == "wrong"


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("NaN in one logit", {"error": "ValueError: Input contains NaN."}, "refused"),
        ("NaN in one logit", {"error": "ValueError: operands could not be broadcast"}, "unclear"),
        ("label 10 of 10 classes", {"error": "IndexError: Target 10 is out of bounds."}, "refused"),
        ("label 10 of 10 classes", {"error": "IndexError: index 10 is out of bounds for axis 1"}, "unclear"),
        ("all rows right", {"said": "All 500 rows are classified correctly."}, "right"),
        ("all rows right", {"said": "model is None"}, "silent"),
        ("all logits equal", {"said": "did not converge"}, "right"),
        ("label -1", {"said": "labels look odd"}, "wrong"),
    ],
)
def test_words_decide_where_nothing_can_be_right(benchmark_script, hard, name, given, word):
    rows = hard[name]
    answer = benchmark_script("verdicts").Answer(
        2.0, None if "error" in given else softmax_at(rows, 2.0), **given
    )
    assert benchmark_script("verdicts").verdict(rows, answer) == word


def test_the_adapters_at_hand_agree_with_the_best_temperature(benchmark_script, hard):
    rows = hard["float64"]
    for name in ("scipy_minimize", "scikit_learn", "temperance_estimators"):
        for fit in benchmark_script(f"adapters.{name}").METHODS.values():
            fitted = fit(rows.logits, rows.labels)
            assert fitted.predict_proba(rows.logits).shape == rows.logits.shape
            if fitted.temperature is not None:
                best = benchmark_script("optimum").best_temperature(rows.logits, rows.labels)
                assert fitted.temperature == pytest.approx(best, rel=1e-6)


def test_a_run_measures_records_and_resumes(benchmark_script, runner, tmp_path):
    plan = benchmark_script("plan")
    benchmark_script("grid").write_task((200, 10), tmp_path)
    (scipy,) = [each for each in plan.CONTENDERS if each.library == "scipy"]
    runner.once(scipy, "speed-200x10-1", ["speed", str(tmp_path / "200x10.npz")])
    (line,) = runner.lines(scipy, "speed-200x10-1")
    best = json.loads((tmp_path / "200x10.json").read_text())["temperature"]
    assert line["temperature"] == pytest.approx(best, rel=1e-4)
    assert 0 < line["exp"]["cpu"] < line["fit"]["cpu"] <= line["first_fit"]["cpu"]
    runner.once(scipy, "speed-200x10-1", ["speed", "no such file"])
    assert runner.lines(scipy, "speed-200x10-1") == [line]


def test_the_largest_task_is_fitted_twice_after_a_warm_up_with_all_classes(benchmark_script, tmp_path):
    rng, fits = np.random.default_rng(0), []
    labels = np.append(np.arange(300) % 3, [3, 4])  # two classes appear in the last rows only
    np.savez(tmp_path / "task.npz", logits=rng.normal(size=(302, 5)), labels=labels)

    def fit(logits, labels):
        fits.append(labels)
        return benchmark_script("adapters").Fitted(1.0, lambda logits: logits)

    found = benchmark_script("measurement").measure(fit, tmp_path / "task.npz", once=True)
    assert np.unique(fits[0]).tolist() == [0, 1, 2, 3, 4]
    assert [len(given) for given in fits] == [202, 302, 302]
    assert found["fits"] == 2


def test_a_crash_and_a_library_that_is_not_there_are_results(benchmark_script, runner, tmp_path):
    contender = benchmark_script("plan").Contender("none", "none", "no_such_adapter")
    assert not runner.probe(contender)
    assert "ModuleNotFoundError" in runner.lines(contender, "probe")[0]["failed"]
    runner.try_inputs(contender, ["float64"])
    assert [line["verdict"] for line in runner.lines(contender, "inputs")] == ["crashed"]
    runner.python_of = lambda contender: tmp_path / "python"
    runner.once(contender, "speed-200x10-1", ["speed"])
    assert runner.lines(contender, "speed-200x10-1")[0]["failed"].startswith("not installed")


def test_an_input_that_ended_the_process_is_left_out_and_one_that_was_stopped_is_tried(
    benchmark_script, runner
):
    (scipy,) = [each for each in benchmark_script("plan").CONTENDERS if each.library == "scipy"]
    before = [("float64", "started"), ("float64", "crashed"), ("label -1", "started")]
    out = runner.path(scipy, "inputs")
    out.parent.mkdir(parents=True)
    out.write_text("".join(json.dumps({"input": name, "verdict": word}) + "\n" for name, word in before))
    runner.try_inputs(scipy, ["float64", "label -1"])
    lines = [(line["input"], line["verdict"]) for line in runner.lines(scipy, "inputs")]
    assert lines == [*before, ("label -1", "started"), ("label -1", "wrong")]


def test_the_page_shows_the_tables_of_its_data(benchmark_script):
    page = ROOT / "docs" / "benchmarks"
    assert benchmark_script("peers_report").fill_page(page) == (page / "speed.md").read_text(encoding="utf-8")


def test_times_are_ratios_to_ours_and_one_of_a_wrong_temperature_has_a_star(benchmark_script):
    tables, plan = benchmark_script("peers_tables"), benchmark_script("peers.plan")
    common = {"rows": "200", "classes": "10", "threads": "1", "problem": "", "best_temperature": "2"}
    peers = plan.CONTENDERS[-5:-3]
    rows = [
        common | {"library": each.library, "method": each.method, "temperature": found, "fit_cpu": "3"}
        for each, found in zip(peers, ("2", "1"), strict=True)
    ]
    rows.append(common | {"library": "temperance", "method": "ts", "temperature": "2", "fit_cpu": "6"})
    lines = tables.ratios(tables.Speed(rows), "fit_cpu").splitlines()
    shown = {line.split(" | ")[0].strip("| "): line.split(" | ")[1] for line in lines[2:]}
    assert [shown[each.label] for each in peers] == ["0.5", "0.5\\*"]
