"""Ids that are missing, labels of one class, classes without labels and permuted labels are said."""

import warnings

import numpy as np
import pytest

from temperance import InputError, TemperatureScaling, compare, make_calibrator, metrics, monitoring
from temperance.calibrators.fit_record import HASHED_LOGITS, HASHED_ROWS, hash_step
from temperance.data import simulate
from temperance.errors import InputWarning

TASK = simulate(n_rows=600, n_classes=3, random_state=1)
BINARY, NEW = (simulate(n_rows=500, n_classes=2, random_state=seed) for seed in (0, 5))
IDS = [f"patient {row % 60}" for row in range(600)]


def missing(kind):
    """Return ids of which that of row 7 is missing."""
    pd = pytest.importorskip("pandas", reason="pandas is an extra")
    nothing = {"NA": pd.NA, "None": None, "nan": float("nan"), "float32": np.float32("nan"), "NaT": pd.NaT}
    ids = [*IDS[:7], nothing.get(kind, pd.NA), *IDS[8:]]
    if kind == "string":
        return pd.Series(ids, dtype="string")
    return ids if kind in ("nan", "None") else np.array(ids, object)


@pytest.mark.parametrize("kind", ["NA", "None", "nan", "float32", "NaT", "string"])
def test_a_missing_id_is_named_by_its_row(kind):
    words = r"found rows without one in 1 row \(first: row 7\)"
    probs = TASK.probabilities
    for use in (
        lambda ids: TemperatureScaling().fit(TASK.logits, TASK.labels, groups=ids),
        lambda ids: compare(TASK.logits, TASK.labels, methods=["ts"], draws=5, groups=ids),
        lambda ids: metrics.evaluate(probs, TASK.labels, draws=5, groups=ids),
        lambda ids: metrics.evaluate(probs, TASK.labels, draws=5, by=ids),
    ):
        with pytest.raises(InputError, match=words):
            use(missing(kind))
    assert TemperatureScaling().fit(TASK.logits, TASK.labels, groups=IDS).n_groups_ == 60


def test_a_missing_label_in_a_list_of_names_is_not_a_name():
    words = [*np.array(["ant", "bee", "cat"])[TASK.labels[:-1]], float("nan")]
    with pytest.raises(InputError, match=r"found missing ones in 1 row \(first: row 599"):
        TemperatureScaling().fit(TASK.logits, words, classes=["ant", "bee", "cat"])


@pytest.mark.parametrize("key", ["ts", "bayes", "bayes-bias", "mono"])
def test_labels_of_one_class_are_refused_by_a_fit_and_read_by_scores_and_checks(key):
    quiet, new = BINARY.labels == 0, NEW.labels == 0
    logits, labels = BINARY.logits[quiet], BINARY.labels[quiet]
    words = "needs labels of at least two classes; found only"
    with pytest.raises(InputError, match=f"fit {words} 0"):
        make_calibrator(key).fit(logits, labels)
    with pytest.raises(InputError, match=f"fit {words} 'paid'"):
        make_calibrator(key).fit(logits, labels, classes=["paid", "default"])
    with pytest.raises(InputError, match=f"compare {words} 0"):
        compare(logits, labels, methods=[key], draws=5)
    with pytest.raises(InputError, match=f"compare {words} 0"):
        compare(BINARY.logits, BINARY.labels, NEW.logits[new], NEW.labels[new], methods=[key], draws=5)
    weights = quiet.astype(float)  # rows of weight 0 do not count
    with pytest.raises(InputError, match=f"fit {words} 0"):
        make_calibrator(key).fit(BINARY.logits, BINARY.labels, weights)
    cal = make_calibrator(key).fit(BINARY.logits, BINARY.labels)
    assert monitoring.check(cal, NEW.logits[new], NEW.labels[new]).rows == new.sum()
    found = metrics.evaluate(cal.predict_proba(NEW.logits[new]), NEW.labels[new], draws=5)
    assert found.n_rows == new.sum()


def test_answers_can_all_be_in_the_first_position():
    first = np.take_along_axis(TASK.logits, np.argsort(TASK.labels[:, None] != np.arange(3), axis=1), axis=1)
    cal = TemperatureScaling().fit(first, np.zeros(600, int), positions=True)
    assert cal.temperature_ == pytest.approx(TemperatureScaling().fit(TASK.logits, TASK.labels).temperature_)


def test_a_fold_without_the_rare_class_leaves_the_predictions_as_they_are():
    events = np.flatnonzero(BINARY.labels)
    rows = np.r_[np.flatnonzero(BINARY.labels == 0)[:100], events[:1]]
    result = compare(BINARY.logits[rows], BINARY.labels[rows], methods=["ts"], draws=5, random_state=0)
    assert result.results["ts"].scores["nll"].value > 0


def test_a_class_without_labels_among_many_rows_is_named():
    kept = TASK.labels != 2
    logits, labels = TASK.logits[kept], np.array(["ant", "bee", "cat"])[TASK.labels[kept]]
    names = ["ant", "bee", "cat"]
    for key in ("ts", "bayes-bias"):
        with pytest.warns(InputWarning, match=r"labels of every class; 'cat' have none, .* Add such rows"):
            make_calibrator(key).fit(logits, labels, classes=names)
    with pytest.warns(InputWarning, match="'cat' have none"):
        compare(logits, labels, methods=["ts"], draws=5, classes=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of few rows, a class can be absent by chance
        TemperatureScaling().fit(logits[:50], labels[:50], classes=names)


def test_adapting_to_rows_says_which_class_the_fit_did_not_have():
    kept = TASK.labels != 2
    with pytest.warns(InputWarning, match="2 have none"):
        cal = make_calibrator("bayes-bias").fit(TASK.logits[kept], TASK.labels[kept])
    with pytest.warns(UserWarning, match="class 2 had fewer than 5 labels at fit, so adapt cannot know"):
        cal.adapt(TASK.logits)


@pytest.mark.parametrize("key", ["ts", "bayes", "bayes-bias"])
def test_permuted_labels_are_said_and_others_are_not(key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for task in (TASK, BINARY):
            make_calibrator(key).fit(task.logits, task.labels)
    said = 0
    for seed in range(20):
        labels = np.random.default_rng(seed).permutation(TASK.labels)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make_calibrator(key).fit(TASK.logits, labels)
        said += any(
            "The labels agree with the logits no better than chance" in str(w.message) for w in caught
        )
    assert said >= 17


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_a_comparison_of_a_few_rows_asks_for_rows_and_not_for_folds(n_rows):
    with pytest.raises(
        InputError, match=f"compare needs 5 labelled rows, or a test set; found {n_rows}"
    ) as e:
        compare(TASK.logits[:n_rows], TASK.labels[:n_rows], methods=["ts"], draws=5)
    assert "folds" not in str(e.value)


def test_an_argument_by_place_is_refused_in_the_name_of_the_metric():
    with pytest.raises(TypeError, match="ece takes probs and labels, and others by name: too many"):
        metrics.ece(TASK.probabilities, TASK.labels, 50)


@pytest.mark.parametrize("n_classes", [2, 1000, 50_257])
def test_rows_that_are_looked_at_for_absent_classes_are_bounded_by_their_logits(n_classes):
    rows = -(-300_000 // hash_step(300_000, n_classes))
    assert 1 <= rows <= HASHED_ROWS
    assert rows * n_classes <= HASHED_LOGITS or rows == 1
