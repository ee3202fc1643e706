"""onnxruntime gives the library's probabilities, whatever the logits."""

import numpy as np
import pytest
from onnx_models import serve, session

from temperance import TemperatureScaling, make_calibrator
from temperance.data import simulate
from temperance.errors import InputError

# What was measured is in docs/onnx.md.
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def extreme_rows(n_rows, n_classes, dtype=np.float64, seed=0):
    """Return logits with gaps from 0.01 to 1e4; in half of the rows some classes are close to the top."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-0.5, 0.5, (n_rows, n_classes)) * 10 ** rng.uniform(-2, 4, (n_rows, 1))
    near = (rng.random((n_rows, n_classes)) < 0.3) & (np.arange(n_rows) % 2 == 0)[:, None]
    top = z.max(axis=1, keepdims=True)
    return np.where(near, top + rng.standard_normal((n_rows, n_classes)), z).astype(dtype)


@pytest.fixture
def model_of(calibrator_of, tmp_path):
    """Write the calibrator of a name and return it with the path of its model."""

    def of(name, n_classes=10, dtype="float32"):
        cal = calibrator_of(name, n_classes)
        path = tmp_path / "cal.onnx"
        cal.to_onnx(path, dtype=dtype, overwrite=True)
        return cal, path

    return of


def agree(cal, path, z, dtype="float32"):
    """Assert that the model returns the library's probabilities and predicted classes."""
    z = z.astype(dtype)
    got, wanted = serve(path, z), cal.predict_proba(z)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(got.sum(axis=1), 1, rtol=0, atol=1e-5)
    at = np.arange(len(z))
    np.testing.assert_array_less(got.max(axis=1) - got[at, cal.predict(z)], 1e-6)
    return got


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_ten_thousand_rows_with_gaps_up_to_1e4(name, dtype, model_of):
    cal, path = model_of(name, 10, dtype)
    z = extreme_rows(10_000, 10)
    assert 9_000 < np.ptp(z, axis=1).max() <= 10_010
    got = agree(cal, path, z, dtype)
    decided = np.diff(np.partition(cal.predict_proba(z), -2)[:, -2:])[:, 0] > 1e-4
    np.testing.assert_array_equal(got.argmax(axis=1)[decided], cal.predict(z.astype(dtype))[decided])


def test_rows_of_equal_logits_and_of_two_at_the_top(name, model_of):
    cal, path = model_of(name)
    z = np.zeros((4, 10))
    z[1, [3, 7]] = 5.0
    z[2, [0, 9]] = 1e4
    z[3] = -1e4
    got = agree(cal, path, z)
    if "bias" not in name:  # whose offsets part them
        np.testing.assert_allclose(got[[0, 3]], 0.1, atol=1e-6)
        np.testing.assert_array_equal(got[1, 3], got[1, 7])


