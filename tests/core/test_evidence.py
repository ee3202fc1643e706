"""The widths of the prior: fixed points and posteriors against closed forms and another optimiser."""

import numpy as np
import pytest
from core_reference import draw
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from temperance.core import evidence
from temperance.core.evidence import Block, maximise_evidence
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Objective, ObjectivePoint
from temperance.core.predictors import ByClass, Linear, Log, Softplus
from temperance.core.solution import Status

MANY = 20_000  # rows of which every second one chooses the widths


class Quadratic(Objective):
    """A mean over N rows of 1/2 (theta - best)' A (theta - best): an estimate with the precision N A."""

    passes = 0

    def __init__(self, best, curvature, n_rows, prior=None, steps=None):
        super().__init__(float(n_rows), np.dtype(np.float64), prior)
        self.best, self.curvature, self.n_parameters = best, curvature, len(best)
        self.steps = [] if steps is None else steps

    def every(self, step):
        self.steps.append(step)
        return Quadratic(self.best, self.curvature, self.total_weight / step, self.prior, self.steps)

    def evaluate(self, theta, with_fisher):
        off = theta - self.best
        gradient = self.curvature @ off
        return ObjectivePoint(float(off @ gradient) / 2, gradient, self.curvature)


def correlated(size, rng):
    root = rng.normal(size=(size, size))
    return root @ root.T / size + np.eye(size) / 2


