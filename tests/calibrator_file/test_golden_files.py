"""Calibrator files of every format version, one for every method, load and predict the same as ever.

Those of version 1 were written by version 0.1.0. No file is ever rewritten;
`python tests/calibrator_file/test_golden_files.py` writes those of version 2 that are missing. The last bits
of `exp` differ between processors, so they are left open.
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
VERSIONS = ("v1", "v2")
STORED = {version: json.loads((DATA / version / "predictions.json").read_text()) for version in VERSIONS}
FILES = [(version, name) for version in VERSIONS for name in STORED[version]["expected"]]
OUTPUTS = ("predict_proba", "transform", "temperature")
METHODS = {"ts", "lts", "hts", "hnlts", "pts", "bts", "ets", "bayes"}
NEW_METHODS = {"v1": set(), "v2": {"mono"}}
# The files `bayes` and `bayes-bias` are of the first edition of the method, which had no map.
KEYS = {name: name for name in ("ts", "lts", "hts", "hnlts", "pts", "bts", "ets", "mono")} | {
    "bayes-map": "bayes",
    "bayes-map-auto": "bayes",
    "bayes-map-bias": "bayes",
}
OPTIONS = {
    "bts": {"bins": 8},
    "bayes-map-auto": {"class_bias": "auto"},
    "bayes-map-bias": {"class_bias": True},
}


def assert_predicts_as_it_did(cal, version, name):
    logits, expected = np.array(STORED[version]["logits"]), STORED[version]["expected"][name]
    for method in OUTPUTS:
        if method in expected:
            got = getattr(cal, method)(logits)
            np.testing.assert_allclose(got, expected[method], rtol=2e-14, atol=1e-300, err_msg=method)
    single = cal.predict_proba(logits.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected["predict_proba_float32"], rtol=2e-6, atol=1e-38)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_method_that_can_be_saved_has_a_golden_file(version):
    contents = [
        json.loads((DATA / version / f"{name}.json").read_text()) for v, name in FILES if v == version
    ]
    assert {content["method"] for content in contents} == METHODS | NEW_METHODS[version]
    assert {f"v{content['version']}" for content in contents} == {version}


@pytest.mark.parametrize(("version", "name"), FILES)
def test_an_old_file_predicts_as_it_did(version, name):
    assert_predicts_as_it_did(temperance.load(DATA / version / f"{name}.json"), version, name)


@pytest.mark.parametrize(("version", "name"), FILES)
def test_an_old_file_says_what_it_is(version, name):
    summary = temperance.load(DATA / version / f"{name}.json").summary()
    assert "4 classes, fitted on 400 rows" in summary
    assert ("fitted on logits, 2026-01-01, temperance" in summary) == (version == "v2")


@pytest.mark.parametrize("name", STORED["v1"]["expected"])
def test_an_old_file_saved_again_is_of_the_new_version_and_predicts_the_same(name, tmp_path):
    path = DATA / "v1" / f"{name}.json"
    temperance.load(path).save(tmp_path / "new.json")
    old, new = (json.loads(file.read_text()) for file in (path, tmp_path / "new.json"))
    for content in (old, new):
        del content["fit"]["message"]  # its wording is not that of old versions
    assert new == old | {"version": 2}
    assert_predicts_as_it_did(temperance.load(tmp_path / "new.json"), "v1", name)


@pytest.mark.parametrize("name", STORED["v2"]["expected"])
def test_a_file_of_this_version_is_saved_again_as_it_is(name, tmp_path):
    path = DATA / "v2" / f"{name}.json"
    temperance.load(path).save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())


def write_missing_files():
    """Write files of the present version, and what they predict, for methods that have none yet."""
    os.environ["SOURCE_DATE_EPOCH"] = "1767225600"
    task, stored = simulate(n_rows=400, n_classes=4, random_state=7), STORED["v2"]
    logits = np.array(stored["logits"])
    for name, key in KEYS.items():
        path = DATA / "v2" / f"{name}.json"
        if path.exists():
            continue
        cal = temperance.make_calibrator(key, **OPTIONS.get(name, {}))
        cal.fit(task.logits, task.labels, np.arange(400) % 3)
        cal.save(path, metadata={"classifier": "simulated", "layers": [4, 4], "public": True})
        outputs = {
            method: getattr(cal, method)(logits)
            for method in OUTPUTS
            if method != "temperature" or CALIBRATORS[key].has_temperature
        }
        outputs["predict_proba_float32"] = cal.predict_proba(logits.astype(np.float32))
        stored["expected"][name] = {method: values.tolist() for method, values in outputs.items()}
    (DATA / "v2" / "predictions.json").write_text(json.dumps(stored) + "\n")


if __name__ == "__main__":
    write_missing_files()


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_class_bias_may_change_decisions_and_needs_every_class(version):
    old = temperance.load(DATA / f"v{version}" / "bayes-bias.json")
    logits = np.zeros((400, old.n_classes_), np.float64)
    logits[:] = np.random.default_rng(0).normal(scale=0.1, size=logits.shape)
    assert (old.predict(logits) != logits.argmax(axis=1)).any()
    np.testing.assert_array_equal(old.predict(logits), old.predict_proba(logits).argmax(axis=1))
    logits[3, 0] = -np.inf
    with pytest.raises(temperance.InputError, match="-inf"):
        old.predict_proba(logits)
