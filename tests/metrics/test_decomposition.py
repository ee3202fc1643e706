"""The two parts of a loss: recalibrators, divergences, and the intervals of likelihood ratios."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

from temperance import metrics
from temperance.core.logit_rows import LogitRows
from temperance.metrics import evaluate, recalibration
from temperance.metrics.decomposition import (
    added_by_fit,
    calibration_interval,
    noncentral_interval,
    out_of_fold,
    part_estimates,
)
from temperance.metrics.intervals import mean_interval
from temperance.metrics.predictions import check_rows
from temperance.metrics.recalibration import Recalibration, Recalibrator, fit_temperature


@pytest.mark.parametrize("n_classes", [3, 30])
def test_the_recalibrated_confidence_is_that_of_the_shrunk_model(simulate, n_classes):
    probs, labels, _ = simulate(300, n_classes, sharpen=2.0)
    rows = check_rows(probs, labels % 3, np.random.default_rng(3).uniform(1, 2, 300))
    family = Recalibration(rows)
    _, model = family.fit(rows.weight, family.start)
    precision = family.precision(rows.weight, model)
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    with np.errstate(divide="ignore"):  # with 30 classes, those without labels have no bias
        log_temperature, *bias = theta * np.maximum(1 - 1 / (precision * theta**2), 0)
    q = softmax(np.exp(-log_temperature) * np.log(np.asarray(probs, np.float64)) + bias, axis=1)
    _, found = part_estimates(rows, np.arange(300) % 5, 0.95)
    np.testing.assert_allclose(found, q[np.arange(300), rows.top], atol=1e-6)
    assert np.abs(found - rows.confidence).max() > 0.01


def divergence(truth, probs):
    """Return the mean Kullback-Leibler divergence of `probs` from `truth`."""
    return float((truth * np.log(truth / probs)).sum(axis=1).mean())


def test_a_calibrated_classifier_has_no_calibration_part(simulate):
    probs, labels, _ = simulate(5000, 5)
    assert metrics.decompose(probs, labels).calibration < 1e-3
    assert metrics.decompose(probs, labels, loss="brier").calibration < 1e-3


def test_the_parts_of_sharpened_probabilities_are_their_divergence_and_the_loss_of_the_truth(simulate):
    probs, labels, truth = simulate(10_000, 5, sharpen=2.0)
    squares = ((truth - probs) ** 2).sum(axis=1).mean()
    for loss, distance, tolerance in (("nll", divergence(truth, probs), 0.05), ("brier", squares, 0.1)):
        parts = metrics.decompose(probs, labels, loss=loss)
        assert parts.calibration == pytest.approx(distance, rel=tolerance)
        assert parts.refinement == pytest.approx(getattr(metrics, loss)(truth, labels), rel=1e-3)


def test_one_seed_gives_one_answer_and_another_seed_another(simulate):
    probs, labels, _ = simulate(300, 3, sharpen=2.0)
    first, again, other = (metrics.decompose(probs, labels, random_state=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_equal_weights_change_nothing_and_weight_zero_removes_a_row(simulate):
    probs, labels, _ = simulate(300, 3, sharpen=2.0)
    weight = np.ones(300)
    assert metrics.decompose(probs, labels, sample_weight=weight) == metrics.decompose(probs, labels)
    weight[250:] = 0
    assert metrics.decompose(probs, labels, sample_weight=weight) == metrics.decompose(
        probs[:250], labels[:250]
    )


def test_zero_probabilities_leave_a_finite_refinement():
    probs = np.array([[1.0, 0.0], [0.0, 1.0]] * 20)
    labels = np.array([0, 1] * 19 + [1, 0])
    parts = metrics.decompose(probs, labels)
    assert parts.total == parts.calibration == np.inf
    assert 0 < parts.refinement < np.log(2)


def test_rows_of_float16_and_float32_give_the_parts_of_float64(simulate):
    probs, labels, _ = simulate(500, 4, sharpen=2.0)
    exact = metrics.decompose(probs, labels)
    assert metrics.decompose(probs.astype(np.float32), labels).refinement == pytest.approx(
        exact.refinement, rel=1e-5
    )
    assert metrics.decompose(probs.astype(np.float16), labels).refinement == pytest.approx(
        exact.refinement, rel=1e-2
    )


def test_the_fits_reach_stationary_points(simulate):
    given = check_rows(*simulate(300, 4, sharpen=2.0)[:2], np.random.default_rng(0).uniform(0.5, 2, 300))
    rows, weight = Recalibration(given).rows, given.weight
    beta = fit_temperature(rows, weight)
    model = recalibration.fit_bias(rows, weight, Recalibrator(beta, np.zeros(4)))
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    gradient, fisher = recalibration.bias_objective(rows, weight)(theta)[1:]
    assert np.abs(gradient / np.sqrt(fisher.diagonal() / weight.sum())).max() < 0.05


def test_a_temperature_far_from_one_is_found(simulate):
    rows = Recalibration(check_rows(*simulate(3000, 4, sharpen=0.05)[:2])).rows
    assert fit_temperature(rows, np.ones(3000)) == pytest.approx(20, rel=0.1)


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


def losses_of_fit(rows):
    """Return the losses of a temperature with biases, fitted to the rows, and its effective parameters."""
    fitted, weight = Recalibration(rows), rows.weight
    _, model = fitted.fit(weight, fitted.start)
    losses = fitted.losses([model], np.zeros(len(weight), int))
    parameters = recalibration.effective_parameters(fitted.precision(weight, model))
    return dict(zip(("nll", "brier"), losses, strict=True)), parameters


def test_effective_parameters_are_the_trace_that_theory_asks_for(simulate):
    rows = check_rows(*simulate(400, 4)[:2])
    fitted = Recalibration(rows)
    model = fitted.fit(rows.weight, (Recalibrator(1.0, np.zeros(4)),) * 2)[1]
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    _, fisher = recalibration.bias_objective(fitted.rows, rows.weight)(theta)[1:]
    prior = np.diag([0.0, 1.0, 1.0, 1.0, 1.0])
    expected = np.trace(np.linalg.solve(400 * fisher, 400 * fisher - prior))
    found = recalibration.effective_parameters(fitted.precision(rows.weight, model))
    assert found == pytest.approx(expected, abs=0.3)


def test_few_rows_determine_few_parameters(simulate):
    identity = Recalibrator(1.0, np.zeros(20))
    found = []
    for n_rows in (40, 4000):
        rows = check_rows(*simulate(n_rows, 20)[:2])
        precision = Recalibration(rows).precision(rows.weight, identity)
        found.append(recalibration.effective_parameters(precision))
    assert 8 < found[0] < 16
    assert found[1] == pytest.approx(20, abs=0.3)


def test_likelihood_ratios_of_calibrated_rows_are_chi_squared(simulate):
    # The fit of K = 4 classes has 4 free parameters, and 2 N D a mean of 4.
    ratios, parameters = [], []
    for seed in range(40):
        rows = check_rows(*simulate(200, 4, seed=seed)[:2])
        after, n_parameters = losses_of_fit(rows)
        ratios.append(400 * np.mean(rows.nll - after["nll"]))
        parameters.append(n_parameters)
    assert np.mean(parameters) == pytest.approx(4, abs=0.3)
    assert np.mean(ratios) == pytest.approx(4, abs=1.4)  # three standard errors


def test_a_bias_of_one_class_of_many_is_inside_the_interval(simulate):
    # Out of fold no recalibrator is seen to help, so that the value is 0; the interval knows better.
    missed = 0
    for seed in range(8):
        truth, labels, _ = simulate(200, 20, seed=seed)
        probs = softmax(np.log(truth) + np.eye(20)[0], axis=1)
        estimate = metrics.evaluate(probs, labels, draws=2)["nll_calibration"]
        missed += not estimate.low <= divergence(truth, probs) <= estimate.high
    assert missed <= 2


def test_the_refinement_part_ends_above_the_loss_after_a_fit_by_what_the_fit_took_from_it(simulate):
    rows = check_rows(*simulate(400, 4, sharpen=2.0)[:2])
    (after, parameters), plain = losses_of_fit(rows), {}
    for loss in ("nll", "brier"):
        plain[loss] = mean_interval(after[loss], rows.weight, 0.95)
    found, _ = part_estimates(rows, np.arange(400) % 5, 0.95)
    moved = found["nll_refinement"]
    # The pseudo-error moves the ends a little further.
    assert (moved.low, moved.high) == pytest.approx(
        (plain["nll"].low, plain["nll"].high + parameters / 800), rel=0.02
    )
    assert moved.low < plain["nll"].low
    assert moved.high > plain["nll"].high + parameters / 800
    assert plain["brier"].high < found["brier_refinement"].high < plain["brier"].high + parameters / 800


def test_what_a_fit_adds_is_inside_the_interval_of_the_calibration_part():
    rng = np.random.default_rng(1)
    before = {"nll": rng.exponential(size=100), "brier": rng.uniform(size=100)}
    after = {name: 0.8 * rows for name, rows in before.items()}
    out_of_fold = {"nll": after["nll"] + 0.06, "brier": after["brier"] + 0.02}
    added = added_by_fit(after, out_of_fold, np.ones(100), 6.0)
    assert added == pytest.approx({"nll": 6 / 200, "brier": 1 / 3 * 6 / 200})
    gain = 0.2 * before["nll"].mean()
    gains = before["nll"] - after["nll"]
    calibration = calibration_interval(0.0, gains, None, np.ones(100), 0.03, 0.95)
    assert calibration.low == 0  # the value is inside
    assert gain - 0.03 < calibration.high < 2 * gain


def test_what_a_fit_adds_to_the_brier_score_is_seen_out_of_fold(simulate):
    # Labels of half of the rows are noisy: the fit gains less from the Brier score than from the likelihood,
    # and what it adds by chance is half of what it adds to the likelihood all the same.
    added, gains = [], []
    for seed in range(40):
        truth, _, _ = simulate(300, 4, seed=seed)
        rng = np.random.default_rng([seed, 1])
        noisy = np.where(rng.uniform(size=(300, 1)) < 0.5, 0.9 * truth + 0.1 / 4, truth)
        labels = np.minimum((noisy.cumsum(axis=1) < rng.uniform(size=(300, 1))).sum(axis=1), 3)
        rows = check_rows(truth, labels)
        recalibrations, fold = Recalibration(rows), rng.permutation(300) % 5
        after, parameters = losses_of_fit(rows)
        losses = out_of_fold(rows, recalibrations, recalibrations.start, fold)
        of_biases = {name: found[-1] for name, found in losses.items()}
        found = added_by_fit(after, of_biases, rows.weight, parameters)
        added.append(found["brier"] / found["nll"])
        gains.append(np.mean(rows.brier - after["brier"]) / np.mean(rows.nll - after["nll"]))
    assert np.mean(added) == pytest.approx(0.5, abs=0.06)
    assert np.mean(gains) < 0.4


def test_a_shrunk_model_keeps_what_is_far_from_0_and_drops_noise():
    model, precision = Recalibrator(np.exp(0.5), np.array([0.1, -2.0, 0.0])), np.full(4, 25.0)
    found = recalibration.shrunk(model, precision)
    assert np.log(found.beta) == pytest.approx(0.5 * (1 - 0.04 / 0.25))
    np.testing.assert_allclose(found.bias, [0.0, -2.0 * (1 - 0.04 / 4), 0.0])


def test_far_from_0_the_interval_is_that_of_a_mean():
    gains = np.random.default_rng(0).normal(1.0, 0.5, size=400)
    found = calibration_interval(gains.mean(), gains, None, np.ones(400), 1e-4, 0.95)
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


@pytest.mark.parametrize(("kind", "beta"), [("argmax", 100.0), ("argmin", 0.01)])
def test_rows_that_are_all_right_or_all_wrong_are_recalibrated_up_to_a_hundredfold(kind, beta):
    logs = log_softmax(np.random.default_rng(0).normal(size=(50, 3)), axis=1) / 100
    rows = LogitRows(logs, getattr(np, kind)(logs, axis=1))
    assert fit_temperature(rows, np.ones(50)) == pytest.approx(beta, rel=1e-9)
    with_biases = recalibration.fit_bias(rows, np.ones(50), Recalibrator(1.0, np.zeros(3)))
    assert 0.01 * (1 - 1e-12) <= with_biases.beta <= 100 * (1 + 1e-12)


@pytest.mark.parametrize("row", [[0.7, 0.3], [0.7, 0.2, 0.1]])  # the last has more classes than biases
def test_a_single_row_has_nothing_to_fit_a_recalibrator_to_and_no_interval(row):
    found = evaluate([row], [0], draws=10, progress=False)
    assert found["nll_refinement"].value == pytest.approx(-np.log(0.7), rel=1e-6)
    assert found["nll_calibration"].value == pytest.approx(0.0, abs=1e-6)
    for name in ("nll_calibration", "brier_calibration", "nll_refinement"):
        assert np.isnan([found[name].low, found[name].high]).all(), name


def test_an_impossible_label_leaves_the_calibration_part_open():
    probs, labels = np.tile([[1.0, 0.0], [0.4, 0.6]], (20, 1)), np.tile([0, 1], 20)
    labels[0] = 1
    found = evaluate(probs, labels, draws=10, progress=False)["nll_calibration"]
    assert (found.low, found.high) == (0.0, np.inf)
