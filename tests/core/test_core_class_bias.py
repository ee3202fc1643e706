"""The likelihood of a class bias and a row left out of it, against the definitions, row by row."""

import numpy as np
import pytest
from core_reference import jacobian
from scipy.special import log_softmax, softmax

from temperance.core import logit_rows as rows_module
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.features import LOG_PROB_FLOOR
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior

RNG = np.random.default_rng(3)
N, K = 25, 3
LOGS, LABELS = log_softmax(2 * RNG.normal(size=(N, K)), axis=1), RNG.integers(0, K, N)
WEIGHTS = RNG.uniform(0.5, 2, N)
THETA = np.array([0.3, 0.2, -0.4, 0.1])
MASKED = np.where(
    (np.arange(N)[:, None] % 4 == 1) & (np.arange(K) == (LABELS[:, None] + 1) % K), -np.inf, LOGS
)


EACH_INPUT = pytest.mark.parametrize("interacting", [False, True], ids=["bias", "interactions"])
EACH_WEIGHT = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])


def likelihood(interacting, weights=None, prior=None, logs=LOGS, labels=LABELS):
    """Return the objective, and parameters at which nothing is 0."""
    objective = ClassBiasLikelihood(LogitRows(logs, labels), weights, prior, interacting=interacting)
    return objective, 0.4 * np.random.default_rng(43).normal(size=objective.n_parameters)


