"""The graph of a calibrator of probabilities takes probabilities: logarithm and floor are in it."""

import warnings
from dataclasses import replace

import numpy as np
import onnx
import pytest
from compared import CLASS_KEEPING
from onnx_models import serve

import temperance
from temperance import InputError, make_calibrator
from temperance.data import simulate

TASK = simulate(n_rows=600, n_classes=4, random_state=2)
PROBS = np.exp(TASK.logits - TASK.logits.max(axis=1, keepdims=True))
PROBS /= PROBS.sum(axis=1, keepdims=True)
PROBS = np.where(PROBS < 0.003, 0, PROBS)
PROBS /= PROBS.sum(axis=1, keepdims=True)
KEYS = [*CLASS_KEEPING, "bayes-bias"]
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def fitted(key, probs=PROBS, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge")
        return make_calibrator(key).fit(probs, TASK.labels, from_probs=True, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("key", KEYS)
def test_it_gives_what_predict_proba_gives(key, dtype, tmp_path):
    cal, path = fitted(key), tmp_path / "cal.onnx"
    cal.to_onnx(path, dtype=dtype)
    rows = PROBS.astype(dtype)
    found = serve(path, rows)
    np.testing.assert_allclose(found, cal.predict_proba(rows, from_probs=True), rtol=0, atol=TOLERANCE[dtype])
    # Before, the graph took the logarithms: fed with probabilities, it was far off.
    as_logits = cal.predict_proba(rows, from_probs=False)
    assert np.abs(found - as_logits).max() > 0.2


@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_its_names_and_its_metadata_say_what_it_takes_and_gives(output, tmp_path):
    for cal, takes in (
        (fitted("ts"), "probabilities"),
        (make_calibrator("ts").fit(TASK.logits, TASK.labels), "logits"),
    ):
        cal.to_onnx(tmp_path / "cal.onnx", output=output, overwrite=True)
        model = onnx.load(tmp_path / "cal.onnx")
        (given,), (made,) = model.graph.input, model.graph.output
        assert given.name == takes
        assert made.name == (
            "probabilities" if output != takes and output != "logits" else f"calibrated_{output}"
        )
        assert {one.key: one.value for one in model.metadata_props}["temperance.input"] == takes


def test_rows_are_divided_by_their_sum_where_those_of_the_fit_were(tmp_path):
    percent = (100 * PROBS).round()
    cal = fitted("bayes", percent, renormalise=True)
    cal.to_onnx(tmp_path / "cal.onnx")
    found = serve(tmp_path / "cal.onnx", percent.astype(np.float32))
    np.testing.assert_allclose(found, cal.predict_proba(percent, from_probs=True), atol=1e-5)


def test_pixels_of_probabilities(tmp_path):
    cal = fitted("bayes")
    pixels = PROBS.astype(np.float32).reshape(2, 15, 20, 4).transpose(0, 3, 1, 2)
    cal.to_onnx(tmp_path / "cal.onnx", dim=1)
    found = serve(tmp_path / "cal.onnx", pixels)
    wanted = cal.predict_proba(PROBS, from_probs=True).reshape(2, 15, 20, 4).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_calibrator_without_a_floor_keeps_0_impossible(tmp_path):
    cal = fitted("bayes")
    record = replace(cal.model_.record, fitted_on=replace(cal.fitted_on_, floor=None))
    cal.model_ = replace(cal.model_, record=record)
    cal.to_onnx(tmp_path / "cal.onnx")
    found = serve(tmp_path / "cal.onnx", PROBS.astype(np.float32))
    np.testing.assert_allclose(found, cal.predict_proba(PROBS, from_probs=True), atol=1e-5)
    assert (found[PROBS == 0] == 0).all()


def test_numbers_that_are_no_probabilities_give_nan_in_their_row(tmp_path):
    cal = fitted("bayes")
    cal.to_onnx(tmp_path / "cal.onnx")
    rows = np.array([[-1, 1, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]], np.float32)
    found = serve(tmp_path / "cal.onnx", rows)
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()
    with pytest.raises(InputError, match="rows sum to 1"):
        cal.predict_proba(rows, from_probs=True)


def test_the_file_of_a_calibrator_knows_it_too(tmp_path):
    fitted("bayes-bias").save(tmp_path / "cal.json")
    cal = temperance.load(tmp_path / "cal.json")
    cal.to_onnx(tmp_path / "cal.onnx")
    found = serve(tmp_path / "cal.onnx", PROBS.astype(np.float32))
    np.testing.assert_allclose(found, cal.predict_proba(PROBS, from_probs=True), atol=1e-5)
