"""The kinds of class bias, their weights and a row left out of them, against the definitions, row by row."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from core_reference import jacobian
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from temperance.core import class_bias as stage
from temperance.core.class_bias import ClassBias, ClassBiasLikelihood, fit_class_bias
from temperance.core.features import CLASS_BIASES, LOG_PROB_FLOOR, MAX_INTERACTING
from temperance.core.fisher import fisher_scoring
from temperance.core.kernels import Offsets, biased, centred
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
    return point.value, *point[1:]


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
    fisher = here.fisher
    want = np.einsum("nk,nki,nkj->ij", share[:, None] * np.exp(log_p), scores, scores)
    np.testing.assert_allclose(fisher, want, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(fisher[:1, 1:], fisher[1:, :1].T)
    np.testing.assert_allclose(objective.diagonal(theta), fisher.diagonal(), rtol=1e-10)
    held = objective.with_prior(Prior(theta, np.arange(1.0, len(theta) + 1)))
    np.testing.assert_allclose(held.diagonal(theta), held(theta).fisher.diagonal(), rtol=1e-12)
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
    for part in here[1:]:
        assert np.isfinite(part).all()


def left_out_by_definition(covariance):
    """Return log p of each label where the pull of one such row on u = l / T + bias is taken back."""
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


def floored(rows):
    """Return what the kinds of class bias on logits start from, with T0 = 1."""
    return rows.map(lambda block: block.floored_log_probs(1.0))


def fit(log_probs, labels, weights=None, *, auto=True):
    data = FitData(rows_of(log_probs, labels), weights)
    on_logits = data.transformed(floored) if data.n_classes <= MAX_INTERACTING else None
    return fit_class_bias(data, on_logits, auto=auto)


def numbers_of(fitted: ClassBias):
    """Return the inverse temperatures, the biases and the interactions of all kinds."""
    offsets = [kind.offsets for kind in fitted.kinds]
    matrices = [one.interactions for one in offsets[1:]]
    interactions = None if matrices[0] is None else np.array(matrices)
    return np.array([one.beta for one in offsets]), np.array([one.bias for one in offsets]), interactions


def apply(fitted: ClassBias, log_probs, weights=None, *, log=True):
    rows = RowBlock(np.asarray(log_probs), log=log)
    output = np.array(log_probs if log else np.exp(log_probs))
    weights = fitted.weights if weights is None else weights
    return rows.class_biases(output, 1.0, weights, *numbers_of(fitted))


def alone(fitted: ClassBias, kind):
    """Return weights of which one is 1."""
    return np.eye(len(fitted.kinds))[kind]


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
    np.testing.assert_array_equal(found.weights, alone(found, 1))
    found, interacting = found.kinds[1].offsets, n_classes <= MAX_INTERACTING
    blocks = stage._blocks(n_classes, interacting=interacting)
    build = partial(ClassBiasLikelihood, interacting=interacting)
    taus = stage._posterior(FitData(rows_of(base, y)), build, blocks).taus.values()
    variances = variances_of(blocks, [1.0, *list(taus)[1:]])
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
    data, interacting = FitData(rows_of(base, labels)), n_classes <= MAX_INTERACTING
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


def test_twenty_rows_of_a_naive_bayes_do_little_harm():
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
        weights = found.weights, alone(found, 1)
        ratios.append([mean_loss(apply(found, base[20:], w), y[20:]) / before for w in weights])
    auto, always = np.mean(ratios, axis=0)
    assert auto <= 1.04  # biases of logits are too hopeful of so few rows
    assert always <= 1.02


def test_weights_of_0_are_bit_identical_to_no_bias():
    base = log_probs_of(100, 5)
    found = fit(base[:20], draw(np.exp(base), 0)[:20])
    base[::3, 1] = -np.inf
    np.testing.assert_array_equal(apply(found, base, np.zeros(4)), base)
    np.testing.assert_array_equal(apply(found, base, np.zeros(4), log=False), np.exp(base))


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
    few = n_classes <= MAX_INTERACTING
    one, many = (
        fit_class_bias(data, data.transformed(floored) if few else None, auto=True) for data in (whole, parts)
    )
    np.testing.assert_allclose(many.weights, one.weights, rtol=1e-4, atol=1e-8)
    assert one.weights.sum() > 0.5
    for got, want in zip(numbers_of(many), numbers_of(one), strict=True):
        assert (got is None) == (want is None) == (not few and got is None)
        if want is not None:
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_very_small_probabilities_have_little_leverage():
    base = np.array([[0.0, -15.0, -20.0], [0.0, -15.0, -2000.0]])
    x = centred(base)
    np.testing.assert_array_equal(x[0], x[1])
    assert np.ptp(x[0]) == -LOG_PROB_FLOOR == 12


# Matched class frequencies


def logs_of_matched(others, logs, a):
    """Return log p of a row's classes, matched to the frequencies of other rows: (log p, label, weight)."""
    total = sum(weight for *_, weight in others)
    adjusted = []
    for k in range(len(logs)):
        n = sum(weight for _, label, weight in others if label == k)
        m = sum(weight * np.exp(other[k]) for other, _, weight in others) / total if total else 0.0
        q = (n + a * m) / (total + a)
        adjusted.append(logs[k] + (np.log(q / m) if m > 0 else 0.0))
    return log_softmax(adjusted)


