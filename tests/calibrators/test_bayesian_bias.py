"""Bayesian temperature scaling with a bias for each class, which may change the decision."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import temperance
from temperance import BayesianTemperatureScaling, metrics
from temperance.core import class_bias
from temperance.core.features import MAX_INTERACTING
from temperance.core.logit_rows import LogitRows
from temperance.data import simulate


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
    assert np.corrcoef(fits[True].biases_[1], bias)[0, 1] > 0.9
    right = {b: (cal.predict(logits[half:]) == labels[half:]).mean() for b, cal in fits.items()}
    assert right[True] > right[False] + 0.01


def test_a_known_bias_is_found_and_removed_and_changes_decisions_but_no_temperature(six):
    check_repair(*six)
    (logits, *_), fits = six
    cal, plain = fits[True], fits[False]
    probs = cal.predict_proba(logits)
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(cal.transform(logits), np.log(probs), atol=1e-6)
    np.testing.assert_array_equal(cal.predict(logits), probs.argmax(axis=1))
    assert (cal.predict(logits) != logits.argmax(axis=1)).mean() > 0.02
    np.testing.assert_array_equal(cal.temperature(logits), plain.temperature(logits))
    assert cal.model_.n_parameters > plain.model_.n_parameters + 3
    assert cal.taus_.shape == cal.effective_parameters_.shape == (4,)
    assert cal.interactions_.shape == (3, 6, 6)
    assert not hasattr(plain, "biases_")
    assert "class bias, the mean of: class bias 1.00; the predicted class can change" in words(cal)
    assert "is predicted" not in words(cal)
    assert "class bias" not in words(plain)


@pytest.mark.parametrize("n_classes", [20, 21])
def test_up_to_20_classes_the_bias_may_depend_on_the_probabilities(n_classes):
    assert MAX_INTERACTING == 20
    task = simulate(60, n_classes, random_state=0)
    cal = BayesianTemperatureScaling(class_bias=True).fit(task.logits, task.labels)
    assert hasattr(cal, "interactions_") == (n_classes == 20)


def test_without_a_bias_in_the_task_hardly_any_is_fitted():
    task = simulate(4000, 6, random_state=8)
    fits = both((task.logits, task.labels))
    held = slice(2000, None)
    loss = [metrics.nll(fits[b].predict_proba(task.logits[held]), task.labels[held]) for b in (True, False)]
    assert loss[0] < loss[1] + 0.01
    assert (fits[True].predict(task.logits) == task.logits.argmax(axis=1)).mean() > 0.95


def test_beyond_20_classes_a_bias_is_found_without_interactions(tmp_path):
    task = shifted_task(40, seed=2)
    fits = both(task)
    check_repair(task, fits)
    assert fits[True].biases_.shape == (2, 40)
    assert not hasattr(fits[True], "interactions_")
    np.testing.assert_array_equal(fits[True].bias_weights_, [0, 1])
    fits[True].save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    np.testing.assert_array_equal(loaded.transform(task[0]), fits[True].transform(task[0]))


def test_interactions_repair_classes_that_are_mixed_up():
    # Class 0 borrows from class 1 what it lacks: no bias alone can say that.
    honest = simulate(6000, 4, temperature=1.0, entropy_slope=0, class_spread=0, random_state=5).logits
    centred = honest - honest.mean(axis=1, keepdims=True)
    truth = honest.copy()
    truth[:, 0] += 0.4 * centred[:, 1]
    labels = draw(softmax(truth, axis=1), 5)
    cal = BayesianTemperatureScaling(class_bias=True).fit(honest[:3000], labels[:3000])
    effect = cal.interactions_[0] - cal.interactions_[0].mean(axis=0)  # a common part changes nothing
    assert np.unravel_index(np.argmax(effect), (4, 4)) == (0, 1)
    plain = BayesianTemperatureScaling().fit(honest[:3000], labels[:3000])
    loss = [metrics.nll(c.predict_proba(honest[3000:]), labels[3000:]) for c in (cal, plain)]
    best = metrics.nll(softmax(truth[3000:], axis=1), labels[3000:])
    assert loss[0] - best < 0.35 * (loss[1] - best)


@pytest.mark.filterwarnings("ignore:rows must be different ones")
@pytest.mark.parametrize("class_bias", [True, "auto"])
@pytest.mark.parametrize("n_classes", [4, 24])
def test_weights_are_repetitions(class_bias, n_classes):
    z, y, *_ = shifted_task(n_classes, n_rows=200)
    times = np.random.default_rng(0).integers(0, 4, 200)
    weighted, repeated = (BayesianTemperatureScaling(class_bias=class_bias) for _ in range(2))
    weighted.fit(z, y, times)
    repeated.fit(z.repeat(times, axis=0), y.repeat(times))
    assert "bias_weights" in repeated.parameters()
    for name, value in repeated.parameters().items():
        np.testing.assert_allclose(weighted.parameters()[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("class_bias", [True, "auto"])
def test_masked_classes_stay_impossible(six, class_bias):
    (logits, labels, *_), fits = six
    masked = logits[:400].copy()
    masked[np.arange(400), (labels[:400] + 1) % 6] = -np.inf
    cal = BayesianTemperatureScaling(class_bias=class_bias).fit(masked, labels[:400])
    for fitted in (cal, fits[True]):
        probs = fitted.predict_proba(masked)
        assert (probs[np.isneginf(masked)] == 0).all()
        assert (probs[np.isfinite(masked)] > 0).all()
        np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("class_bias", [True, "auto"])
def test_more_than_2000_classes_work(class_bias):
    task = simulate(30, 2001, random_state=0)
    cal = BayesianTemperatureScaling(class_bias=class_bias).fit(task.logits, task.labels)
    np.testing.assert_allclose(cal.predict_proba(task.logits).sum(axis=1), 1, atol=1e-9)
    assert ("biases" in cal.parameters()) or class_bias == "auto"


# "auto"


def test_auto_without_a_useful_bias_is_the_calibrator_without_one():
    task = simulate(4000, 5, temperature=1.0, entropy_slope=0, class_spread=0, random_state=6)
    labels = task.labels.copy()
    auto, plain = (BayesianTemperatureScaling(class_bias=b) for b in ("auto", False))
    with pytest.MonkeyPatch.context() as patch:  # no kind is better than no change, except by chance
        patch.setattr(class_bias, "MIN_WEIGHT", 1.0)
        auto.fit(task.logits, labels)
    plain.fit(task.logits, labels)
    assert auto.parameters().keys() == plain.parameters().keys()
    assert not [name for name in auto.parameters() if "bias" in name or name == "interactions"]
    np.testing.assert_array_equal(auto.predict_proba(task.logits), plain.predict_proba(task.logits))
    np.testing.assert_array_equal(auto.predict(task.logits), task.logits.argmax(axis=1))
    assert not auto.keeps_class  # the option does not guarantee it
    assert "class bias: not used; it does not improve the prediction of left-out rows" in words(auto)


def test_auto_averages_the_kinds_of_class_bias(six):
    (logits, labels, *_), fits = six
    auto = BayesianTemperatureScaling(class_bias="auto").fit(logits[:2000], labels[:2000])
    weights = auto.bias_weights_
    assert 0.8 < weights.sum() <= 1
    np.testing.assert_allclose(auto.biases_[1], fits[True].biases_[1], rtol=1e-12)
    np.testing.assert_array_equal(fits[True].bias_weights_, [0, 1, 0, 0])
    alone = [only(auto, j).predict_proba(logits) for j in range(4)]
    np.testing.assert_allclose(alone[1], fits[True].predict_proba(logits), rtol=1e-12)
    want = (1 - weights.sum()) * fits[False].predict_proba(logits) + np.tensordot(weights, alone, 1)
    np.testing.assert_allclose(auto.predict_proba(logits), want, rtol=1e-9)
    loss = [metrics.nll(cal.predict_proba(logits[2000:]), labels[2000:]) for cal in (auto, fits[True])]
    assert loss[0] < loss[1] + 0.002


def only(cal, kind):
    """Return the calibrator with one kind of class bias alone."""
    cal = copy(cal)
    cal.model_ = replace(cal.model_, formula=replace(cal.model_.formula, bias_weights=np.eye(4)[kind]))
    return cal


def test_the_summary_says_what_is_averaged_and_which_class_is_predicted_too_often():
    task = simulate(80, 3, temperature=1.0, entropy_slope=0, class_spread=0, random_state=1)
    names = np.array(["cat", "dog", "emu"])
    labels = np.where((task.labels == 2) & (np.arange(80) % 4 > 0), 0, task.labels)
    cal = BayesianTemperatureScaling(class_bias="auto").fit(task.logits, names[labels], classes=names)
    weights = {"no change": 1 - cal.bias_weights_.sum(), "class frequencies": cal.bias_weights_[0]}
    for name, weight in weights.items():
        assert (f"{name} {weight:.2f}" in words(cal)) == (weight >= 0.005)
    factor = np.exp(-cal.biases_[0, 2])
    assert factor > 1.2
    assert f"class emu is predicted {factor:.2g} times as often as it occurs" in words(cal)
    assert max(map(len, cal.summary().splitlines())) <= 80


def words(cal):
    """Return a summary without its line breaks."""
    return " ".join(cal.summary().split())


def test_a_finite_mask_is_seen_by_a_prediction_as_by_the_fit():
    logits, labels, *_ = shifted_task(4, n_rows=600)
    logits[np.arange(600), (labels + 1) % 4] = -1e9
    plain, biased = (
        BayesianTemperatureScaling(class_bias=bias).fit(logits, labels) for bias in (False, True)
    )
    rows = LogitRows(plain.transform(logits), labels)
    theta = np.concatenate(
        [[-np.log(biased.bias_betas_[1])], biased.biases_[1], biased.interactions_[0].T.ravel()]
    )
    loss = class_bias.ClassBiasLikelihood(rows, interacting=True)(theta).value
    assert metrics.nll(biased.predict_proba(logits), labels) == pytest.approx(loss, rel=1e-9)


def test_probabilities_sum_to_one_whatever_the_gap(six):
    rows = [row for gap in (1e4, 1e14, 1e18, 1e30) for row in ([gap, 0, 0, 0, 0, 0], [0, 0, -gap, 1, 2, 0])]
    np.testing.assert_allclose(six[1][True].predict_proba(np.array(rows)).sum(axis=1), 1, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_rare_class_among_many_rows_is_kept_when_widths_are_chosen():
    rng = np.random.default_rng(0)
    labels = (rng.random(10_000) < 0.015).astype(int)
    score = rng.normal(np.where(labels == 1, 14.0, -5.0), np.where(labels == 1, 2.5, 4.0))
    z = np.column_stack([np.zeros(10_000), score])
    cal = BayesianTemperatureScaling(class_bias=True).fit(z[:5000], labels[:5000])
    logistic = LogisticRegression(C=1e4).fit(score[:5000, None], labels[:5000])
    of_logistic = metrics.nll(logistic.predict_proba(score[5000:, None]), labels[5000:])
    assert metrics.nll(cal.predict_proba(z[5000:]), labels[5000:]) < 1.5 * of_logistic
