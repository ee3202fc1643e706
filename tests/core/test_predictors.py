"""Predictors: J' da and J' diag(w) J against a Jacobian from differences."""

import numpy as np
import pytest
from core_models import (
    CLASSES,
    FEATURES,
    GROUPS,
    INPUTS,
    N_CLASSES,
    N_GROUPS,
    N_ROWS,
    PREDICTORS,
    Z,
    build,
    without_pin,
)
from core_reference import jacobian

from temperance.core import predictors as predictors_module
from temperance.core.logit_rows import LogitRows
from temperance.core.predictors import ByClass, Constant, Linear, Network

EACH = pytest.mark.parametrize("name", PREDICTORS)
RNG = np.random.default_rng(21)
DA, W = RNG.normal(size=N_ROWS), RNG.uniform(size=N_ROWS) * (RNG.uniform(size=N_ROWS) < 0.9)


@EACH
def test_pull_back_equals_the_jacobian_from_differences(name):
    _, predictor, theta = build(name)
    J = jacobian(predictor.predict, theta, 1e-5)
    gradient, matrix = predictor.pull_back(theta, DA, W)
    np.testing.assert_allclose(gradient, J.T @ DA, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(without_pin(name, matrix), J.T @ (W[:, None] * J), rtol=1e-8, atol=1e-8)
    alone, no_matrix = predictor.pull_back(theta, DA, None)
    assert no_matrix is None
    np.testing.assert_allclose(alone, gradient, rtol=1e-12, atol=1e-12)


@EACH
def test_every_nth_row_is_predicted_as_before(name):
    rows, predictor, theta = build(name)
    thinned = predictor.take(slice(None, None, 7), rows.take(slice(None, None, 7)))
    assert thinned.n_parameters == predictor.n_parameters
    np.testing.assert_allclose(thinned.predict(theta), predictor.predict(theta)[::7], rtol=1e-12)
    # The matrix too belongs to these rows alone.
    J = jacobian(predictor.predict, theta, 1e-5)[::7]
    got = thinned.pull_back(theta, DA[::7], W[::7])[1]
    np.testing.assert_allclose(without_pin(name, got), J.T @ (W[::7, None] * J), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in PREDICTORS if "logits" in name])
def test_only_the_common_level_of_the_class_weights_is_pinned(name):
    _, predictor, theta = build(name)
    matrix = predictor.pull_back(theta, DA, W)[1]
    level = np.zeros(len(theta))
    level[-N_CLASSES:] = 1
    curvature = np.trace(without_pin(name, matrix)[-N_CLASSES:, -N_CLASSES:]) / N_CLASSES
    # The level is an eigenvector whose curvature is the mean of the others', so nothing else is moved.
    np.testing.assert_allclose(matrix @ level, curvature * level, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(predictor.predict(theta + 3 * level), predictor.predict(theta), atol=1e-10)


def test_predictions_are_those_of_the_definitions():
    assert Constant().pull_back(np.ones(1), DA, W)[1].shape == 2 * (Constant.n_parameters,)
    X = Z - Z.mean(axis=1, keepdims=True)
    theta = np.arange(1.0, 8.0)
    want = FEATURES @ theta[:2] + X @ theta[2:]
    np.testing.assert_allclose(Linear(FEATURES, LogitRows(Z)).predict(theta), want, rtol=1e-12, atol=1e-12)
    _, groups, theta = build("groups")
    assert np.array_equal(groups.predict(theta), [theta[g] for g in GROUPS])


def test_by_class_is_linear_in_the_features_and_an_indicator_of_each_class():
    _, predictor, theta = build("features and classes")
    one_hot = (CLASSES[:, None] == np.arange(N_GROUPS)).astype(float)  # all 0 where there is no class
    assert (CLASSES == -1).any()
    J = np.hstack([FEATURES, one_hot])
    dense = Linear(J)
    np.testing.assert_allclose(predictor.gather(FEATURES), J.T @ FEATURES, rtol=1e-12)
    assert predictor.n_parameters == dense.n_parameters
    np.testing.assert_allclose(predictor.predict(theta), dense.predict(theta), rtol=1e-14)
    for got, want in zip(predictor.pull_back(theta, DA, W), dense.pull_back(theta, DA, W), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    none = np.full(N_ROWS, -1)
    np.testing.assert_array_equal(ByClass(FEATURES, none, 3).pull_back(theta[:5], DA, W)[0][2:], 0)


def test_the_network_is_rectified_in_its_hidden_layers_alone():
    net = Network(INPUTS, (4, 2))
    theta = np.random.default_rng(3).normal(size=net.n_parameters)
    W1, b1, W2, b2 = theta[:12].reshape(3, 4), theta[12:16], theta[16:24].reshape(4, 2), theta[24:26]
    h = np.maximum(np.maximum(INPUTS @ W1 + b1, 0) @ W2 + b2, 0)
    want = h @ theta[26:28] + theta[28]
    np.testing.assert_allclose(net.predict(theta), want, rtol=1e-13)
    assert want.min() < 0  # a negative output passes


def test_the_network_sums_over_blocks_of_rows(monkeypatch):
    _, net, theta = build("network 5-5")
    want = net.pull_back(theta, DA, W)
    monkeypatch.setattr(predictors_module, "JACOBIAN_ROWS", 7)
    for got, expected in zip(net.pull_back(theta, DA, W), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_the_network_starts_near_its_bias_and_is_constant_without_last_weights():
    net = Network(INPUTS, (5, 5))
    theta = net.start(2.5, np.random.default_rng(0))
    assert np.array_equal(theta, net.start(2.5, np.random.default_rng(0)))
    assert np.ptp(net.predict(theta)) > 0
    assert np.abs(net.predict(theta) - 2.5).max() < 1
    before = theta.copy()
    assert np.all(net.predict(net.constant(theta)) == 2.5)
    assert np.array_equal(theta, before)


def test_weight_decay_excludes_only_the_last_bias():
    net = Network(INPUTS, (4,))
    decay = net.decay(0.5)
    assert np.array_equal(decay, np.diag([0.5] * (net.n_parameters - 1) + [0.0]))
    assert net.n_parameters == (3 + 1) * 4 + (4 + 1)


def test_the_sign_of_a_bias_near_zero_has_no_effect():
    # The first layer is silent for every row, so the second sees its bias alone: 0 but for the last bit.
    net = Network(np.full((4, 1), -1.0), (1, 1))
    above, below = (np.array([1.0, 0.0, 1.0, bias, 1.0, 0.5]) for bias in (1e-17, -1e-17))
    alive = np.array([1.0, 0.0, 1.0, 1e-9, 1.0, 0.5])
    of_above, of_below, of_alive = (net.pull_back(theta, DA[:4], W[:4]) for theta in (above, below, alive))
    for positive, negative, larger in zip(of_above, of_below, of_alive, strict=True):
        np.testing.assert_array_equal(positive, negative)
        assert (larger != positive).any()
