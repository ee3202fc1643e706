"""`CalibratedClassifier`: one calibrator for scores of rows that the classifier has not seen."""

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags

from temperance import (
    CalibratedClassifier,
    InputError,
    LinearTemperatureScaling,
    TemperatureScaling,
    make_calibrator,
)
from temperance.errors import InputWarning


class PairwiseScores(SVC):
    # One score for each pair of classes, and probabilities too.
    def __init__(self, decision_function_shape="ovo"):
        super().__init__(decision_function_shape=decision_function_shape)

    def predict_proba(self, X):
        return np.eye(len(self.classes_))[np.searchsorted(self.classes_, self.predict(X))]


# --- what is fitted to what ---------------------------------------------------------------------------


def test_without_an_ensemble_the_estimator_is_trained_on_all_rows(data):
    X, y = data
    model = CalibratedClassifier(LogisticRegression(), "ts", cv=4, ensemble=False).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=4, method="decision_function")
    expected = TemperatureScaling().fit(scores, y)
    plain = LogisticRegression().fit(X, y)
    assert model.calibrator_.temperature_ == pytest.approx(expected.temperature_, rel=1e-9)
    assert model.n_rows_ == 400
    np.testing.assert_array_equal(model.estimator_.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    wanted = expected.predict_proba(plain.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-8)


@pytest.mark.parametrize("ensemble", [True, "auto"])
@pytest.mark.parametrize("calibrator", ["ts", "bayes-bias"])
def test_an_ensemble_averages_the_classifiers_of_the_folds_behind_one_calibrator(data, calibrator, ensemble):
    X, y = data
    model = CalibratedClassifier(LogisticRegression(), calibrator, cv=4, ensemble=ensemble).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=4, method="decision_function")
    one = make_calibrator(calibrator).fit(scores, y)
    trained = [LogisticRegression().fit(X[rows], y[rows]) for rows, _ in StratifiedKFold(4).split(X, y)]
    wanted = np.mean([one.predict_proba(each.decision_function(X)) for each in trained], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), wanted, rtol=1e-6)
    np.testing.assert_allclose(np.exp(model.decision_function(X)), wanted, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), wanted.argmax(axis=1))
    assert len(model.estimators_) == 4
    with pytest.raises(AttributeError, match=r"averages 4 .*ensemble=False"):
        model.estimator_  # noqa: B018
    assert model.set_params(ensemble=False).fit(X, y).estimators_ == [model.estimator_]


def test_a_model_without_an_ensemble_is_exported_as_its_error_advises(data, tmp_path):
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    X, y = data[0].astype(np.float32), data[1]
    model = CalibratedClassifier(GaussianNB(), cv=3, ensemble=False).fit(X, y)
    converted = skl2onnx.to_onnx(model.estimator_, X[:1], options={"zipmap": False})
    (tmp_path / "classifier.onnx").write_bytes(converted.SerializeToString())
    classifier, exported = tmp_path / "classifier.onnx", tmp_path / "model.onnx"
    output = {"classifier_output": "probabilities", "kind": "probs"}
    model.calibrator_.to_onnx(exported, model=classifier, **output)
    session = runtime.InferenceSession(exported)
    probs = session.run(["calibrated_probabilities"], {"X": X})[0]
    np.testing.assert_allclose(probs, model.predict_proba(X), atol=1e-4)


def test_an_ensemble_has_the_classifiers_that_scored_rows_and_no_class_is_impossible_to_all(data):
    X, y = data
    y = np.where(np.arange(400) == 17, 9, y)
    # Rows of fold 3 are of a class that its classifier was not trained on.
    twos = np.flatnonzero(y == 2)
    splits = [*KFold(2).split(X), (np.flatnonzero(y != 2), twos[:9])]
    model = CalibratedClassifier(LogisticRegression(), "ts", cv=splits).fit(X, y)
    assert [len(each.classes_) for each in model.estimators_] == [3, 4]
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_a_precomputed_kernel_has_no_ensemble(binary_data):
    X, y = binary_data
    model = CalibratedClassifier(SVC(kernel="precomputed"), "ts").fit(X @ X.T, y)
    assert model.estimator_.shape_fit_ == (200, 200)
    with pytest.raises(InputError, match="ensemble must be False or 'auto' for a precomputed kernel"):
        model.set_params(ensemble=True).fit(X @ X.T, y)
    model.set_params(ensemble=False).fit(X @ X.T, y)


