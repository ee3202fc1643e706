"""The losses of the mixture: values, gradients and curvatures against brute force over all classes."""

import numpy as np
import pytest
from core_reference import draw, jacobian, softmax

from temperance.core.features import ALMOST_ZERO
from temperance.core.logit_rows import LogitRows
from temperance.core.mixture import BrierMixture, LogMixture, MixtureLoss, mixture_weights

Z, Y = draw(80, 5, spread=1.5, seed=51)
WEIGHTS = np.random.default_rng(52).integers(0, 3, size=len(Z)).astype(float)
THETA = np.array([0.6, 0.4, 0.375])  # log T, u, q
EACH_LOSS = pytest.mark.parametrize("loss", [LogMixture, BrierMixture])
EACH_WEIGHTING = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])


def probabilities(theta: np.ndarray, z: np.ndarray = Z) -> np.ndarray:
    """Return the mixture, written out; a masked class is not possible."""
    log_temperature, u, q = theta
    possible = np.isfinite(z)
    uniform = possible / possible.sum(axis=1, keepdims=True)
    return (1 - u) * softmax(z, np.exp(-log_temperature)) + u * (1 - q) * softmax(z, 1.0) + u * q * uniform


def row_losses(loss: type[MixtureLoss], theta: np.ndarray, z: np.ndarray = Z) -> np.ndarray:
    p = probabilities(theta, z)
    if loss is LogMixture:
        return -np.log(p[np.arange(len(z)), Y])
    return ((p - np.eye(z.shape[1])[Y]) ** 2).sum(axis=1)


@EACH_LOSS
@EACH_WEIGHTING
def test_value_is_the_mean_and_gradient_equals_differences(kernel, loss, weights):
    here = loss(LogitRows(Z, Y), weights)(THETA)

    def value(theta: np.ndarray) -> np.ndarray:
        return np.average(row_losses(loss, theta), weights=weights)

    np.testing.assert_allclose(here.value, value(THETA), rtol=1e-12)
    np.testing.assert_allclose(here.gradient, jacobian(value, THETA), rtol=1e-8, atol=1e-10)


@EACH_WEIGHTING
def test_curvature_is_the_sum_of_the_outer_products_of_slopes(weights):
    share = np.ones(len(Z)) if weights is None else weights
    share = share / share.sum()
    slopes = jacobian(probabilities, THETA)
    brier = BrierMixture(LogitRows(Z, Y), weights)(THETA).fisher
    np.testing.assert_allclose(
        brier, 2 * np.einsum("n,nkp,nkq->pq", share, slopes, slopes), rtol=1e-8, atol=1e-12
    )
    of_log = -jacobian(lambda theta: row_losses(LogMixture, theta), THETA)
    likelihood = LogMixture(LogitRows(Z, Y), weights)(THETA).fisher
    np.testing.assert_allclose(
        likelihood, np.einsum("n,np,nq->pq", share, of_log, of_log), rtol=1e-8, atol=1e-12
    )


@EACH_LOSS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_masked_class_has_no_share_of_the_uniform_part(kernel, loss, dtype):
    z = Z.astype(dtype)
    masked = (Y + 1) % 5
    z[np.arange(40), masked[:40]] = -np.inf
    here = loss(LogitRows(z, Y))(THETA)
    tolerance = {np.float32: 1e-6, np.float64: 1e-12}[dtype]
    np.testing.assert_allclose(here.value, row_losses(loss, THETA, z).mean(), rtol=tolerance)
    assert np.all(np.isfinite(here.gradient))


def test_a_temperature_near_zero_gives_finite_probabilities_for_gaps_of_a_million(kernel):
    for dtype in (np.float32, np.float64):
        z = np.array([[0, -1e6, 3.0, -np.inf]], dtype)
        np.testing.assert_allclose(LogitRows(z).softmax(ALMOST_ZERO)[0], [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6)


@pytest.mark.parametrize("u", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("q", [0.0, 0.6, 1.0])
def test_any_u_and_q_give_weights(u, q):
    weights = mixture_weights(np.array([0.2, u, q]))
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-15)


def test_an_underflowing_label_has_a_finite_loss():
    rows = LogitRows(np.array([[0.0, -1e5]]), np.array([1]))
    assert np.isfinite(LogMixture(rows)(np.array([0.0, 0.5, 0.0])).value)
