"""What a fit records about its rows: counts, digest, date, baseline."""

import hashlib
import struct
from dataclasses import fields
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from temperance import (
    CalibratedClassifier,
    InputError,
    TemperatureScaling,
    load,
    make_calibrator,
)
from temperance.calibrators import fit_record
from temperance.calibrators.fit_record import confidence_and_entropy
from temperance.core.blocks import sampled_rows
from temperance.data import simulate
from temperance.formulas.fit_record import Baseline, FittedOn, class_groups


@pytest.fixture
def small_samples(monkeypatch):
    """Use samples of a few dozen rows, read a few at a time."""
    monkeypatch.setattr(fit_record, "HASHED_ROWS", 40)
    monkeypatch.setattr(fit_record, "BASELINE_ROWS", 64)
    monkeypatch.setattr(fit_record, "MIN_BASELINE_ROWS", 8)
    monkeypatch.setattr(fit_record, "BASELINE_LOGITS", 400)


def assert_same_baseline(one, other, rtol=1e-12):
    for item in fields(Baseline):
        a, b = getattr(one, item.name), getattr(other, item.name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12, err_msg=item.name)


def sampled_row(i, n):
    """Return row i of the sample that docs/file-format.md defines."""
    h = (i + 1) * 0x9E3779B97F4A7C15 % 2**64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
    return i * n + (h ^ h >> 31) % n


