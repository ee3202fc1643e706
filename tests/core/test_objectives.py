"""What every objective guarantees: parts, weights, blocks, subsamples, priors and rounding."""

import numpy as np
import pytest
from core_models import Y, Z
from core_reference import jacobian

from temperance.core import logit_rows
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.ece_loss import EceLoss
from temperance.core.fit_data import InMemoryFitData
from temperance.core.links import Log, Softplus
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import MAP_SEGMENTS, MapLikelihood, RowMapLikelihood, increments_basis
from temperance.core.mixture import BrierMixture, LogMixture, MixtureLoss
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import ByClass, Constant, Grouped, Linear, Network

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
    "grouped": (lambda rows, w: LogLikelihood(rows, Grouped(rows.top, K), Log(), w), K),
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
def build(request):
    """Return the function that builds each of the objectives from some of the rows, by their indices."""
    make, n_parameters = OBJECTIVES[request.param]

    def of(index=slice(None), weights=None):
        return make(LogitRows(Z[index], Y[index]), weights)

    of.make, of.theta = make, 0.1 * np.random.default_rng(3).uniform(0.5, 2, n_parameters)
    return of


def all_of(objective, theta):
    here = objective(theta)
    return here.value, *here.derivatives


def assert_same(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_an_objective_is_the_mean_of_those_of_its_parts(build, weights):
    whole = InMemoryFitData(LogitRows(Z, Y), weights).objective(build.make)
    assert whole.total_weight == (N if weights is None else weights.sum())
    total = None
    for part in (slice(0, 7), slice(7, 40), slice(40, N)):
        objective = build(part, None if weights is None else weights[part])
        terms = objective.terms(build.theta, True).times(objective.total_weight / whole.total_weight)
        total = terms if total is None else total + terms
    assert_same(total.combined(), all_of(whole, build.theta))


def test_a_weight_is_a_row_repeated(build):
    weighted, repeated = build(weights=WEIGHTS), build(np.repeat(np.arange(N), WEIGHTS.astype(int)))
    assert weighted.total_weight == repeated.total_weight
    assert_same(all_of(weighted, build.theta), all_of(repeated, build.theta))


def test_the_size_of_the_blocks_does_not_matter(build, monkeypatch):
    whole = all_of(build(weights=WEIGHTS), build.theta)
    monkeypatch.setattr(logit_rows, "GRAM_SIZE", 7 * 16 * 16)
    assert_same(all_of(build(weights=WEIGHTS), build.theta), whole)


def test_every_nth_row_keeps_its_weight_and_the_prior(build):
    whole, direct = build(weights=WEIGHTS), build(slice(None, None, 3), WEIGHTS[::3])
    if not isinstance(whole, MixtureLoss):  # which are fitted without a prior
        prior = Prior(build.theta / 2, np.ones(len(build.theta)))
        whole, direct = whole.with_prior(prior), direct.with_prior(prior)
    thinned = whole.every(3)
    assert thinned.total_weight == direct.total_weight
    assert_same(all_of(thinned, build.theta), all_of(direct, build.theta))


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_prior_adds_its_value_its_gradient_and_its_precision(build, diagonal):
    theta, rng = build.theta, np.random.default_rng(32)
    root = rng.normal(size=(len(theta), len(theta)))
    precision = np.diag(rng.uniform(size=len(theta))) if diagonal else root @ root.T
    prior = Prior(rng.normal(size=len(theta)), precision.diagonal() if diagonal else precision)
    bare, off = build(), theta - prior.mean
    held = bare.with_prior(prior)
    added = off @ precision @ off / 2, precision @ off, precision
    for one, more, both in zip(all_of(bare, theta), added, all_of(held, theta), strict=True):
        np.testing.assert_allclose(both - one, more, rtol=1e-8, atol=1e-12)


def test_without_the_matrix_the_gradient_is_that_of_differences(build):
    objective = build(weights=WEIGHTS)
    _, gradient, matrix = objective.terms(build.theta, False).combined()
    assert matrix is None or not matrix.any()
    np.testing.assert_allclose(gradient, objective(build.theta).gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradient, objective(build.theta).derivatives[0], rtol=1e-12, atol=1e-14)
    slopes = jacobian(lambda at: np.array(objective(at).value), build.theta, 1e-5)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_noise_is_the_precision_of_the_rows(build, dtype):
    assert build.make(LogitRows(Z.astype(dtype), Y), None).noise == np.finfo(dtype).eps