def left_out_of_frequencies(logs, labels, weights, a):
    """Return the sum of log p of the labels, each by the frequencies without one such row."""
    rows, total = list(zip(logs, labels, weights, strict=True)), 0.0
    for i, (own, label, weight) in enumerate(rows):
        others = [*rows[:i], *rows[i + 1 :], (own, label, weight - min(weight, 1))]
        total += weight * logs_of_matched(others, own, a)[label]
    return total


@EACH_WEIGHT
@pytest.mark.parametrize("logs", [LOGS, log_softmax(MASKED, axis=1)], ids=["all classes", "masks"])
def test_frequencies_are_matched_with_the_pseudo_rows_that_predict_left_out_rows_best(weights, logs):
    kind = stage._match_frequencies(FitData(rows_of(logs, LABELS), weights))
    each, pseudo_rows = np.ones(N) if weights is None else weights, stage.PSEUDO_ROWS * K
    sums = [left_out_of_frequencies(logs, LABELS, each, a) for a in pseudo_rows]
    assert kind.held_out == pytest.approx(max(sums), rel=1e-12)
    a, total = pseudo_rows[np.argmax(sums)], each.sum()
    n, m = np.bincount(LABELS, each), each @ np.exp(logs) / total
    np.testing.assert_allclose(kind.offsets.bias, np.log((n + a * m) / (total + a) / m), rtol=1e-10)
    assert (kind.offsets.beta, kind.offsets.interactions) == (1.0, None)
    assert kind.effective_parameters == pytest.approx((K - 1) * total / (total + a))


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("lowest", [-40.0, -700.0, -np.inf])
def test_a_class_that_is_never_predicted_has_a_finite_bias(lowest, labelled):
    logs, labels = np.column_stack([LOGS, np.full(N, lowest)]), LABELS.copy()
    if labelled and np.isfinite(lowest):
        labels[0] = 3
    found = fit(logs, labels)
    for numbers in (found.weights, *numbers_of(found)):
        assert np.isfinite(numbers).all()
    for log in (False, True):
        assert not np.isnan(apply(found, logs, log=log)).any()
    np.testing.assert_allclose(apply(found, logs, log=False).sum(axis=1), 1, rtol=1e-12)


def test_a_single_row_changes_no_frequency_as_far_as_it_is_left_out():
    kind = stage._match_frequencies(FitData(rows_of(LOGS[:1], LABELS[:1])))
    assert kind.held_out == pytest.approx(LOGS[0, LABELS[0]])


# The mean of all kinds


