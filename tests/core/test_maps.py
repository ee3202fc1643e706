"""Increasing maps of log-probabilities: moments, derivatives and optima against the definitions."""

import os
from functools import partial
from itertools import pairwise
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from core_reference import DIGITS, draw, jacobian

from temperance.core import kernels, row_block
from temperance.core.kernels import KNOTS, MapTable
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import (
    EMPHASIS,
    MAP_SEGMENTS,
    MapLikelihood,
    RowMapLikelihood,
    increments_basis,
    slope_weights,
)
from temperance.core.predictors import ByClass, Log

N, T0 = 90, 1.3
RNG = np.random.default_rng(3)
SLOPES = np.exp(0.5 * RNG.normal(size=MAP_SEGMENTS))
WEIGHTS = RNG.integers(0, 3, size=N).astype(float)
FEATURES = np.column_stack([np.ones(N), RNG.normal(size=N)])
GROUPS = RNG.integers(-1, 3, size=N)
EACH_SIZE = pytest.mark.parametrize("n_classes", [2, 10, 60])
MASKED = pytest.mark.parametrize("masked", [False, True], ids=["all classes", "masks"])
EACH_KIND_OF_ROWS = pytest.mark.parametrize(
    ("weights", "masked"), [(None, False), (WEIGHTS, True)], ids=["plain", "weights and masks"]
)


def sample(n_classes, *, masked=False):
    """Return logits whose log-probabilities fall in all segments, and labels of which some are rare."""
    z, y = draw(N, n_classes, spread=3.0, scale=2.0, seed=n_classes)
    y[::9] = np.random.default_rng(7).integers(n_classes, size=len(y[::9]))
    if masked:
        hidden = np.random.default_rng(8).random(z.shape) < 0.2
        hidden[np.arange(N), y] = False
        z[hidden] = -np.inf
    return z, y


def negative_log_probabilities(z, reference=T0):
    """Return -log softmax(z / T0) in the widest type there is; infinite for a masked class."""
    x = z.astype(np.longdouble) / reference
    d = x - x.max(axis=1, keepdims=True)
    return np.log(np.exp(d).sum(axis=1, keepdims=True)) - d


def mapped_log_probabilities(z, slopes, reference=T0):
    """Return log softmax(-u), with the integral of the slope from 0 to e as u; slopes (9,) or (N, 9)."""
    e = negative_log_probabilities(z, reference)
    u = np.zeros_like(e)
    ends = [*KNOTS[1:], np.inf]
    for j, (low, high) in enumerate(zip(KNOTS, ends, strict=True)):
        u += slopes[..., j, None] * np.clip(e - low, 0, high - low)
    u = u - u.min(axis=1, keepdims=True)
    return -u - np.log(np.exp(-u).sum(axis=1, keepdims=True))


def mean_loss(z, y, slopes, weights):
    log_p = mapped_log_probabilities(z, slopes)
    return np.average(-log_p[np.arange(len(z)), y], weights=weights).astype(np.float64)


def row_slopes(theta, basis):
    """Return the slopes of each row under the parameters of `RowMapLikelihood`."""
    own, increments = theta[:5], theta[5:]
    log_t = FEATURES @ own[:2] + np.append(own[2:], 0.0)[GROUPS]
    return np.exp(basis @ increments) * (T0 / np.exp(log_t))[:, None]


def row_losses(z, y, slopes):
    """Return each row's negative log-likelihood and the log loss of whether its top class is right."""
    log_p = mapped_log_probabilities(z, slopes)
    each, top = np.arange(len(z)), z.argmax(axis=1)
    others = np.exp(log_p)
    others[each, top] = 0
    doubt = np.where(top == y, 1.0, others.sum(axis=1))
    binary = np.where(top == y, -log_p[each, top], -np.log(doubt))
    return -log_p[each, y], binary


def build(z, y, weights=None, prior=None):
    basis = increments_basis(slope_weights(LogitRows(z, y), weights, T0)[0])
    objective = RowMapLikelihood(
        LogitRows(z, y), T0, ByClass(FEATURES, GROUPS, 3), Log(), basis, weights, prior
    )
    theta = 0.3 * np.random.default_rng(5).normal(size=objective.n_parameters)
    return objective, theta, basis


@EACH_SIZE
@EACH_KIND_OF_ROWS
def test_one_map_has_the_value_and_derivatives_of_its_definition(kernel, n_classes, weights, masked):
    z, y = sample(n_classes, masked=masked)
    objective = MapLikelihood(LogitRows(z, y), T0, weights)
    here = objective(SLOPES)
    np.testing.assert_allclose(here.value, mean_loss(z, y, SLOPES, weights), rtol=1e-12)
    by_differences = jacobian(lambda w: mean_loss(z, y, w, weights), SLOPES)
    np.testing.assert_allclose(here.gradient, by_differences, rtol=1e-8, atol=1e-11)