def expected_hash(logits, labels, rows):
    """Return the digest as docs/file-format.md defines it, number by number."""
    n, k = logits.shape
    step = -(-n // rows)
    at = [row for row in map(partial(sampled_row, n=step), range(rows)) if row < n]
    whole = [n, k, *(list(labels).count(c) for c in range(k)), *(labels[i] for i in at)]
    digest = hashlib.sha256(struct.pack(f"<{len(whole)}q", *map(int, whole)))
    for i in at:
        digest.update(struct.pack(f"<{k}d", *map(float, logits[i])))
    return f"sha256:{digest.hexdigest()}"


def test_the_digest_is_the_documented_one(task, small_samples):
    digest = TemperatureScaling().fit(task.logits, task.labels).data_hash_
    assert digest == expected_hash(task.logits, task.labels, 40)


def test_the_digest_is_of_the_numbers_and_not_of_their_type_or_layout(task):
    logits = task.logits.astype(np.float16)
    logits[0, 0], logits[1, 0] = 0.0, 0.0
    wanted = TemperatureScaling().fit(logits, task.labels).data_hash_
    negative = logits.copy()
    negative[0, 0] = -0.0
    coarse = logits.astype(ml_dtypes.bfloat16)
    hashes = {
        TemperatureScaling().fit(z, task.labels).data_hash_ for z in (coarse, coarse.astype(np.float32))
    }
    assert len(hashes) == 1
    for same in (logits.astype(np.float64), np.asfortranarray(logits.astype(np.float32)), negative):
        assert TemperatureScaling().fit(same, task.labels.astype(np.int8)).data_hash_ == wanted
    other = logits.copy()
    other[7, 2] += 1
    assert TemperatureScaling().fit(other, task.labels).data_hash_ != wanted
    swapped = task.labels.copy()
    swapped[:2] = swapped[1::-1] if swapped[0] != swapped[1] else (swapped[:2] + 1) % 4
    assert TemperatureScaling().fit(logits, swapped).data_hash_ != wanted


def test_weights_count_in_the_classes_but_not_in_the_digest(task):
    plain = TemperatureScaling().fit(task.logits, task.labels)
    np.testing.assert_array_equal(plain.class_counts_, np.bincount(task.labels))
    for weights in (1 + np.arange(300) % 4, np.linspace(0.1, 3, 300)):
        weighted = TemperatureScaling().fit(task.logits, task.labels, weights)
        np.testing.assert_allclose(weighted.class_counts_, np.bincount(task.labels, weights), rtol=1e-12)
        assert weighted.data_hash_ == plain.data_hash_


def test_the_baseline_describes_the_calibrated_predictions(method, fitted, task):
    cal = fitted(method)
    probs, baseline = cal.predict_proba(task.logits), cal.baseline_
    confidence = probs.max(axis=1)
    entropy = -np.where(probs > 0, probs * np.log(np.maximum(probs, 1e-300)), 0).sum(axis=1)
    assert (baseline.rows, baseline.effective_rows) == (300, 300.0)
    assert baseline.mean_confidence == pytest.approx(confidence.mean(), rel=1e-12)
    assert baseline.mean_entropy == pytest.approx(entropy.mean(), rel=1e-9)
    assert baseline.accuracy == np.mean(cal.predict(task.logits) == task.labels)
    np.testing.assert_array_equal(
        baseline.predicted_counts, np.bincount(cal.predict(task.logits), minlength=4)
    )
    np.testing.assert_allclose(baseline.mean_probabilities, probs.mean(axis=0), rtol=1e-9)
    for values, quantiles, shares in (
        (confidence, baseline.confidence_quantiles, baseline.confidence_shares),
        (entropy, baseline.entropy_quantiles, baseline.entropy_shares),
    ):
        at = np.maximum(np.ceil(np.arange(21) / 20 * 300 - 1e-9).astype(int) - 1, 0)
        np.testing.assert_allclose(quantiles, np.sort(values)[at], rtol=1e-9)
        np.testing.assert_allclose(shares, [(values <= q + 1e-6 * q).mean() for q in quantiles], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:rows must be different ones")
def test_a_weight_counts_as_the_row_repeated(task):
    weights = np.arange(300) % 3
    weighted = TemperatureScaling().fit(task.logits, task.labels, weights)
    repeated = TemperatureScaling().fit(
        np.repeat(task.logits, weights, axis=0), np.repeat(task.labels, weights)
    )
    one, other = weighted.baseline_, repeated.baseline_
    assert (one.rows, other.rows) == (np.count_nonzero(weights), weights.sum())
    assert one.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    for name in (
        "confidence_quantiles",
        "confidence_shares",
        "entropy_quantiles",
        "predicted_counts",
        "mean_probabilities",
    ):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, err_msg=name)
    assert one.accuracy == pytest.approx(other.accuracy)


@pytest.mark.parametrize("scale", [1e-90, 0.1, 1e90])
@pytest.mark.filterwarnings("ignore:in a fit, a weight of k counts as k rows")
def test_rounding_and_the_scale_of_weights_leave_the_baseline_in_its_range(scale, tmp_path):
    rng = np.random.default_rng(0)
    logits = np.zeros((50, 2), np.float32)
    labels = np.arange(50) % 2
    logits[np.arange(50), labels] = 1000.0  # confidence 1, entropy 0
    weights = scale * rng.random(50)
    weights[0] *= 1e-200  # so that the squares of ratios overflow or vanish
    with pytest.warns(UserWarning, match="classified correctly"):
        cal = TemperatureScaling().fit(logits, labels, weights)
    assert (cal.baseline_.accuracy, cal.baseline_.mean_confidence, cal.baseline_.mean_entropy) == (1, 1, 0)
    assert cal.baseline_.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    cal.save(tmp_path / "cal.json")
    assert load(tmp_path / "cal.json").baseline_.accuracy == 1


def test_ties_are_in_the_shares():
    logits = np.array([[1.0, 0.0]] * 8 + [[3.0, 0.0]] * 2)
    baseline = TemperatureScaling().fit(logits, [0, 0, 0, 1] * 2 + [0, 0]).baseline_
    assert len(set(baseline.confidence_quantiles[:17])) == 1
    np.testing.assert_allclose(baseline.confidence_shares, [0.8] * 17 + [1.0] * 4)


@pytest.mark.parametrize("method", ["ts", "ets", "bayes", "bayes-bias"])
def test_a_large_fit_has_quantiles_of_sampled_rows_and_means_of_all(method, fit, small_samples):
    task = simulate(1000, 5, random_state=2)  # 64 rows are allowed, 400 / 5 = 80 logits: one in 16
    baseline = fit(method, task.logits, task.labels).baseline_
    cal = fit(method, task.logits, task.labels)
    sample = sampled_rows(16, 1000)
    assert baseline.rows == len(sample) >= 62
    probs = cal.predict_proba(task.logits)
    assert baseline.confidence_quantiles[-1] == pytest.approx(probs[sample].max(), rel=1e-9)
    assert baseline.mean_confidence == pytest.approx(probs.max(axis=1).mean(), rel=1e-9)
    assert baseline.accuracy == np.mean(cal.predict(task.logits) == task.labels)
    assert baseline.fit_rows == pytest.approx(1000)
    np.testing.assert_allclose(baseline.mean_probabilities, probs.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(baseline.label_frequencies, np.bincount(task.labels) / 1000)


@pytest.mark.parametrize("n_classes", [2, 5, 40])
def test_means_by_label_are_of_groups_of_classes(n_classes):
    """Beyond 32 classes, the rarest share a group."""
    task = simulate(600, n_classes, random_state=3)
    weights = 1.0 + np.arange(600) % 3
    cal = TemperatureScaling().fit(task.logits, task.labels, weights)
    probs, baseline, groups = cal.predict_proba(task.logits), cal.baseline_, class_groups(cal.class_counts_)
    assert np.bincount(groups).max() == max(1, n_classes - 31)
    assert baseline.fit_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert baseline.label_means.shape == (min(n_classes, 32),) * 2
    for label in range(len(baseline.label_means)):
        own = groups[task.labels] == label
        for group in range(len(baseline.label_means)):
            p, w = probs[own][:, groups == group].sum(axis=1), weights[own]
            mean = w @ p / w.sum()
            assert baseline.label_means[label, group] == pytest.approx(mean, rel=1e-6)
            variance = w @ (p - mean) ** 2 / w.sum()
            assert baseline.label_variances[label, group] == pytest.approx(variance, abs=1e-9)


def test_rows_read_in_blocks_give_the_same_baseline(task, fit, monkeypatch):
    whole = fit("bayes", task.logits, task.labels)
    monkeypatch.setattr(fit_record, "EVALUATED_LOGITS", 44)  # 11 rows at a time
    in_blocks = fit("bayes", task.logits, task.labels)
    assert_same_baseline(whole.baseline_, in_blocks.baseline_)
    assert in_blocks.solution_.passes == whole.solution_.passes


def test_a_frame_names_the_classes(task, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(task.logits, columns=["cat", "dog", "owl", "eel"])
    cal = TemperatureScaling().fit(frame, task.labels)
    assert cal.class_names_ == tuple(cal.classes_) == ("cat", "dog", "owl", "eel")
    cal.save(tmp_path / "cal.json")
    loaded = load(tmp_path / "cal.json")
    assert loaded.class_names_ == cal.class_names_
    assert loaded.feature_names_in_.tolist() == cal.feature_names_in_.tolist() == list(frame.columns)
    assert loaded.get_feature_names_out().tolist() == ["cat", "dog", "owl", "eel"]
    plain = TemperatureScaling().fit(task.logits, task.labels)
    assert plain.classes_.tolist() == [0, 1, 2, 3]
    assert not hasattr(plain, "class_names_")
    with pytest.raises(AttributeError, match="classes_"):
        plain.classes_ = [1]


def test_the_classifier_says_what_its_calibrator_was_fitted_on():
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = np.where(X[:, 0] + rng.standard_normal(120) > 0, "yes", "no")
    model = CalibratedClassifier(DecisionTreeClassifier(max_depth=3), "ts", cv=3).fit(X, y)
    assert model.calibrator_.class_names_ == ("no", "yes")
    floor = pytest.approx(np.exp(model.log_floor_))
    assert model.calibrator_.fitted_on_ == FittedOn("probabilities", floor)
    scored = CalibratedClassifier(LogisticRegression(), "ts", cv=3, response="decision_function").fit(X, y)
    assert scored.calibrator_.fitted_on_ == FittedOn("logits")


def test_the_date_is_that_of_the_fit_or_of_the_build(task, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert TemperatureScaling().fit(task.logits, task.labels).date_ == "1970-01-02T00:00:00Z"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert TemperatureScaling().fit(task.logits, task.labels).date_ > "2026-01-02T00:00:00Z"
    for wrong in ("soon", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(InputError, match="SOURCE_DATE_EPOCH must be a number of seconds"):
            TemperatureScaling().fit(task.logits, task.labels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_confidence_and_entropy_of_certain_and_of_equal_probabilities(dtype):
    probs = np.array([[1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [1 / 3, 1 / 3, 1 / 3]], dtype)
    confidence, entropy = confidence_and_entropy(probs)
    np.testing.assert_allclose(confidence, [1, 0.5, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(entropy, [0, 1.5 * np.log(2), np.log(3)], rtol=1e-6, atol=1e-30)
    assert confidence_and_entropy(np.array([[np.nextafter(1, 2), 0.0]]))[0][0] == 1


def test_the_baseline_of_a_class_bias_counts_the_classes_that_it_predicts():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    labels = (logits + np.array([0.0, 0.0, 2.0]) + rng.gumbel(size=(300, 3))).argmax(axis=1)
    cal = make_calibrator("bayes", class_bias=True).fit(logits, labels)
    predicted = np.bincount(cal.predict(logits), minlength=3)
    assert cal.baseline_.predicted_counts.tolist() == predicted.tolist()
    assert predicted.tolist() != np.bincount(logits.argmax(axis=1), minlength=3).tolist()


def test_a_fit_keeps_the_median_of_its_temperatures_and_the_ends_of_the_middle_nine_tenths(task):
    calibrator = make_calibrator("hts").fit(task.logits, task.labels)
    temperatures = calibrator.temperature(task.logits)
    expected = np.quantile(temperatures, [0.05, 0.5, 0.95], method="inverted_cdf")
    np.testing.assert_allclose(calibrator.temperature_quantiles_, expected, rtol=1e-9)
    assert (np.diff(np.quantile(temperatures, [0.5, 0.55])) > 5e-3).all()  # other levels would be noticed
