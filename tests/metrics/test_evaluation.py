"""All metrics at once: values, intervals, seeds, and how they are shown."""

import json
import pickle

import numpy as np
import pytest

from temperance import compare, metrics
from temperance.data import simulate as simulate_task
from temperance.metrics import METRICS
from temperance.metrics.evaluation import Scorer
from temperance.metrics.predictions import Predictions, check_rows


def test_compare_and_evaluate_give_the_same_bits():
    task = simulate_task(600, 4, random_state=3)
    val, test = slice(0, 300), slice(300, 600)
    result = compare(task.logits[val], task.labels[val], task.logits[test], task.labels[test], ["ts"])
    probs = result.results["ts"].calibrator.predict_proba(task.logits[test].astype(np.float64))
    alone = metrics.evaluate(probs, task.labels[test])
    assert repr(alone) == repr(result.results["ts"].scores)
    assert alone.draws == 1000


def test_the_debiased_error_has_the_interval_of_the_same_number(simulate):
    for sharpen in (1.0, 1.3, 3.0):
        result = metrics.evaluate(*simulate(400, 4, sharpen=sharpen)[:2], draws=300)
        plain, debiased = result["ece"], result["debiased_ece"]
        assert debiased.value < plain.value
        assert debiased.high == plain.high
        assert debiased.low == min(plain.low, debiased.value)


@pytest.mark.parametrize("n_classes", [3, 20])
def test_pseudo_labels_are_wrong_and_as_frequent_as_the_roots_of_the_probabilities(n_classes, simulate):
    probs = simulate(4000, n_classes)[0]
    probs[:, 1] = 0.0  # never likely
    probs[0] = np.eye(n_classes)[0]  # certain
    rows = Predictions(probs, np.zeros(4000, int), np.random.default_rng(0).uniform(0.5, 2, 4000))
    wrong, roots = rows.pseudo_error, np.sqrt(probs)
    roots[np.arange(4000), rows.top] = 0
    sums = roots.sum(axis=1)
    np.testing.assert_allclose(wrong.weight, rows.weight * sums / (rows.weight @ sums), rtol=1e-9)
    likely = wrong.weight > 0
    assert (wrong.labels != rows.top)[likely].all()
    assert (roots[np.arange(4000), wrong.labels] > 0)[likely].all()
    expected = wrong.weight @ np.divide(roots, sums[:, None], out=np.zeros_like(roots), where=likely[:, None])
    np.testing.assert_allclose(np.bincount(wrong.labels, wrong.weight, n_classes), expected, atol=0.02)


def test_a_classifier_that_is_certain_and_right_may_be_wrong_next_time():
    found = metrics.evaluate(np.eye(3)[np.arange(60) % 3], np.arange(60) % 3, draws=50)
    assert found["overconfidence"].high > 0.03
    assert found["brier"].high > 0.05
    assert found["ece"].high > 0.03
    assert found["smooth_ece"].high > 0.03


@pytest.mark.parametrize("kind", ["", ", sharp"])
def test_intervals_of_accurate_classifiers_cover(kind, benchmark_script, monkeypatch):
    worlds, n = benchmark_script("coverage_worlds"), 40
    monkeypatch.setattr(worlds, "POPULATION", 20_000)

    truths, scorer = worlds.true_values(3, f"99.8 %{kind}"), Scorer(15, 0.95, 200, 0)
    covered = dict.fromkeys(truths, 0)
    for seed in range(n):
        rng = np.random.default_rng([seed, 5])
        truth, probs, _ = worlds.draw(100, 3, f"99.8 %{kind}", rng)
        found = scorer.evaluate(check_rows(probs, worlds.draw_labels(truth, rng)))
        for name in covered.keys() & found.keys():
            covered[name] += found[name].low - 1e-9 <= truths[name] <= found[name].high + 1e-9
    del covered["nll difference"]
    assert min(covered.values()) >= 0.9 * n, covered


class CountingArray(np.ndarray):
    """An array that counts how many numbers of it are read by ufuncs and other functions."""

    read = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        for one in inputs:
            if isinstance(one, CountingArray):
                CountingArray.read += one.size
        plain = [np.asarray(one) if isinstance(one, CountingArray) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **options)


def test_resamples_do_not_read_the_probabilities_again(simulate):
    probs, labels, _ = simulate(300, 50)
    found = []
    for draws in (10, 400):
        CountingArray.read = 0
        rows = Predictions(probs.view(CountingArray), labels, np.ones(300))
        metrics.evaluation.Scorer(15, 0.95, draws, 0).evaluate(rows)
        found.append(CountingArray.read / probs.size)
    assert found[0] == found[1] <= 9


