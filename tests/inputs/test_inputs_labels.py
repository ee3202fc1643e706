"""Labels that are probably mistakes: the message names the mistake, and its remedy works."""

import numpy as np
import pytest

from temperance import InputError, TemperatureScaling, compare, make_calibrator, metrics
from temperance.data import simulate
from temperance.inputs.labels import check_labels
from temperance.inputs.names import check_classes

TASK = simulate(n_rows=200, n_classes=3, random_state=1)
NAMES = ["cat", "dog", "eel"]
WORDS = np.array(NAMES)[TASK.labels]
PROBS = TASK.probabilities
WANTED = "labels must be integer column indices from 0 to 2, one per row; found "
T = TemperatureScaling().fit(TASK.logits, TASK.labels).temperature_


def follow(message, word="ass ", **names):
    """Return the argument that the last words of a message advise."""
    return eval(message.rpartition(word)[2].rstrip("."), {"np": np, **names})


def fitted_temperature(labels, **options):
    return TemperatureScaling().fit(TASK.logits, labels, **options).temperature_


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            TASK.labels + 1,
            r"found numbers from 1 to 3, as if counted from 1; subtract 1 from each\. Pass labels - 1",
        ),
        (np.eye(3)[TASK.labels], r"shape \(200, 3\), like one-hot rows\. Pass labels.argmax"),
        (np.eye(3, dtype=bool)[TASK.labels], r"like one-hot rows\. Pass labels.argmax"),
        (np.eye(3, dtype=int)[TASK.labels], r"like one-hot rows\. Pass labels.argmax"),
        (
            TASK.labels.astype(str),
            r"found text such as '0'\. If they are column indices, pass labels\.astype",
        ),
    ],
    ids=["from 1", "one-hot", "boolean one-hot", "whole one-hot", "digits"],
)
def test_a_remedy_for_labels_works_when_it_is_followed(labels, message):
    with pytest.raises(InputError, match=message) as caught:
        fitted_temperature(labels)
    assert fitted_temperature(follow(str(caught.value), labels=labels)) == T


def test_multi_label_rows_are_refused_and_the_advice_works_class_by_class():
    labels = np.eye(3)[TASK.labels]
    labels[::3, 1] = 1
    with pytest.raises(InputError, match="several true classes or none") as caught:
        fitted_temperature(labels)
    assert str(caught.value).endswith("with logits[:, k] and labels[:, k].")
    for k in range(3):
        cal = TemperatureScaling().fit(TASK.logits[:, k], labels[:, k])
        assert cal.predict_proba(TASK.logits[:, k]).shape == (200, 2)


def test_multi_label_probabilities_are_refused_with_advice():
    probs = np.tile([0.9, 0.8, 0.1], (200, 1))
    with pytest.raises(InputError, match=r"above one half. If several can be true.*probs\[:, k\]"):
        metrics.ece(probs, TASK.labels)
    assert metrics.ece(probs[:, 1], TASK.labels == 1) > 0


def test_swapped_arguments_are_named():
    for swap in (
        lambda: TemperatureScaling().fit(TASK.labels, TASK.logits),
        lambda: compare(TASK.logits[:100], TASK.logits[100:], TASK.labels[:100], TASK.labels[100:]),
    ):
        with pytest.raises(
            InputError, match=r"like logits\. Pass the logits of some rows first .* as in fit"
        ):
            swap()
    scores = TASK.logits[:, 0]
    with pytest.raises(InputError, match=r"found float64 such as .*, like logits\. Pass the logits first"):
        TemperatureScaling().fit((TASK.labels == 0).astype(int), scores)
    with pytest.raises(InputError, match="If these are labels, pass the probabilities first"):
        metrics.nll(TASK.labels, PROBS)


def test_a_single_row_needs_an_axis_of_rows():
    cal = TemperatureScaling().fit(TASK.logits, TASK.labels)
    with pytest.raises(InputError, match=r"found shape \(3,\).* For a single row pass") as caught:
        cal.predict_proba(TASK.logits[0])
    row = follow(str(caught.value), logits=TASK.logits[0])
    np.testing.assert_array_equal(cal.predict_proba(row), cal.predict_proba(TASK.logits[:1]))


@pytest.mark.parametrize("labels", [WORDS, WORDS.tolist(), WORDS.astype(object)], ids=["U", "list", "O"])
def test_names_of_classes_are_given_as_a_list(labels):
    with pytest.raises(InputError, match=r"need the names of the 3 columns in their order.*Pass") as caught:
        fitted_temperature(labels)
    # Only the user knows the order of the columns: no order is proposed that could be followed blindly.
    assert str(caught.value).endswith("Pass classes=['FIRST', 'SECOND', '...'].")
    cal = TemperatureScaling().fit(TASK.logits, labels, classes=NAMES)
    assert (cal.temperature_, cal.class_names_) == (T, tuple(NAMES))
    assert cal.get_feature_names_out().tolist() == NAMES


def test_names_reorder_labels_by_the_order_of_the_columns():
    columns = [2, 0, 1]
    cal = TemperatureScaling().fit(TASK.logits[:, columns], WORDS, classes=[NAMES[k] for k in columns])
    assert cal.temperature_ == pytest.approx(T, rel=1e-9)
    with pytest.raises(InputError, match=r"name of a class: 'cat', 'dog', 'fox'; found 'eel' in \d+ rows"):
        TemperatureScaling().fit(TASK.logits, WORDS, classes=["cat", "dog", "fox"])


