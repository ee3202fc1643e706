"""Input that cannot be used is refused, with what must hold and what was found."""

import numpy as np
import pytest
from compared import CLASS_KEEPING, COMPARED
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

from temperance import CALIBRATORS, InputError, logits_from_probs, make_calibrator
from temperance.formulas.model import TemperatureFormula

ALLOW_MASKS = [key for key in COMPARED if CALIBRATORS[key].supports_masked_classes]
WEIGH_EVERY_LOGIT = [key for key in COMPARED if key not in ALLOW_MASKS]


def spoiled(logits, value, rows=(7, 11)):
    logits = logits.copy()
    logits[list(rows), 1] = value
    return logits


def uses_of(cal):
    """Return the ways to use a calibrator; a mixture and a map have no temperature of a row."""
    uses = (cal.transform, cal.predict_proba, cal.predict)
    return (*uses, cal.temperature) if isinstance(cal.model_.formula, TemperatureFormula) else uses


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, r"\+inf")])
def test_nan_and_infinite_logits_are_counted_and_located(method, make, fitted, task, value, name):
    broken = spoiled(task.logits, value)
    for use in (lambda logits: make(method).fit(logits, task.labels), *uses_of(fitted(method))):
        with pytest.raises(InputError, match=rf"must be finite.* found {name} in 2 rows \(first: row 7\)"):
            use(broken)


def test_a_row_with_all_classes_masked_is_refused_at_fit_and_at_use(method, make, fitted, task):
    logits = task.logits.copy()
    logits[[4, 9, 10]] = -np.inf
    message = r"found -inf in every class in 3 rows \(first: row 4\)\. A row needs a possible class"
    with pytest.raises(InputError, match=message):
        make(method).fit(logits, task.labels)
    with pytest.raises(InputError, match=message):
        fitted(method).predict_proba(logits)


def test_a_mask_on_the_label_is_refused(method, make, task):
    logits = task.logits.copy()
    for row in (3, 5):
        logits[row, task.labels[row]] = -np.inf
    with pytest.raises(
        InputError, match=r"label must not be -inf or close to it; found -inf in 2 rows \(first: row 3\)"
    ):
        make(method).fit(logits, task.labels)


@pytest.mark.parametrize("method", WEIGH_EVERY_LOGIT)
def test_masks_are_refused_by_the_methods_that_weigh_every_logit(method, make, fitted, task):
    logits = task.logits.copy()
    for row in (7, 11):
        logits[row, (task.labels[row] + 1) % 4] = -np.inf
    message = r"must be finite for .*TemperatureScaling.* found -inf in 2 rows \(first: row 7\).*such as ts"
    with pytest.raises(InputError, match=message):
        make(method).fit(logits, task.labels)
    for use in ("temperature", "transform", "predict_proba"):
        with pytest.raises(InputError, match=message):
            getattr(fitted(method), use)(logits)


@pytest.mark.parametrize("method", WEIGH_EVERY_LOGIT)
def test_a_masked_class_is_refused_also_beyond_the_largest_logits(method, make):
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((60, 14)), rng.integers(0, 13, 60)
    logits[20, 13] = -np.inf
    with pytest.raises(InputError, match=r"found -inf in 1 row \(first: row 20\)"):
        make(method).fit(logits, labels)


@pytest.mark.parametrize("method", [key for key in ALLOW_MASKS if key in CLASS_KEEPING])
def test_a_class_masked_in_every_row_counts_as_absent(method, fit, task):
    masked = np.insert(task.logits, 2, -np.inf, axis=1)
    labels = task.labels + (task.labels >= 2)
    cal = fit(method, masked, labels)
    without = fit(method, task.logits, task.labels)
    probs = cal.predict_proba(masked)
    np.testing.assert_array_equal(probs[:, 2], 0)
    # The prior of Bayes is in terms of the entropy's share of log K, and K counts the masked class.
    tolerance = {"rtol": 0, "atol": 5e-3} if method == "bayes" else {"rtol": 1e-5}
    np.testing.assert_allclose(np.delete(probs, 2, axis=1), without.predict_proba(task.logits), **tolerance)
    np.testing.assert_array_equal(cal.predict(masked), masked.argmax(axis=1))


@pytest.mark.parametrize("method", ALLOW_MASKS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_class_masked_in_some_rows_has_probability_0_there(method, fit, task, dtype):
    logits = task.logits.astype(dtype)
    rows = np.arange(0, 300, 3)
    logits[rows, (task.labels[rows] + 1) % 4] = -np.inf
    cal = fit(method, logits, task.labels)
    probs = cal.predict_proba(logits)
    assert ((probs == 0) == np.isneginf(logits)).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-6)
    with np.errstate(invalid="ignore"):
        assert np.isneginf(cal.transform(logits)[np.isneginf(logits)]).all()
    np.testing.assert_allclose(softmax(cal.transform(logits), axis=1), probs, atol=1e-5)


