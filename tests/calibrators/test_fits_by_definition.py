"""The fits of `mono`, `bayes` and `bayes-bias` are optima of the objectives that the pages describe."""

import warnings
from functools import partial

import fits_by_definition as definition
import numpy as np
import pytest
from fits_by_definition import BayesObjective, BiasObjective, differences, draw_case
from scipy.optimize import minimize, minimize_scalar

import temperance
from temperance.core import class_bias
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData
from temperance.data import simulate


def fitted(key, case, **options):
    with warnings.catch_warnings():  # few rows: all correct, all wrong
        warnings.simplefilter("ignore")
        return temperance.make_calibrator(key, **options).fit(case[0], case[1], sample_weight=case[2])


def has_both(case):
    """Say whether some rows are correct and some wrong, so that a temperature exists."""
    logits, labels, _ = case
    right = logits[np.arange(len(labels)), labels] == logits.max(axis=1)
    return right.any() and not right.all()


def check_mono(case):
    """Check T0 and the slopes; return whether the rows had a best temperature."""
    cal = fitted("mono", case)
    found = minimize_scalar(
        definition.temperature_loss, bounds=(-4, 8), args=case, method="bounded", options={"xatol": 1e-9}
    )
    if not has_both(case) or found.x > 6:
        return False
    assert cal.reference_ == pytest.approx(np.exp(found.x), rel=1e-4)
    slopes = minimize(
        definition.mono_loss,
        np.ones(9),
        args=(*case, cal.reference_),
        bounds=[(1e-3, 1e3)] * 9,
        options={"ftol": 1e-15, "gtol": 1e-8},
    )
    mine, theirs = definition.mono_loss(cal.map_slopes_, *case, cal.reference_), slopes.fun
    assert mine <= theirs + 1e-8
    np.testing.assert_allclose(cal.map_slopes_, slopes.x, atol=2e-4)
    return True