@pytest.mark.parametrize("n_classes", [2, 5, 40])
@pytest.mark.parametrize("n_rows", [1, 30, 300])
def test_weights_are_those_of_the_rule(n_classes, n_rows):
    base, y = task(n_rows, n_classes)
    found = fit(base, y)
    prior = [0.2, 0.3, 0.15, 0.05] if n_classes <= 20 else [0.2, 0.3]
    unchanged = base[np.arange(n_rows), y].sum()
    power = 1.0 if n_classes == 2 else 0.5
    gains = [power * (kind.held_out - unchanged) for kind in found.kinds]
    shares = [p * np.exp(gain) for p, gain in zip(prior, gains, strict=True)]
    total = 0.3 + sum(shares)
    kept = [share if share >= 0.02 * total else 0.0 for share in shares]
    np.testing.assert_allclose(found.weights, np.array(kept) / (0.3 + sum(kept)), rtol=1e-9)
    assert found.effective_parameters == pytest.approx(
        sum(w * kind.effective_parameters for w, kind in zip(found.weights, found.kinds, strict=True))
    )


def test_a_kind_that_is_not_fitted_has_no_weight():
    base, y = task(100, 3)
    found = fit_class_bias(FitData(rows_of(base, y)), auto=True)
    assert found.weights[:2].sum() > 0.9
    np.testing.assert_array_equal(found.weights[2:], 0)


def test_a_solution_counts_only_where_its_kind_is_used():
    base, y = task(100, 3)
    found = fit(base, y)
    assert found.failed is None
    kinds = [
        kind._replace(solution=replace(found.kinds[1].solution, status="stalled")) for kind in found.kinds
    ]
    assert replace(found, kinds=tuple(kinds), weights=alone(found, 2)).failed is kinds[2].solution
    assert replace(found, kinds=(found.kinds[0], *kinds[1:]), weights=alone(found, 0)).failed is None


def any_numbers(n_classes, seed=0):
    """Return weights of all kinds, and what each adds."""
    rng = np.random.default_rng(seed)
    n_kinds = len(CLASS_BIASES) if n_classes <= MAX_INTERACTING else 2
    matrices = 0.2 * rng.normal(size=(n_kinds - 1, n_classes, n_classes))
    weights, betas = rng.dirichlet(np.ones(n_kinds + 1))[1:], rng.uniform(0.5, 1.5, n_kinds)
    biases = rng.normal(size=(n_kinds, n_classes))
    return weights, betas, biases, matrices if n_classes <= MAX_INTERACTING else None


def mean_by_definition(z, logs, reference, weights, betas, biases, interactions):
    """Return the mean of one row."""
    scaled = z / reference
    possible = scaled > scaled.max() - 2e4
    log_p = np.where(possible, log_softmax(scaled), -np.inf)
    result = (1 - weights.sum()) * np.exp(logs)
    for j, weight in enumerate(weights):
        given = logs if j < 2 else np.where(possible, np.maximum(log_p, LOG_PROB_FLOOR), -np.inf)
        u = betas[j] * given + biases[j]
        if interactions is not None and j > 0:
            some = np.isfinite(given)
            floored = np.maximum(given[some], LOG_PROB_FLOOR)
            centre = -np.log(2) if len(given) == 2 else floored.mean()
            u = u + interactions[j - 1][:, some] @ (floored - centre)
        result = result + weight * softmax(u)
    return result


