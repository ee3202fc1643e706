"""A bias for each class, added to tempered logits: the mixture against its definition."""

import numpy as np
import pytest
import scipy.special
from core_reference import draw

from temperance.core import logit_rows as rows_module
from temperance.core.biased_rows import Inputs, offset_mixture
from temperance.core.logit_rows import LogitRows

N, K = 50, 4
Z, _ = draw(N, K, seed=41)
RNG = np.random.default_rng(42)

EACH_INPUT = pytest.mark.parametrize("scale", [None, 1.7], ids=["bias", "interactions"])


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