def test_a_constant_added_to_a_row_changes_nothing(name, model_of):
    _, path = model_of(name, 10)
    z = np.round(extreme_rows(200, 10) * 4) / 4
    shifted = (z + 4096.0).astype(np.float32)
    np.testing.assert_array_equal(shifted - np.float32(4096), z)  # no digit of it is lost
    np.testing.assert_allclose(serve(path, shifted), serve(path, z.astype(np.float32)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_an_impossible_class_has_the_probability_0_or_the_row_is_nan(name, dtype, model_of):
    cal, path = model_of(name, 10, dtype)
    z = extreme_rows(1000, 10)
    masked = np.random.default_rng(3).random(z.shape) < np.linspace(0, 1, 1000)[:, None]
    masked[np.arange(1000), z.argmax(axis=1)] = False
    assert masked.sum(axis=1).max() == 9  # a single possible class
    z = np.where(masked, -np.inf, z)
    if not cal.supports_masked_classes:  # the library refuses such rows
        got = serve(path, z.astype(dtype))
        np.testing.assert_array_equal(np.isnan(got), np.broadcast_to(masked.any(axis=1)[:, None], z.shape))
        return
    got = agree(cal, path, z, dtype)
    # In float32 it is 0; in float64 old runtimes leave something that small.
    assert (got[masked].astype(np.float64) < 1e-300).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n_classes", [3, 33])
@pytest.mark.parametrize("mask", [-np.inf, -1e9])
def test_every_kind_of_class_bias_agrees_where_classes_are_impossible(n_classes, mask, dtype, model_of):
    cal, path = model_of("bayes, biases mixed in", n_classes, dtype)
    z = extreme_rows(400, n_classes)
    masked = np.random.default_rng(3).random(z.shape) < np.linspace(0, 1, 400)[:, None]
    masked[np.arange(400), z.argmax(axis=1)] = False
    got = agree(cal, path, np.where(masked, mask, z), dtype)
    if np.isneginf(mask):
        assert (got[masked].astype(np.float64) < 1e-300).all()


@pytest.mark.parametrize("n_classes", [2, 3, 40])
def test_few_classes_and_many(name, n_classes, model_of):
    agree(*model_of(name, n_classes), extreme_rows(500, n_classes))


@pytest.mark.parametrize("key", ["ts", "hts", "pts", "bts", "ets", "bayes"])
def test_a_thousand_classes(key, model_of):
    agree(*model_of(key, 1000), extreme_rows(200, 1000))


def test_a_row_is_the_same_in_any_batch_and_nan_stays_in_its_own_row(name, model_of):
    cal, path = model_of(name)
    z = extreme_rows(50, 10, np.float32)
    running = session(path)
    for _ in range(3):  # the runtime plans its memory by the run before
        np.testing.assert_allclose(running.run(None, {"logits": z})[0], serve(path, z), rtol=0, atol=1e-7)
    for size in (1, 2, 7):
        parts = [running.run(None, {"logits": z[i : i + size]})[0] for i in range(0, 50, size)]
        np.testing.assert_allclose(serve(path, z), np.concatenate(parts), rtol=0, atol=1e-6)
    assert serve(path, z[:0]).shape == (0, 10)
    z[1, 4] = np.nan
    got = serve(path, z)
    assert np.isnan(got[1]).all()
    assert np.isfinite(np.delete(got, 1, axis=0)).all()
    agree(cal, path, simulate(n_rows=2000, n_classes=10, random_state=2).logits)  # as those of the fit


@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_pixels_keep_their_axes(name, output, calibrator_of, tmp_path):
    cal, path = calibrator_of(name, 10), tmp_path / "cal.onnx"
    cal.to_onnx(path, dim=1, output=output)
    for n, height, width in ((7, 4, 5), (1, 1, 1), (2, 9, 1)):
        z = extreme_rows(n * height * width, 10, np.float32).reshape(n, height, width, 10)
        z = np.ascontiguousarray(np.moveaxis(z, -1, 1))
        got = serve(path, z)
        wanted = cal.predict_proba(z, dim=1) if output == "probabilities" else cal.transform(z, dim=1)
        assert got.shape == z.shape
        scale = 1 if output == "probabilities" else max(1, np.abs(wanted[np.isfinite(wanted)]).max())
        np.testing.assert_allclose(got, wanted, rtol=0, atol=scale * TOLERANCE["float32"])


def test_the_axis_of_the_fit_is_the_default_and_others_are_refused(tmp_path):
    task = simulate(n_rows=200, n_classes=3)
    pixels = task.logits.reshape(5, 8, 5, 3).transpose(0, 3, 1, 2).astype(np.float32)
    cal = TemperatureScaling().fit(pixels, task.labels.reshape(5, 8, 5), dim=1)
    cal.to_onnx(tmp_path / "cal.onnx")
    np.testing.assert_allclose(serve(tmp_path / "cal.onnx", pixels), cal.predict_proba(pixels), atol=1e-6)
    cal.to_onnx(tmp_path / "rows.onnx", dim=-1)
    rows = pixels[:, :, 0, 0]
    np.testing.assert_allclose(serve(tmp_path / "rows.onnx", rows), cal.predict_proba(rows), atol=1e-6)
    with pytest.raises(InputError, match="dim must be 1 in a model for pixels"):
        cal.to_onnx(tmp_path / "other.onnx", dim=2)
    options = TemperatureScaling().fit(task.logits, task.labels, positions=True)
    with pytest.raises(InputError, match="found 1 for positions"):
        options.to_onnx(tmp_path / "other.onnx", dim=1)
    with pytest.raises(InputError, match="dim is for a calibrator alone"):
        cal.to_onnx(tmp_path / "other.onnx", dim=1, model=tmp_path / "cal.onnx")


@pytest.mark.parametrize("key", ["bayes", "bayes-bias"])
def test_classes_that_tie_in_float32_are_those_of_float32_rows(key, tmp_path):
    """As votes of a forest do, whose sums differ in the last digit; docs/onnx.md says so."""
    task = simulate(n_rows=2000, n_classes=3, class_spread=1.0, random_state=3)
    cal = make_calibrator(key).fit(task.logits, task.labels)
    rows = np.array([[1.0, 1.0 + 1e-12, 0.0], [0.5, -1.0, 0.5 + 1e-12]])
    tied = rows.astype(np.float32)
    for dtype, wanted in (("float32", cal.predict_proba(tied)), ("float64", cal.predict_proba(rows))):
        cal.to_onnx(tmp_path / "cal.onnx", dtype=dtype, overwrite=True)
        found = serve(tmp_path / "cal.onnx", rows.astype(dtype))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    assert np.abs(cal.predict_proba(tied) - cal.predict_proba(rows)).max() > 1e-3
