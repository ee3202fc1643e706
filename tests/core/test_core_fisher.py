"""The solver: order of steps, line search, named fallbacks, and what it returns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_models import Analytic, quadratic
from core_reference import draw

from temperance.core import fisher
from temperance.core.fisher import fisher_scoring, lbfgs, solve
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, ObjectivePoint
from temperance.core.predictors import Grouped, Linear, Log, Softplus
from temperance.core.solution import Solution, Solver, Status

OPTIMUM = np.array([1.0, -2.0])
CURVATURE = np.array([[2.0, 0.6], [0.6, 1.0]])


class Bowl:
    """A quadratic with a known optimum. A test may distort its derivatives; it counts its evaluations."""

    noise = 0.0
    total_weight = 50.0
    thinning = 16
    order = 1

    def __init__(
        self,
        value: Callable[[np.ndarray, float], float] = lambda theta, value: value,
        gradient: Callable[[np.ndarray], np.ndarray] = lambda gradient: gradient,
        fisher: np.ndarray = CURVATURE,
    ) -> None:
        self.falsify_value, self.falsify_gradient, self.fisher = value, gradient, fisher
        self.points: list[np.ndarray] = []

    @property
    def passes(self) -> int:
        return len(self.points)

    def every(self, step: int) -> "Bowl":
        raise AssertionError("too few rows for a subsample")

    def __call__(self, theta: np.ndarray) -> ObjectivePoint:
        self.points.append(theta)
        off = theta - OPTIMUM
        gradient = CURVATURE @ off

        def derive(with_fisher: bool) -> tuple[np.ndarray, np.ndarray | None]:
            return (self.falsify_gradient(gradient), self.fisher) if with_fisher else (gradient, None)

        return ObjectivePoint(self.falsify_value(theta, float(off @ CURVATURE @ off) / 2), derive)


def temperature_problem(n_rows: int = 500, **draw_options: Any) -> LogLikelihood:
    z, y = draw(n_rows, 4, **draw_options)
    return LogLikelihood(LogitRows(z, y), Linear(np.ones((n_rows, 1))), Log())


def test_a_quadratic_is_solved_by_the_first_full_step():
    bowl = Bowl()
    solution = fisher_scoring(bowl, np.zeros(2))
    np.testing.assert_allclose(solution.parameters, OPTIMUM, rtol=1e-14)
    assert (solution.iterations, solution.passes, solution.converged) == (1, 2, True)
    np.testing.assert_allclose(bowl.points[1], OPTIMUM, rtol=1e-14)


def test_the_solution_says_how_it_ended():
    objective = temperature_problem()
    solution = fisher_scoring(objective, np.array([1.0]))
    assert solution.converged
    assert solution.message == "converged"
    assert (
        solution.passes == objective.rows.passes == solution.iterations + 2
    )  # no step was halved; the first pass finds the tops
    here = objective(solution.parameters)
    np.testing.assert_allclose(solution.value, here.value, rtol=1e-7)
    assert solution.gradient_norm < 1e-3
    gradient, information = here.derivatives
    assert np.linalg.norm(gradient) <= solution.gradient_norm  # one step further
    np.testing.assert_allclose(solution.covariance, np.linalg.inv(information) / 500, rtol=1e-3)


def test_value_and_gradient_norm_are_those_of_the_last_point_evaluated():
    bowl = Bowl()
    solution = fisher_scoring(bowl, OPTIMUM + 1e-7)
    assert solution.iterations == 0
    gradient = CURVATURE @ np.full(2, 1e-7)
    np.testing.assert_allclose(solution.gradient_norm, np.linalg.norm(gradient), rtol=1e-6)
    np.testing.assert_allclose(solution.value, gradient.sum() * 1e-7 / 2, rtol=1e-6)
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-15)
    np.testing.assert_allclose(solution.covariance, np.linalg.inv(CURVATURE) / 50, rtol=1e-13)


@pytest.mark.parametrize("beyond", [np.inf, np.nan, 1e9])
def test_a_step_with_an_infinite_loss_is_halved(beyond):
    # The Fisher matrix is ten times too small, the step ten times too long; the cliff is at 3.
    bowl = Bowl(
        lambda theta, value: value if np.abs(theta - OPTIMUM).max() < 3 else beyond, fisher=CURVATURE / 10
    )
    solution = fisher_scoring(bowl, np.zeros(2))
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-5)
    assert solution.converged
    tried = [point[0] for point in bowl.points[1:5]]
    np.testing.assert_allclose(tried, [10, 5, 2.5, 1.25], rtol=1e-12)
    assert solution.passes == len(bowl.points) > solution.iterations + 1


def test_a_step_that_gains_almost_nothing_is_halved():
    # All but twice the way to the optimum: the value falls, by far less than the slope had promised.
    bowl = Bowl(fisher=CURVATURE / 1.99999)
    solution = fisher_scoring(bowl, np.zeros(2))
    np.testing.assert_allclose(bowl.points[1], 1.99999 * OPTIMUM, rtol=1e-12)
    np.testing.assert_allclose(bowl.points[2], 1.99999 / 2 * OPTIMUM, rtol=1e-12)
    assert solution.converged
    assert solution.iterations <= 3


def test_a_direction_that_never_decreases_the_loss_falls_back_to_lbfgs_and_says_so():
    bowl = Bowl(gradient=np.negative)
    solution = fisher_scoring(bowl, np.zeros(2))
    assert solution.message.startswith("L-BFGS, as no step along the Fisher direction went down: ")
    assert solution.converged
    assert solution.covariance is None
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-5)
    assert len(bowl.points) > 1 + fisher.MAX_HALVINGS


def test_a_step_whose_gain_is_lost_in_the_noise_of_the_value_is_taken():
    bowl = Bowl()
    # Every value after the first is 5e-9 too high, as rounding errors may be.
    bowl.falsify_value = lambda theta, value: 1 + value + 5e-9 * (len(bowl.points) > 1)
    bowl.noise = 1e-8
    solution = fisher_scoring(bowl, OPTIMUM + 1e-5)
    assert solution.message == "converged"
    assert solution.passes == 2
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-12)


def test_the_iteration_limit_is_reported_as_not_converged():
    objective = temperature_problem()
    solution = fisher_scoring(objective, np.array([2.0]), max_iterations=2)
    assert not solution.converged
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == 2
    assert solution.covariance is None
    np.testing.assert_allclose(solution.value, objective(solution.parameters).value, rtol=1e-14)
    np.testing.assert_allclose(
        solution.gradient_norm, np.linalg.norm(objective(solution.parameters).gradient), rtol=1e-12
    )


def test_a_small_decrease_ends_the_search_where_a_stall_is_named():
    # A fifth of the right step each time: the decrease shrinks slowly, as bounds let no secants correct it.
    bowl, wide = Bowl(fisher=CURVATURE * 5), np.full(2, 100.0)
    solution = fisher_scoring(bowl, np.zeros(2), stall=1e-3, bounds=(-wide, wide))
    assert solution.converged
    np.testing.assert_array_equal(solution.parameters, bowl.points[-1])
    values = [Bowl()(point).value for point in bowl.points]
    assert values[-2] - values[-1] < 1e-3 <= values[-3] - values[-2]


@pytest.mark.parametrize("link", [Softplus(), Log()], ids=["Softplus", "Log"])
def test_collinear_features_do_not_stop_the_solver(link):
    z, y = draw(300, 4)
    x = np.random.default_rng(1).normal(size=300)
    one = LogLikelihood(LogitRows(z, y), Linear(np.column_stack([np.ones(300), x])), link)
    twice = LogLikelihood(LogitRows(z, y), Linear(np.column_stack([np.ones(300), x, x, np.zeros(300)])), link)
    want, got = fisher_scoring(one, np.zeros(2)), fisher_scoring(twice, np.zeros(4))
    assert want.converged
    assert got.converged
    np.testing.assert_allclose(got.value, want.value, atol=1e-9)
    np.testing.assert_allclose(got.parameters[1] + got.parameters[2], want.parameters[1], atol=1e-4)
    assert got.parameters[3] == 0


def test_an_empty_group_keeps_its_parameter():
    z, y = draw(300, 4)
    objective = LogLikelihood(LogitRows(z, y), Grouped(np.repeat([0, 2], 150), 3), Log())
    solution = fisher_scoring(objective, np.full(3, 0.25))
    assert solution.converged
    assert solution.parameters[1] == 0.25


def test_a_matrix_that_misjudges_the_step_is_damped_until_the_steps_fit():
    # With no curvature at all the first step is far too long; the damped ones find the optimum.
    solution = fisher_scoring(Bowl(fisher=np.zeros((2, 2))), np.zeros(2))
    assert solution.message == "converged"
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-5)


def test_a_step_that_goes_down_is_taken_however_strong_the_damping():
    # A thousandth of the curvature: the damping rises beyond its limit, where a step that fails would end it.
    bowl = Bowl(fisher=CURVATURE / 1000)
    solution = fisher_scoring(bowl, np.zeros(2))
    assert solution.message == "converged"
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-5)


def test_many_parameters_use_lbfgs_and_say_so(monkeypatch):
    monkeypatch.setattr(fisher, "MAX_FISHER", 1)
    bowl = Bowl()
    solution = solve(bowl, np.zeros(2), n_rows=10)
    assert solution.solver is Solver.LBFGS_MANY_PARAMETERS
    assert solution.message == "L-BFGS, for too many parameters: converged"
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-6)
    assert solution.passes == len(bowl.points)
    monkeypatch.setattr(fisher, "MAX_FISHER", 2)
    assert solve(Bowl(), np.zeros(2), n_rows=10).message == "converged"


def test_more_parameters_than_rows_use_lbfgs_and_say_so(monkeypatch):
    monkeypatch.setattr(fisher, "SMALL_FISHER", 1)
    assert solve(Bowl(), np.zeros(2), n_rows=1).message.startswith("L-BFGS, for more parameters than rows: ")
    assert solve(Bowl(), np.zeros(2), n_rows=2).message == "converged"


def test_lbfgs_returns_value_gradient_and_passes():
    objective = temperature_problem()
    solution: Solution = lbfgs(objective, np.array([1.0]), "why")
    assert solution.message.startswith("why: ")
    assert solution.converged
    assert solution.passes == objective.passes
    here = objective(solution.parameters)
    np.testing.assert_allclose(solution.value, here.value, rtol=1e-14)
    np.testing.assert_allclose(solution.gradient_norm, np.linalg.norm(here.gradient), atol=1e-12)
    np.testing.assert_allclose(
        solution.parameters, fisher_scoring(objective, np.ones(1)).parameters, atol=1e-5
    )


def test_many_rows_are_solved_on_a_subsample_first(monkeypatch):
    monkeypatch.setattr(fisher, "SUBSAMPLE_ROWS", 500)
    few, all_rows = temperature_problem(1999), temperature_problem(10_000)
    assert solve(few, np.array([3.0]), 1999).passes == few.passes >= 5  # 1999 // 500 < 4: no subsample
    direct = fisher_scoring(temperature_problem(10_000), np.array([3.0]))
    solution = solve(all_rows, np.array([3.0]), 10_000)
    np.testing.assert_allclose(solution.parameters, direct.parameters, atol=1e-8)
    assert solution.passes <= 4 < direct.passes


def test_in_units_of_its_scale_every_parameter_has_the_same_curvature():
    curvature = 10.0 ** np.arange(-4, 5)
    bowl, start = quadratic(np.diag(curvature), np.ones(9)), np.zeros(9)
    solution = lbfgs(bowl, start, "test", scale=1 / np.sqrt(curvature))
    np.testing.assert_allclose(solution.parameters, 1.0, rtol=1e-5)
    assert solution.converged
    assert solution.iterations <= 3 < lbfgs(bowl, start, "test").iterations


@pytest.mark.parametrize("before", [1e-300, 5e-324])
def test_a_predicted_fall_that_grows_by_any_factor_is_no_convergence(before):
    assert not fisher._is_close(1e-7, before, tolerance=1e-12, order=2)
    assert fisher._is_close(1e-13, before, tolerance=1e-12, order=2)


@pytest.mark.filterwarnings("error")
def test_a_step_too_long_for_floats_is_halved_without_a_warning():
    def overflowing(theta):  # x^2, but beyond 100 no number; its matrix makes the first step far too long
        far = np.exp(8 * np.abs(theta)) - np.exp(8 * np.abs(theta))  # inf - inf
        return theta @ theta + far[0], 2 * theta, np.eye(1) * (1e-3 if theta[0] == 1.0 else 2.0)

    solution = fisher_scoring(Analytic(overflowing), np.array([1.0]))
    assert solution.converged
    np.testing.assert_allclose(solution.parameters, 0.0, atol=1e-6)