@EACH_SIZE
@MASKED
def test_the_hessian_of_one_map_is_exact(kernel, n_classes, masked):
    z, y = sample(n_classes, masked=masked)
    objective = MapLikelihood(LogitRows(z, y), T0, WEIGHTS)
    gradient, hessian = objective(SLOPES)[1:]
    np.testing.assert_array_equal(gradient, objective(SLOPES).gradient)
    by_differences = jacobian(lambda w: objective(w).gradient, SLOPES)
    np.testing.assert_allclose(hessian, by_differences, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(hessian, hessian.T)
    assert np.linalg.eigvalsh(hessian).min() > -1e-14


@EACH_SIZE
@EACH_KIND_OF_ROWS
def test_maps_with_temperatures_have_the_value_and_gradient_of_their_definition(
    kernel, n_classes, weights, masked
):
    z, y = sample(n_classes, masked=masked)
    objective, theta, basis = build(z, y, weights)

    def value(at):
        nll, binary = row_losses(z, y, row_slopes(at, basis))
        return np.average(nll + EMPHASIS * binary, weights=weights).astype(np.float64)

    here = objective(theta)
    np.testing.assert_allclose(here.value, value(theta), rtol=1e-12)
    np.testing.assert_allclose(here.gradient, jacobian(value, theta), rtol=1e-7, atol=1e-10)


def test_the_fisher_matrix_of_maps_with_temperatures_is_the_expected_outer_product():
    z, y = sample(4)
    objective, theta, basis = build(z, y, WEIGHTS)
    log_p = mapped_log_probabilities(z, row_slopes(theta, basis)).astype(float)
    share = WEIGHTS / WEIGHTS.sum()
    want = np.zeros((len(theta), len(theta)))
    for label in range(4):
        labels = np.full(N, label)
        for part, emphasis in ((0, 1.0), (1, EMPHASIS)):
            slopes = jacobian(
                lambda at, part=part, labels=labels: row_losses(z, labels, row_slopes(at, basis))[part], theta
            ).astype(float)
            chance = emphasis * share * np.exp(log_p[:, label])
            want += np.einsum("n,np,nq->pq", chance, slopes, slopes)
    np.testing.assert_allclose(objective(theta).fisher, want, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremely_confident_rows_stay_finite(dtype):
    z = np.repeat(np.array([[1e4, 0.0, -5.0], [1.0, 0.5, 0.0]], dtype), [N - 1, 1], axis=0)
    objective, _, _ = build(z, np.arange(N) % 3)
    here = objective(np.zeros(objective.n_parameters))
    gradient, fisher = here[1:]
    assert np.isfinite([here.value, *gradient, *fisher.ravel()]).all()
    assert gradient[0] < 0  # a higher temperature is better


def exact_moments(row, slopes, label):
    """Return value, gradient and Hessian of one row by the slopes, with 60 digits."""
    with mpmath.workdps(DIGITS):
        top = max(row)
        d = [(mpmath.mpf(float(x)) - mpmath.mpf(float(top))) / mpmath.mpf(T0) for x in row if np.isfinite(x)]
        log_s = mpmath.log(mpmath.fsum(map(mpmath.exp, d)))
        knots = [*map(mpmath.mpf, KNOTS.tolist()), mpmath.inf]
        pairs = list(pairwise(knots))
        parts = [[min(max(log_s - x - low, 0), high - low) for low, high in pairs] for x in d]
        u = [mpmath.fdot(part, map(mpmath.mpf, slopes.tolist())) for part in parts]
        log_total = mpmath.log(mpmath.fsum(mpmath.exp(-x) for x in u))
        p = [mpmath.exp(-x - log_total) for x in u]
        mean = [mpmath.fdot(p, column) for column in zip(*parts, strict=True)]
        off = [[a - b for a, b in zip(part, mean, strict=True)] for part in parts]
        at = [i for i, x in enumerate(row) if np.isfinite(x)].index(label)
        hessian = [
            [mpmath.fsum(c * o[i] * o[j] for c, o in zip(p, off, strict=True)) for j in range(9)]
            for i in range(9)
        ]
        return float(u[at] + log_total), np.array(off[at], float), np.array(hessian, float)


EXTREMES = {
    "confident to 1e-12": ([36.0, 0.0, -2.0, 1.0], 0),
    "confident to 1e-12 and wrong": ([36.0, 0.0, -2.0, 1.0], 3),
    "e of 700": ([0.0, -900.0, -910.0, 0.5], 1),
    "beyond the smallest number": ([1e4, 0.0, 3.0, -5.0], 0),
    "masks": ([1.0, -np.inf, 0.5, -np.inf], 2),
    "one possible class": ([-np.inf, 2.0, -np.inf, -np.inf], 1),
    "all alike": ([2.0, 2.0, 2.0, 2.0], 1),
    "at a knot": ([0.0, T0 * -0.5, -3.0, -9.0], 1),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_moments_of_extreme_rows_match_60_digit_arithmetic(kernel, name):
    row, label = EXTREMES[name]
    slopes = np.minimum(SLOPES, 0.8)
    here = MapLikelihood(LogitRows(np.array([row]), np.array([label])), T0)(slopes)
    value, gradient, hessian = exact_moments(row, slopes, label)
    assert here.value == pytest.approx(value, rel=1e-12, abs=1e-300)
    # Moments are differences of sums of their own size: 1e-13 of the largest is rounding.
    for got, want in zip(here[1:], (gradient, hessian), strict=True):
        largest = max(np.abs(want).max(), 1e-290 if kernel == "numpy" else 1e-2)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13 * largest)


@EACH_SIZE
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_kernels_give_the_same_sums(n_classes, dtype):
    pytest.importorskip("numba")
    z, _ = sample(n_classes, masked=True)
    found, scale = {}, RNG.uniform(0.3, 2, size=N)
    for name in ("numpy", "compiled"):
        with patch.dict(os.environ, TEMPERANCE_KERNEL=name):
            sums = np.empty((3, MAP_SEGMENTS, N))

            def keep(at, part, sums=sums):
                sums[:, :, at] = part
                return (np.zeros(1),)

            LogitRows(z.astype(dtype)).sum_segments(1 / T0, MapTable.of(KNOTS, SLOPES), scale, keep)
            found[name] = sums
    # Only the top class can have a probability above 1/2: no other is in the first two segments.
    assert found["numpy"][0].sum(axis=1)[2:].min() > 0, "every segment has classes"
    # The compiled sums are differences between what lies beyond two knots: rounded as their total is.
    rtol = 1e-11 if dtype == np.float64 else 2e-5
    for compiled, plain in zip(found["compiled"], found["numpy"], strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=rtol, atol=rtol * max(plain.max(), 1.0))


def test_the_basis_leaves_the_overall_temperature_alone():
    z, y = sample(10)
    information = slope_weights(LogitRows(z, y), WEIGHTS, T0)[0]
    by_hand = MapLikelihood(LogitRows(z, y), T0, WEIGHTS)(np.ones(9)).fisher.sum(axis=1)
    np.testing.assert_allclose(information / WEIGHTS.sum(), by_hand, rtol=1e-12, atol=1e-15)
    basis = increments_basis(information)
    assert basis.shape == (9, 8)
    np.testing.assert_allclose(information @ basis, 0, atol=1e-12 * information.sum())
    np.testing.assert_allclose(np.diff(basis, axis=0), np.eye(8), atol=1e-14)
    np.testing.assert_allclose(increments_basis(np.zeros(9)).sum(axis=0), 0, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("log", [False, True])
def test_mapped_mixtures_are_the_weighted_mean_of_their_parts(kernel, dtype, log):
    z, _ = sample(10, masked=True)
    scales, shares = [RNG.uniform(0.3, 2, size=N) for _ in range(3)], np.array([0.5, 0.2, 0.3])
    of_scale = partial(mapped_log_probabilities, z.astype(dtype))
    want = sum(
        share * np.exp(of_scale(SLOPES * scale[:, None])) for share, scale in zip(shares, scales, strict=True)
    )
    with np.errstate(invalid="ignore"):  # of masked classes
        rows, columns = (
            row_block.block_type(1)(z.astype(dtype), log=log),
            [scale[:, None] for scale in scales],
        )
        got = rows.mapped_mixture(T0, KNOTS, SLOPES, columns, shares)
    assert got.dtype == dtype
    assert (np.isneginf(z) == (np.isneginf(got) if log else got == 0)).all()
    rtol = 1e-11 if dtype == np.float64 else 3e-5
    np.testing.assert_allclose(np.exp(got) if log else got, want.astype(float), rtol=rtol, atol=1e-37)


def test_segments_are_kept_by_the_first_of_their_rows(monkeypatch):
    monkeypatch.setattr(kernels, "SEGMENT_NUMBERS", 40)
    z, _ = sample(10)
    top, peak = z.argmax(axis=1), z.max(axis=1)
    log_s = np.log(np.exp(z - peak[:, None]).sum(axis=1))
    table, kept = MapTable.of(KNOTS, SLOPES), {}
    first, again = np.empty((2, 3, MAP_SEGMENTS, N))
    for sums in (first, again):
        kernels.segment_sums(z, top, peak, log_s, 1.0, table, np.ones(N), sums, 100, kept)
        assert sorted(kept) == list(range(100, 100 + N, 4))
    np.testing.assert_array_equal(first, again)
