"""Labels, weights and options that cannot be used are refused, with what must hold and what was found."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from temperance import InputError, make_calibrator

WANTED = "labels must be integer column indices from 0 to 3, one for each row; found "


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
        ("bts", "bins", 0, "bins must be .*found 0"),
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


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="colour"):
        make_calibrator("bts", colour="blue")


@pytest.mark.parametrize("use", ["transform", "predict_proba", "predict", "temperature"])
def test_an_unfitted_object_says_so(method, make, task, use):
    # ETS and mono say that they have no temperature of a row, fitted or not.
    error = AttributeError if method in ("ets", "mono") and use == "temperature" else NotFittedError
    with pytest.raises(error, match=r"not fitted yet. Call fit\(logits, labels\)|a row has no temperature"):
        getattr(make(method), use)(task.logits)


def test_an_unfitted_calibrator_has_no_summary_parameters_or_file(method, make, tmp_path):
    cal = make(method)
    for use in (cal.summary, cal.parameters, lambda: cal.save(tmp_path / "cal.json")):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_ets_says_why_it_has_no_temperature_of_a_row(task, fit):
    with pytest.raises(AttributeError, match="mixes probabilities"):
        fit("ets", task.logits, task.labels).temperature(task.logits)


def test_the_summary_names_the_method_the_data_and_the_solver(method, fit, task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = fit(method, task.logits, task.labels).summary().splitlines()
    assert method.removesuffix("-ece").upper() in lines[0]
    assert any("4 classes, fitted on 300 rows" in line for line in lines)
    assert any(line.startswith("solver:") for line in lines)
    assert max(map(len, lines)) <= 110


def test_labels_counted_from_minus_1_may_also_mark_unknown_classes():
    with pytest.raises(InputError, match=r"such as -1, in 1 row .*add 1 to each; if -1 marks rows"):
        make_calibrator("ts").fit(np.eye(4), np.arange(4) - 1)
