"""Two classes from fit to verdict: tables that real classifiers made, and the same words in all places."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from temperance import compare, make_calibrator
from temperance.metrics import evaluate


@pytest.fixture(scope="module")
def margins():
    """Margins of a linear support vector machine: 217 rows to fit a calibrator to, and 322 to judge."""
    X, y = load_breast_cancer(return_X_y=True)
    train, rest, of_train, of_rest = train_test_split(X, y, train_size=30, stratify=y, random_state=0)
    machine = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(train, of_train)
    scores = machine.decision_function(rest)
    val, test, of_val, of_test = train_test_split(
        scores, of_rest, test_size=322, stratify=of_rest, random_state=0
    )
    return val, of_val, test, of_test


def test_compare_and_evaluate_say_the_same_of_rows_that_are_off_on_average(margins):
    """The confidence fits, since errors below and above 1/2 cancel; P(class 1) does not."""
    val, of_val, test, of_test = margins
    found = compare(*margins, methods=["bayes"], draws=20, progress=False)
    after = make_calibrator("bayes").fit(val, of_val).predict_proba(test)
    told = evaluate(after, of_test, draws=20).finding
    judged = found.verdict.after.finding
    assert str(judged.state) == "level"
    assert judged.words == told.words
    assert judged.words.startswith("P(class 1) is too low: 58.")
    assert " on average, 62.7% observed (O/E 1.0" in judged.words
    for name in ("p_value", "level_p", "spread_p"):
        assert getattr(judged, name) == pytest.approx(getattr(told, name), rel=1e-12)
    assert judged.p_value < 0.001
    own = evaluate(expit(test), of_test, draws=20).finding
    assert found.verdict.before.finding.p_value == pytest.approx(own.p_value, rel=1e-9)
    assert found.verdict.before.finding.words == own.words
    if found.recommended == "bayes":
        assert found.verdict.outcome != "better"
        assert f"After calibration: {judged}" in str(found.verdict)


def test_swapped_columns_are_the_headline_and_nothing_is_recommended(margins):
    val, of_val, test, of_test = margins
    found = compare(-val, of_val, -test, of_test, draws=20, progress=False)
    judged = found.verdict.before.finding
    assert (str(judged.state), found.recommended, found.verdict.outcome) == ("reversed", "none", "reversed")
    assert judged.slope.high < 0
    straight = evaluate(expit(test), of_test, draws=20).finding
    assert judged.slope.value == pytest.approx(-straight.slope.value, rel=1e-6)
    assert found.verdict.answer == (
        "Check the labels and the order of the columns.",
        "Higher P(class 1) goes with fewer rows of class 1. Check the columns and labels before you "
        "calibrate.",
    )
    assert evaluate(expit(-test), of_test, draws=20).finding.words == found.verdict.headline


def test_swapped_columns_of_many_classes_are_the_headline_even_if_labels_are_impossible():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    logits = 2000.0 * np.eye(3)[(labels + 1) % 3] + rng.normal(size=(300, 3))
    found = compare(logits, labels, folds=2, draws=5, progress=False)
    assert found.verdict.before.finding.impossible == 300
    assert found.verdict.advice == "Check the labels and the order of the columns."
    assert found.verdict.headline.startswith("The accuracy, 0.0%, is below chance, ")


@pytest.mark.parametrize("seed", range(2))
def test_boosting_with_few_positives_is_calibrated_with_bayes_bias(seed):
    X, y = make_classification(
        9000, 15, n_informative=6, weights=[0.98], flip_y=0.01, class_sep=0.9, random_state=seed
    )
    boosting = HistGradientBoostingClassifier(random_state=0).fit(X[:4000], y[:4000])
    score = boosting.decision_function(X[4000:])
    found = compare(score, y[4000:], draws=5, progress=False)
    assert found.recommended == "bayes-bias"
    after = found.verdict.after.finding
    assert 0.9 < after.ratio.value < 1.1
    assert "would change" not in found.reason


def test_the_positive_class_is_named_judged_drawn_and_stored():
    rng = np.random.default_rng(0)
    z = rng.normal(-2, 1.5, 600)
    y = np.where(rng.random(600) < expit(z), "yes", "no")
    found = compare(z, y, classes=["no", "yes"], positive="no", methods=["ts", "bayes-bias"], draws=5)
    judged = found.verdict.before.finding
    assert (judged.name, judged.rate) == ("no", pytest.approx((y == "no").mean()))
    assert [*found.results["none"].class_reliability] == [0]
    assert found.results["bayes-bias"].calibrator.positive_ == 0
    other = compare(z, y, classes=["no", "yes"], methods=["ts"], draws=5).verdict.before.finding
    assert other.p_value == pytest.approx(judged.p_value, rel=1e-9)
    with pytest.raises(ValueError, match="positive must be one of"):
        compare(z, y, classes=["no", "yes"], positive="maybe")
    with pytest.raises(ValueError, match="positive is for classes"):
        compare(z, y == "yes", positive=1, positions=True)


def test_a_class_of_several_can_be_positive():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, (900, 3))
    labels = (z + rng.gumbel(size=z.shape) + [0, 0, 1]).argmax(axis=1)
    found = compare(z, labels, positive=2, classes=["ant", "bee", "cat"], draws=5, progress=False)
    assert str(found.verdict.before.finding).startswith("P(cat) is too low: ")
    assert found.verdict.headline.startswith("P(cat) before: ")
