"""The solver within bounds: constrained optima, what is held, and the fallbacks."""

import numpy as np
import pytest
from core_models import quadratic
from core_reference import draw
from scipy.optimize import minimize

from temperance.core import fisher
from temperance.core.fisher import fisher_scoring, solve
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import Linear, Log


def box(lower: float, upper: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(n, lower), np.full(n, upper)


@pytest.mark.parametrize("seed", range(30))
def test_the_optimum_within_bounds_is_that_of_a_bounded_search(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    root = rng.normal(size=(n, n))
    A, c = root @ root.T + 0.05 * np.eye(n), 2 * rng.normal(size=n)
    bounds = box(-1, 1, n)
    objective = quadratic(A, c)
    solution = fisher_scoring(objective, rng.uniform(-2, 2, n), bounds=bounds)
    want = minimize(
        lambda x: ((x - c) @ A @ (x - c) / 2, A @ (x - c)),
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-1, 1)] * n,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    assert solution.converged
    assert np.all(np.abs([*objective.points, solution.parameters]) <= 1)  # no point outside was evaluated
    np.testing.assert_allclose(solution.parameters, want.x, atol=1e-4)


def test_a_parameter_held_at_its_bound_has_no_error_and_the_others_that_of_the_rest():
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    solution = fisher_scoring(quadratic(A, np.array([5.0, 0.0])), np.zeros(2), bounds=box(-1, 1, 2))
    # x_1 = 1; then x_2 = 0 - A_21 / A_22 (1 - 5) = 2, held at 1 too unless the bound is wider.
    assert solution.parameters.tolist() == [1, 1]
    assert not solution.covariance.any()
    assert solution.gradient_norm == 0
    wider = (np.array([-1.0, -9.0]), np.array([1.0, 9.0]))
    solution = fisher_scoring(quadratic(A, np.array([5.0, 0.0])), np.zeros(2), bounds=wider)
    np.testing.assert_allclose(solution.parameters, [1, 2], rtol=1e-9)
    np.testing.assert_allclose(solution.covariance, [[0, 0], [0, 1]], rtol=1e-12)


def test_a_start_outside_the_bounds_is_moved_to_them():
    solution = fisher_scoring(quadratic(np.eye(2), np.zeros(2)), np.full(2, 50.0), bounds=box(1, 3, 2))
    assert solution.parameters.tolist() == [1, 1]


def test_the_last_step_too_ends_at_the_bound():
    beyond = quadratic(np.eye(2), np.full(2, 1 + 1e-7))
    solution = fisher_scoring(beyond, np.full(2, 1 - 1e-7), bounds=box(-1, 1, 2))
    assert solution.iterations == 0
    assert solution.parameters.tolist() == [1, 1]


def test_a_parameter_leaves_its_bound_when_the_gradient_points_inwards():
    solution = fisher_scoring(quadratic(np.eye(2), np.full(2, 0.5)), np.ones(2), bounds=box(-1, 1, 2))
    np.testing.assert_allclose(solution.parameters, 0.5, rtol=1e-12)


@pytest.mark.parametrize("gap", [20.0, 50.0, 200.0])
def test_a_start_at_which_every_row_is_saturated_is_not_taken_for_the_optimum(gap):
    # There is almost no curvature at T = 1, so the first step is far too long and ends at the bound.
    z, y = np.tile([gap, 0.0], (100, 1)), (np.arange(100) >= 90).astype(int)
    objective = LogLikelihood(LogitRows(z, y), Linear(np.ones((100, 1))), Log())
    solution = fisher_scoring(objective, np.zeros(1), bounds=(np.log([1e-6]), np.log([1e6])))
    assert solution.converged
    np.testing.assert_allclose(np.exp(solution.parameters), gap / np.log(9), rtol=1e-5)


def test_bounds_that_do_not_bind_change_nothing():
    z, y = draw(300, 4)
    objective = LogLikelihood(LogitRows(z, y), Linear(np.ones((300, 1))), Log())
    free = fisher_scoring(objective, np.ones(1))
    held = fisher_scoring(objective, np.ones(1), bounds=box(-5, 5, 1))
    assert np.array_equal(free.parameters, held.parameters)


def test_lbfgs_keeps_to_the_bounds_too(monkeypatch):
    monkeypatch.setattr(fisher, "MAX_FISHER", 1)
    solution = solve(quadratic(np.eye(2), np.full(2, 5.0)), np.zeros(2), 10, bounds=box(-1, 1, 2))
    np.testing.assert_allclose(solution.parameters, 1)
