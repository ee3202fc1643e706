"""`adapt`: the class frequencies of unlabelled rows, and probabilities under them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from compared import COMPARED

from temperance import TemperatureScaling, load, metrics
from temperance.calibrators import fit_record, label_shift
from temperance.core import frequencies
from temperance.core.frequencies import (
    FrequencyEstimate,
    LabelFrequencies,
    ProbabilityRows,
    estimate_frequencies,
    label_frequencies,
)
from temperance.data import simulate
from temperance.errors import InputError

methods = pytest.mark.parametrize("method", COMPARED)
PRIORS = np.array([0.7, 0.1, 0.15, 0.05])
EXACT = {"temperature": 1.0, "entropy_slope": 0.0, "class_spread": 0.0}


def resample(task, priors, n_rows, seed=0):
    """Return rows of a task drawn so that their classes have these frequencies, and their labels."""
    weights = (priors / np.bincount(task.labels, minlength=len(priors)))[task.labels]
    chosen = np.random.default_rng(seed).choice(len(weights), n_rows, p=weights / weights.sum())
    return task.logits[chosen], task.labels[chosen]


@pytest.fixture(scope="module")
def honest():
    """Return rows whose softmax is the true posterior, with equal class frequencies."""
    return simulate(20_000, 4, random_state=1, **EXACT)


@pytest.fixture(scope="module")
def calibrator(honest):
    return TemperatureScaling().fit(honest.logits[:10_000], honest.labels[:10_000])


def frequencies_of(adapted):
    at_fit = frequencies.label_frequencies(adapted.class_counts_).frequencies
    return at_fit * np.exp(adapted.log_prior_ratio_)


def uniform(n_classes):
    return LabelFrequencies(np.full(n_classes, 1 / n_classes), np.ones(n_classes, bool))


# ---- estimation


def test_the_class_frequencies_of_a_resampled_task_are_recovered_and_told(honest, calibrator):
    adapted = calibrator.adapt(resample(honest, PRIORS, 10_000)[0])
    found, errors = frequencies_of(adapted), adapted.frequency_errors_
    assert np.abs(found - PRIORS).max() < 0.02
    assert (np.abs(found - PRIORS) < 4 * errors).all()
    assert 0 < errors.max() < 0.02
    assert found.sum() == pytest.approx(1, abs=1e-12)
    words = adapted.summary().replace("\n ", "")
    assert "adapted to class frequencies: 0 0.7" in words
    assert " \u00b1 0.00" in words
    known = calibrator.adapt(priors=PRIORS).summary().replace("\n ", "")
    assert "adapted to class frequencies: 0 0.7 (0.25" in known
    assert "adapted" not in calibrator.summary()


def test_standard_errors_are_the_spread_over_samples():
    found, errors = [], []
    for seed in range(60):
        task = simulate(1000, 3, random_state=seed, **EXACT)
        estimate = estimate_frequencies(ProbabilityRows(task.probabilities), uniform(3))
        found.append(np.bincount(task.labels, minlength=3) / 1000 - estimate.frequencies)
        errors.append(estimate.standard_errors)
    labelled = np.sqrt(2 / 9 / 1000)
    assert labelled < np.mean(errors) < 2 * labelled
    assert np.std(found) < 2 * np.mean(errors)


def test_few_passes_over_all_rows_and_a_subsample_suffice(honest, calibrator):
    probs = np.tile(calibrator.predict_proba(resample(honest, PRIORS, 10_000)[0]), (3, 1))
    estimate = estimate_frequencies(ProbabilityRows(probs), uniform(4))
    assert estimate.converged
    assert estimate.passes <= 5


def test_a_hessian_of_fewer_rows_gives_the_same_optimum(honest, calibrator):
    probs = calibrator.predict_proba(resample(honest, PRIORS, 3_000)[0])
    whole, thinned = (estimate_frequencies(ProbabilityRows(probs, step), uniform(4)) for step in (1, 5))
    np.testing.assert_allclose(thinned.frequencies, whole.frequencies, atol=1e-5)


# ---- frequencies at fit


def biased(n_rows, seed):
    """Return rows whose logits of class 0 are too large everywhere, which no temperature corrects."""
    task = simulate(n_rows, 4, random_state=seed, **EXACT)
    return task.logits + np.array([1.5, 0.0, 0.0, 0.0]), task.labels


def test_a_class_overpredicted_everywhere_is_not_mistaken_for_a_shift(tmp_path):
    calibrator, (logits, labels) = TemperatureScaling().fit(*biased(3000, 0)), biased(3000, 1)
    adapted = calibrator.adapt(logits)
    assert np.abs(adapted.log_prior_ratio_).max() < 0.3
    assert frequencies_of(adapted).sum() == pytest.approx(1, abs=1e-12)
    before, after = (metrics.nll(c.predict_proba(logits), labels) for c in (calibrator, adapted))
    assert after - before < 0.005
    calibrator.save(tmp_path / "cal.json")
    loaded = load(tmp_path / "cal.json")
    np.testing.assert_array_equal(loaded.adapt(logits).log_prior_ratio_, adapted.log_prior_ratio_)


def test_a_small_subsample_of_the_fit_is_not_used(monkeypatch):
    """Of old files: mean probabilities of 5 rows for each class are worse than counts of all labels."""
    for name in ("BASELINE_ROWS", "MIN_BASELINE_ROWS"):
        monkeypatch.setattr(fit_record, name, 20)
    calibrator, logits = TemperatureScaling().fit(*biased(3000, 0)), biased(3000, 1)[0]
    record = calibrator.model_.record
    old = replace(record, baseline=replace(record.baseline, fit_rows=None))
    calibrator.model_ = replace(calibrator.model_, record=old)
    wanted = estimate_frequencies(
        ProbabilityRows(calibrator.predict_proba(logits)),
        frequencies.label_frequencies(calibrator.class_counts_),
    )
    np.testing.assert_allclose(frequencies_of(calibrator.adapt(logits)), wanted.frequencies, rtol=1e-12)


def test_equal_counts_give_equal_frequencies_and_others_are_hardly_smoothed():
    noisy = frequencies.label_frequencies(np.array([98.0, 103.0, 107.0, 92.0]))
    np.testing.assert_allclose(noisy.frequencies, 0.25, atol=0.002)
    unequal = np.array([900.0, 90.0, 10.0])
    np.testing.assert_allclose(frequencies.label_frequencies(unequal).frequencies, unequal / 1000, atol=0.002)


def test_a_class_without_labels_keeps_its_frequency():
    """Class 2 has probability in every row but no label: its frequency must not explode."""
    task = simulate(4000, 3, random_state=2, **EXACT)
    seen = task.labels != 2
    with pytest.warns(UserWarning, match="should have labels of every class; found none of 2"):
        calibrator = TemperatureScaling().fit(task.logits[seen], task.labels[seen])
    with pytest.warns(UserWarning, match="class 2 had fewer than 5 labels at fit"):
        assert calibrator.adapt(task.logits).log_prior_ratio_[2] == 0
    with pytest.warns(UserWarning, match="class 2 had fewer than 5 labels at fit"):
        adapted = calibrator.adapt(priors=[0.5, 0.3, 0.2])
    assert adapted.log_prior_ratio_[2] == 0
    at_use = frequencies_of(adapted)
    assert at_use[0] / at_use[1] == pytest.approx(5 / 3)


# ---- outputs


@methods
def test_known_frequencies_are_applied_by_bayes_rule(task, fitted, method):
    calibrator = fitted(method)
    adapted = calibrator.adapt(priors=PRIORS)
    at_fit = frequencies.label_frequencies(np.bincount(task.labels, minlength=4).astype(float)).frequencies
    wanted = calibrator.predict_proba(task.logits) * PRIORS / at_fit
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(adapted.predict_proba(task.logits), wanted, atol=1e-13)
    np.testing.assert_allclose(np.exp(adapted.transform(task.logits)), wanted, atol=1e-13)
    np.testing.assert_array_equal(adapted.predict(task.logits), wanted.argmax(axis=1))
    assert (adapted.predict(task.logits) != calibrator.predict(task.logits)).any()
    assert type(adapted) is type(calibrator)
    if hasattr(calibrator, "temperature_quantiles_"):
        np.testing.assert_array_equal(adapted.temperature(task.logits), calibrator.temperature(task.logits))


@methods
def test_pytorch_and_onnx_give_the_same(task, fitted, method, tmp_path):
    torch, onnxruntime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    adapted = fitted(method).adapt(priors=PRIORS)
    wanted = adapted.transform(task.logits)
    with_gradient = torch.from_numpy(task.logits).clone().requires_grad_()
    np.testing.assert_allclose(adapted.to_torch()(with_gradient).detach().numpy(), wanted, atol=1e-10)
    np.testing.assert_allclose(adapted.transform(with_gradient).detach().numpy(), wanted, atol=1e-10)
    np.testing.assert_array_equal(adapted.predict(with_gradient).numpy(), adapted.predict(task.logits))
    assert "log_prior_ratio" in adapted.to_torch().state_dict()
    adapted.to_onnx(tmp_path / "cal.onnx")
    running = onnxruntime.InferenceSession(str(tmp_path / "cal.onnx"), providers=["CPUExecutionProvider"])
    (got,) = running.run(None, {"logits": task.logits.astype(np.float32)})
    np.testing.assert_allclose(got, adapted.predict_proba(task.logits), atol=1e-5)


@methods
def test_dask_rows_give_the_same(task, fitted, method):
    da = pytest.importorskip("dask.array")
    shifted = task.logits[task.labels != 1]
    wanted = fitted(method).adapt(shifted)
    adapted = fitted(method).adapt(da.from_array(shifted, chunks=(60, 4)))
    np.testing.assert_allclose(adapted.log_prior_ratio_, wanted.log_prior_ratio_, atol=1e-8)
    lazy = da.from_array(task.logits, chunks=(70, 4))
    np.testing.assert_allclose(
        adapted.predict_proba(lazy).compute(), wanted.predict_proba(task.logits), atol=1e-8
    )


def test_dask_rows_are_subsampled_first(honest, calibrator, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr(frequencies, "SUBSAMPLE_ROWS", 500)
    logits = resample(honest, PRIORS, 4_000)[0]
    one, other = (calibrator.adapt(z) for z in (logits, da.from_array(logits, chunks=(1_100, 4))))
    np.testing.assert_allclose(other.log_prior_ratio_, one.log_prior_ratio_, atol=1e-8)


def test_masked_classes_stay_impossible(task, fitted):
    logits = task.logits.copy()
    logits[::3, 1] = -np.inf
    for key in ("ts", "ets", "bayes"):
        for adapted in (fitted(key).adapt(priors=PRIORS), fitted(key).adapt(logits)):
            probs, logs = adapted.predict_proba(logits), adapted.transform(logits)
            assert (probs[::3, 1] == 0).all()
            assert np.isneginf(logs[::3, 1]).all()
            np.testing.assert_allclose(probs.sum(axis=1), 1)
            np.testing.assert_allclose(np.exp(logs), probs, atol=1e-13)


def test_binary_logits_shift_by_the_difference_of_the_ratios(binary):
    logits, labels = binary
    calibrator = TemperatureScaling().fit(logits, labels)
    adapted = calibrator.adapt(priors=[0.2, 0.8])
    shift = np.diff(adapted.log_prior_ratio_)
    np.testing.assert_allclose(adapted.transform(logits), calibrator.transform(logits) + shift)


def test_extreme_frequencies_and_sure_rows_give_no_nan():
    task = simulate(300, 3, random_state=0, **EXACT)
    adapted = TemperatureScaling().fit(task.logits, task.labels).adapt(priors=[5e-324, 5e-324, 1.0])
    logits = np.array([[900.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -2000.0]])
    for dtype in (np.float32, np.float64):
        probs = adapted.predict_proba(logits.astype(dtype))
        assert probs.dtype == adapted.transform(logits.astype(dtype)).dtype == dtype
        np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-6)


# ---- the estimator


def test_adapt_does_not_change_the_calibrator_and_a_fit_removes_the_adaptation(task):
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    before = calibrator.predict_proba(task.logits)
    adapted = calibrator.adapt(priors=PRIORS)
    np.testing.assert_array_equal(calibrator.predict_proba(task.logits), before)
    assert not adapted.model_.keeps_class
    assert calibrator.model_.keeps_class
    np.testing.assert_array_equal(adapted.fit(task.logits, task.labels).predict_proba(task.logits), before)


# ---- warnings and errors


def test_classes_that_the_classifier_cannot_separate_are_named(honest):
    logits = honest.logits[:6000].copy()
    logits[:, 3] = logits[:, 1]
    labels = np.where(honest.labels[:6000] == 3, 1, honest.labels[:6000])
    labels[np.flatnonzero(labels == 1)[::2]] = 3
    calibrator = TemperatureScaling().fit(logits, labels)
    with pytest.warns(
        UserWarning, match=r"6000 rows do not determine the frequency of classes (1, 3|3, 1) \("
    ):
        calibrator.adapt(logits)


def test_of_many_classes_a_warning_names_a_few_and_counts_the_others():
    labels = np.arange(1200) % 60
    logits = 8.0 * (np.arange(60) // 2 == labels[:, None] // 2)  # neighbours look the same
    labels[::7] = (labels[::7] + 10) % 60
    calibrator = TemperatureScaling().fit(logits, labels)
    with pytest.warns(UserWarning, match="600 rows do not determine") as caught:
        calibrator.adapt(logits[:600])
    (told,) = (str(warning.message) for warning in caught)
    assert re.search(r"frequency of classes (\d+, ){3}\.\.\., \d+, \d+ \(\d+ in all\) \(", told)
    labelled = labels < 40
    calibrator = TemperatureScaling().fit(logits[labelled], labels[labelled])
    with pytest.warns(
        UserWarning, match="classes 40, 41, 42, ..., 58, 59 .20 in all. had fewer than 5 labels"
    ):
        calibrator.adapt(priors=np.full(60, 1 / 60))


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ([0.5, 0.5], r"found float64 of shape \(2,\)"),
        ([[0.25] * 4], r"found float64 of shape \(1, 4\)"),
        (["a", "b", "c", "d"], "found <U1"),
        ([0.5, 0.5, 0.5, -0.5], "found -0.5. Give a rare class a small frequency"),
        ([0.5, 0.5, 0.0, 0.0], "found 0. Give a rare class a small frequency"),
        ([0.5, 0.5, np.nan, 0.1], "found nan"),
        ([0.5, 0.5, 0.5, 0.5], "found the sum 2. Divide them by their sum"),
    ],
)
def test_priors_must_be_frequencies(priors, words, fitted):
    with pytest.raises(InputError, match=f"priors must be 4 class frequencies.*{words}"):
        fitted("ts").adapt(priors=priors)


@pytest.mark.parametrize(
    ("counts", "given", "words"),
    [
        ([75] * 4, lambda z: {}, "found neither"),
        ([75] * 4, lambda z: {"logits": z, "priors": PRIORS}, "found both"),
        ([75] * 4, lambda z: {"logits": z[:0]}, "needs unlabelled rows, and there are none"),
        ([75] * 4, lambda z: {"logits": z[:, :3]}, "fitted on 4 classes"),
        (None, lambda z: {"logits": z}, "does not have them. Fit it again"),
        (None, lambda z: {"priors": PRIORS}, "does not have them. Fit it again"),
        ([300, 0, 0, 0], lambda z: {"logits": z}, "two classes with at least 5 labels at fit; found 1"),
    ],
)
def test_it_takes_rows_of_the_classifier_or_priors_and_needs_labels_at_fit(counts, given, words, task):
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    class_counts = None if counts is None else np.array(counts, float)
    calibrator.model_ = replace(calibrator.model_, class_counts=class_counts)
    with pytest.raises(InputError, match=words):
        calibrator.adapt(**given(task.logits))


def test_mean_probabilities_of_few_rows_count_if_they_are_all_the_rows():
    task = simulate(n_rows=60, n_classes=3, random_state=0)
    model = TemperatureScaling().fit(task.logits, task.labels).model_
    assert model.n_rows < label_shift.SAMPLED_ROWS_PER_CLASS * model.n_classes
    expected = label_shift._expected_frequencies(model, label_frequencies(model.class_counts))
    mean = model.record.baseline.mean_probabilities
    np.testing.assert_allclose(expected.frequencies, label_frequencies(60 * mean).frequencies)


def test_a_frequency_as_precise_as_from_labels_is_not_doubtful():
    pi, n_rows = np.array([0.01, 0.99]), 20
    estimate = FrequencyEstimate(pi, np.array([0.006, 0.006]), 1, converged=True)
    fitted = LabelFrequencies(pi, np.array([True, True]))
    assert not label_shift._is_doubtful(estimate, fitted, n_rows).any()
    assert label_shift._is_doubtful(estimate, fitted, 10**6).tolist() == [True, False]
