"""Rows in groups: scores, design effects, sandwich covariances and groups left out, by their definitions."""

from functools import partial

import numpy as np
import pytest
from core_models import draw
from core_reference import log_softmax
from test_objective import OBJECTIVES, K, N, Y, Z

from temperance.core import class_bias, design_effect
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.design_effect import design_effects, effective_rows, number_groups, with_group_errors
from temperance.core.evidence import Block, maximise_evidence
from temperance.core.fisher import fisher_scoring
from temperance.core.kernels import Offsets
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, LogLikelihood, Prior
from temperance.core.predictors import ByClass, Constant, Log

RNG = np.random.default_rng(21)
GROUPS = RNG.integers(12, size=N)
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
SCORED = {name: made for name, made in OBJECTIVES.items() if name != "ECE" and "mixture" not in name}


@pytest.fixture(params=SCORED)
def objective(request):
    """Return the function from weights to each objective that has scores, of rows in groups."""
    make, n_parameters = SCORED[request.param]

    def of(weights=None):
        return FitData(LogitRows(Z, Y), weights, GROUPS).objective(make)

    of.theta = 0.1 * np.random.default_rng(3).uniform(0.5, 2, n_parameters)
    return of


def test_the_score_of_a_row_is_the_gradient_of_that_row_alone(objective):
    whole = objective(WEIGHTS)
    scores = np.broadcast_to(whole.scores(objective.theta), (N, len(objective.theta)))
    for i in (0, 7, N - 1):
        alone = whole.take(np.array([i])).evaluate(objective.theta, with_fisher=False).gradient
        np.testing.assert_allclose(scores[i], alone, rtol=1e-9, atol=1e-12)
    mean = whole.evaluate(objective.theta, with_fisher=False).gradient
    np.testing.assert_allclose(WEIGHTS @ scores / WEIGHTS.sum(), mean, rtol=1e-9, atol=1e-12)


def sums_by_definition(objective, theta):
    """Return the sums of centred scores by group, those by row, and the weights."""
    weights = np.ones(N) if objective.weights is None else objective.weights
    scores = objective.scores(theta)
    scores = scores - weights @ scores / weights.sum()
    sums = [weights[g == GROUPS] @ scores[g == GROUPS] for g in np.unique(GROUPS)]
    return np.array(sums), scores, weights


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("numbers", [1, 100, 1 << 20])  # held at a time: groups go on in the next rows
def test_design_effects_are_variances_by_groups_over_variances_by_rows(
    objective, weights, numbers, monkeypatch
):
    monkeypatch.setattr(design_effect, "SCORES", numbers)
    whole, theta = objective(weights), objective.theta
    sums, scores, share = sums_by_definition(whole, theta)
    precision = np.linspace(0.5, 2, len(theta))
    sizes = [1, len(theta) - 1] if len(theta) > 1 else [1]
    found, end, want = design_effects(whole, theta, precision, sizes), 0, []
    for size in sizes:
        at, end = slice(end, end + size), end + size
        rows = share @ scores[:, at] ** 2
        a = 1 / (rows / share.sum() + precision[at] / len(sums))
        ratio = a @ (sums[:, at] ** 2).sum(axis=0) / (a @ rows) if rows.any() else 1.0
        few = 2 / (len(sums) + 1)
        want.append(max(ratio, 1.0) ** (1 - few) * (share.sum() / len(sums)) ** few)
    np.testing.assert_allclose(found, want, rtol=1e-9)


def test_rows_repeated_k_times_have_the_effect_k_and_groups_of_one_row_the_effect_1():
    def of(k, groups):
        return FitData(LogitRows(Z.repeat(k, 0), Y.repeat(k)), None, groups).objective(make)

    make, n_parameters = SCORED["interactions"]
    theta, sizes = np.zeros(n_parameters), [1, K, K * K]
    found = design_effects(of(5, np.arange(N).repeat(5)), theta, np.ones(n_parameters), sizes)
    np.testing.assert_allclose(found, 5, rtol=1e-12)
    np.testing.assert_allclose(
        design_effects(of(1, np.arange(N)), theta, np.ones(n_parameters), sizes), 1, rtol=1e-12
    )
    assert design_effects(of(1, None), theta, np.ones(n_parameters), sizes).tolist() == [1, 1, 1]


