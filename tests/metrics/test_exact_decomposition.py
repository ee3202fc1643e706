"""Calibration and refinement parts of a loss against slow fits of the same recalibrators, fold by fold."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from small_cases import arguments, draw_cases

from temperance import metrics
from temperance.metrics import recalibration

LOG_BETAS = np.linspace(-np.log(100), np.log(100), 41)
FLAT = 1e-4  # of the loss of a fold: a smaller change with beta does not identify it


def log_probabilities(probs):
    """Return log p minus its largest, as float32; p counts as at least the precision of a float."""
    logs = np.log(np.maximum(probs, 2.0**-52))
    return (logs - logs.max(axis=1, keepdims=True)).astype(np.float32).astype(np.float64)


def log_softmax(u):
    u = u - u.max(axis=1, keepdims=True)
    return u - np.log(np.exp(u).sum(axis=1, keepdims=True))


def nll(log_q, labels):
    return -log_q[np.arange(len(labels)), labels]


def brier(log_q, labels):
    return np.sum((np.exp(log_q) - np.eye(log_q.shape[1])[labels]) ** 2, axis=1)


class NotIdentifiedError(Exception):
    """All rows of a fold are right, or all are uniform: any large beta, or any at all, is as good."""


LOSSES = {"nll": nll, "brier": brier}


def temperature_alone(logs, labels, weight):
    """Return the best beta within its limits: the best of a grid, then the best near it."""

    def loss(log_beta):
        return weight @ nll(log_softmax(np.exp(log_beta) * logs), labels)

    losses = np.array([loss(log_beta) for log_beta in LOG_BETAS])
    at = int(np.argmin(losses))
    near = slice(max(at - 1, 0), at + 2)
    if np.ptp(losses[near]) < FLAT:
        raise NotIdentifiedError
    ends = LOG_BETAS[near][[0, -1]]
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-7})
    best = found.x if found.fun < losses[at] else LOG_BETAS[at]
    return np.exp(best), np.zeros(logs.shape[1])


def temperature_with_biases(logs, labels, weight):
    """Return beta and biases that minimise the sum of losses plus half the squares of the biases."""
    one_hot = np.eye(logs.shape[1])[labels]

    def loss(theta):
        beta, bias = np.exp(-theta[0]), theta[1:]
        log_q = log_softmax(beta * logs + bias)
        off = weight[:, None] * (np.exp(log_q) - one_hot)
        gradient = np.append(-beta * np.sum(off * logs), off.sum(axis=0) + bias)
        return weight @ nll(log_q, labels) + bias @ bias / 2, gradient

    limits = [(LOG_BETAS[0], LOG_BETAS[-1]), *[(None, None)] * logs.shape[1]]
    start = np.append(-np.log(temperature_alone(logs, labels, weight)[0]), np.zeros(logs.shape[1]))
    options = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 1000}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return np.exp(-found.x[0]), found.x[1:]


def mean_losses(probs, labels, weight):
    """Return the mean of each loss for each of the three recalibrators, on rows that did not fit it."""
    n_rows, folds = len(probs), min(5, len(probs))
    fold, logs = np.random.default_rng(0).permutation(n_rows) % folds, log_probabilities(probs)
    with np.errstate(divide="ignore"):
        same = np.log(probs)
    result = {name: [weight @ loss(same, labels) / weight.sum()] for name, loss in LOSSES.items()}
    for fit in (temperature_alone, temperature_with_biases):
        log_q = np.empty(probs.shape)
        for held in range(folds):
            others, own = fold != held, fold == held
            beta, bias = fit(logs[others], labels[others], weight[others]) if folds > 1 else (1.0, 0.0)
            log_q[own] = log_softmax(beta * logs[own] + bias)
        for name, loss in LOSSES.items():
            result[name].append(weight @ loss(log_q, labels) / weight.sum())
    return result


def run(seed, number, tolerance):
    """Compare many cases; return in how many of them every fold identified its recalibrators."""
    compared = 0
    for sixteenths, labels, quarters in draw_cases(seed, number):
        given, weights = arguments(sixteenths, labels, quarters)
        kept = quarters > 0
        try:
            want = mean_losses(sixteenths[kept] / 16, labels[kept], quarters[kept] / 4)
        except NotIdentifiedError:
            continue
        compared += 1
        for name, means in want.items():
            found = metrics.decompose(*given, loss=name, **weights)
            assert found.total == pytest.approx(means[0], rel=1e-12)
            assert found.refinement == pytest.approx(min(means), rel=tolerance, abs=tolerance), (
                sixteenths,
                labels,
                quarters,
            )
            assert found.calibration == pytest.approx(means[0] - min(means), rel=tolerance, abs=tolerance)
    return compared


@pytest.fixture
def _exact_fits(monkeypatch):
    """Let the fits with biases run on, where they would stop near the optimum."""
    monkeypatch.setattr(recalibration, "_GRADIENT_TOLERANCE", 1e-7)


@pytest.mark.usefixtures("_exact_fits")
def test_the_parts_of_exact_fits():
    assert run(seed=5, number=20, tolerance=1e-3) > 5


def test_the_parts_of_fits_that_stop_near_the_optimum():
    assert run(seed=6, number=15, tolerance=0.1) > 4


@pytest.mark.slow
@pytest.mark.usefixtures("_exact_fits")
def test_the_parts_of_many_exact_fits():
    assert run(seed=7, number=150, tolerance=1e-3) > 80