@pytest.mark.parametrize("options", [{}, {"calibrator": "ts", "ensemble": False}])
def test_two_classes_have_one_score_and_all_outputs_agree(binary_data, options):
    X, y = binary_data
    model = CalibratedClassifier(RidgeClassifier(), **options).fit(X, y)
    odds, probs = model.decision_function(X), model.predict_proba(X)
    assert odds.shape == (200,)
    np.testing.assert_allclose(probs[:, 1], 1 / (1 + np.exp(-odds)))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probs)
    np.testing.assert_array_equal(model.predict(X), (odds > 0).astype(int))
    if options:
        assert model.score(X, y) == model.estimator_.score(X, y)


# --- the response -------------------------------------------------------------------------------------


def test_response_chooses_the_method(data):
    X, y = data
    scores = CalibratedClassifier(LogisticRegression(), "ts").fit(X, y)
    logs = CalibratedClassifier(LogisticRegression(), "ts", response="predict_proba").fit(X, y)
    assert (scores.response_, logs.response_) == ("decision_function", "predict_proba")
    assert scores.log_floor_ == -np.inf
    # The softmax of a logistic regression's scores are its probabilities.
    np.testing.assert_allclose(scores.predict_proba(X), logs.predict_proba(X), rtol=1e-6)
    assert CalibratedClassifier(GaussianNB(), "ts").fit(X, y).response_ == "predict_proba"


def test_a_probability_of_zero_is_half_the_smallest_one_divided_among_the_classes(data):
    X, y = data
    model = CalibratedClassifier(KNeighborsClassifier(5), "ts", ensemble=False).fit(X, y)
    assert model.log_floor_ == pytest.approx(np.log(0.2 / 2 / 3))
    assert (model.estimator_.predict_proba(X) == 0).any()
    assert np.isfinite(model.decision_function(X)).all()
    logs = np.log(np.maximum(model.estimator_.predict_proba(X), 0.2 / 2 / 3))
    np.testing.assert_allclose(model.decision_function(X), logs / model.calibrator_.temperature_)


def test_no_probability_is_below_the_precision_of_a_float(data):
    X, y = np.repeat(data[0], 200, axis=1), data[1]
    fitted = GaussianNB().fit(X, y)
    model = CalibratedClassifier(fitted, "ts", cv="prefit").fit(X, y)
    assert model.log_floor_ == np.log(2.0**-52)
    logs = np.log(np.maximum(fitted.predict_proba(X), 2.0**-52))
    assert model.calibrator_.temperature_ == pytest.approx(TemperatureScaling().fit(logs, y).temperature_)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    assert np.isfinite(model.predict_log_proba(100 * X)).all()


def test_scores_of_pairs_of_classes_are_not_mistaken_for_scores_of_classes(data):
    X, y = data  # three classes have three pairs: the shape does not tell
    machine = SVC(decision_function_shape="ovo")
    for estimator in (machine, make_pipeline(StandardScaler(), machine)):
        with pytest.raises(InputError, match="decision_function_shape='ovr'"):
            CalibratedClassifier(estimator, "ts").fit(X, y)
    model = CalibratedClassifier(PairwiseScores(), "ts").fit(X, y)
    assert model.response_ == "predict_proba"
    with pytest.raises(InputError, match="one score per class"):
        CalibratedClassifier(PairwiseScores(), "ts", response="decision_function").fit(X, y)
    assert CalibratedClassifier(machine, "ts").fit(X[y < 2], y[y < 2]).response_ == "decision_function"


def test_a_failed_fit_leaves_no_attributes(data):
    X, y = data
    model = CalibratedClassifier(cv=2).fit(X, y)
    with pytest.raises(InputError, match="found one class"):
        model.fit(X, np.zeros(400))
    with pytest.raises(NotFittedError):
        model.set_params(cv=3).predict(X)


