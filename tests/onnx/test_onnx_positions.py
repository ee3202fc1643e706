"""The model of a calibrator of positions takes any number of columns."""

import numpy as np
import pytest
from compared import ANY_COLUMNS
from onnx_models import linear_classifier, serve

from temperance import make_calibrator
from temperance.data import simulate


@pytest.mark.parametrize("key", ANY_COLUMNS)
def test_onnxruntime_agrees_for_any_number_of_columns(key, tmp_path):
    task = simulate(n_rows=300, n_classes=4, random_state=0)
    cal = make_calibrator(key).fit(task.logits, task.labels, positions=True)
    cal.to_onnx(tmp_path / "cal.onnx", dtype="float64")
    for n_options in (2, 3, 4, 6):
        z = 3 * np.random.default_rng(n_options).normal(size=(30, n_options))
        z[::5, 0] = -np.inf
        z[1] *= 1e4  # beyond the lowest entropy
        np.testing.assert_allclose(serve(tmp_path / "cal.onnx", z), cal.predict_proba(z), atol=1e-12)
    assert serve(tmp_path / "cal.onnx", np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("n_columns", [5, "options"])
def test_a_scorer_of_any_number_of_options_is_calibrated(n_columns, tmp_path):
    """The model behind the logits may have more options than the fit, and need not say how many."""
    task = simulate(n_rows=300, n_classes=4, random_state=0)
    cal = make_calibrator("hts").fit(task.logits, task.labels, positions=True)
    weights = np.random.default_rng(0).normal(size=(3, 5))
    classifier = linear_classifier(tmp_path / "scorer.onnx", weights, n_columns=n_columns)
    cal.to_onnx(tmp_path / "cal.onnx", model=classifier)
    images = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    got = serve(tmp_path / "cal.onnx", images)
    np.testing.assert_allclose(got, cal.predict_proba(images @ weights.astype(np.float32)), atol=1e-5)