def test_classes_that_are_whole_numbers_are_what_labels_are_compared_with():
    codes = np.array([30, 10, 20])
    assert fitted_temperature(codes[TASK.labels], classes=codes) == T
    assert fitted_temperature(TASK.labels, classes=[0, 1, 2]) == T
    with pytest.raises(InputError, match=r"labels must be among them: 30, 10, 20; found 2 in"):
        fitted_temperature(TASK.labels, classes=codes)


@pytest.mark.parametrize(
    "classes",
    [
        "cat,dog,eel",
        ["cat", "dog"],
        ["cat", "dog", "dog"],
        ["cat", "dog", 3],
        [0.5, 1.0, 2.0],
        {"cat", "dog", "eel"},
        3,
    ],
)
def test_classes_must_be_one_name_for_each_column(classes):
    with pytest.raises(InputError, match="classes must be a list of 3 different names, one per column"):
        fitted_temperature(WORDS, classes=classes)


def test_more_names_than_columns_do_not_match():
    labels = np.where(np.arange(200) < 5, "fox", WORDS)
    with pytest.raises(InputError, match=r"3 classes at most.*found 4 names: 'cat', 'dog', 'eel', 'fox'"):
        fitted_temperature(labels)


def test_all_metrics_and_comparisons_accept_names():
    given = {"classes": NAMES}
    for metric in metrics.METRICS:
        compute = getattr(metrics, metric)
        assert compute(PROBS, WORDS, **given) == compute(PROBS, TASK.labels), metric
    by_name = metrics.evaluate(PROBS, WORDS, draws=5, **given)
    assert by_name.to_dict() == metrics.evaluate(PROBS, TASK.labels, draws=5).to_dict()
    gaps = metrics.reliability(PROBS, WORDS, **given).gap
    assert gaps.tolist() == metrics.reliability(PROBS, TASK.labels).gap.tolist()
    result = compare(TASK.logits, WORDS, methods=["ts"], draws=5, **given)
    assert result.results["ts"].calibrator.temperature_ == T


@pytest.mark.parametrize(
    ("key", "meant"),
    [("HTS", "hts"), ("bays", "bayes"), ("bayes_bias", "bayes-bias"), ("Mono", "mono"), ("xyz", None)],
)
def test_a_similar_method_name_is_suggested(key, meant):
    suggestion = f" Did you mean '{meant}'?" if meant else ""
    for use in (
        lambda: make_calibrator(key),
        lambda: compare(TASK.logits, TASK.labels, methods=[key]),
    ):
        with pytest.raises(InputError, match=r"one of ts, lts, hts, ") as caught:
            use()
        assert str(caught.value).startswith(f"there is no method '{key}'.{suggestion} Name ")
    if meant:
        assert make_calibrator(meant).fit(TASK.logits, TASK.labels).n_rows_ == 200


def test_a_misspelt_option_gets_a_suggestion_too():
    with pytest.raises(InputError, match=r"'nll', 'brier'; found 'NLL'\. Did you mean 'nll'\?"):
        make_calibrator("ets", loss="NLL").fit(TASK.logits, TASK.labels)


def test_labels_of_dask_arrays_may_be_names(da):
    logits = da.from_array(TASK.logits, chunks=(70, 3))
    cal = TemperatureScaling().fit(logits, da.from_array(WORDS, chunks=50), classes=NAMES)
    assert cal.temperature_ == pytest.approx(T, rel=1e-6)
    assert cal.class_names_ == tuple(NAMES)
    with pytest.raises(InputError, match=r"need the names of the 3 columns.*Pass classes=\['FIRST', "):
        TemperatureScaling().fit(logits, WORDS)


@pytest.mark.parametrize("names", [(1, 2, 3), ("1", "2", "3"), (1.0, 2.0, 3.0), ("1.0", "2.0", "3.0")])
def test_labels_that_are_whole_numbers_are_names_where_names_are_whole_numbers(names):
    # Whichever of them occur: a file with the labels 1 and 2 alone means the same classes.
    for labels in ([1, 2, 3], [1, 2, 2], [3, 3, 3]):
        np.testing.assert_array_equal(check_labels(labels, 3, 3, names), np.array(labels) - 1)
    with pytest.raises(InputError, match=r"must be among them: 1, 2, 3; found 0 in 1 row \(first: row 2\)"):
        check_labels([1, 2, 0], 3, 3, names)


def test_boolean_labels_are_the_classes_named_true_and_false():
    for names in (("True", "False"), ("true", "false"), check_classes([True, False], 2)):
        for labels in ([True, False, True], [1, 0, 1]):
            assert check_labels(labels, 3, 2, names).tolist() == [0, 1, 0]
            assert check_labels(labels, 3, 2, names[::-1]).tolist() == [1, 0, 1]
    assert check_labels([True, False, True], 3, 2, ("cat", "dog")).tolist() == [1, 0, 1]


def test_unusable_labels_are_refused_with_a_message():
    for labels, words in (
        ([[0], [1, 2]], "found lists of different lengths"),
        (np.array([0, 1, 2**70], object), "found object such as '0'"),
    ):
        with pytest.raises(InputError, match=words):
            TemperatureScaling().fit(TASK.logits[:3], labels)