# --- fitted estimators --------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda fitted: fitted, FrozenEstimator])
def test_a_fitted_estimator_is_calibrated_on_all_rows_without_training(data, wrap):
    X, y = data
    fitted = LogisticRegression(C=100).fit(X[:200], y[:200])
    cv = 5 if wrap is FrozenEstimator else "prefit"
    model = CalibratedClassifier(wrap(fitted), "ts", cv=cv).fit(X[200:], y[200:])
    expected = TemperatureScaling().fit(fitted.decision_function(X[200:]), y[200:])
    assert model.calibrator_.temperature_ == expected.temperature_
    assert model.n_rows_ == 200
    np.testing.assert_array_equal(model.estimator_.coef_, fitted.coef_)


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
def test_the_rows_for_a_fitted_estimator_may_lack_classes_but_not_add_any(data):
    X, y = data
    fitted = LogisticRegression().fit(X, y)
    model = CalibratedClassifier(fitted, "ts", cv="prefit").fit(X[y > 0], y[y > 0])
    assert model.predict_proba(X).shape == (400, 3)
    with pytest.raises(InputError, match=r"such as 0; found 3 \(400 such rows\)"):
        model.fit(X, y * 0 + 3)
    with pytest.raises(InputError, match="labels of the fitted estimator"):
        model.fit(X, y.astype(str))
    with pytest.raises(InputError, match=r"not trained.* found offset"):
        model.fit(X, y, offset=y)
    with pytest.raises(NotFittedError):
        CalibratedClassifier(LogisticRegression(), cv="prefit").fit(X, y)


# --- labels, rare classes, folds ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
@pytest.mark.parametrize("calibrator", ["ts", "bayes", "lts"])
def test_a_class_with_one_row_is_not_an_error(data, calibrator):
    X, y = data
    y = y.copy()
    y[17] = 9
    model = CalibratedClassifier(LogisticRegression(), calibrator).fit(X, y)
    assert model.n_rows_ == 399  # the model that scores row 17 cannot know its class
    np.testing.assert_array_equal(model.classes_, [0, 1, 2, 9])
    probs = model.predict_proba(X)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    # What is said of the other classes is what would be said without this row.
    without = CalibratedClassifier(LogisticRegression(), calibrator).fit(X[y < 9], y[y < 9]).predict_proba(X)
    assert np.abs(probs[:, :3] - without).mean() < 0.015


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
@pytest.mark.parametrize("kind", [TemperatureScaling, LinearTemperatureScaling])
def test_a_class_that_a_fold_lacks_is_impossible_there_or_as_unlikely_as_the_least_likely_class(
    data, kind, monkeypatch
):
    X, y = data
    y, given = np.where(np.arange(400) == 17, 9, y), []
    fit = kind.fit
    monkeypatch.setattr(
        kind, "fit", lambda self, logits, *rest: given.append(logits) or fit(self, logits, *rest)
    )
    CalibratedClassifier(LogisticRegression(), kind(), cv=KFold(5)).fit(X, y)
    lacking = given[0][:79]  # the first fold, with row 17, is scored without its class
    assert len(given[0]) == 399
    if kind is TemperatureScaling:
        assert (lacking[:, 3] == -np.inf).all()
    else:
        np.testing.assert_array_equal(lacking[:, 3], lacking[:, :3].min(axis=1))
    assert np.isfinite(given[0][79:]).all()


@pytest.mark.filterwarnings("ignore:so many rows should have labels of every class")
def test_many_rows_that_cannot_be_used_give_a_warning(data):
    X, y = data
    with_all, without_2 = np.r_[np.flatnonzero(y == 2), :100], np.flatnonzero(y[100:] < 2) + 100
    splits = [(with_all, without_2), (without_2, np.unique(with_all))]
    n_rows, n_left = len(np.unique(np.r_[with_all, without_2])), (y == 2).sum()
    with pytest.warns(UserWarning, match=f"{n_left} of {n_rows} rows are not used for calibration"):
        model = CalibratedClassifier(LogisticRegression(), "ts", cv=splits).fit(X, y)
    assert model.n_rows_ == n_rows - n_left
    zero, one = (np.flatnonzero(y == label) for label in (0, 1))
    with pytest.raises(InputError, match=f"none of {len(zero) + len(one)} rows can be used"):
        CalibratedClassifier(calibrator="ts", cv=[(zero, one), (one, zero)]).fit(X, y)


