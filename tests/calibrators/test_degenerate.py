"""Data that determine little or nothing: the result is finite and moderate, and a warning is given."""

import warnings
from functools import partial

import numpy as np
import pytest
from compared import CLASS_KEEPING
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from temperance import CALIBRATORS, InputError, TemperatureScaling, make_calibrator
from temperance.calibrators.single_temperature import Degeneracy, fit_single_temperature
from temperance.core.fisher import fisher_scoring
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData
from temperance.data import simulate

# Bayes has a prior, so rows that are all correct are not special.
LIKELIHOOD_ALONE = pytest.mark.parametrize("method", [key for key in CLASS_KEEPING if key != "bayes"])


def temperatures(cal, logits):
    """Return T of each row, or the single temperature of a method whose rows have none."""
    if hasattr(cal, "temperature_quantiles_"):
        return cal.temperature(logits)
    parameters = cal.parameters()
    return np.atleast_1d(parameters["reference" if "reference" in parameters else "temperature"])


def assert_sane(cal, logits, unit=1.0):
    T = temperatures(cal, logits) / unit
    assert (T > 1e-2).all()
    assert (T < 1e3).all()
    probs = cal.predict_proba(logits)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "labels", "expected"),
    [
        (1.0, lambda task: task.logits.argmax(axis=1), Degeneracy.ALL_RIGHT),
        (1.0, lambda task: task.logits.argmin(axis=1), Degeneracy.ALL_WRONG),
        (1e9, lambda task: task.labels, Degeneracy.LOGITS_TOO_LARGE),
        (1.0, lambda task: task.labels, None),
    ],
)
def test_why_labels_determine_no_temperature(task, scale, labels, expected):
    def degeneracy(labels):
        rows = LogitRows(scale * task.logits, np.asarray(labels, np.intp))
        return fit_single_temperature(FitData(rows), exact=True).degeneracy

    assert degeneracy(labels(task)) is expected
    if expected is Degeneracy.ALL_WRONG:
        one_right = labels(task)
        one_right[0] = task.logits[0].argmax()
        assert degeneracy(one_right) is Degeneracy.NO_BETTER_THAN_CHANCE


@LIKELIHOOD_ALONE
def test_rows_that_are_all_right_give_a_warning_and_a_moderate_temperature(method, fit, task):
    for scale in (0.1, 1.0, 10.0):
        logits = scale * task.logits
        with pytest.warns(UserWarning, match="All 300 rows are classified correctly.*near 1"):
            assert_sane(fit(method, logits, logits.argmax(axis=1)), logits)
    right = task.labels == task.logits.argmax(axis=1)  # rows of weight 0 do not count
    words = f"All {right.sum()} rows are classified correctly.*until some are wrong"
    with pytest.warns(UserWarning, match=words):
        assert_sane(fit(method, task.logits, task.labels, right.astype(float)), task.logits)
    two = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    with pytest.warns(UserWarning, match="All 2 rows are classified correctly"):
        assert_sane(fit(method, two, [0, 2]), two)


@pytest.mark.parametrize("class_bias", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_bayes_fits_rows_that_are_all_right_and_two_rows(fit, task, scale, class_bias):
    for logits in (scale * task.logits, np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cal = fit("bayes", logits, logits.argmax(axis=1), class_bias=class_bias)
        assert_sane(cal, logits, unit=min(scale, 1))
        assert cal.solution_.converged


def test_rows_that_are_all_wrong_give_a_warning_and_a_moderate_temperature(method, fit, task):
    for scale in (0.1, 10.0):
        logits = scale * task.logits
        with pytest.warns(UserWarning, match="All 300 rows are classified wrong"):
            cal = fit(method, logits, logits.argmin(axis=1))
        # The heavy tails of the prior of bayes let T go further: uniform predictions are correct here.
        assert_sane(cal, logits, unit=max(scale, 1) * (20 if method == "bayes" else 1))
    wrong = task.labels != task.logits.argmax(axis=1)  # rows of weight 0 do not count
    with pytest.warns(UserWarning, match=f"All {wrong.sum()} rows are classified wrong"):
        assert_sane(fit(method, task.logits, task.labels, wrong.astype(float)), task.logits)


@pytest.mark.parametrize("kind", ["one right, one wrong", "a class without rows", "large", "small"])
def test_few_rows_missing_classes_and_any_scale_give_finite_probabilities(method, fit, task, kind):
    logits, labels = {
        "one right, one wrong": (np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0]]), [0, 2]),
        "a class without rows": (task.logits[task.labels != 2], task.labels[task.labels != 2]),
        "large": (1e4 * task.logits, task.labels),
        "small": (1e-4 * task.logits, task.labels),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if len(labels) == 2 else "error")
        warnings.filterwarnings("ignore", message="so many rows should have labels of every class")
        probs = fit(method, logits, labels).predict_proba(logits)
    assert probs.shape == logits.shape
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)


