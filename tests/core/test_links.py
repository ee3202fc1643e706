"""Links: derivatives against differences, limits, inverses and extremes."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN, Beta, Link, Log, Softplus

LINKS = [Softplus(), Log(), Softplus(0.3, 20.0), Log(0.3, 20.0)]
EACH_LINK = pytest.mark.parametrize("link", LINKS, ids=repr)
EACH_KIND = pytest.mark.parametrize("kind", [Softplus, Log])


def inside(link: Link) -> np.ndarray:
    """Return predictors all over the range between the limits."""
    ends = link.inverse(link.lower), link.inverse(link.upper)
    a = np.concatenate([np.linspace(*ends, 301), np.linspace(-13, 13, 301)])
    margin = 0.01
    return a[(a > ends[0] + margin) & (a < ends[1] - margin)]


@EACH_LINK
def test_beyond_the_limits_temperature_is_constant_and_derivatives_are_zero(link):
    for T, side in ((link.lower, -1), (link.upper, 1)):
        a = link.inverse(T) + side * np.array([1e-6, 1.0, 1e3, 1e300])
        beta = link.beta(a)
        assert np.all(link.temperature(a) == T)
        assert np.all(beta.value == 1 / T)
        assert not beta.first.any()


@EACH_LINK
def test_no_predictor_overflows(link):
    with np.errstate(all="raise", under="ignore"):
        found = link.beta(np.array([-1e300, -800.0, -1e-300, 0.0, 1e-300, 800.0, 1e300]))
    assert all(np.all(np.isfinite(x)) for x in found)


@EACH_KIND
def test_default_limits_are_one_millionth_and_a_million(kind):
    assert kind().temperature(np.array([-1e3, 1e9])).tolist() == [TEMPERATURE_MIN, TEMPERATURE_MAX]
    assert (TEMPERATURE_MIN, TEMPERATURE_MAX) == (1e-6, 1e6)


def exact(kind: type, a: float) -> Beta:
    """Return beta and its derivative with 50 digits."""
    with mpmath.workdps(50):
        x = mpmath.mpf(a)
        T = mpmath.exp(x) if kind is Log else mpmath.log1p(mpmath.exp(x))
        slope = T if kind is Log else 1 / (1 + mpmath.exp(-x))
        return Beta(*(np.float64(float(x)) for x in (1 / T, -slope / T**2)))


@EACH_LINK
def test_temperature_and_inverse_undo_each_other(link):
    a = inside(link)
    back = np.array([link.inverse(T) for T in link.temperature(a)])
    np.testing.assert_allclose(back, a, rtol=1e-12, atol=1e-12)
    for T in np.geomspace(link.lower, link.upper, 50):
        np.testing.assert_allclose(link.temperature(np.array([link.inverse(T)])), T, rtol=1e-12)


@EACH_KIND
@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.floats(-13.8, 13.8))
def test_beta_and_derivatives_equal_mpmath(kind, a):
    got, want = kind().beta(np.array([a])), exact(kind, a)
    np.testing.assert_allclose(got.value, want.value, rtol=1e-13)
    np.testing.assert_allclose(got.first, want.first, rtol=1e-13)


@pytest.mark.parametrize("T", [1e-6, 1e-3, 0.1, np.log(2), 1.0, 30.0, 800.0, 1e6])
def test_softplus_inverse_equals_mpmath_at_the_extremes(T):
    with mpmath.workdps(50):
        want = float(mpmath.log(mpmath.expm1(mpmath.mpf(T))))
    np.testing.assert_allclose(Softplus().inverse(T), want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("a", [-13.8, -5.0, 0.0, 1e-9, 30.0, 36.7, 40.0, 700.0, 1e4, 9.9e5])
def test_softplus_equals_mpmath_at_the_extremes(a):
    got, want = Softplus().beta(np.array([a])), exact(Softplus, a)
    np.testing.assert_allclose(Softplus().temperature(np.array([a])), 1 / want.value, rtol=1e-15)
    np.testing.assert_allclose(got.first, want.first, rtol=1e-14)