def test_folds_are_no_more_than_the_rows_of_the_largest_class():
    X = np.array([[0.0], [1.0], [0.2], [3.0], [2.5], [3.1]])
    y = np.array([0, 0, 0, 1, 1, 1])
    few, more = (CalibratedClassifier(GaussianNB(), cv=cv).fit(X, y) for cv in (3, 50))
    np.testing.assert_array_equal(few.predict_proba(X), more.predict_proba(X))
    with pytest.raises(InputError, match="a class with two or more rows; found 6 rows of 6 classes"):
        CalibratedClassifier(GaussianNB()).fit(X, np.arange(6))


def test_rows_that_are_scored_twice_count_once(data):
    X, y = data
    splits = list(KFold(4).split(X))
    once = CalibratedClassifier(LogisticRegression(), "bayes", cv=splits).fit(X, y)
    twice = CalibratedClassifier(LogisticRegression(), "bayes", cv=splits + splits).fit(X, y)
    np.testing.assert_allclose(twice.predict_proba(X), once.predict_proba(X), rtol=1e-6)
    covariance = once.calibrator_.covariance_
    np.testing.assert_allclose(twice.calibrator_.covariance_, covariance, rtol=1e-3, atol=1e-9)


# --- weights and metadata -----------------------------------------------------------------------------


def test_a_weight_of_two_is_the_row_twice_in_the_calibration(data):
    X, y = data
    weights = np.random.default_rng(0).integers(0, 3, 400)
    fitted = LogisticRegression(C=100).fit(X[:30], y[:30])
    weighted = CalibratedClassifier(fitted, "hts", cv="prefit").fit(X, y, weights)
    with pytest.warns(InputWarning, match="found 279 different rows among"):
        repeated = CalibratedClassifier(fitted, "hts", cv="prefit").fit(
            X.repeat(weights, 0), y.repeat(weights)
        )
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5)


def test_weights_are_passed_to_the_estimator_if_it_accepts_them(data):
    X, y = data
    weights = np.random.default_rng(0).random(400)
    model = CalibratedClassifier(GaussianNB(), "ts", ensemble=False).fit(X, y, weights)
    np.testing.assert_array_equal(model.estimator_.theta_, GaussianNB().fit(X, y, weights).theta_)
    with pytest.warns(UserWarning, match="fit of KNeighborsClassifier takes no sample_weight"):
        CalibratedClassifier(KNeighborsClassifier(), "ts").fit(X, y, weights)
    with pytest.raises(InputError, match="sample_weight must be one finite number"):
        model.fit(X, y, weights[:3])


def test_metadata_goes_where_it_is_requested(data):
    X, y = data
    groups, weights = np.arange(400) // 40, np.random.default_rng(0).random(400)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        model = CalibratedClassifier(estimator, "ts", cv=GroupKFold(5))
        model.fit(X, y, sample_weight=weights, groups=groups)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            CalibratedClassifier(LogisticRegression(), "ts").fit(X, y, sample_weight=weights)
        CalibratedClassifier(calibrator="ts").fit(X, y, sample_weight=weights)
        temperature = model.calibrator_.temperature_
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        outer = make_pipeline(scaler, model.set_fit_request(sample_weight=True))
        outer.fit(X, y, sample_weight=weights, groups=groups)
    splits = list(GroupKFold(5).split(X, y, groups))
    by_hand = CalibratedClassifier(LogisticRegression(), "ts", cv=splits).fit(X, y, weights)
    assert temperature == by_hand.calibrator_.temperature_


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("cv", [4, GroupKFold(4), StratifiedGroupKFold(4)])
def test_rows_of_a_group_are_in_one_fold_and_the_calibrator_knows_the_groups(data, cv, routing):
    X, y = data
    groups = np.random.default_rng(1).permutation(np.arange(400) // 10).astype(str)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = CalibratedClassifier(LogisticRegression(), "ts", cv=cv).fit(X, y, groups=groups)
    splitter = StratifiedGroupKFold(4) if cv == 4 else cv
    codes = np.unique(groups, return_inverse=True)[1]
    by_hand = CalibratedClassifier(LogisticRegression(), "ts", cv=list(splitter.split(X, y, codes)))
    by_hand.fit(X, y, groups=groups)
    assert model.calibrator_.n_groups_ == 40
    assert model.calibrator_.temperature_ == by_hand.calibrator_.temperature_
    assert model.calibrator_.standard_errors_ == by_hand.calibrator_.standard_errors_
    plain = by_hand.fit(X, y).calibrator_
    assert plain.temperature_ == model.calibrator_.temperature_
    assert plain.standard_errors_ != model.calibrator_.standard_errors_


def test_groups_of_a_fitted_estimator_go_to_the_calibrator(data):
    X, y = data
    fitted, groups = LogisticRegression().fit(X, y), np.arange(400) // 8
    model = CalibratedClassifier(fitted, "ts", cv="prefit").fit(X, y, groups=groups)
    by_hand = TemperatureScaling().fit(fitted.decision_function(X), y, groups=groups)
    assert model.calibrator_.standard_errors_ == by_hand.standard_errors_
    with pytest.raises(InputError, match="groups must have one id per row"):
        model.fit(X, y, groups=groups[:-1])


def test_a_pipeline_and_a_search_pass_groups_on(data):
    X, y = data
    groups = np.arange(400) // 10
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), CalibratedClassifier(LogisticRegression(), "ts"))
        assert model.fit(X, y, groups=groups)[-1].calibrator_.n_groups_ == 40
        search = GridSearchCV(model, {"calibratedclassifier__estimator__C": [0.1, 1]}, cv=GroupKFold(2))
        assert search.fit(X, y, groups=groups).best_estimator_[-1].calibrator_.n_groups_ == 40
        quiet = CalibratedClassifier(LogisticRegression(), "ts").set_fit_request(groups=False)
        left_out = GridSearchCV(quiet, {"estimator__C": [1]}, cv=GroupKFold(2)).fit(X, y, groups=groups)
        assert not hasattr(left_out.best_estimator_.calibrator_, "n_groups_")


