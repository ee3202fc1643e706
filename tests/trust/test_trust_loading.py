"""A calibrator that loads also predicts: every field of its file is checked, for every method."""

import json
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from fuzz_cases import METHODS

import temperance
from temperance import InputError
from temperance.study import Results
from temperance.study.results import example_results
from temperance.study.store import FILE_NAME


@pytest.fixture(params=METHODS)
def key(request):
    return request.param


@pytest.fixture
def changed(tmp_path, fitted):
    """Return a function that changes one value in the file of a method and loads it."""

    def load(key, *place, value):
        path = tmp_path / "cal.json"
        fitted(key).save(path, overwrite=True)
        content = json.loads(path.read_text())
        reduce(getitem, place[:-1], content)[place[-1]] = value
        path.write_text(json.dumps(content))
        return temperance.load(path)

    return load


def works(calibrator, task):
    """Assert that a loaded calibrator predicts, describes itself and can be saved."""
    probs = calibrator.predict_proba(task.logits)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-6)
    assert calibrator.summary()


def places(value, where=()):
    """Yield the place of the first and the last number of each array."""
    if isinstance(value, list):
        for i in {0, len(value) - 1}:
            yield from places(value[i], (*where, i))
    else:
        yield where


@pytest.mark.parametrize("number", [1e308, pytest.param(0.0, marks=pytest.mark.slow), -1.0, 1e-320])
def test_a_file_with_one_changed_number_is_refused_or_works(number, key, changed, task, fitted):
    refused = 0
    for name, array in fitted(key).parameters().items():
        for place in places(array.tolist()):
            try:
                calibrator = changed(key, "parameters", name, *place, value=number)
            except InputError:
                refused += 1
            else:
                works(calibrator, task)
    assert refused or number != 1e308


def test_standard_errors_may_be_absent(key, changed, task):
    works(changed(key, "standard_errors", value={}), task)


@pytest.mark.parametrize("part", ["parameters", "standard_errors"])
def test_a_wide_posterior_has_a_summary(part, changed):
    assert "T of a typical row" in changed("bayes", part, "coefficients", 0, value=1e29).summary()


def test_a_store_of_which_sqlite_says_what_is_no_text_is_refused(tmp_path):
    results = example_results()
    content = (results.folder / FILE_NAME).read_bytes()
    assert b"PRIMARY KEY (task, n, draw, method)" in content
    (tmp_path / FILE_NAME).write_bytes(
        content.replace(b"PRIMARY KEY (task, n, draw, method)", b"PRIMARY KEY (task, n, draw, m\xe0tho\xe4)")
    )
    with pytest.raises(InputError, match="must be the store of a study; it cannot be read"):
        Results(tmp_path)