def test_an_effect_is_at_least_1_but_for_what_few_groups_cannot_show():
    z = np.tile([[2.0, 0.0], [2.0, 0.0]], (20, 1))
    pairs = FitData(LogitRows(z, np.tile([0, 1], 20)), None, np.arange(40) // 2)  # alike on average
    predictor = partial(ByClass, np.ones((40, 1)), np.full(40, -1))
    objective = pairs.objective(lambda rows, weights: LogLikelihood(rows, predictor(1), Log(), weights))
    # The second parameter has no effect on any row. The 20 pairs may be worth one row each.
    found = design_effects(objective, np.zeros(2), np.zeros(2), [1, 1])
    np.testing.assert_allclose(found, 2 ** (2 / 21), rtol=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_covariance_is_the_sandwich(weights):
    data = FitData(LogitRows(Z, Y), weights, GROUPS)
    objective = data.objective(lambda rows, w: LogLikelihood(rows, Constant(), Log(), w))
    solution = fisher_scoring(objective, np.zeros(1))
    share = np.ones(N) if weights is None else weights
    log_t = solution.parameters[0]
    beta = np.exp(-log_t)
    p = np.exp(log_softmax(Z, beta))
    off = (p * Z).sum(axis=1) - Z[np.arange(N), Y]
    information = share @ (beta**2 * ((p * Z**2).sum(axis=1) - (p * Z).sum(axis=1) ** 2))
    by_group = np.bincount(GROUPS, -beta * share * off)
    n_groups = len(np.unique(GROUPS))
    want = np.sum(by_group**2) / information**2 * n_groups / (n_groups - 1)
    assert with_group_errors(objective, solution).covariance == pytest.approx(want, rel=1e-3)
    objective.groups = None
    assert with_group_errors(objective, solution) is solution


def test_effective_rows_are_those_of_the_variance_of_a_mean():
    values = RNG.normal(size=200) + RNG.normal(size=20).repeat(10)
    groups, weights = np.arange(20).repeat(10), RNG.uniform(0.5, 2, 200)
    mean = weights @ values / weights.sum()
    variance = np.sum(np.bincount(groups, weights * (values - mean)) ** 2) / weights.sum() ** 2
    of_one = weights @ (values - mean) ** 2 / weights.sum()
    found = effective_rows(values, weights, groups)
    assert found == pytest.approx(of_one / variance, rel=1e-12)
    assert found < effective_rows(values, weights)
    assert effective_rows(values, weights) == pytest.approx(weights.sum() ** 2 / (weights @ weights))
    assert effective_rows(values, 1e-9 * weights, groups) == pytest.approx(found)
    same = np.full(200, 1e9 / 3)  # but for the rounding of its mean
    assert effective_rows(same, weights, groups) == effective_rows(values, weights)


def test_groups_are_numbered_in_the_order_of_their_first_rows():
    ids = RNG.integers(30, size=100)
    renamed = RNG.permutation(30)[ids]
    np.testing.assert_array_equal(number_groups(ids), number_groups(renamed))
    assert number_groups(ids)[0] == 0


# --- a likelihood that is tempered ---------------------------------------------------------------------


def test_the_posterior_is_that_of_the_tempered_likelihood():
    data = FitData(LogitRows(Z, Y), None, GROUPS)
    objective = data.objective(OBJECTIVES["bias"][0])
    blocks = [Block.of_scale("log T", 1, 0.3, 1e9), Block.of_scale("bias", K, 0.5, 1e9)]  # fixed widths
    found = maximise_evidence(objective, blocks, np.zeros(1 + K), N)
    effects = np.repeat(list(found.design_effects.values()), [1, K])
    assert effects.min() >= 1
    assert effects.max() > 1.05
    precision = np.repeat([0.3**-2, 0.5**-2], [1, K])
    best = fisher_scoring(
        objective.with_prior(Prior(np.zeros(1 + K), np.diag(effects * precision) / N)), np.zeros(1 + K)
    )
    np.testing.assert_allclose(found.mode, best.parameters, atol=1e-6)
    fisher = N * objective.evaluate(found.mode, with_fisher=True).fisher
    root = np.diag(effects**-0.5)
    wanted = np.linalg.inv(root @ fisher @ root + np.diag(precision))
    np.testing.assert_allclose(found.covariance, wanted, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(
        found.inverse_information, np.linalg.inv(fisher + np.diag(effects * precision)), rtol=1e-3, atol=1e-6
    )


# --- groups left out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("interacting", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_groups_of_one_row_are_left_out_like_rows(interacting, diagonal):
    if interacting and diagonal:
        pytest.skip("interactions have a whole matrix")
    logs = log_softmax(Z, 1.0)
    data = FitData(LogitRows(logs, Y), None, np.arange(N))
    objective = data.objective(partial(ClassBiasLikelihood, interacting=interacting))
    theta = 0.1 * RNG.normal(size=objective.n_parameters)
    information = N * objective.evaluate(theta, with_fisher=True).fisher + 5 * np.eye(len(theta))
    inverse = 1 / information.diagonal() if diagonal else np.linalg.inv(information)
    np.testing.assert_allclose(
        objective.leave_groups_out_log_probs(theta, inverse),
        objective.leave_one_out_log_probs(theta, inverse),
        rtol=1e-8,
    )


def test_a_group_left_out_is_predicted_nearly_as_by_a_fit_to_the_others():
    z, y = draw(300, 3, seed=5)
    groups, logs = np.arange(300) // 25, log_softmax(z, 1.0)
    data = FitData(LogitRows(logs, y), None, groups)
    objective = data.objective(partial(ClassBiasLikelihood, interacting=False))
    precision = np.diag([10.0, 1.0, 1.0, 1.0])
    fit = fisher_scoring(objective.with_prior(Prior(np.zeros(4), precision / 300)), np.zeros(4))
    approximate = objective.leave_groups_out_log_probs(fit.parameters, fit.covariance)
    inside = -objective.losses(Offsets.of(fit.parameters, 3))
    exact = np.empty(300)
    for g in range(12):
        own, others = np.flatnonzero(groups == g), np.flatnonzero(groups != g)
        prior = Prior(np.zeros(4), precision / len(others))
        without = fisher_scoring(objective.take(others).with_prior(prior), fit.parameters).parameters
        exact[own] = -objective.take(own).losses(Offsets.of(without, 3))
    assert (inside - exact).sum() > 1
    assert abs((approximate - exact).sum()) < 0.1 * (inside - exact).sum()


def test_frequencies_are_matched_with_the_pseudo_rows_that_predict_left_out_groups_best():
    logs, pseudo_rows = log_softmax(Z, 1.0), class_bias.PSEUDO_ROWS * K * 3.0
    data = FitData(LogitRows(logs, Y), WEIGHTS, GROUPS)
    sums = np.zeros(len(pseudo_rows))
    for g in np.unique(GROUPS):
        own, others = g == GROUPS, g != GROUPS
        total = WEIGHTS[others].sum()
        n = np.bincount(Y[others], WEIGHTS[others], K)
        m = WEIGHTS[others] @ np.exp(logs[others]) / total
        for k, a in enumerate(pseudo_rows):
            shifted = log_softmax(logs[own] + np.log((n + a * m) / m), 1.0)
            sums[k] += WEIGHTS[own] @ shifted[np.arange(own.sum()), Y[own]]
    kind = class_bias._match_frequencies(data, 3.0)
    assert kind.held_out == pytest.approx(sums.max(), rel=1e-9)
    assert kind.design_effect == 3.0


def test_with_many_groups_sets_of_them_are_left_out(monkeypatch):
    monkeypatch.setattr(design_effect, "MAX_LEFT_OUT", 5)
    groups = number_groups(GROUPS)
    parts = design_effect.parts_to_leave_out(groups)
    assert len(np.unique(parts)) == 5
    assert all(len(np.unique(parts[groups == g])) == 1 for g in range(groups.max() + 1))