def test_a_splitter_without_groups_says_so(data):
    X, y = data
    model = CalibratedClassifier(LogisticRegression(), "ts", cv=KFold(3))
    with pytest.warns(UserWarning, match="groups parameter is ignored by KFold"):
        model.fit(X, y, groups=np.arange(400) // 10)


# --- among scikit-learn's tools -----------------------------------------------------------------------


def test_names_of_features_are_kept_and_forgotten():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = CalibratedClassifier(LogisticRegression(max_iter=500), "ts").fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert not hasattr(model.fit(frame.to_numpy(), y), "feature_names_in_")


def test_any_input_of_the_estimator_is_accepted(binary_data):
    X, y = binary_data
    tags = get_tags(CalibratedClassifier(HistGradientBoostingClassifier())).input_tags
    assert tags.allow_nan
    assert not tags.sparse
    assert get_tags(CalibratedClassifier()).input_tags.sparse
    kernel = CalibratedClassifier(SVC(kernel="precomputed"), "ts")
    assert get_tags(kernel).input_tags.pairwise
    plain = CalibratedClassifier(SVC(kernel="linear"), "ts").fit(X, y)
    temperature = kernel.fit(X @ X.T, y).calibrator_.temperature_
    assert temperature == pytest.approx(plain.calibrator_.temperature_, rel=1e-2)


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
    assert model.estimators_[0].is_categorical_.tolist() == 8 * [False] + [True]
    assert model.score(table, labels) > 0.6
    numbers = table[list("abcdefgh")].fillna(0)
    model = CalibratedClassifier(LogisticRegression(), "ts", cv=2).fit(numbers, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(numbers[list("bacdefgh")])


# --- estimators ---------------------------------------------------------------------------------------


def test_one_column_of_scores_is_enough_for_two_classes_and_not_for_three(data, binary_data):
    said = Scores("decision_function", 1.5, width=1)
    with pytest.warns(UserWarning, match="no better than chance"):
        model = CalibratedClassifier(said, "ts").fit(*binary_data)
    assert (model.decision_function(binary_data[0]) > 0).all()
    with pytest.raises(InputError, match="one score per class"):
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
    with pytest.raises(InputError, match=rf"label in every row; found {missing} in row 3 \(2 such rows\)"):
        model.fit(X, kind(y))


@pytest.mark.parametrize("kind", [list, lambda y: np.array(y, object)])
def test_labels_of_text_and_numbers_together_are_refused(data, kind):
    y = np.array(["cat", "ant", "bee"])[data[1]].tolist()
    y[3] = 7
    with pytest.raises(InputError, match=r"all text or all numbers; found '.*' and 7"):
        CalibratedClassifier().fit(data[0], kind(y))


def test_rows_of_two_classes_are_needed(data):
    X, y = data
    with pytest.raises(InputError, match="two or more classes, of weight > 0; found no rows"):
        CalibratedClassifier(calibrator="ts").fit(X[:0], y[:0])
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": Ridge()}, "Ridge has neither"),
        ({"ensemble": "yes"}, "ensemble must be True, False or 'auto'; found 'yes'"),
        ({"response": "scores"}, "response must be one of 'auto'"),
        ({"estimator": GaussianNB(), "response": "decision_function"}, "GaussianNB has no decision_function"),
        ({"calibrator": "tz"}, "one of ts, lts"),
        ({"calibrator": 3}, "int has no fit"),
        ({"cv": 1}, "cv must be a whole number >= 2"),
        ({"cv": "five"}, "cv must be a whole number >= 2, a splitter, or 'prefit'; found 'five'"),
        ({"cv": True}, "cv must be a whole number"),
        ({"cv": "prefit"}, "cv='prefit' needs a fitted estimator, but estimator is None"),
        ({"cv": []}, "no fold with rows to score"),
        ({"cv": [([0, 1], [])]}, "no fold with rows to score"),
        ({"cv": [([0, 1, 400], [2])]}, "row indices from 0 to 399.* 400 is out of bounds"),
        ({"cv": [(np.ones(7, bool), [2])]}, "or a mask of all rows"),
        ({"estimator": Scores(value=np.nan)}, "from 0 to 1; Scores returned nan"),
        ({"estimator": Scores(value=-0.1)}, "from 0 to 1; Scores returned -0.1"),
        ({"estimator": Scores(value=1.1)}, "from 0 to 1; Scores returned 1.1"),
    ],
)
def test_mismatched_input_is_refused_with_a_message(data, options, words):
    with pytest.raises(InputError, match=words):
        CalibratedClassifier(**options).fit(*data)


