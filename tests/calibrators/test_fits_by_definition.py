"""The fits of `mono`, `bayes` and `bayes-bias` are optima of the objectives that the pages describe."""

import warnings

import fits_by_definition as definition
import numpy as np
import pytest
from fits_by_definition import BayesObjective, BiasObjective, differences, draw_case
from scipy.optimize import minimize, minimize_scalar

import temperance
from temperance.data import simulate

WEIGHTS = [*(k / 50 for k in range(50)), 0.99, 0.995, 0.998, 0.999]


def fitted(key, case, **options):
    with warnings.catch_warnings():  # few rows: all right, all wrong
        warnings.simplefilter("ignore")
        return temperance.make_calibrator(key, **options).fit(case[0], case[1], sample_weight=case[2])


def has_both(case):
    """Say whether some rows are right and some wrong, so that a temperature exists."""
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
    """Check the mode of the second stage, and the weight that `auto` gives it; return whether it is used."""
    case = often_class_0(*case)
    cal, auto = fitted("bayes", case, class_bias=True), fitted("bayes-bias", case).parameters()
    logs = fitted("bayes", case).transform(case[0])
    objective = BiasObjective(cal, logs, *case[1:])
    theta = objective.fitted()
    np.testing.assert_allclose(differences(objective, theta), 0, atol=1e-4)
    left_out = objective.left_out(theta)
    gains = [objective.gain_of(weight, left_out) for weight in WEIGHTS]
    found = auto.get("bias_weight", 0.0)
    assert objective.gain_of(found, left_out) >= max(gains) - 1e-6
    return found > 0


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
