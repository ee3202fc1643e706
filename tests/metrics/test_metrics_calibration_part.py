"""Intervals of the parts of a loss: those of likelihood ratios."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

from temperance import metrics
from temperance.metrics import recalibration
from temperance.metrics.decomposition import (
    FittedLosses,
    Recalibrations,
    fitted_losses,
    noncentral_interval,
    random_folds,
)
from temperance.metrics.intervals import mean_interval
from temperance.metrics.predictions import check_rows
from temperance.metrics.recalibration import Recalibration, Recalibrator


@pytest.mark.parametrize("observed", [1.5, 3.0, 200.0])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_ends_have_the_tails_of_a_noncentral_chi_squared_variable(observed, confidence):
    low, high = noncentral_interval(observed, 0.3, 0.1, confidence)
    assert stats.ncx2.cdf(observed / 0.1, 3, high / 0.1) == pytest.approx((1 - confidence) / 2, abs=1e-6)
    assert stats.ncx2.cdf(observed / 0.1, 3, low / 0.1) == pytest.approx((1 + confidence) / 2, abs=1e-6)


def test_noise_of_the_fit_alone_has_a_lower_end_of_0():
    assert noncentral_interval(0.02, 0.02, 0.004, 0.95)[0] == 0
    usual = noncentral_interval(0.02, 0.02, 0.004, 0.95)
    assert usual[1] > 0.01
    assert noncentral_interval(-0.001, 0.02, 0.004, 0.95) == usual


def test_many_rows_give_the_normal_interval():
    n_rows, gain = 1_000_000, 0.2
    low, high = noncentral_interval(gain, 5 / n_rows, 1 / (2 * n_rows), 0.95)
    half = 1.96 * np.sqrt(2 * gain / n_rows)
    assert (gain - low, high - gain) == pytest.approx((half, half), rel=0.03)


def problem(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    truth = softmax(2 * rng.normal(size=(n_rows, n_classes)), axis=1)
    labels = (truth.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
    return truth, np.minimum(labels, n_classes - 1)


def family(rows):
    return Recalibration(recalibration.log_probabilities(rows.probs, np.float64), rows.labels)


def test_effective_parameters_are_the_trace_that_theory_asks_for():
    rows = check_rows(*problem(400, 4))
    fitted = family(rows)
    model = fitted.fit(rows.weight, (Recalibrator(1.0, np.zeros(4)),) * 2)[1]
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    _, fisher = recalibration.bias_objective(fitted.rows, rows.weight)(theta).derivatives
    prior = np.diag([0.0, 1.0, 1.0, 1.0, 1.0])
    expected = np.trace(np.linalg.solve(400 * fisher, 400 * fisher - prior))
    found = recalibration.effective_parameters(fitted.precision(rows.weight, model))
    assert found == pytest.approx(expected, abs=0.3)


def test_few_rows_determine_few_parameters():
    identity = Recalibrator(1.0, np.zeros(20))
    found = []
    for n_rows in (40, 4000):
        rows = check_rows(*problem(n_rows, 20))
        precision = family(rows).precision(rows.weight, identity)
        found.append(recalibration.effective_parameters(precision))
    assert 8 < found[0] < 16
    assert found[1] == pytest.approx(20, abs=0.3)


def test_the_losses_after_a_fit_are_those_of_its_definition():
    truth, labels = problem(300, 3)
    probs = softmax(1.8 * np.log(truth), axis=1)
    rows = check_rows(probs, labels)
    after, _ = Recalibrations(rows).in_sample()
    model = family(rows).fit(rows.weight, (Recalibrator(1.0, np.zeros(3)),) * 2)[1]
    log_q = log_softmax(model.beta * np.log(probs) + model.bias, axis=1)
    np.testing.assert_allclose(after["nll"], -log_q[np.arange(300), labels], rtol=2e-2, atol=2e-3)
    np.testing.assert_allclose(
        after["brier"], ((np.exp(log_q) - np.eye(3)[labels]) ** 2).sum(axis=1), rtol=3e-2, atol=3e-3
    )


def test_likelihood_ratios_of_calibrated_rows_are_chi_squared():
    # The fit of K = 4 classes has 4 free parameters, and 2 N D a mean of 4.
    ratios, added = [], []
    for seed in range(40):
        rows = check_rows(*problem(200, 4, seed))
        after, parameters = Recalibrations(rows).in_sample()
        before = {"nll": rows.nll, "brier": rows.brier}
        losses = fitted_losses(before, after, before, rows.weight, parameters)
        ratios.append(400 * losses["nll"].gain)
        added.append(400 * losses["nll"].added)
    assert np.mean(added) == pytest.approx(4, abs=0.3)
    assert np.mean(ratios) == pytest.approx(4, abs=1.4)  # three standard errors


def test_a_single_row_has_no_interval():
    result = metrics.evaluate([[0.6, 0.4]], [0], draws=10)
    for name in ("nll_calibration", "brier_calibration", "nll_refinement"):
        assert np.isnan([result[name].low, result[name].high]).all(), name


def test_a_bias_of_one_class_of_many_is_inside_the_interval():
    # Out of fold no recalibrator is seen to help, so that the value is 0; the interval knows better.
    missed = 0
    for seed in range(8):
        truth, labels = problem(200, 20, seed)
        probs = softmax(np.log(truth) + np.eye(20)[0], axis=1)
        estimate = metrics.evaluate(probs, labels, draws=2)["nll_calibration"]
        divergence = (truth * np.log(truth / probs)).sum(axis=1).mean()
        missed += not estimate.low <= divergence <= estimate.high
    assert missed <= 2


def test_what_a_fit_adds_goes_from_refinement_to_calibration():
    rng = np.random.default_rng(1)
    before = {"nll": rng.exponential(size=100), "brier": rng.uniform(size=100)}
    after = {name: 0.8 * rows for name, rows in before.items()}
    out_of_fold = {"nll": after["nll"] + 0.06, "brier": after["brier"] + 0.02}
    losses = fitted_losses(before, after, out_of_fold, np.ones(100), 6.0)
    assert losses["nll"].added == pytest.approx(6 / 200)
    ratio = 1 / 3
    assert losses["brier"].added == pytest.approx(ratio * 6 / 200)
    moved, plain = losses["nll"].refinement(0.8, 0.95), mean_interval(after["nll"], np.ones(100), 0.95)
    assert (moved.low, moved.high) == pytest.approx((plain.low + 0.03, plain.high + 0.03))
    gain = 0.2 * before["nll"].mean()
    calibration = losses["nll"].calibration(0.0, 0.95)
    assert calibration.low == 0  # the value is inside
    assert gain - 0.03 < calibration.high < 2 * gain


def test_what_a_fit_adds_to_the_brier_score_is_seen_out_of_fold():
    # Labels of half of the rows are noisy: the fit gains less from the Brier score than from the likelihood,
    # and what it adds by chance is half of what it adds to the likelihood all the same.
    added, gains = [], []
    for seed in range(40):
        truth, _ = problem(300, 4, seed)
        rng = np.random.default_rng([seed, 1])
        noisy = np.where(rng.uniform(size=(300, 1)) < 0.5, 0.9 * truth + 0.1 / 4, truth)
        labels = np.minimum((noisy.cumsum(axis=1) < rng.uniform(size=(300, 1))).sum(axis=1), 3)
        rows = check_rows(truth, labels)
        recalibrations, before = Recalibrations(rows), {"nll": rows.nll, "brier": rows.brier}
        after, parameters = recalibrations.in_sample()
        out_of_fold = recalibrations.out_of_fold(random_folds(300, 5, rng))
        of_biases = {name: found[-1] for name, found in out_of_fold.items()}
        losses = fitted_losses(before, after, of_biases, rows.weight, parameters)
        added.append(losses["brier"].added / losses["nll"].added)
        gains.append(losses["brier"].gain / losses["nll"].gain)
    assert np.mean(added) == pytest.approx(0.5, abs=0.06)
    assert np.mean(gains) < 0.4


def test_a_shrunk_model_keeps_what_is_far_from_0_and_drops_noise():
    model, precision = Recalibrator(np.exp(0.5), np.array([0.1, -2.0, 0.0])), np.full(4, 25.0)
    found = recalibration.shrunk(model, precision)
    assert np.log(found.beta) == pytest.approx(0.5 * (1 - 0.04 / 0.25))
    np.testing.assert_allclose(found.bias, [0.0, -2.0 * (1 - 0.04 / 4), 0.0])


def test_far_from_0_the_interval_is_that_of_a_mean():
    gains = np.random.default_rng(0).normal(1.0, 0.5, size=400)
    rows = FittedLosses(2.0 + gains, np.full(400, 2.0), np.ones(400), added=1e-4)
    found = rows.calibration(gains.mean(), 0.95)
    width = 2 * 1.96 * gains.std() / 20
    assert found.high - found.low == pytest.approx(width, rel=0.03)
    assert (found.high + found.low) / 2 == pytest.approx(gains.mean(), abs=0.05 * width)


@pytest.mark.parametrize("lowest", [0.0, 1e-300])
def test_one_certain_row_that_is_wrong_does_not_spoil_the_parts(lowest):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 0.95, 200)
    p[:40] = 1.0
    labels = (rng.uniform(size=200) > p).astype(int)
    labels[0] = 1
    probs = np.column_stack([p, np.maximum(1 - p, lowest)])
    found = metrics.evaluate(probs, labels, draws=20, progress=False)
    assert found["nll_refinement"].value < np.log(2)
    assert found["brier_calibration"].high <= found["brier"].high
