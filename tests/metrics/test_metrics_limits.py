"""Limits that are documented: levels, p-values in words, temperatures and classes of a recalibration."""

import functools

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from temperance import InputError
from temperance.core.logit_rows import LogitRows
from temperance.metrics import bootstrap, calibration_tests, cox, evaluate
from temperance.metrics.bootstrap import plausible_shapes
from temperance.metrics.calibration_tests import verdict
from temperance.metrics.evaluation import Scorer
from temperance.metrics.predictions import check_rows
from temperance.metrics.recalibration import Recalibrator, fit_temperature
from temperance.metrics.vocabulary import VocabularyRecalibration, open_recalibration


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (0.001, "p = 0.001: not calibrated."),
        (0.00105, "p = 0.001: not calibrated."),
        (0.00099, "p < 0.001: not calibrated."),
        (0.052, "p = 0.052: compatible with calibration."),
    ],
)
def test_a_p_value_in_words_has_three_digits_from_a_thousandth_on(p_value, words):
    assert verdict(p_value) == words


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_confidence_level_is_neither_0_nor_1(level):
    probs, labels = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0, 1])
    with pytest.raises(InputError, match=r"must be a number between 0 and 1, such as 0\.95; found"):
        evaluate(probs, labels, confidence=level)


@pytest.mark.parametrize(("kind", "beta"), [("argmax", 100.0), ("argmin", 0.01)])
def test_rows_that_are_all_right_or_all_wrong_are_recalibrated_up_to_a_hundredfold(kind, beta):
    logs = log_softmax(np.random.default_rng(0).normal(size=(50, 3)), axis=1) / 100
    rows = LogitRows(logs, getattr(np, kind)(logs, axis=1))
    assert fit_temperature(rows, np.ones(50)) == pytest.approx(beta, rel=1e-9)


def test_a_class_without_a_label_has_a_bias_if_it_was_predicted_for_a_quarter_of_a_row():
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.ones(12), size=30)).astype(np.float32)
    totals = np.array([9.0, 9.0, 0.25, 0.26, 0.2499, *[0.1] * 7])
    recalibration = open_recalibration(logs, rng.integers(0, 2, 30), totals)
    assert len(recalibration.start[0].bias) == 4


def test_a_temperature_for_a_vocabulary_has_no_biases():
    rng = np.random.default_rng(0)
    logs = rng.normal(scale=2, size=(60, 50)).astype(np.float32)
    logs -= logs.max(axis=1, keepdims=True)
    labels = rng.integers(0, 5, size=60)
    family = VocabularyRecalibration(logs, labels, np.arange(5))
    first = family.fit(np.ones(60), family.start)
    assert np.abs(first[1].bias).max() > 0.1
    scaled, _ = family.fit(np.ones(60), first)
    assert not scaled.bias.any()


def test_recalibrated_confident_rows_of_a_vocabulary_keep_the_sum_of_their_classes():
    rng = np.random.default_rng(1)
    logs = rng.normal(scale=8, size=(40, 30))
    logs = (logs - logs.max(axis=1, keepdims=True)).astype(np.float32)
    family = VocabularyRecalibration(logs, rng.integers(0, 5, size=40), np.arange(5))
    model = Recalibrator(1.2, np.linspace(-0.5, 0.5, 5))
    odds = 1.2 * logs.astype(np.float64)
    odds[:, :5] += model.bias
    probs = softmax(odds, axis=1)
    for k in (0, 4, 17):
        found = family.recalibrated(model, np.full(40, k))
        np.testing.assert_allclose(found, probs[:, k], rtol=1e-3, atol=1e-30)


def test_for_the_lower_end_a_residual_is_shrunk_by_the_variance_of_its_noise():
    noise = 0.1 * np.random.default_rng(2).normal(size=(3, 4000)).astype(np.float32)
    mean, fitted = np.array([0.5, 0.2, 0.02]), np.array([0.1, 0.0, 0.0])
    sparse, _ = plausible_shapes(mean, fitted, noise)
    shape = np.array([0.1 + 0.4 - 0.01 / 0.4, 0.2 - 0.01 / 0.2, 0.0])
    np.testing.assert_allclose(sparse[:, 0], shape / shape.sum(), atol=0.01)


@pytest.mark.parametrize("row", [[0.7, 0.3], [0.7, 0.2, 0.1]])  # the last has more classes than biases
def test_a_single_row_has_nothing_to_fit_a_recalibrator_to(row):
    found = evaluate([row], [0], draws=10, progress=False)
    assert found["nll_refinement"].value == pytest.approx(-np.log(0.7), rel=1e-6)
    assert found["nll_calibration"].value == pytest.approx(0.0, abs=1e-6)


def test_an_impossible_label_leaves_the_calibration_part_open():
    probs, labels = np.tile([[1.0, 0.0], [0.4, 0.6]], (20, 1)), np.tile([0, 1], 20)
    labels[0] = 1
    found = evaluate(probs, labels, draws=10, progress=False)["nll_calibration"]
    assert (found.low, found.high) == (0.0, np.inf)


def test_a_maximum_that_the_steps_do_not_reach_has_no_position(monkeypatch):
    solve = functools.partial(calibration_tests.fisher_scoring, max_iterations=0)
    monkeypatch.setattr(calibration_tests, "fisher_scoring", solve)
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 200)
    found = cox(np.column_stack([1 - p, p]), rng.uniform(size=200) < p)
    assert np.isnan(
        [found.slope.value, found.slope_error, found.intercept.value, found.intercept_error]
    ).all()
    assert found.statistic == 0


@pytest.mark.parametrize(("room", "kept"), [(50 * 20, True), (50 * 20 - 1, False)])
def test_as_many_factors_as_there_is_room_for_are_kept(monkeypatch, room, kept):
    monkeypatch.setattr(bootstrap, "_MAX_KEPT", room)
    drawn = bootstrap.Resamples(50, 20, 1)
    assert (next(drawn.blocks()) is next(drawn.blocks())) == kept


def test_random_states_give_resamples_of_their_own():
    rows = check_rows(np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0, 1]))
    seeds = set()
    for random_state in range(150):
        scorer = Scorer(15, 0.95, 1, random_state)
        scorer.evaluate(rows)
        seeds.add(scorer._resamples.seed)
    assert len(seeds) == 150
