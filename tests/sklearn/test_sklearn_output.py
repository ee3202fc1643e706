"""`set_output`: data frames from `transform` on request, and arrays by default."""

import pickle
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from temperance import CalibratedClassifier, InputError, TemperatureScaling

pandas = pytest.importorskip("pandas")


@pytest.fixture
def table(task):
    names = ["ant", "bee", "cat", "dog"]
    return pandas.DataFrame(task.logits, columns=names, index=[f"row{i}" for i in range(300)])


def test_every_calibrator_gives_a_table_with_the_names_and_index_of_its_input(method, fitted, task, table):
    plain = fitted(method)
    asked = pickle.loads(pickle.dumps(plain)).set_output(transform="pandas")
    result = asked.transform(table)
    assert list(result.columns) == list(table.columns)
    assert list(result.index) == list(table.index)
    np.testing.assert_array_equal(result, plain.transform(task.logits))
    assert isinstance(plain.transform(table), np.ndarray)
    assert isinstance(asked.predict_proba(table), np.ndarray)
    assert list(asked.transform(logits=task.logits).columns) == ["0", "1", "2", "3"]
    assert isinstance(asked.set_output(transform="default").transform(table), np.ndarray)


def test_names_are_those_of_the_fit_where_the_input_has_none(task, table):
    cal = TemperatureScaling().set_output(transform="pandas").fit(table, task.labels)
    assert list(cal.transform(task.logits).columns) == list(table.columns)
    assert list(cal.get_feature_names_out()) == list(cal.feature_names_in_) == list(table.columns)
    assert list(cal.get_feature_names_out(list("wxyz"))) == list("wxyz")
    numbered = table.set_axis(range(4), axis=1)
    assert list(cal.transform(numbered).columns) == [0, 1, 2, 3]
    cal.fit(numbered, task.labels)
    assert not hasattr(cal, "feature_names_in_")
    assert list(cal.get_feature_names_out()) == ["0", "1", "2", "3"]
    with pytest.raises(InputError, match=r"4 names, one per class; found \['x'\]"):
        cal.get_feature_names_out(["x"])
    with pytest.raises(NotFittedError):
        TemperatureScaling().get_feature_names_out()


def test_the_output_setting_is_copied_and_pickled_and_invalid_values_are_refused(task, table):
    cal = TemperatureScaling().set_output(transform="pandas").set_output()
    assert isinstance(clone(cal).fit(table, task.labels).transform(table), pandas.DataFrame)
    cal.fit(table, task.labels)
    assert isinstance(pickle.loads(pickle.dumps(cal)).transform(table), pandas.DataFrame)
    with pytest.raises(InputError, match="one of 'default', 'pandas', 'polars'; found 'table'"):
        cal.set_output(transform="table")


def test_input_that_is_not_a_table_is_unchanged(task, binary):
    cal = TemperatureScaling().set_output(transform="pandas")
    logits, labels = binary
    assert cal.fit(logits, labels).transform(logits).shape == (200,)
    torch = sys.modules.get("torch") or pytest.importorskip("torch")
    tensor = torch.from_numpy(task.logits)
    assert isinstance(cal.fit(tensor, task.labels).transform(tensor), torch.Tensor)


def test_a_calibrator_is_a_step_of_a_pipeline(task, table):
    stacked = make_pipeline(TemperatureScaling(), StandardScaler(), LogisticRegression())
    stacked.set_output(transform="pandas").fit(table, task.labels)
    assert list(stacked[-1].feature_names_in_) == list(table.columns)
    assert list(stacked[:-1].get_feature_names_out()) == list(table.columns)
    assert list(stacked[:1].transform(table).index) == list(table.index)


def test_the_classifier_passes_set_output_to_the_transformers_inside(table, task):
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = CalibratedClassifier(inner, TemperatureScaling(), cv=2)
    plain = model.fit(table, task.labels)
    expected = plain.predict_proba(table)
    assert not hasattr(plain.estimators_[0][-1], "feature_names_in_")
    assert plain.set_output(transform="pandas") is plain
    assert isinstance(plain.estimators_[1][:-1].transform(table), pandas.DataFrame)  # the fitted ones too
    model = clone(model).fit(table, task.labels)
    assert list(model.estimators_[0][-1].feature_names_in_) == list(table.columns)
    np.testing.assert_allclose(model.predict_proba(table), expected)
    assert CalibratedClassifier(LogisticRegression()).set_output(transform="pandas").estimator.C == 1
    assert CalibratedClassifier().set_output(transform="pandas").estimator is None


@pytest.mark.parametrize("calibrator", ["ts", TemperatureScaling().set_output(transform="pandas")])
def test_a_global_set_output_setting_is_accepted(data, task, table, calibrator):
    X, y = data
    plain = CalibratedClassifier(LogisticRegression(), "ts", cv=2).fit(X, y)
    with sklearn.config_context(transform_output="pandas"):
        model = CalibratedClassifier(make_pipeline(LogisticRegression()), calibrator, cv=2).fit(X, y)
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            result = getattr(model, method)(X)
            assert type(result) is np.ndarray
            np.testing.assert_array_equal(result, getattr(plain, method)(X))
        cal = TemperatureScaling().fit(table, task.labels)
        assert list(cal.transform(table).index) == list(table.index)
        assert isinstance(cal.predict_proba(table), np.ndarray)
        assert isinstance(cal.temperature(table), np.ndarray)