def test_the_debiased_error_of_a_large_gap_with_little_noise_has_a_narrow_interval():
    probs = np.tile([[0.9, 0.1]], (4000, 1))
    labels = (np.arange(4000) % 10 >= 7).astype(int)  # 7 of 10 are right
    found = metrics.evaluate(probs, labels, draws=300)["debiased_ece"]
    assert found.value == pytest.approx(0.2, abs=1e-3)
    assert 0.18 < found.low < 0.195
    assert 0.205 < found.high < 0.22


@pytest.fixture(scope="module")
def task(simulate):
    return simulate(400, 4, sharpen=2.0)[:2]


@pytest.fixture(scope="module")
def result(task):
    return metrics.evaluate(*task, draws=200)


@pytest.mark.parametrize("weight", [None, np.random.default_rng(0).uniform(size=400)])
def test_values_are_those_of_the_single_functions(task, weight):
    result = metrics.evaluate(*task, sample_weight=weight, draws=2, bins=7)
    assert list(result) == list(METRICS)
    for name, estimate in result.items():
        options = {"bins": 7} if name in ("ece", "mce", "classwise_ece", "debiased_ece") else {}
        value = getattr(metrics, name)(*task, sample_weight=weight, **options)
        assert estimate.value == pytest.approx(value, rel=1e-9), name


def test_one_seed_gives_the_same_bits_and_another_gives_others(task):
    first, again, other = (metrics.evaluate(*task, draws=50, random_state=seed) for seed in (0, 0, 1))
    assert first == again
    assert first["ece"].high != other["ece"].high


def test_rows_of_hardly_any_weight_do_not_narrow_an_interval(simulate):
    probs, labels, _ = simulate(1000, 3)
    weight = np.repeat([1.0, 1e-9], [100, 900])
    estimate = metrics.evaluate(probs, labels, sample_weight=weight, confidence=0.9, draws=5)["accuracy"]
    half = 1.645 * np.sqrt(estimate.value * (1 - estimate.value) / 100)
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.1)


def test_an_impossible_label_makes_the_loss_infinite_and_no_nan(task):
    probs = np.vstack([task[0], [[1.0, 0.0, 0.0, 0.0]]])
    estimate = metrics.evaluate(probs, np.append(task[1], 1), draws=100)["nll"]
    assert estimate.value == estimate.high == np.inf
    assert estimate.low < 10  # more than one in three resamples leave that row out


def test_the_evaluation_is_a_mapping_with_a_table_that_fits_80_columns(result):
    assert list(result)[:2] == ["accuracy", "nll"]
    assert "ece" in result
    lines = str(result).splitlines()
    first = next(row for row, line in enumerate(lines) if line.startswith("accuracy "))
    assert lines[first + len(result)] == ""
    tests = lines[first + len(result) + 1 :]
    assert tests[0].split()[-2:] == ["statistic", "p-value"]
    assert [line.split()[0] for line in tests[1 : len(result.tests) + 1]] == list(result.tests)
    assert max(map(len, lines)) <= 80
    assert f"{100 * result['ece'].value:.2f}%" in str(result)
    assert f"{result['nll'].value:.4f}" in str(result)
    (without_interval,) = (line for line in lines if line.startswith("mce "))
    assert without_interval.split()[-2:] == ["-", "-"]


def test_the_evaluation_can_be_stored(result):
    assert json.loads(json.dumps(result.to_dict()))["nll"]["value"] == result["nll"].value
    assert repr(pickle.loads(pickle.dumps(result))) == repr(result)  # nan equals nothing


@pytest.mark.parametrize("n_rows", [1, 2])
def test_few_rows_are_not_an_error(n_rows):
    result = metrics.evaluate([[0.6, 0.4]] * n_rows, [0] * n_rows, draws=10)
    assert result["accuracy"].value == 1


def test_of_two_classes_the_mean_probability_and_the_base_rate_are_shown():
    probs, weight = np.array([0.1, 0.2, 0.9]), np.array([1.0, 1.0, 2.0])
    found = metrics.evaluate(probs, [0, 1, 1], sample_weight=weight, draws=1)
    assert (found.finding.mean, found.finding.rate) == (pytest.approx(2.1 / 4), 0.75)
    assert str(found).startswith("Too few rows to tell: P(class 1) 52.5% on average, 2 of 3 observed")
    three = metrics.evaluate(np.eye(3), [0, 1, 2], draws=1)
    assert "P(" not in str(three.finding)