def check_bayes(case):
    """Check what the fit standardises by, its mode, its covariance and its widths."""
    cal, (logits, _, weights) = fitted("bayes", case), case
    objective = BayesObjective(cal, *case)
    theta = objective.fitted()
    f, share = definition.features(logits, cal.reference_), weights / weights.sum()
    np.testing.assert_allclose(cal.centre_, share @ f, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(cal.spread_, np.sqrt(share @ (f - share @ f) ** 2) + 0.05, rtol=1e-6)
    np.testing.assert_allclose(objective.slopes(theta[-8:]), cal.map_slopes_, rtol=1e-8)
    np.testing.assert_allclose(differences(objective, theta), 0, atol=1e-4)
    n_own, predicted = len(theta) - 8, np.unique(logits.argmax(axis=1))
    given_the_map = np.linalg.inv(np.linalg.inv(objective.covariance(theta))[:n_own, :n_own])
    np.testing.assert_allclose(cal.covariance_, given_the_map[:5, :5], rtol=1e-4, atol=1e-6)
    of_classes = np.column_stack([given_the_map[5:, :5], given_the_map[5:, 5:].diagonal()])[predicted]
    np.testing.assert_allclose(cal.class_covariance_[predicted], of_classes, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(objective.better_taus(theta), cal.taus_, rtol=0.08)
    np.testing.assert_allclose(
        cal.standard_errors_["coefficients"], np.sqrt(objective.covariance(theta).diagonal()[:5]), rtol=1e-3
    )
    x = objective.x
    want = np.sqrt(np.einsum("ij,jk,ik->i", x, given_the_map, x))
    np.testing.assert_allclose(cal.log_temperature_std(logits), want, rtol=1e-3, atol=1e-6)
    T = np.clip(np.exp(x @ theta[:n_own]), *cal.temperature_limits_)
    np.testing.assert_allclose(cal.temperature(logits), T, rtol=1e-9)
    assert cal.solution_.value == pytest.approx(objective(theta) / weights.sum(), rel=1e-9)
    assert cal.uniform_weight_ == pytest.approx(0.02 / (0.02 + weights.sum()))
    return True


def check_reference(case):
    """Check T0; its rounds end early, since it only has to be near."""
    found = fitted("bayes", case).reference_
    assert found == pytest.approx(definition.reference_temperature(*case), rel=0.1)
    return True


def often_class_0(logits, labels, weights):
    """Return the rows four times, with label 0 in three of them: a bias helps some of the cases."""
    labels = np.concatenate([labels, *[np.zeros_like(labels)] * 3])
    return np.tile(logits, (4, 1)), labels, np.tile(weights, 4)


def check_bias(case):
    """Check the kinds of class bias that are used, and their weights; return whether one is."""
    case = often_class_0(*case)
    plain, auto = fitted("bayes", case), fitted("bayes-bias", case)
    logs, labels, weights = plain.transform(case[0]), *case[1:]
    of_logits = np.maximum(definition.log_softmax(case[0] / plain.reference_), -12)
    found = auto.parameters().get("bias_weights", np.zeros(4))
    matched = [definition.matched_frequencies(logs, labels, weights, a) for a in pseudo_rows(case)]
    bias, of_frequencies = max(matched, key=lambda pair: pair[1])
    if not found.any():
        return False
    np.testing.assert_allclose(auto.biases_[0], bias, rtol=1e-6, atol=1e-8)
    held_out = [of_frequencies]
    x = definition.centred(of_logits)
    widening = max(1.0, np.sqrt(weights.sum() * x.shape[1] / (weights @ x**2).sum()))
    for kind, (rows, deviations) in enumerate(
        [
            (logs, np.array([0.1, *widths_by_evidence(case, plain)])),
            (of_logits, [0.5, 1.0, 0.3 * widening]),
            (of_logits, [0.5, 3.0, 1.0 * widening]),
        ],
        start=1,
    ):
        objective = BiasObjective(auto, kind, rows, labels, weights, deviations)
        theta = objective.fitted()
        np.testing.assert_allclose(differences(objective, theta), 0, atol=2e-4)
        held_out.append(weights @ objective.left_out(theta))
    unchanged = -weights @ definition.label_losses(logs, labels)
    power = 1.0 if logs.shape[1] == 2 else 0.5
    np.testing.assert_allclose(found, definition.weights_of_kinds(unchanged, held_out, power), atol=1e-3)
    return True


def pseudo_rows(case):
    """Return how many rows may say "as predicted"."""
    return case[0].shape[1] * np.array([0.5, 1, 2, 4, 8, 16, 32])


def widths_by_evidence(case, plain):
    """Return the standard deviations of bias and interactions, which are not kept with the fit."""
    data = FitData(LogitRows(plain.transform(case[0]), case[1]), case[2])
    n_classes = case[0].shape[1]
    build = partial(class_bias.ClassBiasLikelihood, interacting=True)
    taus = class_bias._posterior(data, build, class_bias._blocks(n_classes, interacting=True)).taus
    return 0.2 * np.sqrt(taus["bias"]), 0.06 * np.sqrt(taus["interactions"])


def run(check, seed, number):
    """Check many cases; return how many of them count."""
    rng = np.random.default_rng(seed)
    return sum(bool(check(draw_case(rng))) for _ in range(number))


@pytest.mark.parametrize(
    ("check", "number", "least"),
    [(check_mono, 8, 3), (check_bayes, 5, 5), (check_reference, 3, 3), (check_bias, 3, 1)],
)
def test_fits_of_small_cases(check, number, least):
    assert run(check, 0, number) >= least


@pytest.mark.parametrize("check", [check_mono, check_bayes])
def test_fits_of_many_rows(check):
    task = simulate(300, 5, random_state=1)
    assert check((task.logits, task.labels, np.ones(300)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "number"), [(check_mono, 500), (check_bayes, 500), (check_reference, 100), (check_bias, 300)]
)
def test_fits_of_many_small_cases(check, number):
    assert run(check, 1, number) >= number / 10
