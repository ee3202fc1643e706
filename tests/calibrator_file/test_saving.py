"""A calibrator that is saved and loaded is the same to the bit."""

import json
import pickle
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import temperance
from temperance import CALIBRATORS, InputError, make_calibrator, serving
from temperance.calibrator_file import FIT
from temperance.data import simulate


def fitted_attributes(cal):
    """Return the public fitted attributes that a calibrator has, by name."""
    names = {name for name in {*dir(type(cal)), *vars(cal)} if name.endswith("_") and name[0] != "_"}
    return {name: getattr(cal, name) for name in sorted(names) if hasattr(cal, name)}


def assert_same(got, want, where):
    """Compare arrays, objects, mappings and plain values, to the bit."""
    if is_dataclass(want):
        for item in fields(want):
            assert_same(getattr(got, item.name), getattr(want, item.name), f"{where}.{item.name}")
    elif isinstance(want, dict | tuple | list):
        assert len(got) == len(want), where
        for key in want if isinstance(want, dict) else range(len(want)):
            assert_same(got[key], want[key], f"{where}[{key!r}]")
    else:
        np.testing.assert_array_equal(got, want, err_msg=where)


@pytest.mark.parametrize("key", [key for key in CALIBRATORS if not key.endswith("-sgd")])
def test_a_loaded_calibrator_has_every_fitted_attribute_of_the_saved_one(key, fitted, task, tmp_path):
    cal = fitted(key)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    want, got = (fitted_attributes(one) for one in (cal, loaded))
    assert want["n_parameters_"] > 0
    assert_same(got, want, key)
    assert type(loaded) is type(cal)
    copy = pickle.loads(pickle.dumps(cal))
    np.testing.assert_array_equal(copy.predict_proba(task.logits), cal.predict_proba(task.logits))
    for z in (task.logits, task.logits.astype(np.float32)):
        np.testing.assert_array_equal(loaded.transform(z), cal.transform(z))


def test_a_loaded_calibrator_says_and_saves_the_same_in_plain_json(method, make, fitted, tmp_path):
    cal = fitted(method)
    cal.save(tmp_path / "first.json")
    loaded = temperance.load(str(tmp_path / "first.json"))
    assert loaded.summary() == cal.summary()
    assert loaded.get_params() == cal.get_params() == make(method).get_params()
    assert repr(loaded) == repr(cal)
    loaded.save(tmp_path / "second.json")
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    content = json.loads((tmp_path / "first.json").read_text(encoding="ascii"))
    assert (content["format"], content["version"]) == ("temperance calibrator", 3)
    assert CALIBRATORS[content["method"]].build is type(cal)
    assert content["classes"] == 4
    assert content["options"].keys() == cal.get_params().keys()


@pytest.mark.filterwarnings("ignore:The labels agree with the logits no better")
def test_one_sided_and_not_converged_fits_are_saved_as_well(method, fit, task, tmp_path):
    right, wrong = task.logits.argmax(axis=1), task.logits.argmin(axis=1)
    # Rows all correct are nothing special to a method with a prior.
    labels, said = (wrong, "wrong") if method == "bayes" else (right, "correctly")
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


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_unknown_fields_are_kept(fitted, tmp_path):
    path = tmp_path / "cal.json"
    fitted("ts").save(path)
    content = json.loads(path.read_text())
    for place in ("fit", "fitted_on", "baseline"):
        content[place]["later"] = {"of": place, "numbers": [1, 2.5, None, True]}
    content["adaptation"] = {"log_prior_ratio": [0.1, 0.0, -0.1, 0.0], "rows": 7, "later": "text"}
    content["later"] = [{"x": 12345678901234567890}]
    edit(path, **content)
    loaded = temperance.load(path)
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == content
    assert loaded.temperature_ == fitted("ts").temperature_


def test_a_fit_forgets_the_notes_and_unknown_fields_of_a_loaded_file(fitted, task, tmp_path):
    path = tmp_path / "cal.json"
    fitted("ts").save(path, metadata={"a": 1})
    edit(path, later=1)
    again = temperance.load(path).fit(task.logits, task.labels)
    assert again.metadata_ == {}
    again.save(tmp_path / "again.json")
    assert "later" not in json.loads((tmp_path / "again.json").read_text())