def problem(seed=0, n_rows=60, far=1.0, sizes=(1, 4, 3)):
    """Return an objective whose optimum is about `far` prior deviations off, and the blocks."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    blocks = [
        Block(f"block {k}", rng.normal(size=size), correlated(size, rng), freedom)
        for k, (size, freedom) in enumerate(zip(sizes, (4.0, 4.0, 2.0), strict=True))
    ]
    mean = np.concatenate([block.mean for block in blocks])
    return Quadratic(mean + far * rng.normal(size=n), correlated(n, rng), n_rows), blocks


def precision_of(blocks, taus):
    return block_diag(*(block.precision / tau for block, tau in zip(blocks, taus, strict=True)))


def parts_of(blocks):
    ends = np.cumsum([len(block.mean) for block in blocks])
    return [slice(end - len(block.mean), end) for block, end in zip(blocks, ends, strict=True)]


def negative_log_posterior(log_taus, objective, blocks):
    """Return -log p(estimate, log tau): theta is integrated out, tau is inverse gamma of scale 1."""
    taus, mean = np.exp(log_taus), np.concatenate([block.mean for block in blocks])
    noise = np.linalg.inv(objective.total_weight * objective.curvature)
    spread = np.linalg.inv(precision_of(blocks, taus))
    evidence = multivariate_normal(mean, noise + spread).logpdf(objective.best)
    nu = np.array([block.freedom for block in blocks])
    return -evidence + float(np.sum(nu * log_taus + nu / taus)) / 2


@pytest.fixture
def exact(monkeypatch):
    """Run the rounds until the taus no longer change."""
    monkeypatch.setattr(evidence, "SETTLED", 1e-10)
    monkeypatch.setattr(evidence, "MAX_ROUNDS", 5000)


def solve(objective, blocks, n_rows=None, **options):
    start = np.zeros(objective.n_parameters)
    return maximise_evidence(objective, blocks, start, int(n_rows or objective.total_weight), **options)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("far", [0.1, 1.0, 5.0])
def test_the_widths_are_those_that_maximise_the_evidence(exact, seed, far):
    objective, blocks = problem(seed, far=far)
    taus = np.array(list(solve(objective, blocks).taus.values()))
    start = np.log(taus) + np.random.default_rng(seed).normal(size=len(taus))
    best = minimize(negative_log_posterior, start, (objective, blocks), tol=1e-12)
    np.testing.assert_allclose(np.log(taus), best.x, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("far", [0.1, 1.0, 5.0])
def test_the_iterations_end_near_the_best_widths(seed, far):
    objective, blocks = problem(seed, far=far)
    log_taus = np.log(list(solve(objective, blocks).taus.values()))
    best = minimize(negative_log_posterior, log_taus, (objective, blocks), tol=1e-12)
    # Ending early loses no evidence.
    assert negative_log_posterior(log_taus, objective, blocks) - best.fun < 0.01
    np.testing.assert_allclose(log_taus, best.x, atol=0.2)


@pytest.mark.parametrize("n_rows", [2, 60, 5000])
def test_given_the_widths_mode_covariance_and_effective_parameters_have_closed_forms(n_rows):
    objective, blocks = problem(1, n_rows)
    posterior = solve(objective, blocks)
    taus = [posterior.taus[block.name] for block in blocks]
    prior, data = precision_of(blocks, taus), n_rows * objective.curvature
    mean = np.concatenate([block.mean for block in blocks])
    covariance = np.linalg.inv(prior + data)
    np.testing.assert_allclose(posterior.covariance, covariance, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(posterior.mode, covariance @ (prior @ mean + data @ objective.best), rtol=1e-9)
    # How much of the optimum's own change the mode would follow, by coefficient.
    follows = np.diag(covariance @ data)
    for block, part in zip(blocks, parts_of(blocks), strict=True):
        assert posterior.effective[block.name] == pytest.approx(follows[part].sum(), rel=1e-8)
    assert list(posterior.taus) == list(posterior.effective) == [block.name for block in blocks]
    assert posterior.solution.converged


def test_a_width_shrinks_where_the_mean_is_right_and_grows_where_the_rows_disagree():
    objective, blocks = problem(3, n_rows=5000, far=0.0)
    far = objective.best.copy()
    far[parts_of(blocks)[2]] += 30
    posterior = solve(Quadratic(far, np.eye(8), 5000), blocks)
    right, wrong = posterior.taus["block 1"], posterior.taus["block 2"]
    assert right == pytest.approx(4 / (4 + 4), rel=0.02)  # nu / (nu + n): no deviation, all decided
    square = np.full(3, 30) @ blocks[2].precision @ np.full(3, 30)
    assert wrong == pytest.approx((2 + square) / (2 + 3), rel=0.02)
    # A prior this wide hardly shrinks the block.
    np.testing.assert_allclose(posterior.mode[5:], far[5:], atol=1e-3)


def test_uninformative_rows_do_not_change_mean_and_width(exact):
    objective, blocks = problem(4)
    posterior = solve(Quadratic(objective.best, 0 * objective.curvature, 60), blocks)
    np.testing.assert_allclose(posterior.mode, np.concatenate([block.mean for block in blocks]), rtol=1e-12)
    np.testing.assert_allclose(list(posterior.taus.values()), 1, rtol=1e-9)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(precision_of(blocks, [1] * 3)), rtol=1e-9)


def test_an_extreme_optimum_leaves_the_widths_within_their_limits():
    objective, blocks = problem(5, n_rows=10**6)
    taus = solve(Quadratic(1e9 + objective.best, objective.curvature, 10**6), blocks, 10).taus
    assert max(taus.values()) == evidence.MAX_TAU


def test_of_scale_is_independent_coefficients_around_0():
    block = Block.of_scale("classes", 3, 0.5, 2.0)
    np.testing.assert_array_equal(block.mean, np.zeros(3))
    np.testing.assert_array_equal(block.precision, 4 * np.eye(3))


# The likelihood of rows, where the posterior is a Gaussian at its mode only.


def likelihood(n_rows, shift, n_classes=4, seed=0):
    """Return rows whose log T is 0.4, and `shift` more for the first class and less for the second."""
    z, y = draw(n_rows, n_classes, seed=seed)
    top = z.argmax(axis=1)
    scale = np.exp(0.4 + shift * ((top == 0) * 1.0 - (top == 1)))
    rows = LogitRows(z * scale[:, None], y)
    predictor = ByClass(np.ones((n_rows, 1)), top, n_classes)
    level = Block("level", np.zeros(1), np.eye(1), 4.0)
    return LogLikelihood(rows, predictor, Log()), [level, Block.of_scale("classes", n_classes, 0.1, 2.0)]


def test_on_rows_a_block_is_as_wide_as_its_effect():
    flat, steep = (solve(*likelihood(3000, shift), 3000) for shift in (0.0, 0.8))
    assert flat.taus["classes"] < 1 < 10 < steep.taus["classes"]
    assert flat.effective["classes"] < steep.effective["classes"] < 4
    np.testing.assert_allclose(steep.mode[1] - steep.mode[2], 1.6, atol=0.3)


def test_many_rows_choose_the_widths_on_some_of_them_with_the_same_result(monkeypatch):
    objective, blocks = likelihood(MANY, 0.3)
    thinned = []
    every = LogLikelihood.every
    monkeypatch.setattr(LogLikelihood, "every", lambda self, step: thinned.append(step) or every(self, step))
    some = solve(objective, blocks, MANY, width_rows=MANY // 2)
    assert thinned == [2]
    every_row = solve(objective, blocks, MANY, width_rows=10 * MANY)
    assert thinned == [2]
    errors = np.sqrt(every_row.covariance.diagonal())
    assert np.all(np.abs(some.mode - every_row.mode) < 0.1 * errors)
    np.testing.assert_allclose(np.sqrt(some.covariance.diagonal()), errors, rtol=0.1)
    for name, tau in every_row.taus.items():
        assert some.taus[name] == pytest.approx(tau, rel=0.3)


@pytest.mark.parametrize(("n_rows", "steps"), [(2 * 1024 - 1, []), (2 * 1024, [2]), (12_500, [12])])
def test_only_very_many_rows_are_subsampled_and_the_coefficients_come_from_all(n_rows, steps):
    objective, blocks = problem(6, n_rows)
    posterior = solve(objective, blocks)
    assert objective.steps == steps
    data = n_rows * objective.curvature
    np.testing.assert_allclose(np.linalg.inv(posterior.covariance), data, rtol=1e-2, atol=1e-2 * data.max())
    np.testing.assert_allclose(posterior.mode, objective.best, atol=5e-3)


def test_widths_that_do_not_settle_give_the_optimum_under_them_and_say_so(monkeypatch):
    monkeypatch.setattr(evidence, "MAX_ROUNDS", 2)
    z, y = draw(200, 3, spread=4.0)
    features = np.column_stack([np.ones(200), np.random.default_rng(0).normal(size=(200, 2))])
    objective = LogLikelihood(LogitRows(z, y), Linear(features), Softplus())
    blocks = [Block("all", np.full(3, 3.0), 100 * np.eye(3), 4.0)]
    found = maximise_evidence(objective, blocks, np.ones(3), 200)
    assert found.solution.status is Status.WIDTHS_UNSETTLED
    fitted = objective.with_prior(evidence._prior(blocks, np.array([found.taus["all"]]), 200.0))
    assert np.abs(fitted(found.mode).gradient).max() < 1e-4