NAMES = np.array(["cat", "ant", "bee"])


def series(dtype):
    """Return a function that makes a series of names, whose index is not that of the rows."""

    def convert(y):
        pandas = pytest.importorskip("pandas")
        return pandas.Series(NAMES[y], index=np.arange(len(y))[::-1]).astype(dtype)

    return convert


@pytest.mark.parametrize(
    ("convert", "wanted"),
    [
        (lambda y: (y > 0).tolist(), [False, True]),
        (lambda y: y.astype(float), [0.0, 1.0, 2.0]),
        (lambda y: np.array([7, -1, 3])[y], [-1, 3, 7]),
        (lambda y: NAMES[y].astype(object), ["ant", "bee", "cat"]),
        (lambda y: NAMES[y].tolist(), ["ant", "bee", "cat"]),
        *((series(dtype), ["ant", "bee", "cat"]) for dtype in ("str", "category", "string")),
        pytest.param(
            lambda y: NAMES.astype(np.dtypes.StringDType())[y],
            ["ant", "bee", "cat"],
            marks=pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="came with NumPy 2"),
        ),
    ],
)
def test_labels_are_returned_unchanged(data, convert, wanted):
    X, y = data[0], convert(data[1])
    model = CalibratedClassifier(GaussianNB(), "ts", cv=2, ensemble=False).fit(X, y)
    assert model.classes_.tolist() == wanted
    assert type(model.predict(X).tolist()[0]) is type(wanted[0])
    assert model.score(X, list(y)) == model.estimator_.score(X, list(y))
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_what_is_given_is_copied_and_copies_pickles_and_parallel_fits_give_the_same(data):
    X, y = data
    calibrator, estimator = TemperatureScaling(), LogisticRegression()
    model = CalibratedClassifier(estimator, calibrator, cv=2).fit(X, y)
    assert not hasattr(calibrator, "temperature_")
    assert not hasattr(estimator, "coef_")
    assert clone(model).get_params()["calibrator"] is not calibrator
    with joblib.parallel_config(backend="threading"):
        together = clone(model).set_params(n_jobs=2).fit(X, y)
    for same in (pickle.loads(pickle.dumps(model)), together):
        np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
