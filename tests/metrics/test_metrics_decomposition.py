import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

from temperance import metrics
from temperance.core.logit_rows import LogitRows
from temperance.metrics import recalibration as recalibration
from temperance.metrics.predictions import check_rows


def divergence(truth, probs):
    """Return the mean Kullback-Leibler divergence of `probs` from `truth`."""
    return float((truth * np.log(truth / probs)).sum(axis=1).mean())


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize("sharpen", [1.0, 2.0])
def test_the_parts_add_up_and_the_total_is_the_metric(simulate, loss, sharpen):
    probs, labels, _ = simulate(400, 4, sharpen=sharpen)
    parts = metrics.decompose(probs, labels, loss=loss)
    assert parts.total == pytest.approx(getattr(metrics, loss)(probs, labels), rel=1e-12)
    assert parts.calibration + parts.refinement == pytest.approx(parts.total, rel=1e-12)
    assert parts.calibration >= 0


def test_a_calibrated_classifier_has_no_calibration_part(simulate):
    probs, labels, _ = simulate(5000, 5)
    assert metrics.decompose(probs, labels).calibration < 1e-3
    assert metrics.decompose(probs, labels, loss="brier").calibration < 1e-3


def test_the_calibration_part_of_sharpened_probabilities_is_their_divergence(simulate):
    probs, labels, truth = simulate(10_000, 5, sharpen=2.0)
    assert metrics.decompose(probs, labels).calibration == pytest.approx(divergence(truth, probs), rel=0.05)
    squares = ((truth - probs) ** 2).sum(axis=1).mean()
    assert metrics.decompose(probs, labels, loss="brier").calibration == pytest.approx(squares, rel=0.1)


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_the_refinement_part_of_sharpened_probabilities_is_the_loss_of_the_truth(simulate, loss):
    probs, labels, truth = simulate(10_000, 5, sharpen=2.0)
    parts = metrics.decompose(probs, labels, loss=loss)
    assert parts.refinement == pytest.approx(getattr(metrics, loss)(truth, labels), rel=1e-3)


def test_a_bias_of_the_classes_is_found(simulate):
    truth, labels, _ = simulate(10_000, 4)
    probs = truth * np.array([3.0, 1.0, 1.0, 0.5])
    probs /= probs.sum(axis=1, keepdims=True)
    assert metrics.decompose(probs, labels).calibration == pytest.approx(divergence(truth, probs), rel=0.05)


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


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_few_rows_are_not_an_error(n_rows):
    parts = metrics.decompose([[0.6, 0.4]] * n_rows, [0] * n_rows)
    assert parts.calibration >= 0


def test_rows_of_float16_and_float32_give_the_parts_of_float64(simulate):
    probs, labels, _ = simulate(500, 4, sharpen=2.0)
    exact = metrics.decompose(probs, labels)
    assert metrics.decompose(probs.astype(np.float32), labels).refinement == pytest.approx(
        exact.refinement, rel=1e-5
    )
    assert metrics.decompose(probs.astype(np.float16), labels).refinement == pytest.approx(
        exact.refinement, rel=1e-2
    )


def problem(simulate):
    rows = check_rows(*simulate(300, 4, sharpen=2.0)[:2], np.random.default_rng(0).uniform(0.5, 2, 300))
    logs = recalibration.log_probabilities(rows.probs, np.float64)
    return LogitRows(logs, rows.labels), rows.weight


def penalised_loss(rows, weight, log_t, bias):
    """Return the mean loss of softmax(beta l + b) with a unit normal prior on each bias, as defined."""
    log_q = log_softmax(np.exp(-log_t) * rows.values + bias, axis=1)
    nll = -log_q[np.arange(rows.n_rows), rows.labels]
    return (weight @ nll + bias @ bias / 2) / weight.sum()


def test_the_objective_is_the_penalised_loss_of_its_definition_and_the_gradient_its_derivative(simulate):
    rows, weight = problem(simulate)
    theta = np.array([0.4, 0.3, -0.2, 0.1, 0.4])
    here = recalibration.bias_objective(rows, weight)(theta)

    def loss(at):
        return penalised_loss(rows, weight, at[0], at[1:])

    assert here.value == pytest.approx(loss(theta), rel=1e-12)
    np.testing.assert_allclose(here.gradient, approx_fprime(theta, loss, 1e-7), rtol=1e-4, atol=1e-6)


def test_the_objective_in_float32_is_that_in_float64(simulate):
    rows, weight = problem(simulate)
    theta = np.array([0.4, 0.3, -0.2, 0.1, 0.4])
    exact = recalibration.bias_objective(rows, weight)(theta)
    single = LogitRows(rows.values.astype(np.float32), rows.labels)
    rough = recalibration.bias_objective(single, weight)(theta)
    assert rough.value == pytest.approx(exact.value, rel=1e-6)
    np.testing.assert_allclose(rough.gradient, exact.gradient, rtol=1e-4, atol=1e-6)


def test_the_preconditioner_is_the_diagonal_of_the_fisher_matrix(simulate):
    rows, weight = problem(simulate)
    theta = np.array([0.4, 0.3, -0.2, 0.1, 0.4])
    objective = recalibration.bias_objective(rows, weight)
    _, fisher = objective(theta).derivatives
    np.testing.assert_allclose(objective.diagonal(theta), fisher.diagonal(), rtol=1e-10)


def test_biases_so_far_apart_that_their_exponentials_underflow_are_evaluated(simulate):
    rows, weight = problem(simulate)
    bias = np.array([0.0, -2000.0, 0.0, 0.0])
    value = recalibration.bias_objective(rows, weight)(np.append(-7.0, bias)).value
    assert value == pytest.approx(penalised_loss(rows, weight, -7.0, bias), rel=1e-12)


def test_the_fits_reach_stationary_points(simulate):
    rows, weight = problem(simulate)
    beta = recalibration.fit_temperature(rows, weight)
    model = recalibration.fit_bias(rows, weight, recalibration.Recalibrator(beta, np.zeros(4)))
    theta = np.concatenate([[-np.log(model.beta)], model.bias])
    gradient, fisher = recalibration.bias_objective(rows, weight)(theta).derivatives
    assert np.abs(gradient / np.sqrt(fisher.diagonal() / weight.sum())).max() < 0.05


def test_a_temperature_far_from_one_is_found_and_separable_rows_stop_at_the_bound(simulate):
    probs, labels, _ = simulate(3000, 4, sharpen=0.05)
    logs = recalibration.log_probabilities(probs, np.float64)
    rows = LogitRows(logs, labels)
    assert recalibration.fit_temperature(rows, np.ones(3000)) == pytest.approx(20, rel=0.1)
    separable = LogitRows(logs, probs.argmax(axis=1))
    assert recalibration.fit_temperature(separable, np.ones(3000)) == pytest.approx(100, rel=1e-3)
    start = recalibration.Recalibrator(1.0, np.zeros(4))
    assert 1 < recalibration.fit_bias(separable, np.ones(3000), start).beta <= 100 * (1 + 1e-12)
