"""The solver's optima: known ones, and those of other optimisers."""

import numpy as np
import pytest
from core_reference import draw, draw_labels, log_softmax, softmax
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from temperance.core.fisher import fisher_scoring, solve
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Grouped, Linear, Log, Softplus


def one_temperature(z: np.ndarray, y: np.ndarray) -> tuple[LogLikelihood, np.ndarray]:
    """Return the objective of TS, and a start at which no row is saturated: T is the mean gap."""
    start = np.log((z.max(axis=1, keepdims=True) - z).astype(float).mean())
    return LogLikelihood(LogitRows(z, y), Linear(np.ones((len(z), 1))), Log()), np.array([start])


@pytest.mark.parametrize("gap", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("right", [51, 60, 99])
def test_two_classes_of_one_gap_have_a_known_temperature(gap, right):
    # p = right / 100 of the rows are right, so sigmoid(gap / T) = p at the optimum.
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
    grouped = fisher_scoring(LogLikelihood(rows, Grouped(group, 2), Log()), np.zeros(2))
    np.testing.assert_allclose(np.exp(grouped.parameters), want, rtol=1e-6)
    line = Linear(np.column_stack([np.ones(200), group]))
    linear = fisher_scoring(LogLikelihood(rows, line, Softplus()), np.zeros(2))
    at = np.cumsum(linear.parameters)
    np.testing.assert_allclose(Softplus().temperature(at), want, rtol=1e-6)


def test_a_strong_prior_holds_the_parameters_at_its_mean():
    z, y = draw(200, 4, scale=5.0)
    prior = Prior(np.array([0.3]), np.array([[1e8]]))
    objective = LogLikelihood(LogitRows(z, y), Linear(np.ones((200, 1))), Log(), None, prior)
    np.testing.assert_allclose(fisher_scoring(objective, np.zeros(1)).parameters, 0.3, atol=1e-6)


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


def softplus_problem(n_classes: int, *, entropy: bool, logits: bool) -> tuple[np.ndarray, ...]:
    """Return logits, labels and features of a model whose temperature does depend on them."""
    rng = np.random.default_rng(5)
    z = 3 * rng.normal(size=(3000, n_classes))
    p = softmax(z, 1.0)
    log_entropy = np.log(-(p * np.log(p)).sum(axis=1) / np.log(n_classes))
    X = z - z.mean(axis=1, keepdims=True)
    a = 1.0 + (0.3 * log_entropy if entropy else 0) + (X @ np.linspace(-0.1, 0.1, n_classes) if logits else 0)
    y = draw_labels(log_softmax(z, 1 / np.log1p(np.exp(a))), rng)
    stored = np.column_stack([np.ones(len(z)), *([log_entropy] if entropy else [])])
    return z, y, stored, np.column_stack([stored, X]) if logits else stored


@pytest.mark.parametrize(
    ("entropy", "logits"), [(True, False), (False, True), (True, True)], ids=["HTS", "LTS", "HnLTS"]
)
@pytest.mark.parametrize("n_classes", [3, 6])
def test_many_parameters_are_those_of_bfgs_on_the_plain_formulas(n_classes, entropy, logits):
    z, y, stored, features = softplus_problem(n_classes, entropy=entropy, logits=logits)
    index = np.arange(len(z))

    def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        a = features @ theta
        T = np.logaddexp(0, a)
        log_p = log_softmax(z, 1 / T)
        slope = (np.exp(log_p) * z).sum(axis=1) - z[index, y]
        return -log_p[index, y].mean(), features.T @ (slope * -expit(a) / T**2) / len(z)

    start = np.zeros(features.shape[1])
    start[0] = 1.0
    want = minimize(
        value_and_gradient, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 500}
    )
    rows = LogitRows(z, y)
    objective = LogLikelihood(rows, Linear(stored, rows if logits else None), Softplus())
    solution = solve(objective, start, len(z))
    assert solution.message == "converged"
    np.testing.assert_allclose(solution.value, want.fun, rtol=1e-6)
    got, expected = solution.parameters.copy(), want.x.copy()
    if logits:  # a common level of the class weights has no effect
        assert abs(got[-n_classes:].mean()) < 1e-8  # it stays where it started
        expected[-n_classes:] -= expected[-n_classes:].mean()
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_standard_errors_are_the_spread_of_the_estimates():
    theta = np.array([1.0, 0.4])
    rng = np.random.default_rng(8)
    z = 3 * rng.normal(size=(600, 4))
    features = np.column_stack([np.ones(600), rng.normal(size=600)])
    log_p = log_softmax(z, 1 / np.logaddexp(0, features @ theta))
    estimates, errors = [], []
    for _ in range(200):
        objective = LogLikelihood(LogitRows(z, draw_labels(log_p, rng)), Linear(features), Softplus())
        solution = fisher_scoring(objective, np.array([1.0, 0.0]))
        estimates.append(solution.parameters)
        errors.append(np.sqrt(np.diag(solution.covariance)))
    spread = np.std(estimates, axis=0, ddof=1)
    # The spread of 200 estimates is itself known to 1 / sqrt(400) = 5 %.
    np.testing.assert_allclose(np.mean(errors, axis=0), spread, rtol=0.17)
    np.testing.assert_allclose(np.mean(estimates, axis=0), theta, atol=4 * np.max(spread) / np.sqrt(200))
    correlation = np.corrcoef(np.transpose(estimates))[0, 1]
    covariance = solution.covariance
    assert abs(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]) - correlation) < 0.25
