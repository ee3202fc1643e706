"""Stored calibrator files, one for every method, load and predict the same as ever.

No file is ever rewritten; `python tests/calibrator_file/test_golden_files.py` writes those that are missing.
The last bits of `exp` differ between processors, so they are left open, and so are probabilities of 1e-5 that
`bayes` gives to classes far below the top: their equal shares were once unequal by 1e-11.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import temperance
from temperance import CALIBRATORS
from temperance.data import simulate

DATA = Path(__file__).resolve().parent / "data"
STORED = {version: json.loads((DATA / version / "predictions.json").read_text()) for version in ("v2", "v3")}
EACH_FILE = pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in STORED for name in STORED[version]["expected"]]
)
OUTPUTS = ("predict_proba", "transform", "temperature")
# A file has the key of its method, except for those of `bayes`.
SAVED = [key for key, method in CALIBRATORS.items() if not method.options and key != "bayes"]
KEYS = {key: key for key in SAVED} | dict.fromkeys(["bayes-map", "bayes-map-auto", "bayes-map-bias"], "bayes")
RTOL = dict.fromkeys(["bayes-map", "bayes-map-auto", "bayes-map-bias"], 1e-11)
OPTIONS = {
    "bts": {"bins": 8},
    "bayes-map-auto": {"class_bias": "auto"},
    "bayes-map-bias": {"class_bias": True},
}


def test_every_method_that_can_be_saved_has_a_golden_file():
    for version, stored in STORED.items():
        assert set(KEYS) == set(stored["expected"])
        for name, key in KEYS.items():
            content = json.loads((DATA / version / f"{name}.json").read_text())
            assert (content["method"], f"v{content['version']}") == (key, version)


@EACH_FILE
def test_a_golden_file_predicts_as_it_did_and_says_what_it_is(version, name):
    cal = temperance.load(DATA / version / f"{name}.json")
    logits, expected = np.array(STORED[version]["logits"]), STORED[version]["expected"][name]
    for method in OUTPUTS:
        if method in expected:
            got = getattr(cal, method)(logits)
            np.testing.assert_allclose(
                got, expected[method], rtol=RTOL.get(name, 2e-14), atol=1e-300, err_msg=method
            )
    single = cal.predict_proba(logits.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected["predict_proba_float32"], rtol=2e-6, atol=1e-38)
    assert "4 classes, fitted on 400 rows" in cal.summary()
    assert "fitted on logits, 2026-01-01, temperance" in cal.summary()


@EACH_FILE
def test_a_golden_file_is_saved_again_as_it_is_in_the_present_version(version, name, tmp_path):
    path = DATA / version / f"{name}.json"
    temperance.load(path).save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text()) | {"version": 3}


def test_the_positive_class_is_stored_and_unknown_of_older_files():
    assert temperance.load(DATA / "v3" / "ts.json").positive_ == 2
    assert not hasattr(temperance.load(DATA / "v2" / "ts.json"), "positive_")


def write_missing_files():
    """Write files of the present version, and what they predict, for methods that have none yet."""
    os.environ["SOURCE_DATE_EPOCH"] = "1767225600"
    folder, stored = DATA / "v3", STORED["v3"]
    task, logits = simulate(n_rows=400, n_classes=4, random_state=7), np.array(stored["logits"])
    for name, key in KEYS.items():
        path = folder / f"{name}.json"
        if path.exists():
            continue
        cal = temperance.make_calibrator(key, **OPTIONS.get(name, {}))
        cal.fit(task.logits, task.labels, np.arange(400) % 3, positive=2)
        cal.save(path, metadata={"classifier": "simulated", "layers": [4, 4], "public": True})
        outputs = {
            method: getattr(cal, method)(logits)
            for method in OUTPUTS
            if method != "temperature" or hasattr(cal, "temperature_quantiles_")
        }
        outputs["predict_proba_float32"] = cal.predict_proba(logits.astype(np.float32))
        stored["expected"][name] = {method: values.tolist() for method, values in outputs.items()}
    (folder / "predictions.json").write_text(json.dumps(stored) + "\n")


if __name__ == "__main__":
    write_missing_files()
