"""An adapted calibrator survives its file."""

import json

import numpy as np
import pytest
from compared import COMPARED

from temperance import load, serving

PRIORS = np.array([0.7, 0.1, 0.15, 0.05])


@pytest.mark.parametrize("method", COMPARED)
def test_an_adapted_calibrator_is_read_back_bit_for_bit(method, task, fitted, tmp_path):
    for name, adapted in (
        ("given", fitted(method).adapt(priors=PRIORS)),
        ("estimated", fitted(method).adapt(task.logits[task.labels != 1])),
    ):
        adapted.save(tmp_path / f"{name}.json")
        back = load(tmp_path / f"{name}.json")
        np.testing.assert_array_equal(back.log_prior_ratio_, adapted.log_prior_ratio_)
        np.testing.assert_array_equal(back.model_.frequency_errors, adapted.model_.frequency_errors)
        assert back.model_.adaptation_rows == adapted.model_.adaptation_rows
        np.testing.assert_array_equal(back.predict_proba(task.logits), adapted.predict_proba(task.logits))
        np.testing.assert_array_equal(back.transform(task.logits), adapted.transform(task.logits))
        served = serving.load(tmp_path / f"{name}.json").predict_proba(task.logits)
        assert served.tobytes() == back.predict_proba(task.logits).tobytes()
        assert back.summary() == adapted.summary()
        assert "adapted to class frequencies: " in back.summary()


def test_an_adapted_file_without_class_counts_still_works(task, fitted, tmp_path):
    path = tmp_path / "cal.json"
    adapted = fitted("ts").adapt(priors=PRIORS)
    adapted.save(path)
    content = json.loads(path.read_text())
    del content["fit"]["class_counts"]
    path.write_text(json.dumps(content))
    np.testing.assert_array_equal(load(path).predict_proba(task.logits), adapted.predict_proba(task.logits))
    assert "adapted to class frequencies that differ from the fit's" in load(path).summary()


def test_another_adaptation_keeps_no_unknown_field_of_the_first(fitted, tmp_path):
    path = tmp_path / "cal.json"
    fitted("ts").adapt(priors=PRIORS).save(path)
    content = json.loads(path.read_text())
    content["adaptation"]["later"] = content["fit"]["later"] = "text"
    path.write_text(json.dumps(content))
    load(path).adapt(priors=PRIORS).save(path, overwrite=True)
    again = json.loads(path.read_text())
    assert "later" not in again["adaptation"]
    assert again["fit"]["later"] == "text"


@pytest.mark.parametrize("adapted", [False, True])
def test_a_calibrator_from_a_file_can_be_adapted_or_adapted_again(adapted, task, fitted, tmp_path):
    cal = fitted("ts")
    (cal.adapt(priors=PRIORS[::-1]) if adapted else cal).save(tmp_path / "cal.json")
    back = load(tmp_path / "cal.json")
    np.testing.assert_array_equal(back.class_counts_, cal.class_counts_)
    for arguments in ({"logits": task.logits}, {"priors": PRIORS}):
        wanted = cal.adapt(**arguments).log_prior_ratio_
        np.testing.assert_array_equal(back.adapt(**arguments).log_prior_ratio_, wanted)
