"""What users pass to `CalibratedClassifier`: tables, sparse rows, text, labels and folds, good and bad."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from temperance import CalibratedClassifier, InputError, TemperatureScaling, make_calibrator

# --- X ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["csr_matrix", "coo_array"])
def test_sparse_rows_give_what_dense_rows_give(data, container):
    X, y = data
    model = CalibratedClassifier(LogisticRegression(), "ts", cv=2)
    dense = model.fit(X, y).predict_proba(X)
    sparse = getattr(scipy.sparse, container)(X)
    np.testing.assert_allclose(model.fit(sparse, y).predict_proba(sparse), dense, rtol=1e-3)


@pytest.mark.parametrize("kind", [list, np.array, "Series"])
def test_rows_of_text_are_sliced_without_conversion(data, kind):
    texts = [f"word{label} {'more' * (i % 3)}" for i, label in enumerate(data[1])]
    texts[:20] = ["none"] * 20
    if kind == "Series":
        pandas = pytest.importorskip("pandas")
        texts = pandas.Series(texts, index=np.linspace(7, 8, 400))  # no slice by label is meant
    else:
        texts = kind(texts)
    words = make_pipeline(CountVectorizer(), LogisticRegression())
    model = CalibratedClassifier(words, "ts", cv=2).fit(texts, data[1])
    assert model.predict(["word2"]) == [2]


def test_a_table_keeps_its_types_of_columns(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    table = pandas.DataFrame(X, columns=list("abcdefgh"), index=np.arange(400)[::-1])
    table["kind"] = pandas.Categorical(np.array(["low", "high"])[np.arange(400) % 2])
    trees = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype")
    labels = pandas.Series(np.array(["cat", "ant", "bee"])[y], index=table.index)
    model = CalibratedClassifier(trees, "ts", cv=2).fit(table, labels)
    assert list(model.feature_names_in_) == list(table.columns)
    assert model.estimator_.is_categorical_.tolist() == 8 * [False] + [True]
    assert model.score(table, labels) > 0.6
    numbers = table[list("abcdefgh")].fillna(0)
    model = CalibratedClassifier(LogisticRegression(), "ts", cv=2).fit(numbers, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(numbers[list("bacdefgh")])


# --- estimators ---------------------------------------------------------------------------------------


class Scores(ClassifierMixin, BaseEstimator):
    # It returns the given scores.
    def __init__(self, response="predict_proba", value=0.5, width=None):
        self.response, self.value, self.width = response, value, width

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def __getattr__(self, name):
        if name == vars(self).get("response"):
            return lambda X: np.full((len(X), self.width or len(self.classes_)), self.value)
        raise AttributeError(name)


def test_margins_and_networks_are_calibrated(data):
    X, y = data
    margins = CalibratedClassifier(LinearSVC(), "ts", cv=2).fit(X, y)
    assert margins.response_ == "decision_function"
    np.testing.assert_array_equal(margins.predict(X), margins.estimator_.predict(X))
    network = CalibratedClassifier(MLPClassifier(4, max_iter=60, random_state=0, tol=0.1), "ts", cv=2)
    assert network.fit(X, y).response_ == "predict_proba"


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.1])
def test_invalid_probabilities_are_refused(data, value):
    with pytest.raises(InputError, match=f"from 0 to 1; that of Scores gave {value}"):
        CalibratedClassifier(Scores(value=value), "ts").fit(*data)


def test_one_column_of_scores_is_enough_for_two_classes_and_not_for_three(data, binary_data):
    said = Scores("decision_function", 1.5, width=1)
    with pytest.warns(UserWarning, match="no better than chance"):
        model = CalibratedClassifier(said, "ts").fit(*binary_data)
    assert (model.decision_function(binary_data[0]) > 0).all()
    with pytest.raises(InputError, match="a score for each class"):
        CalibratedClassifier(said, "ts").fit(*data)


def test_a_fitted_model_of_another_library_needs_only_classes_and_scores(data):
    class Elsewhere:
        classes_ = np.array([2, 0, 1])

        def decision_function(self, X):
            return 3 * X[:, [2, 0, 1]]

    X, y = data
    model = CalibratedClassifier(Elsewhere(), "ts", cv="prefit").fit(X, y)
    expected = TemperatureScaling().fit(3 * X[:, :3], y)
    assert model.calibrator_.temperature_ == pytest.approx(expected.temperature_)
    np.testing.assert_array_equal(model.predict(X), X[:, :3].argmax(axis=1))


def test_prefit_without_an_estimator_is_refused(data):
    with pytest.raises(InputError, match="must be a fitted classifier for cv='prefit'; found None"):
        CalibratedClassifier(cv="prefit").fit(*data)


def test_options_of_a_calibrator_need_a_calibrator():
    model = CalibratedClassifier(calibrator="bts")
    with pytest.raises(InputError, match=r"calibrator__bins needs a calibrator .*make_calibrator\('bts'\)"):
        model.set_params(calibrator__bins=3)
    model.set_params(calibrator=make_calibrator("bts"), calibrator__bins=3)
    assert model.get_params()["calibrator__bins"] == 3


# --- y ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, np.nan, "NA"])
@pytest.mark.parametrize("kind", [list, lambda y: np.array(y, object)])
@pytest.mark.parametrize("prefit", [False, True])
def test_a_row_without_a_label_is_named(data, missing, kind, prefit):
    if missing == "NA":
        missing = pytest.importorskip("pandas").NA
    X, names = data[0], np.array(["cat", "ant", "bee"])[data[1]]
    model = CalibratedClassifier(LogisticRegression(), "ts")
    if prefit:
        model = CalibratedClassifier(LogisticRegression().fit(X, names), "ts", cv="prefit")
    y = names.tolist()
    y[3] = y[5] = missing
    with pytest.raises(InputError, match=rf"label for each row; found {missing} in row 3 \(2 such rows\)"):
        model.fit(X, kind(y))


@pytest.mark.parametrize("kind", [list, lambda y: np.array(y, object)])
def test_labels_of_text_and_numbers_together_are_refused(data, kind):
    y = np.array(["cat", "ant", "bee"])[data[1]].tolist()
    y[3] = 7
    with pytest.raises(InputError, match=r"all text or all numbers; found '.*' and 7"):
        CalibratedClassifier().fit(data[0], kind(y))


@pytest.mark.parametrize(
    ("convert", "wanted"),
    [
        (lambda y: (y > 0).tolist(), [False, True]),
        (lambda y: y.astype(float), [0.0, 1.0, 2.0]),
        (lambda y: np.array(["a", "bb", "c"])[y].tolist(), ["a", "bb", "c"]),
    ],
)
def test_labels_are_returned_unchanged(data, convert, wanted):
    X, y = data[0], convert(data[1])
    model = CalibratedClassifier(GaussianNB(), "ts", cv=2).fit(X, y)
    assert model.classes_.tolist() == wanted
    assert type(model.predict(X).tolist()[0]) is type(wanted[0])


@pytest.mark.parametrize("dtype", ["str", "category", "string"])
def test_a_series_of_labels_is_its_values(data, dtype):
    pandas = pytest.importorskip("pandas")
    names = np.array(["cat", "ant", "bee"])[data[1]]
    y = pandas.Series(names, index=np.arange(400)[::-1]).astype(dtype)
    model = CalibratedClassifier(GaussianNB(), "ts", cv=2).fit(data[0], y)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.score(data[0], names) == model.estimator_.score(data[0], names)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has strings of its own")
def test_numpys_own_strings_are_labels(data):
    names = np.array(["cat", "ant", "bee"]).astype(np.dtypes.StringDType())[data[1]]
    model = CalibratedClassifier(GaussianNB(), "ts", cv=2).fit(data[0], names)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]


def test_no_rows_and_two_rows_are_refused_with_a_message(data):
    X, y = data
    with pytest.raises(InputError, match="two or more classes, of weight > 0; found no rows"):
        CalibratedClassifier(calibrator="ts").fit(X[:0], y[:0])
    with pytest.raises(InputError, match="found 2 rows of 2 classes"):
        CalibratedClassifier(calibrator="ts").fit(X[:2], [0, 1])
    with pytest.raises(InputError, match="found one class"):
        CalibratedClassifier(calibrator="ts").fit(X, y, sample_weight=(y == 1).astype(float))


# --- folds and weights --------------------------------------------------------------------------------


def test_folds_may_leave_rows_out_and_may_be_masks(data):
    X, y = data
    later = CalibratedClassifier(GaussianNB(), "ts", cv=TimeSeriesSplit(3)).fit(X, y)
    assert later.n_rows_ == 300
    first = np.arange(400) < 200
    masks = CalibratedClassifier(GaussianNB(), "ts", cv=[(first, ~first), (~first, first)]).fit(X, y)
    halves = CalibratedClassifier(GaussianNB(), "ts", cv=KFold(2)).fit(X, y)
    assert masks.calibrator_.temperature_ == pytest.approx(halves.calibrator_.temperature_)


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ([], "folds with rows to score; found none"),
        ([([0, 1], [])], "folds with rows to score; found none"),
        ([([0, 1, 400], [2])], "row indices from 0 to 399.* 400 is out of bounds"),
        ([(np.ones(7, bool), [2])], "or a mask of all rows"),
    ],
)
def test_invalid_folds_are_refused(data, cv, words):
    with pytest.raises(InputError, match=words):
        CalibratedClassifier(GaussianNB(), "ts", cv=cv).fit(*data)


def test_weights_for_a_step_of_a_pipeline_give_no_warning(data):
    X, y = data
    weights = np.random.default_rng(0).random(400)
    inside = CalibratedClassifier(make_pipeline(LogisticRegression()), "ts", cv=2)
    inside.fit(X, y, weights, logisticregression__sample_weight=weights)  # a warning is an error here
    plain = CalibratedClassifier(LogisticRegression(), "ts", cv=2).fit(X, y, weights)
    np.testing.assert_allclose(inside.predict_proba(X), plain.predict_proba(X))
    with pytest.warns(UserWarning, match="step__sample_weight") as told:
        inside.fit(X, y, weights)
    assert told[0].filename == __file__
