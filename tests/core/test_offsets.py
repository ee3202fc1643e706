"""A bias for each class: likelihood, derivatives and mixture against the definitions."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
from core_reference import draw, jacobian

from temperance.core import logit_rows as rows_module
from temperance.core.biased_rows import Inputs, offset_mixture
from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior
from temperance.core.offsets import OffsetLogLikelihood
from temperance.core.predictors import ByClass

N, K = 50, 4
Z, Y = draw(N, K, seed=41)
RNG = np.random.default_rng(42)
FEATURES = np.column_stack([np.ones(N), RNG.normal(size=N)])
GROUPS = RNG.integers(-1, 3, size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(float)

EACH_INPUT = pytest.mark.parametrize("scale", [None, 1.7], ids=["bias", "interactions"])
EACH_WEIGHT = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])


class Model(NamedTuple):
    """The objective, parameters at which nothing is 0, and log p of every class as a plain function."""

    objective: OffsetLogLikelihood
    theta: np.ndarray
    scale: float | None

    def log_probabilities(self, theta):
        """Return log softmax(z / T + W x), with each row's numbers spelled out."""
        result = np.empty((N, K))
        one_hot = np.array([[g == k for k in range(3)] for g in GROUPS], float)
        log_t = np.hstack([FEATURES, one_hot]) @ theta[:5]
        for i in range(N):
            x = [1.0] if self.scale is None else [1.0, *((Z[i] - Z[i].mean()) / self.scale)]
            offset = [sum(theta[5 + j * K + k] * x[j] for j in range(len(x))) for k in range(K)]
            result[i] = scipy.special.log_softmax(Z[i] / np.exp(log_t[i]) + offset)
        return result


def build(scale, weights=None, prior=None, values=Z):
    predictor = ByClass(FEATURES, GROUPS, 3)
    objective = OffsetLogLikelihood(LogitRows(values, Y), predictor, Log(), Inputs(K, scale), weights, prior)
    theta = 0.4 * np.random.default_rng(43).normal(size=objective.n_parameters)
    return Model(objective, theta, scale)


def prior_of(n):
    root = np.random.default_rng(44).normal(size=(n, n))
    return Prior(root[0], root @ root.T / n**2)


@EACH_INPUT
@EACH_WEIGHT
def test_the_value_is_the_weighted_mean_of_the_definition(scale, weights):
    model = build(scale, weights)
    nll = -model.log_probabilities(model.theta)[np.arange(N), Y]
    np.testing.assert_allclose(
        model.objective(model.theta).value, np.average(nll, weights=weights), rtol=1e-12
    )
    assert model.objective.total_weight == (N if weights is None else weights.sum())
    assert model.objective.n_parameters == 5 + (K if scale is None else K + K * K)


