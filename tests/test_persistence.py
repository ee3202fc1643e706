"""A calibrator comes back from its file as it was, to the bit.

`python tests/test_persistence.py` rewrites the golden file; do so only together with a new format version.
"""

import json
import os
import pickle
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import temperance
from temperance import CALIBRATORS, EntropyTemperatureScaling, make_calibrator
from temperance.calibrators import TemperatureCalibrator
from temperance.data import simulate

DATA = Path(__file__).resolve().parent / "data"
GOLDEN, GOLDEN_PROBS = DATA / "hts-v1.json", DATA / "hts-v1-probabilities.json"
GOLDEN_LOGITS = np.array([[4.0, 1.0, 0.0], [0.5, 0.25, 0.0], [-3.0, 9.0, 2.0], [800.0, 0.0, -5.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_loaded_calibrator_gives_the_same_bits(method, dtype, task, fit, tmp_path):
    logits = task.logits.astype(dtype)
    cal = fit(method, logits, task.labels)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    assert type(loaded) is type(cal)
    for z in (logits, task.logits, task.logits.astype(np.float32)):
        np.testing.assert_array_equal(loaded.predict_proba(z), cal.predict_proba(z))
        np.testing.assert_array_equal(loaded.transform(z), cal.transform(z))
        if isinstance(cal, TemperatureCalibrator):
            np.testing.assert_array_equal(loaded.temperature(z), cal.temperature(z))
    for name, value in cal.parameters().items():
        np.testing.assert_array_equal(loaded.parameters()[name], value)
    for name, value in cal.standard_errors_.items():
        np.testing.assert_array_equal(loaded.standard_errors_[name], value)


def test_a_loaded_calibrator_tells_the_same_of_itself(method, fitted, tmp_path):
    fitted(method).save(tmp_path / "cal.json")
    loaded = temperance.load(str(tmp_path / "cal.json"))
    assert loaded.summary() == fitted(method).summary()
    assert loaded.get_params() == fitted(method).get_params()
    assert repr(loaded) == repr(fitted(method))
    assert (loaded.n_classes_, loaded.n_features_in_, loaded.n_rows_) == (4, 4, 300)
    assert loaded.solution_.value == fitted(method).solution_.value


def test_a_loaded_calibrator_saves_the_same_file(method, fitted, tmp_path):
    fitted(method).save(tmp_path / "first.json")
    temperance.load(tmp_path / "first.json").save(tmp_path / "second.json")
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_the_file_is_plain_json_that_names_its_format_and_method(method, fitted, tmp_path):
    fitted(method).save(tmp_path / "cal.json")
    content = json.loads((tmp_path / "cal.json").read_text(encoding="ascii"))
    assert content["format"] == "temperance calibrator"
    assert content["version"] == 2
    assert CALIBRATORS[content["method"]].build is type(fitted(method))
    assert content["classes"] == 4
    assert content["options"].keys() == fitted(method).get_params().keys()


def test_one_sided_and_not_converged_fits_are_saved_as_well(method, fit, task, tmp_path):
    right, wrong = task.logits.argmax(axis=1), task.logits.argmin(axis=1)
    # Rows all right are nothing special to a method with a prior.
    labels, said = (wrong, "wrong") if method == "bayes" else (right, "right")
    with pytest.warns(UserWarning, match=f"classified {said}"):
        cal = fit(method, task.logits, labels)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    np.testing.assert_array_equal(loaded.predict_proba(task.logits), cal.predict_proba(task.logits))


def test_options_that_are_numpy_numbers_are_saved_as_numbers(task, tmp_path):
    options = {"hidden": (np.int64(3),), "top_k": np.int32(2), "weight_decay": np.float64(20)}
    cal = make_calibrator("pts", random_state=np.int64(1), **options).fit(task.logits, task.labels)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    assert loaded.hidden == (3,)
    np.testing.assert_array_equal(loaded.predict_proba(task.logits), cal.predict_proba(task.logits))


def test_an_existing_file_is_kept_unless_told_otherwise(fitted, tmp_path):
    path = tmp_path / "cal.json"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"cal.json exists already.*overwrite=True"):
        fitted("ts").save(path)
    assert path.read_text() == "precious"
    fitted("ts").save(path, overwrite=True)
    assert temperance.load(path).temperature_ == fitted("ts").temperature_


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_crash_while_writing_leaves_the_old_file_and_nothing_else(fitted, tmp_path, step, error):
    path = tmp_path / "cal.json"
    fitted("ts").save(path)
    before = path.read_bytes()

    def crash(*args, **options):
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, crash)
        with pytest.raises(type(error)):
            fitted("hts").save(path, overwrite=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_permissions_of_the_file_are_those_of_any_new_file(fitted, tmp_path, umask):
    before = os.umask(umask)
    try:
        fitted("ts").save(tmp_path / "cal.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cal.json").stat().st_mode) == 0o666 & ~umask


def test_the_golden_file_gives_the_golden_probabilities():
    loaded = temperance.load(GOLDEN)
    assert isinstance(loaded, EntropyTemperatureScaling)
    expected = json.loads(GOLDEN_PROBS.read_text())
    # exp and log may differ in their last digits from one processor to another
    np.testing.assert_allclose(loaded.predict_proba(GOLDEN_LOGITS), expected, rtol=1e-12, atol=1e-300)
    assert "fitted on 400 rows" in loaded.summary()


def test_a_file_that_is_not_there_is_a_matter_for_the_operating_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        temperance.load(tmp_path / "nothing.json")


def test_clones_have_the_options_and_are_not_fitted(method, fitted):
    copy = clone(fitted(method))
    assert copy.get_params() == fitted(method).get_params()
    assert not hasattr(copy, "n_classes_")


def test_a_fit_leaves_the_options_alone(method, make, fitted):
    assert fitted(method).get_params() == make(method).get_params()


@pytest.mark.parametrize("method", ["bts", "ets", "pts", "hts", "bayes"])
def test_options_can_be_set_by_name(method):
    changes = {
        "bts": {"bins": 7},
        "ets": {"loss": "brier"},
        "pts": {"top_k": 3},
        "hts": {"solver": "sgd"},
        "bayes": {"class_bias": True, "prior": "weak"},
    }
    cal = make_calibrator(method).set_params(**changes[method])
    assert changes[method].items() <= cal.get_params().items()
    with pytest.raises(ValueError, match="colour"):
        cal.set_params(colour="blue")


def test_pickles_give_the_same_bits(method, fitted, task):
    copy = pickle.loads(pickle.dumps(fitted(method)))
    np.testing.assert_array_equal(copy.predict_proba(task.logits), fitted(method).predict_proba(task.logits))


def write_golden_files():
    task = simulate(n_rows=400, n_classes=3, random_state=1)
    cal = EntropyTemperatureScaling().fit(task.logits, task.labels)
    DATA.mkdir(exist_ok=True)
    cal.save(GOLDEN, overwrite=True)
    probs = cal.predict_proba(GOLDEN_LOGITS).tolist()
    GOLDEN_PROBS.write_text(json.dumps(probs, indent=1) + "\n")


if __name__ == "__main__":
    write_golden_files()
