"""The calibrator of CONTRIBUTING.md: a complete method in forty lines, which works in every framework."""

import re
from pathlib import Path

import numpy as np
import pytest

from temperance.calibrators.registry import CALIBRATORS, Method, MethodStyle
from temperance.data import simulate

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def method(request):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 45
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    names = {"__name__": "tutorial"}
    exec(compile(code, str(PAGE), "exec"), names)
    style = MethodStyle("CTS", "#000000", "o")
    return Method(
        "cts", names["ConfidenceTemperatureScaling"], style, formula_class=names["ConfidenceFormula"]
    )


@pytest.fixture(scope="module")
def task():
    return simulate(2000, 5, entropy_slope=0.3, random_state=1)


def test_it_fits_predicts_and_describes_itself(method, task):
    cal = method().fit(task.logits, task.labels)
    T = np.exp(cal.level_ + cal.slope_ * np.log(np.exp(-np.log1p(others(task.logits)))))
    np.testing.assert_allclose(cal.temperature(task.logits), T, rtol=1e-9)
    assert (cal.predict(task.logits) == task.logits.argmax(axis=1)).all()
    assert "slope = " in cal.summary()
    assert cal.solution_.converged


def others(z):
    """Return the sum of exp(z_k - max z) without the largest."""
    gaps = np.sort(z - z.max(axis=1, keepdims=True), axis=1)[:, :-1]
    return np.exp(gaps).sum(axis=1)


def test_it_is_saved_loaded_and_exported(method, task, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    onnxruntime = pytest.importorskip("onnxruntime")
    from temperance import load

    monkeypatch.setitem(CALIBRATORS, "cts", method)
    cal = method().fit(task.logits, task.labels)
    expected = cal.predict_proba(task.logits)
    cal.save(tmp_path / "cal.json")
    np.testing.assert_array_equal(load(tmp_path / "cal.json").predict_proba(task.logits), expected)
    tensor = cal.to_torch()(torch.from_numpy(task.logits))
    np.testing.assert_allclose(torch.softmax(tensor, -1), expected, atol=1e-12)
    cal.to_onnx(tmp_path / "cal.onnx", dtype="float64")
    session = onnxruntime.InferenceSession(str(tmp_path / "cal.onnx"))
    np.testing.assert_allclose(session.run(None, {"logits": task.logits})[0], expected, atol=1e-12)


def test_it_fits_the_parts_of_a_dask_array(method, task):
    da = pytest.importorskip("dask.array")
    whole = method().fit(task.logits, task.labels)
    parts = method().fit(da.from_array(task.logits, chunks=(700, 5)), task.labels)
    np.testing.assert_allclose([parts.level_, parts.slope_], [whole.level_, whole.slope_], rtol=1e-8)
