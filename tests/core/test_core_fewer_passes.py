"""What saves work in small fits changes nothing else: kept gaps, one temperature, starts followed once."""

import numpy as np
import pytest
from core_models import Analytic
from core_reference import draw

from temperance.core import blocks, fisher
from temperance.core.blocks import threads
from temperance.core.fisher import fisher_scoring, solve_from_each
from temperance.core.logit_rows import LogitRows
from temperance.core.mixture import LogMixture
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Constant, Linear, Log


@pytest.mark.parametrize("n_classes", [3, 40])
def test_kept_gaps_have_the_bits_of_gaps_computed_at_each_pass(n_classes, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 12)
    z, y = draw(300, n_classes)
    z[::7, 0] = -np.inf
    y[::7] = 1
    beta = np.linspace(0.2, 2, len(z))
    found = []
    for most_bytes in (1 << 23, 0):
        monkeypatch.setattr(blocks, "MAX_KEPT_BYTES", most_bytes)
        rows = LogitRows(z, y)
        with threads(2):
            rows.moments(1.0)
            found.append(rows.moments(beta))
    kept, computed = found
    for name in ("log_s", "mu", "v"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(computed, name))


def test_many_numbers_are_not_kept(monkeypatch):
    z = np.zeros((10, 4), np.float32)
    monkeypatch.setattr(blocks, "MAX_KEPT_BYTES", z.nbytes)
    labels = np.zeros(10, int)
    assert LogitRows(z, labels)._gap_cache == {}
    assert LogitRows(z.astype(np.float64), labels)._gap_cache is None
    assert LogitRows(z.astype(np.float16), labels)._gap_cache == {}  # computed in single precision
    assert LogitRows(z)._gap_cache is None  # without labels, there is no fit


def test_moments_without_the_variance_are_the_same():
    z, _ = draw(50, 5)
    full, part = LogitRows(z).moments(0.7), LogitRows(z).moments(0.7, variance=False)
    np.testing.assert_array_equal(part.log_s, full.log_s)
    np.testing.assert_array_equal(part.mu, full.mu)
    assert part.v.size == 0 < full.v.size


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


def two_wells(theta, tilt=0.1):
    """Return (x^2 - 1)^2 + x / 10, a low well near -1 and a higher one near 1; y^2 is added for others."""
    x, others = theta[0], theta[1:]
    value, slope = (x * x - 1) ** 2 + tilt * x + others @ others, 4 * x * (x * x - 1) + tilt
    curvature = np.diag([max(12 * x * x - 4, 1.0), *np.full(len(others), 2.0)])
    return value, np.append(slope, 2 * others), curvature


def test_starts_that_lead_to_one_optimum_are_followed_once():
    starts = [np.array([at]) for at in (0.7, 1.2, -0.8, -1.5, 1.0)]
    found = solve_from_each(Analytic(two_wells), starts, 100)
    assert len(found) == 2
    low, high = sorted(found, key=lambda solution: solution.value)
    assert high.parameters[0] == pytest.approx(0.987, abs=1e-3)
    assert low.parameters[0] == pytest.approx(-1.012, abs=1e-3)
    assert low.value < high.value


def test_starts_that_lead_to_one_flat_valley_are_followed_once():
    def trough(theta):  # (x^2 - 1)^2: two valleys along y, which has no effect
        value, (slope,), ((curvature,),) = two_wells(theta[:1], tilt=0.0)
        return value, np.array([slope, 0.0]), np.diag([curvature, 0.0])

    starts = [np.array(at) for at in ([0.9, 0.0], [1.1, 5.0], [-0.9, 0.0], [1.2, -5.0])]
    found = solve_from_each(Analytic(trough), starts, 100)
    np.testing.assert_allclose(sorted(one.parameters[0] for one in found), [-1, 1], atol=1e-6)


def test_optima_that_differ_in_one_parameter_are_both_followed():
    found = solve_from_each(Analytic(two_wells), [np.array([1.2, 0.3]), np.array([-1.5, 0.3])], 100)
    ends = [solution.parameters for solution in found]
    np.testing.assert_allclose(ends, [[0.987, 0.0], [-1.012, 0.0]], atol=1e-3)


def test_each_optimum_of_a_subsample_is_followed_on_all_rows(monkeypatch):
    monkeypatch.setattr(fisher, "SUBSAMPLE_ROWS", 100)
    z, y = draw(1000, 4)
    bounds = np.array([-2.0, 0.0, 0.0]), np.array([2.0, 1.0, 1.0])
    starts = [np.array([0.0, 0.1, 0.0]), np.array([0.0, 0.1, 1.0])]
    objective = LogMixture(LogitRows(z, y))
    found = min(solve_from_each(objective, starts, 1000, bounds), key=lambda solution: solution.value)
    wanted = min(fisher_scoring(objective, start, bounds=bounds).value for start in starts)
    assert found.value == pytest.approx(wanted, abs=1e-9)


def test_a_fisher_matrix_that_is_not_finite_ends_the_fit():
    broken = Analytic(lambda theta: (0.0, np.ones(1), np.full((1, 1), np.nan)))
    with pytest.raises(ValueError, match="the Fisher matrix must be finite"):
        fisher_scoring(broken, np.zeros(1))
