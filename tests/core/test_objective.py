"""What every objective guarantees, and the likelihood against its definition."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from core_models import N_ROWS, PREDICTORS, Y, Z, build, without_pin
from core_reference import draw, jacobian, log_softmax

from temperance.core import logit_rows
from temperance.core.blocks import sampled_rows
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.ece_loss import EceLoss
from temperance.core.fisher import fisher_scoring
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import MAP_SEGMENTS, MapLikelihood, RowMapLikelihood, increments_basis
from temperance.core.mixture import BrierMixture, LogMixture, MixtureLoss
from temperance.core.objective import FitData, LogLikelihood, Prior
from temperance.core.predictors import ByClass, Constant, Linear, Log, Network, Softplus

N, K = Z.shape
WEIGHTS = np.random.default_rng(31).integers(0, 4, size=N).astype(float)


def features(rows):
    return np.column_stack([np.ones(rows.n_rows), np.maximum(rows.log_entropy()[:, 0], -20)])


def network(rows):
    return Network(rows.topk(3), (3,))


def maps_with_temperatures(rows, weights):
    basis = increments_basis(np.arange(1.0, MAP_SEGMENTS + 1))
    return RowMapLikelihood(rows, 1.3, ByClass(features(rows), rows.top - 1, K - 1), Log(), basis, weights)


# By name: the objective of rows and weights, and its number of parameters.
OBJECTIVES = {
    "constant": (lambda rows, w: LogLikelihood(rows, Constant(), Log(), w), 1),
    "linear": (lambda rows, w: LogLikelihood(rows, Linear(features(rows), rows), Softplus(), w), 2 + K),
    "grouped": (
        lambda rows, w: LogLikelihood(rows, ByClass(np.empty((rows.n_rows, 0)), rows.top, K), Log(), w),
        K,
    ),
    "network": (lambda rows, w: LogLikelihood(rows, network(rows), Softplus(), w), 4 * 3 + 4),
    "ECE": (lambda rows, w: EceLoss(rows, network(rows), Softplus(), w), 4 * 3 + 4),
    "bias": (lambda rows, w: ClassBiasLikelihood(rows, w, interacting=False), 1 + K),
    "interactions": (lambda rows, w: ClassBiasLikelihood(rows, w, interacting=True), 1 + K + K * K),
    "map": (lambda rows, w: MapLikelihood(rows, 1.3, w), MAP_SEGMENTS),
    "maps": (maps_with_temperatures, 2 + K - 1 + MAP_SEGMENTS - 1),
    "log mixture": (LogMixture, 3),
    "Brier mixture": (BrierMixture, 3),
}


@pytest.fixture(params=OBJECTIVES)
def objective_of(request):
    """Return the function that builds each of the objectives from some of the rows, by their indices."""
    make, n_parameters = OBJECTIVES[request.param]

    def of(index=slice(None), weights=None):
        return make(LogitRows(Z[index], Y[index]), weights)

    of.make, of.theta = make, 0.1 * np.random.default_rng(3).uniform(0.5, 2, n_parameters)
    return of


def all_of(objective, theta):
    return tuple(objective(theta))


def combined(terms):
    """Return the value and the derivatives from the terms of all rows."""
    value, gradient, *fisher = terms
    return (np.abs(value).sum(), np.sign(value) @ gradient, *fisher) if np.ndim(value) else terms


def assert_same(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_an_objective_is_the_mean_of_those_of_its_parts(objective_of, weights):
    whole = FitData(LogitRows(Z, Y), weights).objective(objective_of.make)
    assert whole.total_weight == (N if weights is None else weights.sum())
    parts = []
    for part in (slice(0, 7), slice(7, 40), slice(40, N)):
        objective = objective_of(part, None if weights is None else weights[part])
        share = objective.total_weight / whole.total_weight
        parts.append([share * term for term in objective.terms(objective_of.theta, True)])
    assert_same(
        combined([sum(terms) for terms in zip(*parts, strict=True)]), all_of(whole, objective_of.theta)
    )


def test_a_weight_is_a_row_repeated(objective_of):
    weighted, repeated = (
        objective_of(weights=WEIGHTS),
        objective_of(np.repeat(np.arange(N), WEIGHTS.astype(int))),
    )
    assert weighted.total_weight == repeated.total_weight
    assert_same(all_of(weighted, objective_of.theta), all_of(repeated, objective_of.theta))


def test_the_size_of_the_blocks_does_not_matter(objective_of, monkeypatch):
    whole = all_of(objective_of(weights=WEIGHTS), objective_of.theta)
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", 7 * 16 * 16)
    assert_same(all_of(objective_of(weights=WEIGHTS), objective_of.theta), whole)


def test_a_sampled_row_keeps_its_weight_and_the_prior(objective_of):
    whole = objective_of(weights=WEIGHTS)
    at = sampled_rows(3, whole.rows.n_rows)
    direct = objective_of(at, WEIGHTS[at])
    if not isinstance(whole, MixtureLoss):  # which are fitted without a prior
        prior = Prior(objective_of.theta / 2, np.ones(len(objective_of.theta)))
        whole, direct = whole.with_prior(prior), direct.with_prior(prior)
    thinned = whole.every(3)
    assert thinned.total_weight == direct.total_weight
    assert_same(all_of(thinned, objective_of.theta), all_of(direct, objective_of.theta))


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_prior_adds_its_value_its_gradient_and_its_precision(objective_of, diagonal):
    theta, rng = objective_of.theta, np.random.default_rng(32)
    root = rng.normal(size=(len(theta), len(theta)))
    precision = np.diag(rng.uniform(size=len(theta))) if diagonal else root @ root.T
    prior = Prior(rng.normal(size=len(theta)), precision.diagonal() if diagonal else precision)
    bare, off = objective_of(), theta - prior.mean
    held = bare.with_prior(prior)
    added = off @ precision @ off / 2, precision @ off, precision
    for one, more, both in zip(all_of(bare, theta), added, all_of(held, theta), strict=True):
        np.testing.assert_allclose(both - one, more, rtol=1e-8, atol=1e-12)


def test_without_the_matrix_the_gradient_is_that_of_differences(objective_of):
    objective = objective_of(weights=WEIGHTS)
    _, gradient, *_ = combined(objective.terms(objective_of.theta, False))
    np.testing.assert_allclose(gradient, objective(objective_of.theta).gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradient, objective(objective_of.theta).gradient, rtol=1e-12, atol=1e-14)
    slopes = jacobian(lambda at: np.array(objective(at).value), objective_of.theta, 1e-5)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_noise_is_the_precision_of_the_rows(objective_of, dtype):
    assert objective_of.make(LogitRows(Z.astype(dtype), Y), None).noise == np.finfo(dtype).eps


LINKS = [Softplus(), Log()]
EACH_MODEL = pytest.mark.parametrize(
    ("name", "link"),
    list(product(PREDICTORS, LINKS)),
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)


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
    fisher = LogLikelihood(rows, predictor, link, weights)(theta).fisher
    np.testing.assert_allclose(without_pin(name, fisher), want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", PREDICTORS)
def test_fisher_matrix_is_positive_semi_definite_far_from_the_optimum(name):
    rows, predictor, theta = build(name)
    for factor in (0, 1, 10):
        fisher = LogLikelihood(rows, predictor, Softplus())(factor * theta).fisher
        assert np.linalg.eigvalsh(fisher).min() >= -1e-12 * max(1, np.abs(fisher).max())


def test_a_value_costs_one_pass_and_its_derivatives_none_for_stored_features():
    rows, predictor, theta = build("features")
    objective = LogLikelihood(rows, predictor, Log())
    here = objective(theta)
    _ = here.gradient, here[1:]
    assert objective.passes == rows.passes == 2  # the first finds the tops


def test_the_gradient_is_zero_where_every_temperature_is_at_its_limit():
    rows, predictor, _ = build("constant")
    for link, a in product(LINKS, (-1e3, 1e9)):
        gradient, fisher = LogLikelihood(rows, predictor, link)(np.array([a]))[1:]
        assert gradient == fisher == 0


def test_one_number_for_all_rows_is_a_column_of_ones():
    z, y = draw(200, 4)
    weights = np.random.default_rng(0).uniform(0, 2, 200)
    theta = np.array([0.4])
    one = LogLikelihood(LogitRows(z, y), Constant(), Log(), weights)
    ones = LogLikelihood(LogitRows(z, y), Linear(np.ones((200, 1))), Log(), weights)
    assert one(theta).value == pytest.approx(ones(theta).value, rel=1e-14)
    for got, want in zip(one(theta)[1:], ones(theta)[1:], strict=True):
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