@EACH_INPUT
@EACH_WEIGHT
def test_the_gradient_equals_differences(scale, weights):
    model = build(scale, weights)

    def value(theta):
        return np.average(-model.log_probabilities(theta)[np.arange(N), Y], weights=weights)

    here = model.objective(model.theta)
    np.testing.assert_allclose(here.gradient, jacobian(value, model.theta, 1e-4), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(here.derivatives[0], here.gradient, rtol=1e-12, atol=1e-14)


@EACH_INPUT
@EACH_WEIGHT
def test_the_fisher_matrix_is_the_expected_product_of_scores_over_all_classes(scale, weights):
    model = build(scale, weights)
    scores = jacobian(model.log_probabilities, model.theta, 1e-4)
    p = np.exp(model.log_probabilities(model.theta))
    share = np.ones(N) / N if weights is None else weights / weights.sum()
    want = sum(share[i] * p[i, k] * np.outer(scores[i, k], scores[i, k]) for i in range(N) for k in range(K))
    fisher = model.objective(model.theta).derivatives[1]
    np.testing.assert_allclose(fisher, want, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(fisher[:5, 5:], fisher[5:, :5].T)


@EACH_INPUT
def test_a_prior_adds_its_value_its_gradient_and_its_precision(scale):
    model = build(scale)
    prior = prior_of(len(model.theta))
    bare, held = model.objective(model.theta), model.objective.with_prior(prior)(model.theta)
    off = model.theta - prior.mean
    assert held.value - bare.value == pytest.approx(off @ prior.precision @ off / 2, rel=1e-9)
    np.testing.assert_allclose(held.gradient - bare.gradient, prior.precision @ off, rtol=1e-8, atol=1e-12)
    added = held.derivatives[1] - bare.derivatives[1]
    np.testing.assert_allclose(added, prior.precision, rtol=1e-8, atol=1e-12)


@EACH_INPUT
def test_a_constant_added_to_each_row_changes_nothing(scale):
    shifted = build(scale, WEIGHTS, values=Z + 100 * np.cos(np.arange(N))[:, None])
    plain = build(scale, WEIGHTS)
    here, there = plain.objective(plain.theta), shifted.objective(plain.theta)
    assert there.value == pytest.approx(here.value, rel=1e-12)
    for got, want in zip(there.derivatives, here.derivatives, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@EACH_INPUT
def test_a_weight_is_a_row_repeated(scale):
    times = WEIGHTS.astype(int)
    weighted = build(scale, WEIGHTS)
    predictor = ByClass(FEATURES.repeat(times, axis=0), GROUPS.repeat(times), 3)
    rows = LogitRows(Z.repeat(times, axis=0), Y.repeat(times))
    repeated = OffsetLogLikelihood(rows, predictor, Log(), Inputs(K, scale))
    here, there = weighted.objective(weighted.theta), repeated(weighted.theta)
    assert here.value == pytest.approx(there.value, rel=1e-12)
    for got, want in zip(here.derivatives, there.derivatives, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@EACH_INPUT
def test_the_sums_do_not_depend_on_the_blocks(scale, monkeypatch):
    model = build(scale, WEIGHTS)
    whole = model.objective(model.theta)
    value, (gradient, fisher) = whole.value, whole.derivatives
    monkeypatch.setattr(rows_module, "GRAM_SIZE", 7 * K * Inputs(K, scale).width)
    in_blocks = model.objective(model.theta)
    assert in_blocks.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(in_blocks.derivatives[0], gradient, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(in_blocks.derivatives[1], fisher, rtol=1e-11, atol=1e-14)


@EACH_INPUT
def test_every_nth_row_keeps_its_label_weight_features_and_prior(scale):
    model = build(scale, WEIGHTS, prior_of(build(scale).objective.n_parameters))
    predictor = ByClass(FEATURES[::3], GROUPS[::3], 3)
    rows = LogitRows(Z[::3], Y[::3])
    direct = OffsetLogLikelihood(
        rows, predictor, Log(), Inputs(K, scale), WEIGHTS[::3], model.objective.prior
    )
    thinned = model.objective.every(3)
    assert thinned.total_weight == WEIGHTS[::3].sum()
    assert thinned(model.theta).value == pytest.approx(direct(model.theta).value, rel=1e-12)
    got, want = thinned(model.theta).derivatives, direct(model.theta).derivatives
    np.testing.assert_allclose(got[1], want[1], rtol=1e-10, atol=1e-13)


@EACH_INPUT
@pytest.mark.parametrize("gap", [1e4, 1e6])
def test_extreme_logits_have_finite_derivatives(scale, gap):
    values = gap * np.sign(Z)
    model = build(scale, values=values)  # offsets as large as the logits, too
    here = model.objective(model.theta)
    assert np.isfinite(here.value)
    for part in here.derivatives:
        assert np.isfinite(part).all()
    log_t = model.objective.predictor.predict(model.theta[:5])
    W = model.theta[5:].reshape(-1, K).T
    x = Inputs(K, model.scale).of(values)
    u = values / np.exp(log_t)[:, None] + x @ W.T
    want = -scipy.special.log_softmax(u, axis=1)[np.arange(N), Y].mean()
    assert here.value == pytest.approx(want, rel=1e-10)


def test_the_inputs_are_a_constant_and_the_centred_logits():
    np.testing.assert_array_equal(Inputs(K, None).of(Z), np.ones((N, 1)))
    assert Inputs(K, None).width == 1
    x = Inputs(K, 2.0).of(Z)
    assert x.shape == (N, Inputs(K, 2.0).width) == (N, 1 + K)
    np.testing.assert_array_equal(x[:, 0], 1)
    np.testing.assert_allclose(x[:, 1:], (Z - Z.mean(axis=1, keepdims=True)) / 2, rtol=1e-13)


BETAS, SHARES = RNG.uniform(0.2, 3, size=(N, 3)), np.array([0.5, 0.2, 0.3])


def naive_mixture(z, scale, W):
    x = np.ones((len(z), 1))
    if scale is not None:
        x = np.hstack([x, (z - z.mean(axis=1, keepdims=True)) / scale])
    parts = [scipy.special.softmax(BETAS[:, [q]] * z + x @ W.T, axis=1) for q in range(3)]
    return sum(share * part for share, part in zip(SHARES, parts, strict=True))


@EACH_INPUT
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_mixture_is_the_weighted_mean_of_softmaxes(scale, dtype, monkeypatch):
    W = np.random.default_rng(45).normal(size=(K, Inputs(K, scale).width))
    values = Z.astype(dtype)
    want = naive_mixture(values.astype(float), scale, W)
    monkeypatch.setattr(rows_module, "GRAM_SIZE", 7 * K)
    rtol = 1e-11 if dtype == np.float64 else 1e-6
    got = offset_mixture(LogitRows(values), BETAS, SHARES, Inputs(K, scale), W, log=False)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=rtol)
    got = offset_mixture(LogitRows(values), BETAS, SHARES, Inputs(K, scale), W, log=True)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.log(want), rtol=rtol, atol=rtol)


def test_the_mixture_is_finite_where_its_probabilities_underflow():
    z, betas, shares = np.array([[0.0, -1e4, -5e3]]), np.array([[1.0, 0.5]]), np.array([0.5, 0.5])
    W = np.array([[0.0], [1.0], [2.0]])
    got = offset_mixture(LogitRows(z), betas, shares, Inputs(3, None), W, log=True)
    np.testing.assert_allclose(got, [[0, np.log(0.5) - 5e3 + 1, np.log(0.5) - 2.5e3 + 2]], rtol=1e-12)
    assert offset_mixture(LogitRows(z), betas, shares, Inputs(3, None), W, log=False).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("log", [False, True])
def test_the_mixture_is_a_probability_where_rounded_weights_add_up_to_more_than_1(log):
    z, betas, shares = np.array([[0.0, -1e4]]), np.ones((1, 3)), np.array([0.5, 0.25, 0.25 + 1e-15])
    assert shares.sum() > 1
    got = offset_mixture(LogitRows(z), betas, shares, Inputs(2, None), np.zeros((2, 1)), log=log)
    assert got[0, 0] == (0.0 if log else 1.0)
