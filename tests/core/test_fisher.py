"""The solver: order of steps, line search, named fallbacks, and what it returns."""

from typing import Any

import numpy as np
import pytest
from core_models import Analytic, quadratic
from core_reference import draw, log_softmax
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from temperance.core import fisher
from temperance.core.fisher import fisher_scoring, lbfgs, solve, solve_from_each
from temperance.core.logit_rows import LogitRows
from temperance.core.mixture import LogMixture
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import ByClass, Linear, Log, Softplus
from temperance.core.solution import Solution, Solver, Status

OPTIMUM = np.array([1.0, -2.0])
CURVATURE = np.array([[2.0, 0.6], [0.6, 1.0]])


class Bowl(Analytic):
    """A quadratic with a known optimum, of which a test may distort the value, the gradient or the matrix."""

    total_weight = 50.0

    def __init__(self, value=lambda theta, value: value, gradient=np.asarray, fisher=CURVATURE) -> None:
        super().__init__(self.at)
        self.falsify_value, self.falsify_gradient, self.fisher = value, gradient, fisher

    def at(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        off = theta - OPTIMUM
        return self.falsify_value(theta, off @ CURVATURE @ off / 2), CURVATURE @ off, self.fisher


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
    gradient, information = here[1:]
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
    objective = LogLikelihood(LogitRows(z, y), ByClass(np.empty((300, 0)), np.repeat([0, 2], 150), 3), Log())
    solution = fisher_scoring(objective, np.full(3, 0.25))
    assert solution.converged
    assert solution.parameters[1] == 0.25


# Without curvature the first step is far too long; with a little, the damping rises beyond its limit.
@pytest.mark.parametrize("fisher_matrix", [np.zeros((2, 2)), CURVATURE / 1000], ids=["none", "little"])
def test_a_matrix_that_misjudges_the_step_is_damped_until_the_steps_fit(fisher_matrix):
    solution = fisher_scoring(Bowl(fisher=fisher_matrix), np.zeros(2))
    assert solution.message == "converged"
    np.testing.assert_allclose(solution.parameters, OPTIMUM, atol=1e-5)


# In the last iterations the matrix is damped by a factor of 10 to 1000.
@pytest.mark.parametrize("times_too_small", [100.0, 1000.0, 10_000.0])
def test_neither_the_end_nor_the_covariance_depends_on_the_damping(times_too_small, monkeypatch):
    used, factorise = [], fisher._factorise
    monkeypatch.setattr(fisher, "_factorise", lambda *given: used.append(given[2]) or factorise(*given))
    matrix = CURVATURE / times_too_small
    bowl = Bowl(fisher=matrix)
    solution = fisher_scoring(bowl, np.zeros(2))
    assert solution.converged
    assert max(used[-3:]) > 1e-3  # damped to the end
    np.testing.assert_allclose(solution.covariance, np.linalg.inv(matrix) / 50, rtol=1e-12)
    gradient = CURVATURE @ (bowl.points[-1] - OPTIMUM)
    assert gradient @ np.linalg.solve(matrix, gradient) / 2 <= fisher.TOLERANCE


def test_without_damping_the_matrix_is_factorised_once_per_iteration(monkeypatch):
    found, factorise = [], fisher._factorise

    def noted(matrix, free, damping):
        found.append((damping, factorise(matrix, free, damping)))
        return found[-1][1]

    monkeypatch.setattr(fisher, "_factorise", noted)
    objective = temperature_problem()
    solution = fisher_scoring(objective, np.array([1.0]))
    assert [damping for damping, _ in found] == [0.0] * (solution.iterations + 1)
    np.testing.assert_array_equal(solution.covariance, found[-1][1].covariance() / objective.total_weight)


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


def test_many_parameters_need_more_rows_for_a_subsample(monkeypatch):
    monkeypatch.setattr(fisher, "SUBSAMPLE_ROWS", 10)
    monkeypatch.setattr(fisher, "ROWS_PER_PARAMETER", 50)
    z, y = draw(404, 3)
    taken = []

    class Watched(LogLikelihood):
        def every(self, step):
            taken.append(step)
            return super().every(step)

    features = np.column_stack([np.ones(404), np.random.default_rng(0).normal(size=404)])
    for n_rows, steps in ((399, []), (404, [4])):
        at = slice(n_rows)
        objective = Watched(LogitRows(z[at], y[at]), Linear(features[at]), Softplus())
        fisher.solve(objective, np.zeros(2), n_rows)
        assert taken == steps


def test_secants_correct_a_matrix_that_misjudges_the_curvature_but_not_within_bounds():
    bowl = quadratic(CURVATURE, OPTIMUM, np.diag([10.0, 3.0]))
    plain = fisher_scoring(bowl, np.zeros(2), bounds=box(-100, 100, 2))
    corrected = fisher_scoring(bowl, np.zeros(2))
    assert corrected.iterations < plain.iterations / 2
    np.testing.assert_allclose(corrected.parameters, OPTIMUM, atol=1e-6)


def test_secants_are_updates_of_bfgs_unless_the_correction_is_too_large():
    factor, secants = fisher._factorise(np.diag([10.0, 3.0, 1.0]), np.ones(3, bool), 0.0), fisher._Secants()
    curvature = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 4.0]])
    inverse, gradient = np.diag([0.1, 1 / 3, 1.0]), np.array([2e-3, 1e-3, -1e-3])
    for step in np.array([[1.0, -2.0, 0.5], [0.3, 0.4, -1.0]]) / 1000:
        change = curvature @ step
        secants.add(step, change)
        project = np.eye(3) - np.outer(step, change) / (step @ change)
        inverse = project @ inverse @ project.T + np.outer(step, step) / (step @ change)
    np.testing.assert_allclose(secants.solve(factor, gradient), inverse @ gradient, rtol=1e-12)
    flat = np.array([1e-3, 0.0, 0.0])  # a curvature 1000 times smaller than that of the matrix
    secants.add(flat, 0.01 * flat)
    np.testing.assert_allclose(secants.solve(factor, 0.01 * flat), factor.solve(0.01 * flat), rtol=1e-12)


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