def test_equal_logits_stay_equal(method, fit):
    logits = np.zeros((50, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the label ties with the top in every row: all are right
        cal = fit(method, logits, np.arange(50) % 3)
    np.testing.assert_allclose(cal.predict_proba(logits), 1 / 3, atol=1e-12)
    assert_sane(cal, logits)


@pytest.mark.parametrize("factor", [1e4, 1e-4])
def test_the_temperature_of_ts_has_the_unit_of_the_logits(task, factor):
    plain = TemperatureScaling().fit(task.logits, task.labels).temperature_
    scaled = TemperatureScaling().fit(factor * task.logits, task.labels).temperature_
    assert scaled == pytest.approx(factor * plain, rel=1e-5)


def test_logits_of_one_column_are_those_of_class_1_of_two(method, fit, binary):
    scores, labels = binary
    columns = np.column_stack([np.zeros_like(scores), scores])
    one, two = fit(method, scores, labels), fit(method, columns, labels)
    np.testing.assert_array_equal(one.predict_proba(scores), two.predict_proba(columns))
    assert one.predict_proba(scores).shape == (200, 2)
    np.testing.assert_array_equal(one.predict(scores), scores > 0)
    transformed = one.transform(scores)
    assert transformed.shape == (200,)
    pair = softmax(np.column_stack([np.zeros_like(transformed), transformed]), axis=1)
    np.testing.assert_allclose(pair, one.predict_proba(scores), rtol=1e-9)
    if hasattr(one, "temperature_quantiles_"):
        np.testing.assert_array_equal(one.temperature(scores), two.temperature(columns))


def test_a_confident_classifier_keeps_its_order_where_probabilities_underflow(method, fit):
    rng = np.random.default_rng(0)
    logits = 2000 * rng.standard_normal((80, 3))
    labels = logits.argmax(axis=1)
    labels[::8] = logits[::8].argmin(axis=1)
    cal = fit(method, logits, labels)
    assert np.isfinite(cal.transform(logits)).all()
    np.testing.assert_array_equal(cal.predict_proba(logits).argmax(axis=1), logits.argmax(axis=1))


@pytest.mark.parametrize(
    "method", ["lts", "hts", "hnlts", "pts", "bts", pytest.param("ets", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("seed", [0])
def test_a_few_errors_in_many_rows_are_not_overlooked(method, seed, fit):
    # A subsample, with which large fits begin, has few of them or none: it may drive T of their rows to the
    # lower limit, where nothing moves any more. Each method contains TS, so it must not end above it.
    rng = np.random.default_rng(seed)
    logits = 30 * rng.standard_normal((17_000, 4))
    labels = logits.argmax(axis=1)
    wrong = rng.choice(len(logits), 4, replace=False)
    labels[wrong] = logits[wrong].argmin(axis=1)
    losses = [mean_log_loss(fit(key, logits, labels), logits, labels) for key in (method, "ts")]
    assert losses[0] <= losses[1] + 1e-6


def mean_log_loss(cal, logits, labels):
    """Return the NLL by way of logarithms: probabilities underflow here."""
    return -log_softmax(cal.transform(logits), axis=1)[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize(("scale", "limit"), [(1e9, "upper"), (1e-9, "lower")])
def test_logits_of_an_extreme_scale_are_not_called_chance(scale, limit):
    task = simulate(300, 4, random_state=0)
    with pytest.warns(UserWarning, match=f"at its {limit} limit.*: scale the logits") as caught:
        TemperatureScaling().fit(scale * task.logits, task.labels)
    assert not [warning for warning in caught if "chance" in str(warning.message)]


def test_sums_of_logits_that_overflow_are_no_warning():
    rng = np.random.default_rng(0)
    logits = (4e37 * rng.standard_normal((5, 638))).astype(np.float32)
    labels = np.append(logits[:4].argmax(axis=1), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        assert TemperatureScaling().fit(logits, labels, [1, 1, 1, 0, 1e9]).temperature_ > 1


def test_labels_that_always_have_the_second_logit_give_a_temperature_and_a_warning():
    logits = 3 * np.random.default_rng(0).standard_normal((300, 5))
    with pytest.warns(UserWarning, match="All 300 rows are classified wrong.*labels and columns match"):
        cal = make_calibrator("ts").fit(logits, np.argsort(logits, axis=1)[:, -2])
    assert cal.solution_.converged
    rescaled = logits / cal.temperature_
    p = np.exp(rescaled - rescaled.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    # The score is 0 at a maximum of the likelihood: the expected logit is that of the label.
    expected, observed = (p * logits).sum(axis=1), np.sort(logits, axis=1)[:, -2]
    assert expected.mean() == pytest.approx(observed.mean(), abs=1e-5)


@pytest.mark.parametrize("n_masked", [0, 1, 600])
@pytest.mark.parametrize("mask", [-np.inf, np.finfo(np.float32).min, -1e9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_labels_shifted_by_one_class_give_a_warning(method, fit, mask, n_masked, dtype):
    task = simulate(600, 10, random_state=1)
    top = task.logits.argmax(axis=1)
    labels = np.where(np.arange(600) % 50 == 0, top, (top + 1) % 10)  # some are right
    logits = task.logits.astype(dtype)
    n_masked *= CALIBRATORS[method]().supports_masked_classes
    logits[np.arange(n_masked), (top[:n_masked] + 5) % 10] = mask
    with pytest.warns(UserWarning, match="check that labels and columns match") as caught:
        fit(method, logits, labels)
    assert not [warning for warning in caught if "scale the logits" in str(warning.message)]


def test_numpy_masks_and_weights_with_an_extreme_sum_are_refused():
    task = simulate(50, 3)
    masked = np.ma.masked_array(task.logits, mask=np.eye(50, 3, -3, dtype=bool))
    with pytest.raises(InputError, match=r"must not be masked.*found 3 masked number"):
        make_calibrator("ts").fit(masked, task.labels)
    for weight in (1e-310, 1e308):
        with pytest.raises(InputError, match="must have a sum from 1e-100 to 1e100; found"):
            make_calibrator("ts").fit(task.logits, task.labels, np.full(50, weight))


def test_a_fit_that_did_not_converge_may_be_used_and_no_other_method_is_named(monkeypatch, task):
    stopped = partial(fisher_scoring, max_iterations=1)
    monkeypatch.setattr("temperance.core.fisher.fisher_scoring", stopped)
    with pytest.warns(ConvergenceWarning, match="iteration limit. The result can be used") as caught:
        make_calibrator("ts").fit(task.logits, task.labels)
    assert "hts" not in str(caught[0].message)


@pytest.mark.parametrize("size", [1e4, 1e6, 1e9])
@pytest.mark.parametrize(("key", "options"), [("ets", {}), ("ets", {"loss": "brier"}), ("mono", {})])
def test_one_outlier_does_not_decide_where_a_method_limits_its_loss(fit, task, key, options, size):
    logits, labels = task.logits.copy(), task.labels
    logits[7, (labels[7] + 1) % 4] = size
    others = np.arange(300) != 7
    expected = mean_log_loss(fit(key, task.logits, labels, **options), logits[others], labels[others])
    with pytest.warns(
        UserWarning, match="outweigh the 22. rows classified correctly, of 300: check the rows"
    ):
        cal = fit(key, logits, labels, **options)
    assert mean_log_loss(cal, logits[others], labels[others]) < expected + 0.05
