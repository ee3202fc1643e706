import json
import pickle

import numpy as np
import pytest

from temperance import metrics
from temperance.metrics import bootstrap


@pytest.fixture(scope="module")
def task(simulate):
    return simulate(400, 4, sharpen=2.0)[:2]


@pytest.fixture(scope="module")
def result(task):
    return metrics.evaluate(*task, draws=200)


def test_values_are_those_of_the_single_functions(task, result):
    assert len(result) == 14
    for name, estimate in result.items():
        if name.endswith(("calibration", "refinement")):
            continue  # other folds
        assert estimate.value == pytest.approx(getattr(metrics, name)(*task), rel=1e-9), name


def test_values_with_weights_are_those_of_the_single_functions(task):
    weight = np.random.default_rng(0).uniform(size=400)
    result = metrics.evaluate(*task, sample_weight=weight, draws=2, bins=7)
    for name, estimate in result.items():
        options = {"bins": 7} if name in ("ece", "mce", "classwise_ece", "debiased_ece") else {}
        if not name.endswith(("calibration", "refinement")):
            value = getattr(metrics, name)(*task, sample_weight=weight, **options)
            assert estimate.value == pytest.approx(value, rel=1e-9), name


def test_the_parts_of_each_loss_add_up(result):
    for loss in ("nll", "brier"):
        parts = result[f"{loss}_calibration"].value + result[f"{loss}_refinement"].value
        assert parts == pytest.approx(result[loss].value, rel=1e-12)


def test_a_calibration_part_of_0_has_an_interval_that_allows_for_missed_error(simulate):
    # Slightly sharpened, and by chance no recalibrator does better out of fold.
    rows = simulate(300, 3, sharpen=1.1, seed=4)[:2]
    estimate = metrics.evaluate(*rows, draws=200)["nll_calibration"]
    assert estimate.value == estimate.low == 0
    assert 0 < estimate.high < 0.05


def test_every_interval_contains_its_value(result):
    for name, estimate in result.items():
        if name not in ("mce", "classwise_ece"):
            assert estimate.low <= estimate.value <= estimate.high, name


@pytest.mark.parametrize("name", ["mce", "classwise_ece"])
def test_the_worst_bin_and_all_classes_have_no_interval(result, name):
    assert np.isnan([result[name].low, result[name].high]).all()
    (line,) = (line for line in str(result).splitlines() if line.startswith(f"{name} "))
    assert line.split()[-2:] == ["-", "-"]


def test_one_seed_gives_the_same_bits_and_another_gives_others(task):
    first, again, other = (metrics.evaluate(*task, draws=50, random_state=seed) for seed in (0, 0, 1))
    assert first == again
    assert first["ece"].high != other["ece"].high


def test_the_size_of_blocks_does_not_change_the_draws(task, monkeypatch):
    whole = metrics.evaluate(*task, draws=50)
    monkeypatch.setattr(bootstrap, "_BLOCK_SIZE", 400 * 7)
    parts = metrics.evaluate(*task, draws=50)
    for name in whole:
        assert parts[name].low == pytest.approx(whole[name].low, abs=1e-6, nan_ok=True), name
        assert parts[name].high == pytest.approx(whole[name].high, abs=1e-6, nan_ok=True), name


def test_the_interval_of_a_mean_is_that_of_normal_theory(simulate):
    probs, labels, _ = simulate(2000, 3)
    estimate = metrics.evaluate(probs, labels, draws=1000, confidence=0.9)["accuracy"]
    half = 1.645 * np.sqrt(estimate.value * (1 - estimate.value) / 2000)
    assert estimate.high - estimate.value == pytest.approx(half, rel=0.1)
    assert estimate.value - estimate.low == pytest.approx(half, rel=0.1)


def test_rows_of_hardly_any_weight_do_not_narrow_an_interval(simulate):
    probs, labels, _ = simulate(1000, 3)
    weight = np.repeat([1.0, 1e-9], [100, 900])
    estimate = metrics.evaluate(probs, labels, sample_weight=weight, draws=500)["accuracy"]
    half = 1.96 * np.sqrt(estimate.value * (1 - estimate.value) / 100)
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.2)


def test_an_impossible_label_makes_the_loss_infinite_and_no_nan(task):
    probs = np.vstack([task[0], [[1.0, 0.0, 0.0, 0.0]]])
    estimate = metrics.evaluate(probs, np.append(task[1], 1), draws=100)["nll"]
    assert estimate.value == estimate.high == np.inf
    assert estimate.low < 10  # more than one in three resamples leave that row out


@pytest.mark.slow
@pytest.mark.parametrize("sharpen", [1.0, 2.0])
def test_intervals_cover_the_population_value(simulate, sharpen):
    names = ["accuracy", "nll", "ece", "smooth_ece"]
    population = simulate(200_000, 3, sharpen=sharpen, seed=99)[:2]
    truth = {name: getattr(metrics, name)(*population) for name in names}
    hits = dict.fromkeys(names, 0)
    for seed in range(30):
        result = metrics.evaluate(*simulate(300, 3, sharpen=sharpen, seed=seed)[:2], draws=100)
        for name in names:
            slack = 0.004 if name.endswith("ece") else 0.0  # the population's own finite-sample bias
            hits[name] += result[name].low - slack <= truth[name] <= result[name].high + slack
    # 30 trials at 95 %: fewer than 25 hits happen three times in a thousand.
    assert min(hits.values()) >= 25, hits


def test_a_percentile_interval_would_not_cover_a_calibrated_classifier(simulate):
    # Why the calibration errors have an interval of their own.
    probs, labels, _ = simulate(1000, 3)
    estimate = metrics.evaluate(probs, labels, draws=200)["ece"]
    assert estimate.low == 0
    assert estimate.value > 0.01


def test_the_evaluation_is_a_mapping_with_a_table_that_fits_80_columns(result):
    assert list(result)[:2] == ["accuracy", "nll"]
    assert "ece" in result
    lines = str(result).splitlines()
    assert lines[3 + len(result)] == ""
    assert lines[4 + len(result)].split()[-2:] == ["statistic", "p-value"]
    assert [line.split()[0] for line in lines[5 + len(result) :][: len(result.tests)]] == list(result.tests)
    assert max(map(len, lines)) <= 80
    assert f"{100 * result['ece'].value:.2f} %" in str(result)
    assert f"{result['nll'].value:.4f}" in str(result)


def test_the_evaluation_can_be_stored(result):
    assert json.loads(json.dumps(result.to_dict()))["nll"]["value"] == result["nll"].value
    assert repr(pickle.loads(pickle.dumps(result))) == repr(result)  # nan equals nothing


@pytest.mark.parametrize("n_rows", [1, 2])
def test_few_rows_are_not_an_error(n_rows):
    result = metrics.evaluate([[0.6, 0.4]] * n_rows, [0] * n_rows, draws=10)
    assert result["accuracy"].value == 1
