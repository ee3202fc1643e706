"""BTS with tied confidences: rounding has no effect, at fit, at use and in every framework."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from temperance import BinwiseTemperatureScaling
from temperance.core.quantiles import Sketch, make_brackets, quantiles, resolve, values_in_brackets

ORDER = [2, 0, 3, 1]


@pytest.fixture(scope="module")
def votes():
    """Return the logits and labels of rows that a forest of 100 trees votes on: confidences are counts."""
    X, y = make_classification(4000, 12, n_informative=6, n_classes=4, flip_y=0.1, random_state=3)
    forest = RandomForestClassifier(100, random_state=0).fit(X[:1000], y[:1000])
    counts = np.stack([tree.predict(X[1000:]) for tree in forest.estimators_], axis=1).astype(int)
    probs = np.stack([(counts == k).mean(axis=1) for k in range(4)], axis=1)
    return np.log(np.maximum(probs, 1e-3)), y[1000:]


@pytest.fixture(scope="module")
def fitted(votes):
    return BinwiseTemperatureScaling(bins=15).fit(*votes)


def test_the_order_of_the_classes_changes_no_temperature(votes, fitted):
    logits, labels = votes
    other = BinwiseTemperatureScaling(bins=15).fit(logits[:, ORDER], np.argsort(ORDER)[labels])
    np.testing.assert_allclose(other.temperature(logits[:, ORDER]), fitted.temperature(logits), rtol=1e-6)
    assert len(np.unique(fitted.temperature(logits).round(9))) > 5


def test_the_order_of_the_classes_changes_no_edge_that_a_count_could_meet(votes, fitted):
    confidence = np.exp(votes[0] - np.logaddexp.reduce(votes[0], axis=1, keepdims=True)).max(axis=1)
    distance = np.abs(fitted.edges_[:, None] - confidence).min(axis=1)
    assert distance.min() > 0.9e-6


@pytest.mark.filterwarnings("ignore:The labels agree with the logits no better")
def test_a_count_that_no_row_of_the_fit_had_lies_on_no_edge():
    shares = np.repeat([0.5, 0.6, 0.7, 0.8, 0.9], 40)
    probs = np.column_stack([shares, 1 - shares])
    cal = BinwiseTemperatureScaling(bins=6).fit(np.log(probs), np.arange(200) % 3 > 1)
    between = np.array([0.55, 0.65, 0.75, 0.85])  # midway: one vote more or less in a prediction
    assert np.abs(cal.edges_[:, None] - between).min() > 1e-3


def test_float32_gives_the_temperatures_of_float64(votes, fitted):
    logits = votes[0]
    np.testing.assert_allclose(
        fitted.temperature(logits.astype(np.float32)), fitted.temperature(logits), rtol=1e-5
    )
    single = BinwiseTemperatureScaling(bins=15).fit(logits.astype(np.float32), votes[1])
    np.testing.assert_allclose(single.temperature(logits), fitted.temperature(logits), rtol=1e-3)


def test_pytorch_agrees_on_every_row(votes, fitted):
    torch = pytest.importorskip("torch")
    module = fitted.to_torch()
    for dtype in (torch.float32, torch.float64):
        with torch.no_grad():
            probs = torch.softmax(module(torch.tensor(votes[0], dtype=dtype)), dim=1).numpy()
        np.testing.assert_allclose(probs, fitted.predict_proba(votes[0]), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_agrees_on_every_row(votes, fitted, tmp_path, dtype):
    runtime = pytest.importorskip("onnxruntime")
    fitted.to_onnx(tmp_path / "bts.onnx", dtype=dtype)
    session = runtime.InferenceSession(tmp_path / "bts.onnx")
    (probs,) = session.run(None, {"logits": votes[0].astype(dtype)})
    np.testing.assert_allclose(probs, fitted.predict_proba(votes[0]), atol=1e-5)


def test_parts_of_a_dask_array_give_the_same_edges(votes, fitted):
    arrays = pytest.importorskip("dask.array")
    logits, labels = (arrays.from_array(values, chunks=len(values) // 3 + 1) for values in votes)
    cal = BinwiseTemperatureScaling(bins=15).fit(logits, labels)
    np.testing.assert_allclose(cal.edges_, fitted.edges_, atol=1e-9)
    np.testing.assert_allclose(cal.temperatures_, fitted.temperatures_, rtol=1e-5)


def test_numbers_that_differ_by_rounding_are_one_quantile():
    values = np.array([0.1, 0.1 + 1e-16, 0.1 + 3e-16, 0.5, 0.5 + 1e-16, 0.9])
    found = quantiles(values, None, np.array([1, 2, 3, 4, 5]) / 6, tie=1e-6)
    np.testing.assert_array_equal(found.values, values[[2, 2, 2, 4, 4]])
    np.testing.assert_array_equal(found.following, values[[3, 3, 3, 5, 5]])


def test_parts_find_the_same_tied_quantiles_as_the_whole():
    rng = np.random.default_rng(0)
    values = rng.integers(1, 40_000, 60_000) / 40_000 + rng.uniform(-1e-7, 1e-7, 60_000)
    shares = np.arange(1, 20) / 20
    whole = quantiles(values, None, shares, tie=1e-6)
    parts = np.array_split(values, 3)
    brackets = make_brackets([Sketch.of(part, None) for part in parts], shares, tie=1e-6)
    assert brackets.found is None
    found = resolve([values_in_brackets(part, None, brackets) for part in parts], brackets)
    np.testing.assert_array_equal([found.values, found.following], [whole.values, whole.following])
    assert (whole.following - whole.values).min() > 2e-5
