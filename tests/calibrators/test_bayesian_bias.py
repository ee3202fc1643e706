"""Bayesian temperature scaling with a bias for each class, which may change the decision."""

import re

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import temperance
from temperance import BayesianTemperatureScaling, metrics
from temperance.core.class_bias import MAX_INTERACTING
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
    assert np.corrcoef(fits[True].bias_, bias)[0, 1] > 0.9
    right = {b: (cal.predict(logits[half:]) == labels[half:]).mean() for b, cal in fits.items()}
    assert right[True] > right[False] + 0.01


def test_a_known_bias_is_found_and_removed(six):
    check_repair(*six)


def test_beyond_20_classes_a_bias_is_found_without_interactions(tmp_path):
    task = shifted_task(40, seed=2)
    fits = both(task)
    check_repair(task, fits)
    assert fits[True].bias_.shape == (40,)
    assert not hasattr(fits[True], "interactions_")
    assert "interactions" not in fits[True].summary()
    assert fits[True].taus_.shape == (5,)
    fits[True].save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    np.testing.assert_array_equal(loaded.transform(task[0]), fits[True].transform(task[0]))


def test_up_to_20_classes_the_bias_may_depend_on_the_probabilities(six):
    assert six[1][True].interactions_.shape == six[1][True].parameters()["interactions"].shape == (6, 6)
    assert not hasattr(six[1][False], "bias_")
    assert MAX_INTERACTING == 20
    for n_classes in (20, 21):
        task = simulate(60, n_classes, random_state=0)
        cal = BayesianTemperatureScaling(class_bias=True).fit(task.logits, task.labels)
        assert hasattr(cal, "interactions_") == (n_classes == 20)


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
    assert loss[0] - best < 0.35 * (loss[1] - best)


def test_probabilities_are_a_distribution_whose_logarithm_is_the_transform(six):
    (logits, *_), fits = six
    cal = fits[True]
    probs = cal.predict_proba(logits)
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(cal.transform(logits), np.log(probs), atol=1e-6)
    np.testing.assert_array_equal(cal.predict(logits), probs.argmax(axis=1))
    assert (cal.predict(logits) != logits.argmax(axis=1)).mean() > 0.02
    np.testing.assert_array_equal(cal.temperature(logits), fits[False].temperature(logits))


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
    assert ("bias" in cal.parameters()) or class_bias == "auto"


# "auto"


def test_auto_with_weight_0_is_the_calibrator_without_a_bias():
    task = simulate(300, 5, random_state=8)
    auto, plain = (
        BayesianTemperatureScaling(class_bias=b).fit(task.logits, task.labels) for b in ("auto", False)
    )
    assert auto.parameters().keys() == plain.parameters().keys()
    assert not [name for name in auto.parameters() if "bias" in name or name == "interactions"]
    np.testing.assert_array_equal(auto.predict_proba(task.logits), plain.predict_proba(task.logits))
    np.testing.assert_array_equal(auto.predict(task.logits), task.logits.argmax(axis=1))
    assert not auto.keeps_class  # the option does not guarantee it
    assert "class bias: not used; it does not improve the prediction of held-out rows" in words(auto)


def test_auto_with_a_useful_bias_mixes_it_in(six):
    (logits, labels, *_), fits = six
    auto = BayesianTemperatureScaling(class_bias="auto").fit(logits[:2000], labels[:2000])
    weight = auto.bias_weight_
    assert 0.8 < weight < 1
    np.testing.assert_allclose(auto.bias_, fits[True].bias_, rtol=1e-12)
    plain, biased = (fits[bias].predict_proba(logits) for bias in (False, True))
    np.testing.assert_allclose(auto.predict_proba(logits), (1 - weight) * plain + weight * biased, rtol=1e-9)
    assert f"class bias: mixed in with weight {weight:.2f}; the predicted class may change" in words(auto)
    assert fits[True].bias_weight_ == 1


def words(cal):
    """Return a summary without its line breaks."""
    return " ".join(cal.summary().split())


def test_the_summary_counts_the_bias_and_the_interactions(six):
    text = six[1][True].summary()
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"class bias: [0-6]\.\d of 6, tau = ", text)
    assert re.search(r"class interactions: \d+\.\d of 36, tau = ", text)
    assert "class bias" not in six[1][False].summary()


@pytest.mark.parametrize("gap", [1e4, 1e14, 1e18, 1e30])
def test_probabilities_sum_to_one_whatever_the_gap(gap):
    task = simulate(800, 5, random_state=0)
    cal = BayesianTemperatureScaling(class_bias=True).fit(task.logits, task.labels)
    probs = cal.predict_proba(np.array([[gap, 0, 0, 0, 0], [0, 0, -gap, 1, 2]]))
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-9)


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


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("seed", range(8))
def test_a_weight_of_k_is_the_row_k_times(seed):
    rng = np.random.default_rng(seed)
    task = simulate(150, 3 + seed % 3, random_state=seed)
    logits = task.logits + rng.normal(0, 0.5, task.logits.shape[1])
    times = rng.integers(0, 5, 150)
    weighted = temperance.make_calibrator("bayes-bias").fit(logits, task.labels, times.astype(float))
    repeated = temperance.make_calibrator("bayes-bias").fit(
        logits.repeat(times, axis=0), task.labels.repeat(times)
    )
    np.testing.assert_allclose(weighted.predict_proba(logits), repeated.predict_proba(logits), atol=1e-6)
