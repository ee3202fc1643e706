"""Rows in parts: every objective is the mean over parts of that of each part, derivatives included."""

import numpy as np
import pytest
from core_models import draw

from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.ece_loss import EceLoss
from temperance.core.logit_rows import LogitRows
from temperance.core.mixture import BrierMixture, LogMixture
from temperance.core.objective import InMemoryFitData, LogLikelihood, weighted_sum
from temperance.core.predictors import Grouped, Linear, Log, Network, Softplus

N, K = 90, 4
Z, Y = draw(N, K)
WEIGHTS = np.random.default_rng(2).uniform(0, 3, N)


def features(rows):
    return np.column_stack([np.ones(rows.n_rows), np.maximum(rows.log_entropy()[:, 0], -20)])


def linear(rows, weights):
    return LogLikelihood(rows, Linear(features(rows), rows), Softplus(), weights)


def grouped(rows, weights):
    return LogLikelihood(rows, Grouped(rows.top, K), Log(), weights)


def network(rows, weights):
    return LogLikelihood(rows, Network(rows.topk(3), (3,)), Softplus(), weights)


def ece(rows, weights):
    return EceLoss(rows, Network(rows.topk(3), (3,)), Softplus(), weights)


def biased(rows, weights):
    return ClassBiasLikelihood(rows, weights, interacting=True)


BUILDS = {
    linear: 2 + K,
    grouped: K,
    network: 4 * 3 + 4,
    ece: 4 * 3 + 4,
    biased: 1 + K + K * K,
    LogMixture: 3,
    BrierMixture: 3,
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_an_objective_is_the_mean_of_those_of_its_parts(build, weights):
    theta = 0.1 * np.random.default_rng(3).uniform(size=BUILDS[build])
    whole = InMemoryFitData(LogitRows(Z, Y), weights).objective(build)
    here = whole(theta)
    gradient, fisher = here.derivatives
    total = None
    for part in (slice(0, 7), slice(7, 60), slice(60, N)):
        objective = build(LogitRows(Z[part], Y[part]), None if weights is None else weights[part])
        terms = objective.terms(theta, True).times(objective.total_weight / whole.total_weight)
        total = terms if total is None else total + terms
    value, its_gradient, its_fisher = total.combined()
    np.testing.assert_allclose(value, here.value, rtol=1e-12)
    np.testing.assert_allclose(its_gradient, gradient, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(its_fisher, fisher, rtol=1e-10, atol=1e-14)


def test_without_the_matrix_the_gradient_is_the_same():
    objective = linear(LogitRows(Z, Y), None)
    theta = np.full(2 + K, 0.1)
    _, gradient, fisher = objective.terms(theta, False).combined()
    np.testing.assert_allclose(gradient, objective(theta).gradient, rtol=1e-12)
    assert fisher is None


def test_fit_data_in_memory_counts_sums_and_subsamples():
    sample = InMemoryFitData(LogitRows(Z, Y), WEIGHTS)
    assert (sample.n_rows, sample.n_classes) == (N, K)
    assert sample.total_weight == pytest.approx(WEIGHTS.sum())
    some = sample.every(4)
    np.testing.assert_array_equal(some.rows.values, Z[::4])
    assert some.total_weight == pytest.approx(WEIGHTS[::4].sum())
    (total,) = sample.total(lambda rows, weights: (weighted_sum(rows.values, weights),))
    np.testing.assert_allclose(total, WEIGHTS @ Z, rtol=1e-12)
    found = sample.quantiles(lambda rows, weights: (rows.label_gap, weights), np.array([0.5]))
    assert WEIGHTS[sample.rows.label_gap <= found.values[0]].sum() >= WEIGHTS.sum() / 2
