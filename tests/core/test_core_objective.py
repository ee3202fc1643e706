"""The likelihood: value, gradient and Fisher matrix against the definitions."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from core_models import N_ROWS, PREDICTORS, Y, Z, build, without_pin
from core_reference import draw, jacobian, log_softmax

from temperance.core.fisher import fisher_scoring
from temperance.core.links import Log, Softplus
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Constant, Linear

LINKS = [Softplus(), Log()]
EACH_MODEL = pytest.mark.parametrize(
    ("name", "link"),
    list(product(PREDICTORS, LINKS)),
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
WEIGHTS = np.random.default_rng(31).integers(0, 4, size=N_ROWS).astype(float)


def log_probabilities(predictor: Any, link: Any, theta: np.ndarray) -> np.ndarray:
    return log_softmax(Z, 1 / link.temperature(predictor.predict(theta)))


@EACH_MODEL
@pytest.mark.parametrize("weighted", [False, True])
def test_value_is_the_weighted_mean_and_gradient_equals_differences(name, link, weighted):
    rows, predictor, theta = build(name)
    weights = WEIGHTS if weighted else None
    objective = LogLikelihood(rows, predictor, link, weights)

    def value(at: np.ndarray) -> float:
        nll = -log_probabilities(predictor, link, at)[np.arange(N_ROWS), Y]
        return np.average(nll, weights=weights)

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


@pytest.mark.parametrize("name", PREDICTORS)
def test_fisher_matrix_is_positive_semi_definite_far_from_the_optimum(name):
    rows, predictor, theta = build(name)
    for factor in (0, 1, 10):
        fisher = LogLikelihood(rows, predictor, Softplus())(factor * theta).derivatives[1]
        assert np.linalg.eigvalsh(fisher).min() >= -1e-12 * max(1, np.abs(fisher).max())


def test_a_value_costs_one_pass_and_its_derivatives_none_for_stored_features():
    rows, predictor, theta = build("features")
    objective = LogLikelihood(rows, predictor, Log())
    here = objective(theta)
    _ = here.gradient, here.derivatives
    assert objective.passes == rows.passes == 2  # the first finds the tops


def test_the_gradient_is_zero_where_every_temperature_is_at_its_limit():
    rows, predictor, _ = build("constant")
    for link, a in product(LINKS, (-1e3, 1e9)):
        gradient, fisher = LogLikelihood(rows, predictor, link)(np.array([a])).derivatives
        assert gradient == fisher == 0


def test_one_number_for_all_rows_is_a_column_of_ones():
    z, y = draw(200, 4)
    weights = np.random.default_rng(0).uniform(0, 2, 200)
    theta = np.array([0.4])
    one = LogLikelihood(LogitRows(z, y), Constant(), Log(), weights)
    ones = LogLikelihood(LogitRows(z, y), Linear(np.ones((200, 1))), Log(), weights)
    assert one(theta).value == pytest.approx(ones(theta).value, rel=1e-14)
    for got, want in zip(one(theta).derivatives, ones(theta).derivatives, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_array_equal(one.temperatures(theta), np.full(200, np.exp(0.4)))


def test_convergence_is_quadratic_for_one_temperature_without_a_prior():
    z, y = draw(400, 4)
    one = LogLikelihood(LogitRows(z, y), Constant(), Log())
    slow = LogLikelihood(LogitRows(z, y), Linear(np.ones((400, 1))), Log())
    assert (one.order, slow.order) == (2, 1)
    assert one.with_prior(Prior(np.zeros(1), np.eye(1))).order == 1
    quick, exact = fisher_scoring(one, np.zeros(1)), fisher_scoring(slow, np.zeros(1), tolerance=1e-20)
    assert quick.iterations < exact.iterations
    np.testing.assert_allclose(quick.parameters, exact.parameters, rtol=0, atol=1e-6)
