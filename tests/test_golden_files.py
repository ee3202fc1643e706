"""Calibrator files of format version 1, one for every method, load and predict what they always did.

The files were written by version 0.1.0 and are never rewritten. The last bits of `exp` differ between
processors, so they are left open.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import temperance

FOLDER = Path(__file__).resolve().parent / "data" / "v1"
STORED = json.loads((FOLDER / "predictions.json").read_text())
LOGITS = np.array(STORED["logits"])


def test_every_method_that_can_be_saved_has_a_golden_file():
    saved = {json.loads((FOLDER / f"{name}.json").read_text())["method"] for name in STORED["expected"]}
    assert saved == {"ts", "lts", "hts", "hnlts", "pts", "bts", "ets", "bayes"}


@pytest.mark.parametrize("name", STORED["expected"])
def test_an_old_file_predicts_as_it_did(name):
    cal = temperance.load(FOLDER / f"{name}.json")
    expected = STORED["expected"][name]
    for method in ("predict_proba", "transform", "temperature"):
        if method in expected:
            got = getattr(cal, method)(LOGITS)
            np.testing.assert_allclose(got, expected[method], rtol=4e-15, atol=1e-300, err_msg=method)
    single = cal.predict_proba(LOGITS.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected["predict_proba_float32"], rtol=2e-6, atol=1e-38)


@pytest.mark.parametrize("name", STORED["expected"])
def test_an_old_file_says_what_it_is(name):
    cal = temperance.load(FOLDER / f"{name}.json")
    assert "4 classes, fitted on 400 rows" in cal.summary()
