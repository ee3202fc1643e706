"""The likelihood: value, gradient and Fisher matrix against the definitions."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from core_models import N_ROWS, PREDICTORS, Y, Z, build, without_pin
from core_reference import jacobian, log_softmax

from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Linear, Log, Softplus

LINKS = [Softplus(), Log()]
EACH_MODEL = pytest.mark.parametrize(
    ("name", "link"),
    list(product(PREDICTORS, LINKS)),
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
WEIGHTS = np.random.default_rng(31).integers(0, 4, size=N_ROWS).astype(float)


def prior_of(n: int) -> Prior:
    """Return a prior whose parameters are tied to each other."""
    rng = np.random.default_rng(32)
    root = rng.normal(size=(n, n))
    return Prior(rng.normal(size=n), root @ root.T / n**2)


def log_probabilities(predictor: Any, link: Any, theta: np.ndarray) -> np.ndarray:
    return log_softmax(Z, 1 / link.temperature(predictor.predict(theta)))


@EACH_MODEL
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_prior", [False, True])
def test_value_is_the_weighted_mean_and_gradient_equals_differences(name, link, weighted, with_prior):
    rows, predictor, theta = build(name)
    weights = WEIGHTS if weighted else None
    prior = prior_of(len(theta)) if with_prior else None
    objective = LogLikelihood(rows, predictor, link, weights, prior)

    def value(at: np.ndarray) -> float:
        nll = -log_probabilities(predictor, link, at)[np.arange(N_ROWS), Y]
        penalty = 0.0 if prior is None else (at - prior.mean) @ prior.precision @ (at - prior.mean) / 2
        return np.average(nll, weights=weights) + penalty

    here = objective(theta)
    np.testing.assert_allclose(here.value, value(theta), rtol=1e-12)
    want = jacobian(lambda at: np.array(value(at)), theta, 1e-5)
    np.testing.assert_allclose(here.gradient, want, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(here.derivatives[0], here.gradient, rtol=1e-12, atol=1e-14)


@EACH_MODEL
@pytest.mark.parametrize("weighted", [False, True])
def test_fisher_matrix_is_the_covariance_of_the_score(name, link, weighted):
    rows, predictor, theta = build(name)
    weights = WEIGHTS if weighted else None
    # The score of every label that a row might have had, weighted by the probability that it has it.
    scores = jacobian(lambda at: log_probabilities(predictor, link, at), theta, 1e-5)
    probabilities = np.exp(log_probabilities(predictor, link, theta))
    np.testing.assert_allclose(np.einsum("nk,nkp->np", probabilities, scores), 0, atol=1e-8)
    share = (np.ones(N_ROWS) if weights is None else weights)[:, None]
    want = np.einsum("nk,nkp,nkq->pq", probabilities * share / share.sum(), scores, scores)
    fisher = LogLikelihood(rows, predictor, link, weights)(theta).derivatives[1]
    np.testing.assert_allclose(without_pin(name, fisher), want, rtol=1e-7, atol=1e-9)
    # A prior adds its precision and nothing else.
    prior = prior_of(len(theta))
    with_prior = LogLikelihood(rows, predictor, link, weights, prior)(theta).derivatives[1]
    np.testing.assert_allclose(with_prior - fisher, prior.precision, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PREDICTORS)
def test_fisher_matrix_is_positive_semi_definite_far_from_the_optimum(name):
    rows, predictor, theta = build(name)
    for factor in (0, 1, 10):
        fisher = LogLikelihood(rows, predictor, Softplus())(factor * theta).derivatives[1]
        assert np.linalg.eigvalsh(fisher).min() >= -1e-12 * max(1, np.abs(fisher).max())


@pytest.mark.parametrize("name", ["features", "features and logits"])
def test_a_weight_is_a_row_repeated(name):
    counts = WEIGHTS.astype(int)
    rows, predictor, theta = build(name)
    weighted = LogLikelihood(rows, predictor, Softplus(), WEIGHTS)
    repeated_rows = LogitRows(np.repeat(Z, counts, axis=0), np.repeat(Y, counts))
    features = np.repeat(predictor.features, counts, axis=0)
    repeated_predictor = Linear(features, None if predictor.rows is None else repeated_rows)
    repeated = LogLikelihood(repeated_rows, repeated_predictor, Softplus())
    assert weighted.total_weight == repeated.total_weight == counts.sum()
    here, there = weighted(theta), repeated(theta)
    np.testing.assert_allclose(here.value, there.value, rtol=1e-12)
    for got, want in zip(here.derivatives, there.derivatives, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_every_nth_row_keeps_its_weight_and_the_prior():
    rows, predictor, theta = build("features and logits")
    prior = prior_of(len(theta))
    thinned = LogLikelihood(rows, predictor, Log(), WEIGHTS, prior).every(3)
    direct = LogitRows(Z[::3], Y[::3])
    want = LogLikelihood(direct, Linear(predictor.features[::3], direct), Log(), WEIGHTS[::3], prior)
    np.testing.assert_allclose(thinned(theta).value, want(theta).value, rtol=1e-12)
    np.testing.assert_allclose(thinned(theta).gradient, want(theta).gradient, rtol=1e-9)
    assert thinned.total_weight == WEIGHTS[::3].sum()


def test_a_value_costs_one_pass_and_its_derivatives_none_for_stored_features():
    rows, predictor, theta = build("features")
    objective = LogLikelihood(rows, predictor, Log())
    here = objective(theta)
    _ = here.gradient, here.derivatives
    assert objective.passes == rows.passes == 2  # the first finds the tops


def test_noise_is_the_precision_of_the_rows():
    for dtype in (np.float32, np.float64):
        objective = LogLikelihood(LogitRows(Z.astype(dtype), Y), Linear(np.ones((N_ROWS, 1))), Log())
        assert objective.noise == np.finfo(dtype).eps


def test_the_gradient_is_zero_where_every_temperature_is_at_its_limit():
    rows, predictor, _ = build("constant")
    for link, a in product(LINKS, (-1e3, 1e9)):
        gradient, fisher = LogLikelihood(rows, predictor, link)(np.array([a])).derivatives
        assert gradient == fisher == 0
