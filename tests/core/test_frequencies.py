"""Class frequencies of unlabelled rows: the likelihood, its derivatives, and the optimum under its prior."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from temperance.core import frequencies
from temperance.core.frequencies import LabelFrequencies, ProbabilityRows, estimate_frequencies


def uniform(n_classes):
    return LabelFrequencies(np.full(n_classes, 1 / n_classes), np.ones(n_classes, bool))


@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("pseudo_rows", [1.0, 100.0])
def test_the_optimum_is_that_of_another_solver(n_classes, pseudo_rows, monkeypatch):
    rng = np.random.default_rng(n_classes)
    fitted = rng.dirichlet(np.full(n_classes, 5.0))
    probs = softmax(2 * rng.standard_normal((300, n_classes)), axis=1)
    monkeypatch.setattr(frequencies, "PSEUDO_ROWS", (pseudo_rows,))
    found, _ = frequencies._best_prior(ProbabilityRows(probs), n_classes, np.arange(n_classes), fitted)
    np.testing.assert_allclose(found.frequencies, by_bfgs(probs, fitted, pseudo_rows), atol=2e-6)
    assert found.converged


def by_bfgs(probs, fitted, pseudo_rows):
    """Return the most likely frequencies under a prior worth this many rows."""

    def loss(free):
        log_pi = log_softmax(np.append(free, 0.0))
        mixed = probs @ (np.exp(log_pi) / fitted)
        return -np.log(mixed).sum() - pseudo_rows * fitted @ log_pi

    reference = minimize(loss, np.zeros(len(fitted) - 1), method="BFGS", options={"gtol": 1e-7})
    return softmax(np.append(reference.x, 0.0))


def test_under_a_clear_shift_the_prior_is_worth_little():
    probs = softmax(2 * np.random.default_rng(0).standard_normal((300, 3)) + [3.0, 0.0, 0.0], axis=1)
    found = estimate_frequencies(ProbabilityRows(probs), uniform(3))
    np.testing.assert_allclose(found.frequencies, by_bfgs(probs, np.full(3, 1 / 3), 1.0), atol=0.01)


def test_all_passes_are_counted_with_those_of_steps_that_are_taken_back(monkeypatch):
    read, em_steps = [], []
    em_step = frequencies._Point.em_step
    monkeypatch.setattr(frequencies._Point, "em_step", lambda here: em_steps.append(1) or em_step(here))

    class Watched(ProbabilityRows):
        def sums(self, ratio):
            read.append(ratio)
            return super().sums(ratio)

    rng = np.random.default_rng(20)
    problem = frequencies._Problem(5, np.arange(5), rng.dirichlet(np.ones(5)), 1.0)
    probs = softmax(rng.standard_normal((100, 5)) / 2, axis=1)  # classes that overlap
    found = frequencies._maximise(Watched(probs), problem, np.zeros(5))
    assert em_steps
    assert found.passes == len(read)


def test_sums_over_blocks_are_those_of_the_whole(monkeypatch):
    rng = np.random.default_rng(2)
    probs, ratio = softmax(rng.standard_normal((100, 3)), axis=1), np.array([0.5, 2.0, 1.0])
    monkeypatch.setattr(frequencies, "BLOCK_SIZE", 3 * 7)
    sums, q = ProbabilityRows(probs).sums(ratio), probs * ratio
    total = q.sum(axis=1, keepdims=True)
    q /= total
    np.testing.assert_allclose(sums.log_likelihood, np.log(total).sum())
    np.testing.assert_allclose(sums.q, q.sum(axis=0))
    np.testing.assert_allclose(sums.q_outer, q.T @ q)


def test_an_em_step_lowers_the_value_from_anywhere():
    rng = np.random.default_rng(0)
    rows = ProbabilityRows(softmax(3 * rng.standard_normal((200, 5)), axis=1))
    problem = frequencies._Problem(5, np.arange(5), rng.dirichlet(np.ones(5)), 50.0)
    for _ in range(20):
        here = problem.at(rows, 2 * rng.standard_normal(5))
        assert problem.at(rows, here.em_step()).value < here.value


def test_value_gradient_and_hessian_agree():
    rng = np.random.default_rng(1)
    rows = ProbabilityRows(softmax(2 * rng.standard_normal((50, 4)), axis=1))
    problem, step = frequencies._Problem(4, np.arange(4), rng.dirichlet(np.ones(4)), 3.0), 1e-5
    here = problem.at(rows, rng.standard_normal(4))
    for k in range(4):
        ahead, behind = (problem.at(rows, here.theta + sign * step * np.eye(4)[k]) for sign in (1, -1))
        assert (ahead.value - behind.value) / (2 * step) == pytest.approx(here.gradient[k], abs=1e-6)
        np.testing.assert_allclose(
            (ahead.gradient - behind.gradient) / (2 * step), here.hessian(3.0)[k], atol=1e-5
        )


def test_the_hessian_of_frequencies_takes_all_rows_or_as_many_as_its_work_allows():
    work = frequencies.HESSIAN_WORK
    assert frequencies.hessian_step_for(1000, 1000) == 1
    for n_rows, n_classes in ((10**7, 200), (10**6, 5000)):
        step = frequencies.hessian_step_for(n_rows, n_classes)
        assert work <= n_rows * n_classes**2 / step < 2 * work


@pytest.mark.parametrize(("n_rows", "steps"), [(99, []), (100, [2]), (160, [3])])
def test_a_subsample_chooses_the_prior_of_frequencies_where_it_is_large_enough(n_rows, steps, monkeypatch):
    monkeypatch.setattr(frequencies, "SUBSAMPLE_ROWS", 50)
    monkeypatch.setattr(frequencies, "ROWS_PER_CLASS", 1)
    taken = []

    class Watched(frequencies.ProbabilityRows):
        def every(self, step):
            taken.append(step)
            return super().every(step)

    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=n_rows)
    fitted = frequencies.LabelFrequencies(np.full(3, 1 / 3), np.ones(3, bool))
    frequencies.estimate_frequencies(Watched(probs), fitted)
    assert taken == steps


@pytest.mark.parametrize("n_classes", [2, 4, 10])
def test_few_rows_without_a_shift_cost_little_and_a_strong_shift_is_followed(n_classes):
    rng = np.random.default_rng(0)
    probs = softmax(1.5 * rng.standard_normal((20_000, n_classes)), axis=1)
    labels = (probs.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    fitted = LabelFrequencies(np.full(n_classes, 1 / n_classes), np.ones(n_classes, bool))
    costs = []
    for often in (1.0, 10.0):
        weight = np.where(labels == 0, often, 1.0)
        draw = partial(rng.choice, 20_000, p=weight / weight.sum())
        judged, cost = draw(4000), []
        for _ in range(40):
            ratio = estimate_frequencies(ProbabilityRows(probs[draw(20)]), fitted).frequencies * n_classes
            total = (probs[judged] * ratio).sum(axis=1)
            cost.append(np.mean(np.log(total) - np.log(ratio[labels[judged]])))
        costs.append(np.mean(cost))
    assert costs[0] < 0.01
    assert costs[1] < -0.02


def test_a_block_shorter_than_two_steps_has_a_row_for_the_hessian():
    probs = softmax(np.random.default_rng(0).normal(size=(3, 4)), axis=1)
    for start in range(40):
        _, _, outer = frequencies._block_sums(np.ones(4), 1000, probs, start, start + 3, None)
        np.testing.assert_allclose(outer.sum(), 3)  # each row of q sums to 1