def log_probabilities(logs, theta):
    """Return log softmax(l / T + W x), with each row's numbers spelled out."""
    result = np.empty_like(logs)
    for i, row in enumerate(logs):
        possible, floored = np.isfinite(row), np.maximum(row, LOG_PROB_FLOOR)
        x = [1.0, *np.where(possible, floored - floored[possible].mean(), 0.0)][: (len(theta) - 1) // K]
        offset = [sum(theta[1 + j * K + k] * x[j] for j in range(len(x))) for k in range(K)]
        result[i] = log_softmax(row / np.exp(theta[0]) + offset)
    return result


def all_of(point):
    return point.value, *point.derivatives


@EACH_INPUT
@EACH_WEIGHT
@pytest.mark.parametrize("logs", [LOGS, MASKED], ids=["all classes", "masks"])
def test_value_and_derivatives_are_those_of_the_definition(interacting, weights, logs):
    objective, theta = likelihood(interacting, weights, logs=logs)
    share = np.ones(N) / N if weights is None else weights / weights.sum()
    log_p, each = log_probabilities(logs, theta), np.arange(N)
    scores = jacobian(lambda at: np.maximum(log_probabilities(logs, at), -1e3), theta, 1e-4)
    here = objective(theta)
    np.testing.assert_allclose(here.value, -share @ log_p[each, LABELS], rtol=1e-12)
    np.testing.assert_allclose(here.gradient, -share @ scores[each, LABELS], rtol=1e-7, atol=1e-9)
    fisher = here.derivatives[1]
    want = np.einsum("nk,nki,nkj->ij", share[:, None] * np.exp(log_p), scores, scores)
    np.testing.assert_allclose(fisher, want, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(fisher[:1, 1:], fisher[1:, :1].T)
    np.testing.assert_allclose(objective.diagonal(theta), fisher.diagonal(), rtol=1e-10)
    assert objective.total_weight == (N if weights is None else weights.sum())
    assert objective.n_parameters == 1 + (K + K * K if interacting else K)


@EACH_INPUT
def test_a_prior_adds_its_value_its_gradient_and_its_precision(interacting):
    objective, theta = likelihood(interacting)
    root = np.random.default_rng(44).normal(size=(len(theta), len(theta)))
    prior = Prior(root[0], root @ root.T / len(theta) ** 2)
    held, off = objective.with_prior(prior), theta - prior.mean
    added = off @ prior.precision @ off / 2, prior.precision @ off, prior.precision
    for bare, more, both in zip(all_of(objective(theta)), added, all_of(held(theta)), strict=True):
        np.testing.assert_allclose(both - bare, more, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(held.diagonal(theta), held(theta).derivatives[1].diagonal(), rtol=1e-12)


def test_a_constant_added_to_each_row_changes_nothing():
    plain, theta = likelihood(False, WEIGHTS)
    shifted, _ = likelihood(False, WEIGHTS, logs=LOGS + 100 * np.cos(np.arange(N))[:, None])
    for got, want in zip(all_of(shifted(theta)), all_of(plain(theta)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@EACH_INPUT
def test_weights_are_rows_repeated_blocks_add_up_and_every_nth_row_keeps_its_own(interacting, monkeypatch):
    times = np.random.default_rng(5).integers(0, 4, N)
    weighted, theta = likelihood(interacting, times.astype(float))
    whole = all_of(weighted(theta))
    repeated, _ = likelihood(interacting, logs=LOGS.repeat(times, axis=0), labels=LABELS.repeat(times))
    prior = Prior(theta / 2, np.ones(len(theta)))
    thinned = likelihood(interacting, WEIGHTS, prior)[0].every(3)
    direct, _ = likelihood(interacting, WEIGHTS[::3], prior, LOGS[::3], LABELS[::3])
    assert thinned.total_weight == direct.total_weight
    monkeypatch.setattr(rows_module, "GRAM_SIZE", 7 * K)
    in_blocks, _ = likelihood(interacting, times.astype(float))
    pairs = [(all_of(repeated(theta)), whole), (all_of(in_blocks(theta)), whole)]
    for others, wanted in [*pairs, (all_of(thinned(theta)), all_of(direct(theta)))]:
        for got, want in zip(others, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("interacting", "gap"), [(False, 1e4), (False, 1e6), (True, 9e3)])
def test_extreme_log_probabilities_have_finite_derivatives(interacting, gap):
    logs = gap * (np.sign(LOGS - LOGS.mean(axis=1, keepdims=True)) - 1)
    objective, theta = likelihood(interacting, logs=logs)
    here = objective(theta)
    assert here.value == pytest.approx(
        -log_probabilities(logs, theta)[np.arange(N), LABELS].mean(), rel=1e-10
    )
    for part in here.derivatives:
        assert np.isfinite(part).all()


def left_out_by_definition(covariance):
    """Return log p of each label where the row's own pull on u = l / T + bias is taken back."""
    found = []
    for logs, label, weight in zip(LOGS, LABELS, WEIGHTS, strict=True):
        slope = -np.exp(-THETA[0]) * logs
        jacobian = np.column_stack([slope, np.eye(K)])
        u = np.exp(-THETA[0]) * logs + THETA[1:]
        p = softmax(u)
        curvature = np.diag(p) - np.outer(p, p)
        spread = jacobian @ covariance @ jacobian.T
        residual = p - np.eye(K)[label]
        moved = np.linalg.inv(np.eye(K) - weight * curvature @ spread) @ (weight * residual)
        found.append(log_softmax(u + spread @ moved)[label])
    return np.array(found)


def test_with_the_whole_covariance_it_is_one_newton_step_back():
    root = RNG.normal(size=(4, 4)) / 10
    covariance = root @ root.T
    objective = ClassBiasLikelihood(LogitRows(LOGS, LABELS), WEIGHTS, interacting=False)
    np.testing.assert_allclose(
        objective.leave_one_out_log_probs(THETA, covariance), left_out_by_definition(covariance), rtol=1e-9
    )


def test_with_variances_each_parameter_takes_its_own_step_back():
    variances = np.array([0.02, 0.01, 0.03, 0.02])
    objective = ClassBiasLikelihood(LogitRows(LOGS, LABELS), WEIGHTS, interacting=False)
    want = []
    for logs, label, weight in zip(LOGS, LABELS, WEIGHTS, strict=True):
        u = np.exp(-THETA[0]) * logs + THETA[1:]
        p, slope = softmax(u), -np.exp(-THETA[0]) * logs
        residual = p - np.eye(K)[label]
        shift = np.zeros(K)
        for k in range(K):
            curvature = p[k] * (1 - p[k])
            shift[k] += variances[1 + k] * weight * residual[k] / (1 - weight * variances[1 + k] * curvature)
        curvature = p @ slope**2 - (p @ slope) ** 2
        step = variances[0] * weight * (residual @ slope) / (1 - weight * variances[0] * curvature)
        want.append(log_softmax(u + slope * step + shift)[label])
    np.testing.assert_allclose(objective.leave_one_out_log_probs(THETA, variances), want, rtol=1e-9)


@pytest.mark.parametrize("matrix", [False, True])
def test_a_row_of_weight_w_leaves_as_a_row_whose_parameters_vary_w_times_as_much(matrix):
    variances = np.array([0.02, 0.03, 0.01, 0.02])
    covariance = np.diag(variances) + 0.002 if matrix else variances
    once, _ = likelihood(False)
    weighted, _ = likelihood(False, np.full(N, 2.5))
    found = weighted.leave_one_out_log_probs(THETA, covariance)
    np.testing.assert_allclose(found, once.leave_one_out_log_probs(THETA, 2.5 * covariance), rtol=1e-12)
    assert (found != once.leave_one_out_log_probs(THETA, covariance)).all()


@pytest.mark.parametrize("matrix", [False, True])
def test_an_impossible_class_takes_no_part(matrix):
    variances = np.array([0.02, 0.01, 0.03, 0.02, 0.02])
    theta = np.append(THETA, 0.7)
    masked = np.column_stack([LOGS, np.full(N, -np.inf)])
    without, with_mask = (
        ClassBiasLikelihood(LogitRows(logs, LABELS), WEIGHTS, interacting=False) for logs in (LOGS, masked)
    )
    covariances = [np.diag(part) if matrix else part for part in (variances[:4], variances)]
    np.testing.assert_allclose(
        with_mask.leave_one_out_log_probs(theta, covariances[1]),
        without.leave_one_out_log_probs(THETA, covariances[0]),
        rtol=1e-9,
    )


@pytest.mark.parametrize("interacting", [False, True])
def test_a_block_has_room_for_the_derivatives_of_its_rows(monkeypatch, interacting):
    rows = LogitRows(RNG.normal(size=(4, 40)), np.arange(4))
    objective = ClassBiasLikelihood(rows, interacting=interacting)
    widths = []
    monkeypatch.setattr(rows, "sum", lambda work, width: widths.append(width))
    objective.leave_one_out_log_probs(np.zeros(objective.n_parameters), np.ones(objective.n_parameters))
    # Of each class by each parameter, or else a few arrays of a number for each class.
    assert widths == [40 * (objective.n_parameters - 1) if interacting else 40 * 8]
