"""Bayesian temperature scaling with a bias for each class, which may change the decision."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import temperance
from temperance import BayesianTemperatureScaling, InputError, metrics
from temperance.calibrators.bayes_design import interacting, shape_features_of
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate
from temperance.population import weak_population, write_population


def draw(probs, seed):
    below = probs.cumsum(axis=1) < np.random.default_rng(seed).random((len(probs), 1))
    return np.minimum(below.sum(axis=1), probs.shape[1] - 1)


def shifted_task(n_classes, seed=0, size=1.2, n_rows=4000):
    """Return logits, labels and true probabilities of a task whose classes are biased, and the bias."""
    bias = size * np.random.default_rng(seed).standard_normal(n_classes)
    honest = simulate(
        n_rows, n_classes, temperature=1.0, entropy_slope=0, class_spread=0, random_state=seed
    ).logits
    truth = softmax(honest + bias, axis=1)
    return honest, draw(truth, seed), truth, bias


@pytest.fixture(scope="module")
def six():
    """Return a biased task of 6 classes, and the calibrators with and without a bias of half its rows."""
    task = shifted_task(6)
    return task, both(task)


def both(task):
    """Fit half of the rows with a bias and without."""
    z, y = task[0][: len(task[0]) // 2], task[1][: len(task[0]) // 2]
    return {bias: BayesianTemperatureScaling(class_bias=bias).fit(z, y) for bias in (True, False)}


def check_repair(task, fits):
    logits, labels, truth, bias = task
    half = len(labels) // 2
    loss = {b: metrics.nll(cal.predict_proba(logits[half:]), labels[half:]) for b, cal in fits.items()}
    best = metrics.nll(truth[half:], labels[half:])
    assert loss[True] - best < 0.3 * (loss[False] - best)
    assert np.corrcoef(fits[True].bias_, bias)[0, 1] > 0.9
    right = {b: (cal.predict(logits[half:]) == labels[half:]).mean() for b, cal in fits.items()}
    assert right[True] > right[False] + 0.01


def test_a_known_bias_is_found_and_taken_off(six):
    check_repair(*six)


def test_beyond_32_classes_a_bias_is_found_without_interactions():
    task = shifted_task(40, seed=2)
    fits = both(task)
    check_repair(task, fits)
    assert fits[True].bias_.shape == (40,)
    assert not hasattr(fits[True], "interactions_")
    assert "interactions" not in fits[True].summary()
    assert fits[True].taus_.shape == (4,)


def test_up_to_32_classes_the_bias_may_depend_on_the_logits(six):
    assert six[1][True].interactions_.shape == six[1][True].parameters()["interactions"].shape == (6, 6)
    assert not hasattr(six[1][False], "bias_")
    assert interacting(32, 1.0).width == 33
    assert interacting(33, 1.0).width == 1


def test_interactions_repair_classes_that_are_mixed_up():
    # Class 0 borrows from class 1 what it lacks: no bias alone can say that.
    honest = simulate(6000, 4, temperature=1.0, entropy_slope=0, class_spread=0, random_state=5).logits
    centred = honest - honest.mean(axis=1, keepdims=True)
    truth = honest.copy()
    truth[:, 0] += 0.4 * centred[:, 1]
    labels = draw(softmax(truth, axis=1), 5)
    cal = BayesianTemperatureScaling(class_bias=True).fit(honest[:3000], labels[:3000])
    effect = cal.interactions_ - cal.interactions_.mean(axis=0)  # a common part changes nothing
    assert np.unravel_index(np.argmax(effect), (4, 4)) == (0, 1)
    plain = BayesianTemperatureScaling().fit(honest[:3000], labels[:3000])
    loss = [metrics.nll(c.predict_proba(honest[3000:]), labels[3000:]) for c in (cal, plain)]
    best = metrics.nll(softmax(truth[3000:], axis=1), labels[3000:])
    assert loss[0] - best < 0.3 * (loss[1] - best)


def test_probabilities_are_a_distribution_whose_logarithm_is_the_transform(six):
    (logits, *_), fits = six
    cal = fits[True]
    probs = cal.predict_proba(logits)
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(cal.transform(logits), np.log(probs), atol=1e-6)
    np.testing.assert_array_equal(cal.predict(logits), probs.argmax(axis=1))
    assert (cal.predict(logits) != logits.argmax(axis=1)).mean() > 0.02


def test_probabilities_are_the_average_over_the_normal_posterior_of_log_t(six):
    (logits, *_), fits = six
    cal, z = fits[True], logits[2000:2200]
    offset = cal.bias_ + (z - z.mean(axis=1, keepdims=True)) @ cal.interactions_.T
    mean, std = np.log(cal.temperature(z)), cal.log_temperature_std(z)
    q = np.linspace(-7, 7, 1401)
    density = np.exp(-q * q / 2) / np.exp(-q * q / 2).sum()
    want = sum(
        d * softmax(z / np.exp(mean + std * at)[:, None] + offset, axis=1)
        for at, d in zip(q, density, strict=True)
    )
    np.testing.assert_allclose(cal.predict_proba(z), want, atol=5e-4)


def test_the_fit_is_the_posterior_mode_of_another_solver():
    z, y, *_ = shifted_task(3, seed=1, n_rows=150)
    cal = BayesianTemperatureScaling(class_bias=True, prior="weak").fit(z, y)
    weak = weak_population()
    shape = (shape_features_of(LogitRows(z), cal.reference_) - cal.centre_) / cal.spread_
    X = np.column_stack([np.ones(150), shape, np.eye(3)[z.argmax(axis=1)]])
    unit = interacting(3, cal.reference_).scale  # of the logits, where the prior has its scale
    inputs = np.hstack([np.ones((150, 1)), (z - z.mean(axis=1, keepdims=True)) / unit])
    scales = [weak.intercept_scale, 0.5, weak.class_scale, weak.bias_scale, weak.interaction_scale]
    variances = np.repeat(cal.taus_ * np.square(scales), [1, 4, 3, 3, 9])

    def loss(theta):
        u = z / np.exp(X @ theta[:8])[:, None] + inputs @ theta[8:].reshape(4, 3)
        return -log_softmax(u, axis=1)[np.arange(150), y].sum() + np.sum(theta**2 / variances) / 2

    interactions = (cal.interactions_ * unit).T.ravel()
    ours = np.concatenate([cal.coefficients_, cal.class_shift_, cal.bias_, interactions])
    found = minimize(loss, ours + 0.05, method="BFGS", options={"gtol": 1e-5})
    assert loss(ours) == pytest.approx(found.fun, abs=1e-4)
    np.testing.assert_allclose(ours, found.x, atol=2e-3)
    assert cal.solution_.value == pytest.approx(loss(ours) / 150, rel=1e-8)


def test_without_a_bias_in_the_task_hardly_any_is_fitted():
    task = simulate(4000, 6, random_state=8)
    cal = BayesianTemperatureScaling(class_bias=True).fit(task.logits[:2000], task.labels[:2000])
    plain = BayesianTemperatureScaling().fit(task.logits[:2000], task.labels[:2000])
    loss = [metrics.nll(c.predict_proba(task.logits[2000:]), task.labels[2000:]) for c in (cal, plain)]
    assert loss[0] < loss[1] + 0.01
    assert (cal.predict(task.logits) == task.logits.argmax(axis=1)).mean() > 0.95


def test_weights_are_repetitions():
    z, y, *_ = shifted_task(4, n_rows=200)
    times = np.random.default_rng(0).integers(0, 4, 200)
    weighted = BayesianTemperatureScaling(class_bias=True).fit(z, y, times)
    repeated = BayesianTemperatureScaling(class_bias=True).fit(z.repeat(times, axis=0), y.repeat(times))
    for name, value in repeated.parameters().items():
        np.testing.assert_allclose(weighted.parameters()[name], value, rtol=1e-6, atol=1e-8)


def test_one_column_is_the_logit_of_class_1_of_two():
    rng = np.random.default_rng(5)
    scores = 2 * rng.standard_normal(300)
    labels = (rng.random(300) < 1 / (1 + np.exp(-scores - 1))).astype(int)
    columns = np.column_stack([np.zeros(300), scores])
    one, two = (BayesianTemperatureScaling(class_bias=True).fit(z, labels) for z in (scores, columns))
    np.testing.assert_array_equal(one.predict_proba(scores), two.predict_proba(columns))
    p = one.predict_proba(scores)
    np.testing.assert_allclose(1 / (1 + np.exp(-one.transform(scores))), p[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(one.predict(scores), p.argmax(axis=1))
    assert one.predict(scores).mean() > (scores > 0).mean()


def test_masked_classes_are_refused_at_fit_and_at_use(six):
    (logits, labels, *_), fits = six
    masked = logits[:100].copy()
    for row in (7, 11):
        masked[row, (labels[row] + 1) % 6] = -np.inf
    message = r"finite for BayesianTemperatureScaling\(class_bias=True\).*-inf in 2 rows \(first: row 7\)"
    with pytest.raises(InputError, match=message):
        BayesianTemperatureScaling(class_bias=True).fit(masked, labels[:100])
    for use in ("predict", "predict_proba", "transform"):
        with pytest.raises(InputError, match=message):
            getattr(fits[True], use)(masked)
    assert np.isfinite(fits[False].predict_proba(masked)).all()


def test_more_than_2000_classes_are_refused():
    task = simulate(20, 2001)
    with pytest.raises(InputError, match=r"at most 2000 classes.*got 2001. Leave class_bias out"):
        BayesianTemperatureScaling(class_bias=True).fit(task.logits, task.labels)


@pytest.mark.parametrize("n_classes", [6, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_calibrator_gives_the_same_bits(n_classes, dtype, tmp_path):
    task = simulate(200, n_classes, random_state=3)
    logits = task.logits.astype(dtype)
    write_population(weak_population(), tmp_path / "prior.json")
    options = {"class_bias": True, "prior": str(tmp_path / "prior.json")}
    cal = BayesianTemperatureScaling(**options).fit(logits, task.labels)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    assert loaded.get_params() == options
    assert loaded.summary() == cal.summary()
    for use in ("predict_proba", "transform", "predict", "temperature", "log_temperature_std"):
        np.testing.assert_array_equal(getattr(loaded, use)(logits), getattr(cal, use)(logits))
    assert cal.predict_proba(logits).dtype == dtype


def test_set_params_after_a_fit_changes_nothing_that_is_computed(six):
    logits, labels, *_ = six[0]
    cal = BayesianTemperatureScaling(class_bias=True).fit(logits[:200], labels[:200])
    before = cal.predict_proba(logits)
    cal.set_params(class_bias=False)
    np.testing.assert_array_equal(cal.predict_proba(logits), before)
    assert "bias" in cal.parameters()


def test_the_summary_counts_the_bias_and_the_interactions(six):
    text = six[1][True].summary()
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"class bias: [0-6]\.\d of 6 parameters, tau = ", text)
    assert re.search(r"class interactions: \d+\.\d of 36 parameters, tau = ", text)
    assert "class bias" not in six[1][False].summary()


@pytest.mark.parametrize("gap", [1e4, 1e14, 1e18, 1e30])
def test_probabilities_sum_to_one_whatever_the_gap(gap):
    task = simulate(800, 5, random_state=0)
    cal = BayesianTemperatureScaling(class_bias=True).fit(task.logits, task.labels)
    probs = cal.predict_proba(np.array([[gap, 0, 0, 0, 0], [0, 0, -gap, 1, 2]]))
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-9)