def test_the_last_step_too_ends_at_the_bound():
    beyond = quadratic(np.eye(2), np.full(2, 1 + 1e-7))
    solution = fisher_scoring(beyond, np.full(2, 1 - 1e-7), bounds=box(-1, 1, 2))
    assert solution.iterations == 0
    assert solution.parameters.tolist() == [1, 1]


@pytest.mark.parametrize("gap", [20.0, 50.0, 200.0])
def test_a_start_at_which_every_row_is_saturated_is_not_taken_for_the_optimum(gap):
    # There is almost no curvature at T = 1, so the first step is far too long and ends at the bound.
    z, y = np.tile([gap, 0.0], (100, 1)), (np.arange(100) >= 90).astype(int)
    objective = LogLikelihood(LogitRows(z, y), Linear(np.ones((100, 1))), Log())
    solution = fisher_scoring(objective, np.zeros(1), bounds=(np.log([1e-6]), np.log([1e6])))
    assert solution.converged
    np.testing.assert_allclose(np.exp(solution.parameters), gap / np.log(9), rtol=1e-5)


def test_lbfgs_keeps_to_the_bounds_too(monkeypatch):
    monkeypatch.setattr(fisher, "MAX_FISHER", 1)
    solution = solve(quadratic(np.eye(2), np.full(2, 5.0)), np.zeros(2), 10, bounds=box(-1, 1, 2))
    np.testing.assert_allclose(solution.parameters, 1)


def one_temperature(z: np.ndarray, y: np.ndarray) -> tuple[LogLikelihood, np.ndarray]:
    """Return the objective of TS, and a start at which no row is saturated: T is the mean gap."""
    start = np.log((z.max(axis=1, keepdims=True) - z).astype(float).mean())
    return LogLikelihood(LogitRows(z, y), Linear(np.ones((len(z), 1))), Log()), np.array([start])


@pytest.mark.parametrize("gap", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("right", [51, 60, 99])
def test_two_classes_of_one_gap_have_a_known_temperature(gap, right):
    # p = right / 100 of the rows are correct, so sigmoid(gap / T) = p at the optimum.
    z = np.tile([gap, 0.0], (100, 1))
    solution = fisher_scoring(*one_temperature(z, (np.arange(100) >= right).astype(int)))
    assert solution.converged
    np.testing.assert_allclose(np.exp(solution.parameters), gap / logit(right / 100), rtol=1e-6)
    # Fisher information of log T, one row: p (1 - p) (gap / T)^2
    x = logit(right / 100)
    want = 1 / (100 * expit(x) * expit(-x) * x**2)
    np.testing.assert_allclose(solution.covariance[0, 0], want, rtol=1e-3)  # one step before the end


def test_two_groups_and_a_line_through_two_points_have_known_temperatures():
    gaps, rights = np.array([1.0, 5.0]), np.array([70, 95])
    group = np.repeat([0, 1], 100)
    z = np.column_stack([gaps[group], np.zeros(200)])
    y = (np.tile(np.arange(100), 2) >= rights[group]).astype(int)
    want = gaps / logit(rights / 100)
    rows = LogitRows(z, y)
    grouped = fisher_scoring(
        LogLikelihood(rows, ByClass(np.empty((len(group), 0)), group, 2), Log()), np.zeros(2)
    )
    np.testing.assert_allclose(np.exp(grouped.parameters), want, rtol=1e-6)
    line = Linear(np.column_stack([np.ones(200), group]))
    linear = fisher_scoring(LogLikelihood(rows, line, Softplus()), np.zeros(2))
    at = np.cumsum(linear.parameters)
    np.testing.assert_allclose(Softplus().temperature(at), want, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.01, 0.1, 1, 10, 100])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 100, 1000])
def test_one_temperature_is_that_of_a_bounded_scalar_search(n_classes, scale):
    z, y = draw(300 if n_classes == 1000 else 1000, n_classes, scale=scale)

    def value(a: float) -> float:
        return -log_softmax(z, np.exp(-a))[np.arange(len(z)), y].mean()

    bounds = (np.log(scale) - 2, np.log(scale) + 2)
    want = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-12})
    solution = fisher_scoring(*one_temperature(z, y))
    assert solution.message == "converged"
    np.testing.assert_allclose(np.exp(solution.parameters[0]), np.exp(want.x), rtol=1e-6)
    np.testing.assert_allclose(solution.value, want.fun, rtol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 10, 200])
@pytest.mark.parametrize("scale", [0.1, 1, 10])
def test_float32_logits_give_the_temperature_of_the_same_numbers_in_float64(kernel, n_classes, scale):
    z, y = draw(2000, n_classes, scale=scale)
    single = z.astype(np.float32)
    got = fisher_scoring(*one_temperature(single, y))
    want = fisher_scoring(*one_temperature(single.astype(np.float64), y))
    assert got.message == want.message == "converged"
    np.testing.assert_allclose(np.exp(got.parameters), np.exp(want.parameters), rtol=1e-5)
