"""The likelihood of a class bias and a row left out of it, against the definitions, row by row."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from core_reference import jacobian
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from temperance.core import class_bias as stage
from temperance.core.class_bias import ClassBias, ClassBiasLikelihood, fit_class_bias
from temperance.core.features import LOG_PROB_FLOOR
from temperance.core.fisher import fisher_scoring
from temperance.core.kernels import centred
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, Prior
from temperance.core.row_block import RowBlock

RNG = np.random.default_rng(3)
N, K = 25, 3
LOGS, LABELS = log_softmax(2 * RNG.normal(size=(N, K)), axis=1), RNG.integers(0, K, N)
WEIGHTS = RNG.uniform(0.5, 2, N)
THETA = np.array([0.3, 0.2, -0.4, 0.1])
MASKED = np.where(
    (np.arange(N)[:, None] % 4 == 1) & (np.arange(K) == (LABELS[:, None] + 1) % K), -np.inf, LOGS
)


EACH_INPUT = pytest.mark.parametrize("interacting", [False, True], ids=["bias", "interactions"])
EACH_WEIGHT = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])


def likelihood(interacting, weights=None, logs=LOGS):
    """Return the objective, and parameters at which nothing is 0."""
    objective = ClassBiasLikelihood(LogitRows(logs, LABELS), weights, interacting=interacting)
    return objective, 0.4 * np.random.default_rng(43).normal(size=objective.n_parameters)


def log_probabilities(logs, theta):
    """Return log softmax(l / T + W x), with each row's numbers spelled out."""
    result = np.empty_like(logs)
    for i, row in enumerate(logs):
        possible, floored = np.isfinite(row), np.maximum(row, LOG_PROB_FLOOR)
        x = [1.0, *np.where(possible, floored - floored[possible].mean(), 0.0)][: (len(theta) - 1) // K]
        offset = [sum(theta[1 + j * K + k] * x[j] for j in range(len(x))) for k in range(K)]
        result[i] = log_softmax(row / np.exp(theta[0]) + offset)
    return result


def all_of(point):
    return point.value, *point.derivatives


@EACH_INPUT
@EACH_WEIGHT
@pytest.mark.parametrize("logs", [LOGS, MASKED], ids=["all classes", "masks"])
def test_value_and_derivatives_are_those_of_the_definition(interacting, weights, logs):
    objective, theta = likelihood(interacting, weights, logs=logs)
    share = np.ones(N) / N if weights is None else weights / weights.sum()
    log_p, each = log_probabilities(logs, theta), np.arange(N)
    scores = jacobian(lambda at: np.maximum(log_probabilities(logs, at), -1e3), theta, 1e-4)
    here = objective(theta)
    np.testing.assert_allclose(here.value, -share @ log_p[each, LABELS], rtol=1e-12)
    np.testing.assert_allclose(here.gradient, -share @ scores[each, LABELS], rtol=1e-7, atol=1e-9)
    fisher = here.derivatives[1]
    want = np.einsum("nk,nki,nkj->ij", share[:, None] * np.exp(log_p), scores, scores)
    np.testing.assert_allclose(fisher, want, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(fisher[:1, 1:], fisher[1:, :1].T)
    np.testing.assert_allclose(objective.diagonal(theta), fisher.diagonal(), rtol=1e-10)
    held = objective.with_prior(Prior(theta, np.arange(1.0, len(theta) + 1)))
    np.testing.assert_allclose(held.diagonal(theta), held(theta).derivatives[1].diagonal(), rtol=1e-12)
    assert objective.total_weight == (N if weights is None else weights.sum())
    assert objective.n_parameters == 1 + (K + K * K if interacting else K)


def test_a_constant_added_to_each_row_changes_nothing():
    plain, theta = likelihood(False, WEIGHTS)
    shifted, _ = likelihood(False, WEIGHTS, logs=LOGS + 100 * np.cos(np.arange(N))[:, None])
    for got, want in zip(all_of(shifted(theta)), all_of(plain(theta)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("interacting", "gap"), [(False, 1e4), (False, 1e6), (True, 9e3)])
def test_extreme_log_probabilities_have_finite_derivatives(interacting, gap):
    logs = gap * (np.sign(LOGS - LOGS.mean(axis=1, keepdims=True)) - 1)
    objective, theta = likelihood(interacting, logs=logs)
    here = objective(theta)
    assert here.value == pytest.approx(
        -log_probabilities(logs, theta)[np.arange(N), LABELS].mean(), rel=1e-10
    )
    for part in here.derivatives:
        assert np.isfinite(part).all()


def left_out_by_definition(covariance):
    """Return log p of each label where the row's own pull on u = l / T + bias is taken back."""
    found = []
    for logs, label, weight in zip(LOGS, LABELS, np.minimum(WEIGHTS, 1), strict=True):
        slope = -np.exp(-THETA[0]) * logs
        jacobian = np.column_stack([slope, np.eye(K)])
        u = np.exp(-THETA[0]) * logs + THETA[1:]
        p = softmax(u)
        curvature = np.diag(p) - np.outer(p, p)
        spread = jacobian @ covariance @ jacobian.T
        residual = p - np.eye(K)[label]
        moved = np.linalg.inv(np.eye(K) - weight * curvature @ spread) @ (weight * residual)
        found.append(log_softmax(u + spread @ moved)[label])
    return np.array(found)


def test_with_the_whole_covariance_it_is_one_newton_step_back():
    root = RNG.normal(size=(4, 4)) / 10
    covariance = root @ root.T
    objective = ClassBiasLikelihood(LogitRows(LOGS, LABELS), WEIGHTS, interacting=False)
    np.testing.assert_allclose(
        objective.leave_one_out_log_probs(THETA, covariance), left_out_by_definition(covariance), rtol=1e-9
    )


def test_with_variances_each_parameter_takes_its_own_step_back():
    variances = np.array([0.02, 0.01, 0.03, 0.02])
    objective = ClassBiasLikelihood(LogitRows(LOGS, LABELS), WEIGHTS, interacting=False)
    want = []
    for logs, label, weight in zip(LOGS, LABELS, np.minimum(WEIGHTS, 1), strict=True):
        u = np.exp(-THETA[0]) * logs + THETA[1:]
        p, slope = softmax(u), -np.exp(-THETA[0]) * logs
        residual = p - np.eye(K)[label]
        shift = np.zeros(K)
        for k in range(K):
            curvature = p[k] * (1 - p[k])
            shift[k] += variances[1 + k] * weight * residual[k] / (1 - weight * variances[1 + k] * curvature)
        curvature = p @ slope**2 - (p @ slope) ** 2
        step = variances[0] * weight * (residual @ slope) / (1 - weight * variances[0] * curvature)
        want.append(log_softmax(u + slope * step + shift)[label])
    np.testing.assert_allclose(objective.leave_one_out_log_probs(THETA, variances), want, rtol=1e-9)


@pytest.mark.parametrize("matrix", [False, True])
def test_an_impossible_class_takes_no_part(matrix):
    variances = np.array([0.02, 0.01, 0.03, 0.02, 0.02])
    theta = np.append(THETA, 0.7)
    masked = np.column_stack([LOGS, np.full(N, -np.inf)])
    without, with_mask = (
        ClassBiasLikelihood(LogitRows(logs, LABELS), WEIGHTS, interacting=False) for logs in (LOGS, masked)
    )
    covariances = [np.diag(part) if matrix else part for part in (variances[:4], variances)]
    np.testing.assert_allclose(
        with_mask.leave_one_out_log_probs(theta, covariances[1]),
        without.leave_one_out_log_probs(THETA, covariances[0]),
        rtol=1e-9,
    )


def test_a_probability_of_exp_minus_20000_is_that_of_an_impossible_class_to_a_class_bias():
    def value(lowest):
        rows = LogitRows(np.array([[-0.1, -2.5, lowest]]), np.array([0]))
        theta = np.concatenate([[0.1, 0.2, -0.1, 0.3], np.linspace(-0.2, 0.2, 9)])
        return ClassBiasLikelihood(rows, interacting=True)(theta).value

    assert value(-20_000.0) == value(-1e9)
    assert value(-19_999.0) != value(-1e9)


def log_probs_of(n_rows, n_classes, seed=0, scale=2.0):
    z = scale * np.random.default_rng(seed).standard_normal((n_rows, n_classes))
    return log_softmax(z, axis=1)


def draw(probs, seed):
    below = probs.cumsum(axis=1) < np.random.default_rng(seed).random((len(probs), 1))
    return np.minimum(below.sum(axis=1), probs.shape[1] - 1)


def task(n_rows, n_classes, size=1.0, seed=0):
    """Return log-probabilities whose classes have a bias of this size, and labels."""
    bias = size * np.random.default_rng(seed + 1000).standard_normal(n_classes)
    base = log_probs_of(n_rows, n_classes, seed)
    return base, draw(softmax(base + bias, axis=1), seed)


def rows_of(log_probs, labels):
    return LogitRows(np.asarray(log_probs), np.asarray(labels, np.intp))


def fit(log_probs, labels, weights=None, *, auto=True):
    return fit_class_bias(FitData(rows_of(log_probs, labels), weights), auto=auto)


def apply(fitted: ClassBias, log_probs, weight=None, *, log=True):
    rows = RowBlock(np.asarray(log_probs), log=log)
    output = np.array(log_probs if log else np.exp(log_probs))
    weight = fitted.weight if weight is None else weight
    return rows.class_bias(output, fitted.beta, fitted.bias, fitted.interactions, weight)


def mean_loss(log_probs, labels):
    return -np.mean(log_probs[np.arange(len(labels)), labels])


def variances_of(blocks, taus):
    """Return the prior variance of each coefficient."""
    precisions = [b.precision if b.precision.ndim == 1 else b.precision.diagonal() for b in blocks]
    return np.concatenate([tau / precision for tau, precision in zip(taus, precisions, strict=True)])


@pytest.mark.parametrize("n_classes", [4, 40])
def test_the_fit_is_the_optimum_under_its_widths(n_classes):
    base, y = task(600, n_classes)
    found = fit(base, y, auto=False)
    interacting = n_classes <= stage.MAX_INTERACTING
    variances = variances_of(stage._blocks(n_classes, interacting=interacting), [1.0, *found.taus])
    prior = Prior(np.zeros(len(variances)), 1 / variances / 600)
    objective = ClassBiasLikelihood(rows_of(base, y), None, prior, interacting=interacting)
    best = minimize(
        lambda at: (objective(at).value, objective(at).gradient),
        np.zeros(len(variances)),
        jac=True,
        tol=1e-12,
    )
    errors = 1 / np.sqrt(600 * objective.diagonal(best.x))
    assert found.beta == pytest.approx(np.exp(-best.x[0]), abs=0.05 * errors[0])
    away = (found.bias - best.x[1 : 1 + n_classes]) / errors[1 : 1 + n_classes]
    assert np.abs(away).max() < 0.05


def refitted_without(i, base, labels, found, blocks):
    """Return log p of a row's label by a fit to all other rows, with the widths held."""
    others, interacting = np.arange(len(labels)) != i, len(blocks) == 3
    variances = variances_of(blocks, [1.0, *list(found.taus.values())[1:]])
    objective = ClassBiasLikelihood(rows_of(base[others], labels[others]), interacting=interacting)
    prior = Prior(np.zeros(len(variances)), 1 / variances / others.sum())
    best = fisher_scoring(objective.with_prior(prior), found.mode)
    return -loss_of_row(i, base, labels, best.parameters, interacting)


def loss_of_row(i, base, labels, theta, interacting):
    return ClassBiasLikelihood(rows_of(base[[i]], labels[[i]]), interacting=interacting)(theta).value


# By the diagonal, classes are taken one by one, which makes a row's own pull too large: the safe side.
@pytest.mark.parametrize(
    ("n_rows", "n_classes", "least", "most", "largest"),
    [(60, 3, -0.05, 0.05, 0.1), (80, 40, -0.3, -0.1, 0.4)],
)
def test_leave_one_out_predictions_are_close_to_refits(n_rows, n_classes, least, most, largest):
    base, labels = task(n_rows, n_classes, size=1.5)
    data, interacting = FitData(rows_of(base, labels)), n_classes <= stage.MAX_INTERACTING
    build = partial(ClassBiasLikelihood, interacting=interacting)
    blocks = [  # with fixed widths and long levers
        replace(
            block, precision=block.precision * (1 if i == 0 else 0.04), freedom=1e6 if i else block.freedom
        )
        for i, block in enumerate(stage._blocks(n_classes, interacting=interacting))
    ]
    found = stage._posterior(data, build, blocks)
    some = np.arange(0, n_rows, 2)
    approximate = build(data.rows, None).leave_one_out_log_probs(found.mode, found.covariance)[some]
    exact = np.array([refitted_without(i, base, labels, found, blocks) for i in some])
    inside = -np.array([loss_of_row(i, base, labels, found.mode, interacting) for i in some])
    optimism = np.mean(inside - exact)
    assert optimism > 0.05
    assert least * optimism < np.mean(approximate - exact) < most * optimism
    assert np.abs(approximate - exact).max() < largest * np.abs(inside - exact).max()


@pytest.mark.parametrize("n_classes", [2, 6, 50])
@pytest.mark.parametrize("n_rows", [20, 300])
def test_without_a_bias_little_is_lost(n_classes, n_rows):
    ratios = []
    for seed in range(5):
        base = log_probs_of(n_rows + 2000, n_classes, seed)
        y = draw(np.exp(base), seed)
        found = fit(base[:n_rows], y[:n_rows])
        test = base[n_rows:], y[n_rows:]
        ratios.append([mean_loss(apply(found, test[0], w), test[1]) / mean_loss(*test) for w in (None, 1.0)])
    auto, always = np.mean(ratios, axis=0)
    assert auto <= 1.005
    assert always <= 1.02


def test_twenty_rows_of_a_naive_bayes_do_no_harm():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(8):
        centres = rng.standard_normal((10, 4))
        y = rng.integers(10, size=1020)
        x = centres[y] + rng.standard_normal((1020, 4))
        repeated = np.repeat(x, 5, axis=1)  # copies of the features, which it takes for evidence
        z = -((repeated[:, None] - np.repeat(centres, 5, axis=1)) ** 2).sum(axis=2) / 2
        base = log_softmax(z / 4, axis=1)
        found = fit(base[:20], y[:20])
        before = mean_loss(base[20:], y[20:])
        ratios.append([mean_loss(apply(found, base[20:], w), y[20:]) / before for w in (None, 1.0)])
    assert np.mean(ratios, axis=0).max() <= 1.02


def test_a_weight_of_0_is_bit_identical_to_no_bias():
    base = log_probs_of(100, 5)
    found = fit(base[:20], draw(np.exp(base), 0)[:20])
    base[::3, 1] = -np.inf
    np.testing.assert_array_equal(apply(found, base, 0.0), base)
    np.testing.assert_array_equal(apply(found, base, 0.0, log=False), np.exp(base))


def logarithms(rows: LogitRows):
    return rows.map(lambda block: block.mixture([1.0], np.ones(1)), log=True)


@pytest.mark.parametrize("n_classes", [4, 40])
def test_parts_give_the_fit_of_the_whole(n_classes):
    da = pytest.importorskip("dask.array")
    from temperance.dask.fit_data import open_fit_data

    base, y = task(300, n_classes)
    weights = np.linspace(0.5, 2, 300)
    z = 3.0 + base
    whole = FitData(rows_of(z, y), weights).transformed(logarithms)
    parts = open_fit_data(da.from_array(z, chunks=(100, n_classes)), y, weights).transformed(logarithms)
    one, many = (fit_class_bias(data, auto=True) for data in (whole, parts))
    assert one.weight == many.weight > 0
    np.testing.assert_allclose(many.bias, one.bias, atol=1e-5)


def test_very_small_probabilities_have_little_leverage():
    base = np.array([[0.0, -15.0, -20.0], [0.0, -15.0, -2000.0]])
    x = centred(base, np.isfinite(base))
    np.testing.assert_array_equal(x[0], x[1])
    assert np.ptp(x[0]) == -LOG_PROB_FLOOR == 12
