"""A calibrator that loads also predicts: every field of its file is checked, for every method."""

import json

import numpy as np
import pytest

import temperance
from temperance import CALIBRATORS, InputError
from temperance.population import read_population, weak_population, write_population
from temperance.study import Results
from temperance.study.results import example_results
from temperance.study.store import FILE_NAME

METHODS = [key for key in CALIBRATORS if not key.endswith("sgd") and key != "pts-plain"]


@pytest.fixture(params=METHODS)
def key(request):
    return request.param


@pytest.fixture
def changed(tmp_path, fitted):
    """Return a function that changes the file of a method and loads it."""

    def load(key, change):
        path = tmp_path / "cal.json"
        fitted(key).save(path, overwrite=True)
        content = json.loads(path.read_text())
        change(content)
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

            def change(content, name=name, place=place):
                holder, last = content["parameters"], name
                for step in place:
                    holder, last = holder[last], step
                holder[last] = number

            try:
                calibrator = changed(key, change)
            except InputError:
                refused += 1
            else:
                works(calibrator, task)
    assert refused or number != 1e308


def test_standard_errors_may_be_absent_only_where_nothing_needs_them(key, changed, task):
    def change(content):
        content["standard_errors"] = {}

    if key in ("mono", "bayes", "bayes-bias"):  # whose summaries show them
        with pytest.raises(InputError, match="its numbers must work together; found KeyError"):
            changed(key, change)
    else:
        works(changed(key, change), task)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("classes", 10**9, "classes must be a whole number and at most 1000000; found 1000000000"),
        ("classes", 10**300, "at most 1000000"),
        ("temperature_quantiles", [1.0, -1.0, 2.0], "temperature_quantiles must lie between"),
        ("temperature_quantiles", [3.0, 2.0, 1.0], "temperature_quantiles must not decrease"),
    ],
)
def test_fields_other_than_the_parameters_are_checked(place, value, words, changed):
    def change(content):
        (content if place == "classes" else content["fit"])[place] = value

    with pytest.raises(InputError, match=words):
        changed("ts", change)


def test_a_centre_beyond_all_features_is_refused(changed):
    def change(content):
        content["parameters"]["centre"][0] = 1e308

    with pytest.raises(InputError, match=r"centre must be <= 1e\+30; found 1e\+308"):
        changed("bayes", change)


@pytest.mark.parametrize("name", ["freedom", "intercept_scale", "class_scale"])
@pytest.mark.parametrize("number", [1e7, 1e308, 1e-7, 5e-324])
def test_a_prior_beyond_all_temperatures_is_refused(name, number, tmp_path):
    path = tmp_path / "prior.json"
    write_population(weak_population(), path)
    read_population(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: number}))
    with pytest.raises(InputError, match=rf"prior\.json: holds no prior .*{name} must be .* to 1e\+06"):
        read_population(path)


def test_a_wide_posterior_has_a_summary_and_an_impossible_one_is_refused(changed):
    def change(number, place):
        def edit(content):
            content[place]["coefficients"][0] = number

        return edit

    assert "T of a typical row" in changed("bayes", change(1e29, "parameters")).summary()
    assert "T of a typical row" in changed("bayes", change(1e29, "standard_errors")).summary()
    with pytest.raises(InputError, match=r"standard error of coefficients must be <= 1e\+30; found 1e\+308"):
        changed("bayes", change(1e308, "standard_errors"))


def test_a_store_of_which_sqlite_says_what_is_no_text_is_refused(tmp_path):
    results = example_results()
    content = (results.folder / FILE_NAME).read_bytes()
    assert b"PRIMARY KEY (task, n, draw, method)" in content
    (tmp_path / FILE_NAME).write_bytes(
        content.replace(b"PRIMARY KEY (task, n, draw, method)", b"PRIMARY KEY (task, n, draw, m\xe0tho\xe4)")
    )
    with pytest.raises(InputError, match="must be the store of a study; it cannot be read"):
        Results(tmp_path)


@pytest.mark.parametrize("weight", [-0.1, 1.0])
def test_a_uniform_weight_that_no_fit_gives_is_refused(weight, changed):
    with pytest.raises(InputError, match="uniform_weight must be from 0 to below 1"):
        changed("bayes", lambda content: content["parameters"].update(uniform_weight=weight))
