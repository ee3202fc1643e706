"""A row left out of a class bias: the step of Newton's method back, row by row and matrix by matrix."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.logit_rows import LogitRows

RNG = np.random.default_rng(3)
N, K = 25, 3
LOGS, LABELS = log_softmax(2 * RNG.normal(size=(N, K)), axis=1), RNG.integers(0, K, N)
WEIGHTS = RNG.uniform(0.5, 2, N)
THETA = np.array([0.3, 0.2, -0.4, 0.1])


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
    objective = ClassBiasLikelihood(LogitRows(LOGS, LABELS), False, WEIGHTS)
    np.testing.assert_allclose(
        objective.left_out(THETA, covariance), left_out_by_definition(covariance), rtol=1e-9
    )


def test_with_variances_each_parameter_takes_its_own_step_back():
    variances = np.array([0.02, 0.01, 0.03, 0.02])
    objective = ClassBiasLikelihood(LogitRows(LOGS, LABELS), False, WEIGHTS)
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
    np.testing.assert_allclose(objective.left_out(THETA, variances), want, rtol=1e-9)


@pytest.mark.parametrize("matrix", [False, True])
def test_an_impossible_class_takes_no_part(matrix):
    variances = np.array([0.02, 0.01, 0.03, 0.02, 0.02])
    theta = np.append(THETA, 0.7)
    masked = np.column_stack([LOGS, np.full(N, -np.inf)])
    without, with_mask = (
        ClassBiasLikelihood(LogitRows(logs, LABELS), False, WEIGHTS) for logs in (LOGS, masked)
    )
    covariances = [np.diag(part) if matrix else part for part in (variances[:4], variances)]
    np.testing.assert_allclose(
        with_mask.left_out(theta, covariances[1]), without.left_out(THETA, covariances[0]), rtol=1e-9
    )


@pytest.mark.parametrize("interacting", [False, True])
def test_a_block_has_room_for_the_derivatives_of_its_rows(monkeypatch, interacting):
    rows = LogitRows(RNG.normal(size=(4, 40)), np.arange(4))
    objective = ClassBiasLikelihood(rows, interacting)
    widths = []
    monkeypatch.setattr(rows, "sum", lambda work, width: widths.append(width))
    objective.left_out(np.zeros(objective.n_parameters), np.ones(objective.n_parameters))
    # Of each class by each parameter, or else a few arrays of a number for each class.
    assert widths == [40 * (objective.n_parameters - 1) if interacting else 40 * 8]