def test_fit_refuses_no_rows(method, make):
    with pytest.raises(InputError, match="needs labelled rows, and there are none"):
        make(method).fit(np.empty((0, 3)), np.empty(0, int))


def test_predicting_no_rows_returns_no_rows(method, fitted):
    none = np.empty((0, 4))
    assert fitted(method).predict_proba(none).shape == (0, 4)
    assert fitted(method).transform(none).shape == (0, 4)
    assert fitted(method).predict(none).shape == (0,)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.zeros((5, 0)), r"\(N, K\) array.*found 0 column"),
        (np.zeros((5, 2, 3)), r"labels must have the shape.*found shape \(\d+,\) for logits.*\(5, 2, 3\)"),
        (np.float64(3), r"\(N, K\) array.*found 0 dimensions"),
        (np.zeros((5, 3), complex), r"floating point.*found complex128 such as '0j'"),
        (np.full((5, 3), "cat"), "floating point.*found <U3 such as 'cat'"),
        (np.full((5, 3), 1.5, object), "floating point.*found object such as '1.5'"),
        ([[1.0, 2.0], [3.0]], "logits must be"),
        (None, "floating point.*found object such as 'None'"),
    ],
)
def test_input_that_is_not_an_array_of_logits_is_refused(method, make, logits, message):
    with pytest.raises(InputError, match=message):
        make(method).fit(logits, np.zeros(5, int))


def test_integer_logits_are_accepted(method, fit, task):
    whole = np.rint(task.logits).astype(np.int32)
    np.testing.assert_array_equal(
        fit(method, whole, task.labels).predict_proba(whole),
        fit(method, whole.astype(float), task.labels).predict_proba(whole.astype(float)),
    )


def test_logits_of_another_number_of_classes_are_refused_at_use(method, fitted, task):
    with pytest.raises(InputError, match="fitted on 4 classes, so logits must have 4 columns; found 3"):
        fitted(method).predict_proba(task.logits[:, :3])
    with pytest.raises(
        InputError, match=r"4 columns; found shape \(300,\), one score per row. Pass one column"
    ):
        fitted(method).transform(task.logits[:, 0])


def test_a_failed_fit_leaves_no_calibrator_that_seems_fitted(method, make, task):
    cal = make(method)
    with pytest.raises(InputError):
        cal.fit(spoiled(task.logits, np.nan), task.labels)
    with pytest.raises(Exception, match="not fitted yet"):
        cal.predict_proba(task.logits)


def test_numbers_as_text_or_objects_can_be_converted():
    logits = np.random.default_rng(0).normal(size=(20, 3))
    labels = np.where(np.arange(20) < 3, 0, logits.argmax(axis=1))
    for wrong in (logits.astype(object), logits.astype(str)):
        with pytest.raises(InputError, match=r"They can be converted: pass logits\.astype\(float\)"):
            make_calibrator("ts").fit(wrong, labels)
        make_calibrator("ts").fit(wrong.astype(float), labels)
    with pytest.raises(InputError, match="Pass the classifier's scores"):
        make_calibrator("ts").fit(np.full((20, 3), "x"), labels)


def test_percentages_are_to_be_divided_by_100_and_logits_are_logits():
    percentages = 100 * np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    with pytest.raises(InputError, match="sums to about 100, like percentages: divide each by its sum"):
        logits_from_probs(percentages)
    with pytest.raises(InputError, match="If these are logits, pass them where logits are expected"):
        logits_from_probs(percentages - 30)


# ---- labels, weights and options


WANTED = "labels must be integer column indices from 0 to 3, one per row; found "


def replaced(labels, row, value):
    labels = labels.copy()
    labels[row] = value
    return labels


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda y: replaced(y, 5, 4), r"such as 4, in 1 row \(first: row 5\)"),
        (lambda y: replaced(y, [8, 9], -1), r"such as -1, in 2 rows \(first: row 8\)"),
        (lambda y: y[:, None, None], "3 dimensions"),
        (lambda y: y[:-1], "299 labels for 300 rows"),
        (lambda y: 2, "0 dimensions"),
        (lambda y: None, "0 dimensions|object"),
    ],
)
def test_labels_that_are_not_column_indices_are_refused(method, make, task, spoil, message):
    with pytest.raises(InputError, match=WANTED + f".*{message}"):
        make(method).fit(task.logits, spoil(task.labels))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, list])