def test_a_file_needs_none_of_the_optional_fields(method, fitted, task, tmp_path):
    path = tmp_path / "cal.json"
    fitted(method).save(path)
    content = json.loads(path.read_text())
    for name in ("fitted_on", "baseline"):
        del content[name]
    for field in FIT:
        if field.optional and field.name != "temperature_quantiles":
            content["fit"].pop(field.name, None)  # groups are in few files
    path.write_text(json.dumps(content))
    loaded = temperance.load(path)
    wanted = fitted(method).predict_proba(task.logits)
    np.testing.assert_array_equal(loaded.predict_proba(task.logits), wanted)
    assert not hasattr(loaded, "baseline_")
    assert not hasattr(loaded, "class_counts_")
    assert not hasattr(loaded, "n_parameters_")
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == content


def test_notes_of_the_user_are_kept_until_there_are_others(fitted, tmp_path):
    notes = {"classifier": "resnet50", "auc": np.float32(0.5), "layers": (3, 4), "more": {"n": None}}
    fitted("ts").save(tmp_path / "cal.json", metadata=notes)
    loaded = temperance.load(tmp_path / "cal.json")
    kept = notes | {"auc": 0.5, "layers": [3, 4]}
    assert loaded.metadata_ == kept
    for given, wanted in ((None, kept), ({"a": 1}, {"a": 1}), ({}, {})):
        loaded.save(tmp_path / "again.json", metadata=given, overwrite=True)
        assert temperance.load(tmp_path / "again.json").metadata_ == wanted


NESTED: dict[str, object] = {}
NESTED["self"] = NESTED


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        (NESTED, "must not be nested deeper than 32 levels"),
        (["a"], "metadata must be a mapping of names to values; found list"),
        ({"a": object()}, r"metadata.a must be a number, text, .* found object\. Convert it"),
        ({"a": {"b": float("nan")}}, "metadata.a.b must be finite; found nan"),
        ({"a": 10**400}, "metadata.a must be finite; found a whole number"),
        ({1: "a"}, "names in metadata must be text; found int"),
        ({"a": np.zeros(3)}, "metadata.a must be a number, text, .* found ndarray"),
    ],
)
def test_notes_that_json_cannot_hold_are_refused(fitted, tmp_path, notes, message):
    with pytest.raises(temperance.InputError, match=message):
        fitted("ts").save(tmp_path / "cal.json", metadata=notes)
    assert not list(tmp_path.iterdir())


def test_set_params_after_a_fit_changes_neither_what_is_computed_nor_what_is_saved(tmp_path):
    task = simulate(500, 4)
    for key, options, later in (
        ("bts", {"bins": 6}, {"bins": 9}),
        ("pts", {"hidden": (4,), "top_k": 3}, {"hidden": (5, 5), "top_k": 2}),
        ("bayes", {"class_bias": True}, {"class_bias": False}),
    ):
        cal = make_calibrator(key, **options).fit(task.logits, task.labels)
        before = cal.predict_proba(task.logits)
        cal.set_params(**later)
        cal.save(tmp_path / f"{key}.json")
        np.testing.assert_array_equal(cal.predict_proba(task.logits), before)
        np.testing.assert_array_equal(
            temperance.load(tmp_path / f"{key}.json").predict_proba(task.logits), before
        )


def test_the_positive_class_is_stored_and_read_again(task, tmp_path):
    names = ["ant", "bee", "cat", "dog"]
    for positive, column in (("ant", 0), ("cat", 2)):
        cal = make_calibrator("ts").fit(task.logits, task.labels, classes=names, positive=positive)
        cal.save(tmp_path / f"{positive}.json")
        assert cal.positive_ == temperance.load(tmp_path / f"{positive}.json").positive_ == column
        assert serving.load(tmp_path / f"{positive}.json").model.record.positive == column
    assert not hasattr(make_calibrator("ts").fit(task.logits, task.labels), "positive_")
    with pytest.raises(InputError, match="positive must be one of 'ant', 'bee', 'cat', 'dog'; found 'eel'"):
        make_calibrator("ts").fit(task.logits, task.labels, classes=names, positive="eel")
    with pytest.raises(InputError, match="positive is for classes; found positions=True"):
        make_calibrator("ts").fit(task.logits, task.labels, positions=True, positive=1)