@pytest.mark.parametrize("n_classes", [2, 3, 20, 21, 33])
@pytest.mark.parametrize("mask", [-np.inf, -1e9, -30.0])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-11), (np.float32, 2e-4)])
def test_a_prediction_is_the_mean_of_the_kinds_on_every_path(n_classes, mask, dtype, rtol):
    rng, numbers = np.random.default_rng(n_classes), any_numbers(n_classes)
    z = (5 * rng.normal(size=(40, n_classes))).astype(dtype)
    masked = (rng.random(z.shape) < 0.3) & (np.arange(n_classes) != z.argmax(axis=1)[:, None])
    z[masked] = mask
    # As calibrated, with a uniform part, which a finite logit shares in.
    p = np.where(np.isfinite(z), 1e-4, 0) + softmax(z.astype(float) / 1.3, axis=1)
    logs = np.log(p / p.sum(axis=1, keepdims=True), where=p > 0, out=np.full(p.shape, -np.inf)).astype(dtype)
    want = [mean_by_definition(*rows, 1.7, *numbers) for rows in zip(z.astype(float), logs, strict=True)]
    for block in (RowBlock, pytest.importorskip("temperance.core.compiled").CompiledBlock):
        got = block(z, log=True).class_biases(logs.copy(), 1.7, *numbers)
        np.testing.assert_allclose(np.exp(got), want, rtol=rtol)
        got = block(z).class_biases(np.exp(logs), 1.7, *numbers)
        np.testing.assert_allclose(got, want, rtol=rtol)
        assert got.dtype == dtype
        assert (got[np.isneginf(z)] == 0).all()
        for i in range(40):
            single = block(z[i : i + 1]).class_biases(np.exp(logs[i : i + 1]), 1.7, *numbers)
            np.testing.assert_array_equal(single[0], got[i])


def test_no_probability_is_above_1_however_the_weights_are_rounded():
    z = np.array([[0.0, -np.inf], [-np.inf, 2.0]], np.float32)
    for seed in range(100):
        numbers = any_numbers(2, seed)
        assert RowBlock(z).class_biases(np.isfinite(z).astype(np.float32), 1.0, *numbers).max() <= 1


def test_logits_of_any_scale_have_the_same_class_bias():
    base, _ = task(50, 4)
    numbers, p = any_numbers(4), np.exp(base)
    want = RowBlock(base).class_biases(p.copy(), 1.0, *numbers)
    for scale in (1e-5, 1e5, 1e9):
        got = RowBlock(base * scale).class_biases(p.copy(), scale, *numbers)
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_large_bias_leaves_the_digits_of_log_probabilities():
    offsets = Offsets.of(np.array([0.0, 1e8, 1e8 - 8]), 2)
    found = biased(np.zeros((1, 2)), offsets)
    np.testing.assert_allclose(found, log_softmax([[8.0, 0.0]], axis=1), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_bias_of_logits_does_not_depend_on_a_temperature_that_makes_them_nearly_equal(n_classes):
    base, y = task(400, n_classes)
    losses = []
    for scale in (1e-1, 1e-2):
        logs = log_softmax(scale * base, axis=1)
        found = fit(logs, y)
        losses.append(mean_loss(apply(found, logs, alone(found, 3)), y))
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
    assert losses[1] < 0.9 * np.log(n_classes)


def test_with_two_classes_a_bias_follows_a_curve_of_the_log_odds():
    rng = np.random.default_rng(5)
    odds = rng.uniform(-4, 4, 4000)
    truth = np.where(odds < 0, 0.2 * odds, 2.0 * odds)  # a knee that neither a slope nor an intercept gives
    y = (rng.random(4000) < 1 / (1 + np.exp(-truth))).astype(np.intp)
    base = log_softmax(np.column_stack([-odds / 2, odds / 2]), axis=1)
    found = fit(base, y)
    exact = log_softmax(np.column_stack([-truth / 2, truth / 2]), axis=1)
    assert mean_loss(apply(found, base, found.weights), y) < mean_loss(exact, y) + 0.003


def test_a_large_slope_leaves_probabilities_in_float32_that_sum_to_1():
    log_probs = log_softmax(np.random.default_rng(0).normal(size=(50, 170)), axis=1).astype(np.float32)
    probs = np.exp(biased(log_probs, Offsets(5e4, np.zeros(170), None)))
    np.testing.assert_allclose(probs.sum(axis=1, dtype=np.float64), 1, atol=1e-5)


def test_a_row_of_weight_0_whose_label_is_impossible_without_it_counts_nothing():
    log_probs, weights = np.array([-1.0, -np.inf, -2.0]), np.array([1.0, 0.0, 3.0])
    assert stage._sum_of_logs(log_probs, weights).tolist() == [-7.0]
    assert stage._sum_of_logs(log_probs, None).tolist() == [-np.inf]