def test_any_kind_of_integers_serves_as_labels(method, fit, task, kind):
    labels = task.labels.tolist() if kind is list else task.labels.astype(kind)
    np.testing.assert_array_equal(
        fit(method, task.logits, labels).predict_proba(task.logits),
        fit(method, task.logits, task.labels).predict_proba(task.logits),
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda w: w[:-1], r"shape \(299,\) for 300 rows"),
        (lambda w: w[:, None], r"shape \(300, 1\) for 300 rows"),
        (lambda w: 1.0, r"shape \(\) for 300 rows"),
        (lambda w: replaced(w, [2, 4], -0.5), r"such as -0\.5, in 2 rows \(first: row 2\)"),
        (lambda w: replaced(w, 6, np.nan), r"such as nan, in 1 row \(first: row 6\)"),
        (lambda w: replaced(w, 6, np.inf), r"such as inf, in 1 row \(first: row 6\)"),
        (lambda w: 0 * w, "found zero in all 300 rows"),
        (lambda w: np.full(300, "heavy"), "heavy|<U5"),
    ],
)
def test_invalid_weights_are_refused(method, make, task, spoil, message):
    with pytest.raises(InputError, match=f"sample_weight must be one finite number >= 0.*{message}"):
        make(method).fit(task.logits, task.labels, spoil(np.ones(300)))


@pytest.mark.parametrize(
    ("method", "option", "value", "message"),
    [
        ("ets", "loss", "ece", "loss must be one of 'nll', 'brier'; found 'ece'"),
        ("pts", "loss", "brier", "loss must be one of 'nll', 'ece'; found 'brier'"),
        ("pts", "loss", None, "loss must be one of .* found None"),
        *(
            (key, "solver", "adam", "solver must be one of 'exact', 'sgd'; found 'adam'")
            for key in ("lts", "hts", "hnlts", "pts", "pts-ece")
        ),
        ("bts", "bins", 1, "bins must be a whole number from 2 to 10000; found 1"),
        ("bts", "bins", 10_001, "bins must be .*found 10001"),
        ("bts", "bins", 2.5, "bins must be a whole number from 2 to 10000; found 2.5"),
        ("bts", "bins", True, "bins must be a whole number from 2 to 10000; found True"),
        ("bts", "bins", "50", "bins must be a whole number from 2 to 10000; found '50'"),
        ("bts", "top", 0, "top must be a number between 0 and 1; found 0"),
        ("bts", "top", 1.0, "top must be a number between 0 and 1; found 1.0"),
        ("bts", "top", float("nan"), "top must be a number between 0 and 1; found nan"),
        ("bts", "top", "high", "top must be a number between 0 and 1; found 'high'"),
        ("pts", "top_k", 0, "top_k must be a whole number > 0; found 0"),
        ("pts", "hidden", (5, 0), "hidden must be a whole number > 0; found 0"),
        ("pts", "hidden", (5, 2.5), "hidden must be a whole number > 0; found 2.5"),
        ("pts", "hidden", 5, "hidden must be .*found 5"),
        ("pts", "hidden", "55", "hidden must be .*found '5"),
        ("pts", "weight_decay", -1.0, "weight_decay must be a number >= 0; found -1.0"),
        ("pts", "weight_decay", float("inf"), "weight_decay must be a number >= 0; found inf"),
        ("pts", "weight_decay", "much", "weight_decay must be a number >= 0; found 'much'"),
        ("pts", "random_state", "seed", "random_state must be a whole number.* found 'seed'"),
        ("pts", "random_state", 1.5, "random_state must be a whole number.* found 1.5"),
        ("pts", "random_state", -1, "random_state must be .*found -1"),
    ],
)
def test_options_out_of_range_are_refused_at_fit(task, method, option, value, message):
    cal = make_calibrator(method, **{option: value})
    with pytest.raises(InputError, match=message):
        cal.fit(task.logits, task.labels)


@pytest.mark.parametrize(("method", "options"), [("pts", {"top_k": 1, "hidden": (1,)}), ("bts", {"bins": 2})])
def test_the_smallest_options_are_accepted(task, method, options):
    cal = make_calibrator(method, **options).fit(task.logits, task.labels)
    assert np.isfinite(cal.temperature(task.logits)).all()


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="colour"):
        make_calibrator("bts", colour="blue")


@pytest.mark.parametrize("use", ["transform", "predict_proba", "predict", "temperature"])
def test_an_unfitted_object_says_so(method, make, task, use):
    with pytest.raises(NotFittedError, match=r"not fitted yet. Call fit\(logits, labels\)"):
        getattr(make(method), use)(task.logits)


def test_an_unfitted_calibrator_has_no_summary_parameters_or_file(method, make, tmp_path):
    cal = make(method)
    for use in (cal.summary, cal.parameters, lambda: cal.save(tmp_path / "cal.json")):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["ets", "mono"])
def test_a_method_without_a_temperature_of_a_row_says_so(method, task, fitted):
    with pytest.raises(AttributeError, match=r"a row has no temperature\. Use bayes, ts"):
        fitted(method).temperature(task.logits)


def test_labels_counted_from_minus_1_may_also_mark_unknown_classes():
    with pytest.raises(InputError, match=r"such as -1, in 1 row .*add 1 to each; if -1 marks rows"):
        make_calibrator("ts").fit(np.eye(4), np.arange(4) - 1)
