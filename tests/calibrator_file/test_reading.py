"""A file that is not a valid calibrator is refused, with its name and what is wrong."""

import copy
import json

import numpy as np
import pytest

import temperance
from temperance import InputError, make_calibrator
from temperance.calibrator_file import BASELINE, FILE, FIT
from temperance.data import simulate
from temperance.json_fields import MAX_DEPTH, plain_json


@pytest.fixture(scope="session")
def saved(fitted, tmp_path_factory):
    """Return the content of the file of each method, as a dict of its own."""
    folder, cache = tmp_path_factory.mktemp("saved"), {}

    def content(key):
        if key not in cache:
            fitted(key).save(folder / f"{key}.json")
            cache[key] = json.loads((folder / f"{key}.json").read_text())
        return copy.deepcopy(cache[key])

    return content


@pytest.fixture
def refused(tmp_path):
    """Assert that a content is refused with the name of the file and a message."""

    def check(content, message):
        path = tmp_path / "spoiled.json"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(InputError, match=f"(?s)spoiled.json is not a calibrator.*{message}"):
            temperance.load(path)

    return check


def test_each_field_must_be_there_of_its_type_and_known(method, saved, refused):
    for field in [item.name for item in FILE if not item.optional]:
        content = saved(method)
        del content[field]
        refused(content, field)
        for wrong in (None, 3, "text", [1, 2], True):
            if not (field == "classes" and wrong == 3):  # a whole number: another test
                refused(content | {field: wrong}, field)
    for level in ("options", "parameters", "standard_errors"):
        content = saved(method)
        content[level]["surprise"] = 1
        refused(content, f"{level} has the unknown .surprise")
    for option in saved(method)["options"]:
        content = saved(method)
        del content["options"][option]
        refused(content, f"options lacks {option}")


@pytest.mark.parametrize("version", [True, 1.5, "2", None, 0, 1, 3, 99])
def test_another_version_is_refused_with_advice(saved, refused, version):
    advice = "Fit the calibrator again" if version == 1 and version is not True else "Update temperance"
    refused(saved("ts") | {"version": version}, f"version must be 2; found '?{version}'?. {advice}")


@pytest.mark.parametrize("classes", [1, 0, -3, 3.0, "4"])
def test_an_impossible_number_of_classes_is_refused(saved, refused, classes):
    refused(
        saved("ts") | {"classes": classes},
        f"classes must be a whole number and at least 2; found '?{classes}",
    )
    refused(saved("ts") | {"classes": 10**6 + 1}, "classes must be a whole number and at most 1000000; found")


@pytest.mark.parametrize("name", ["tss", "TS", "", "__init__", 7, ["ts"], {"ts": 1}, None])
def test_an_unknown_method_is_refused(saved, refused, name):
    refused(saved("ts") | {"method": name}, "method must be one of ts, lts,.* found ")


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        ("ets", "loss", "ece"),
        ("bts", "top", None),
        ("bts", "top", [0.5]),
        ("pts", "hidden", 5),
        ("pts", "hidden", [[5], 5]),
        ("pts", "weight_decay", [1.0]),
        ("pts", "weight_decay", None),
    ],
)
def test_an_option_out_of_range_is_refused(saved, refused, method, option, value):
    content = saved(method)
    content["options"][option] = value
    refused(content, f"options: .*{option}")


def test_each_parameter_must_be_there_finite_numbers_and_of_its_shape(method, saved, refused):
    for name in saved(method)["parameters"]:
        content = saved(method)
        value = content["parameters"].pop(name)
        if name != "averaged_variance":  # which early files of the format do not have
            refused(content, f"parameters lacks {name}")
        for wrong in ("text", None, True, {"a": 1}, ["1"]):
            refused(_with(content, name, wrong), f"{name} must hold numbers only")
        for wrong in ([], [[value]], [*np.atleast_1d(value).tolist(), 1.0], [[1.0], 2.0]):
            refused(_with(content, name, wrong), f"{name} must have the shape")
        for wrong in (float("nan"), float("inf"), float("-inf")):
            refused(_with(content, name, wrong), f"parameters.{name} must be finite; found {wrong}")
        # A literal beyond the range of float64, and a whole number beyond it.
        shaped = json.dumps(value)
        number = json.dumps(np.ravel(value).tolist()[0])
        for huge in ("1e999", "-1e999", "1" + 400 * "0"):
            text = json.dumps(_with(content, name, "@")).replace('"@"', shaped.replace(number, huge, 1), 1)
            refused(text, f"{name} must")


def _with(content, name, value):
    content = copy.deepcopy(content)
    content["parameters"][name] = value
    return content


@pytest.mark.parametrize(
    ("method", "name", "value", "message"),
    [
        ("ts", "temperature", 0.0, "temperature must lie between 1e-08 and 1e\\+08; found 0"),
        ("ts", "temperature", -1.0, "temperature must lie between 1e-08 and 1e\\+08; found -1"),
        ("ets", "temperature", -1.0, "temperature must lie between 1e-08 and 1e\\+08; found -1"),
        ("ets", "weights", [0.5, 0.6, -0.1], "weights must be >= 0 and sum to 1"),
        ("ets", "weights", [0.5, 0.6, 0.1], "weights must be >= 0 and sum to 1"),
        ("hts", "temperature_limits", [2.0, 1.0], "temperature_limits must be lower <= upper"),
        ("lts", "temperature_limits", [0.0, 1.0], "temperature_limits must lie between"),
        ("pts", "temperature_limits", [-1.0, 1.0], "temperature_limits must lie between"),
        ("pts", "input_scale", [1.0, 0.0, 1.0, 1.0], "input_scale must be > 0; found 0"),
        ("bts", "temperatures", [1.0, 1.0, 0.0, 1.0, 1.0], "temperatures must lie between"),
        ("bts", "edges", [-0.1, 0.4, 0.6, 0.999], "edges must be between 0 and 1 and must not decrease"),
        ("bts", "edges", [0.2, 0.4, 0.6, 1.1], "edges must be between 0 and 1 and must not decrease"),
        ("ts", "temperature", 1e-310, "temperature must lie between"),
        ("pts", "input_scale", [1e-320] * 4, "input_scale must be > 0"),
        ("hts", "entropy_weight", 1.05e150, "entropy_weight must be <= 1e\\+150; found 1.05e\\+150"),
        ("bts", "edges", [0.5, 0.4, 0.6, 0.999], "edges must be between 0 and 1 and must not decrease"),
        ("pts", "layer_1_biases", [1e140] * 5, r"weights and biases must be within .*; found 1e\+140"),
        ("mono", "map_slopes", [-1.0] + 8 * [1.0], "map_slopes must be above 0; found"),
        ("mono", "map_knots", [0.5, 1, 2, 3, 4, 5, 6, 7, 8], "map_knots must begin at 0 and increase"),
        ("mono", "map_knots", [0.0, 2, 1, 3, 4, 5, 6, 7, 8], "map_knots must begin at 0 and increase"),
        ("mono", "reference", -1.0, "reference"),
        ("bayes", "reference", -1.0, "reference"),
        ("bayes", "temperature_limits", [3.0, 2.0], "limits"),
        ("bayes", "spread", [1.0, 0.0, 1.0, 1.0], "spread must be at least 1e-30"),
        ("bayes", "covariance", np.diag([1, 1, 1, 1, -0.01]).tolist(), "variances must be >= 0; found one"),
        ("bayes", "class_covariance", [[0.0] * 5 + [-0.01]] * 4, "variances must be >= 0; found one"),
        ("bayes", "centre", [1e308] * 4, r"centre must be <= 1e\+30; found 1e\+308"),
        ("bayes", "uniform_weight", -0.1, "uniform_weight must be from 0 to below 1"),
        ("bayes", "uniform_weight", 1.0, "uniform_weight must be from 0 to below 1"),
        ("bayes", "averaged_variance", 0.0, "averaged_variance"),
        ("bayes", "averaged_variance", 1.01, "averaged_variance"),
    ],
)
def test_numbers_that_no_fit_can_give_are_refused(saved, refused, method, name, value, message):
    refused(_with(saved(method), name, value), message)


@pytest.fixture(scope="module")
def biased(tmp_path_factory):
    """Return the file of a class bias with so many classes."""

    def content_of(n_classes):
        task = simulate(50, n_classes, random_state=0)
        path = tmp_path_factory.mktemp("biased") / "cal.json"
        make_calibrator("bayes", class_bias=True).fit(task.logits, task.labels).save(path)
        return json.loads(path.read_text())

    return {n_classes: content_of(n_classes) for n_classes in (3, 21)}


@pytest.mark.parametrize("n_classes", [3, 21])
def test_a_class_bias_is_complete_or_absent(biased, refused, n_classes):
    names = ["bias_weights", "bias_betas", "biases", *(["interactions"] if n_classes == 3 else [])]
    for name in names:
        content = copy.deepcopy(biased[n_classes])
        value = content["parameters"].pop(name)
        refused(content, f"parameters lacks {name}")
        refused(_with(biased[n_classes], name, 0.5), f"{name} must have the shape")
        refused(_with(biased[n_classes], name, value[:1]), f"{name} must have the shape")
        for other in names:
            content["parameters"].pop(other, None)
        refused(_with(content, name, 0.5), "parameters lacks (bias|inter)")
    if n_classes == 21:
        refused(_with(biased[21], "interactions", 0.5), "parameters has the unknown 'interactions'")
    n_kinds = len(biased[n_classes]["parameters"]["bias_weights"])
    sums = "bias_weights must be >= 0, with a sum above 0 and at most 1; found"
    for first, others in ((-0.1, 0.2), (0.9, 0.2), (0.0, 0.0)):
        refused(_with(biased[n_classes], "bias_weights", [first] + [others] * (n_kinds - 1)), sums)
    zero = [0.0] + [1.0] * (n_kinds - 1)
    refused(_with(biased[n_classes], "bias_betas", zero), "bias_betas must be above 0; found")


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("pts", "input_scale", [1.05e-100] * 4),
        ("hts", "entropy_weight", 0.95e150),
        ("bts", "edges", [0.5, 0.5, 0.9, 0.9]),
        ("bts", "edges", [0.0, 0.5, 0.9, 1.0]),
        ("bayes", "averaged_variance", 1.0),
    ],
)
def test_numbers_at_their_limits_are_read(saved, tmp_path, method, name, value):
    path = tmp_path / "cal.json"
    path.write_text(json.dumps(_with(saved(method), name, value)))
    np.testing.assert_array_equal(temperance.load(path).parameters()[name], value)


def test_a_fit_of_one_row_that_is_adapted_to_one_row_is_read(saved, tmp_path):
    content, path = saved("ts"), tmp_path / "cal.json"
    content["adaptation"] = {"log_prior_ratio": [0.0] * content["classes"], "rows": 1}
    content["fit"] |= {"rows": 1, "iterations": 0, "passes": 0}
    content["baseline"] |= {"rows": 1, "effective_rows": 1.0}
    path.write_text(json.dumps(content))
    model = temperance.load(path).model_
    assert (model.n_rows, model.adaptation_rows, model.record.baseline.rows) == (1, 1, 1)


@pytest.mark.parametrize("method", ["ts", "bts", "hnlts"])
def test_standard_errors_are_checked_like_the_parameters(saved, refused, method):
    for name in saved(method)["standard_errors"]:
        for wrong, message in (("text", "numbers only"), ([1.0], "shape"), (float("nan"), "finite")):
            content = saved(method)
            content["standard_errors"][name] = wrong
            refused(content, message)
    content = saved("bayes")
    content["standard_errors"]["coefficients"][0] = 1e308
    refused(content, r"standard error of coefficients must be <= 1e\+30; found 1e\+308")


def test_the_record_of_the_fit_is_checked(method, saved, refused):
    for field in FIT:
        content = saved(method)
        value = content["fit"].pop(field.name, None)
        if not field.optional:
            refused(content, f"fit lacks {field.name}")
        for wrong in (None, [value], {"a": 1}):
            content["fit"][field.name] = wrong
            refused(content, f"fit.{field.name} must ")


def test_a_field_that_occurs_twice_is_refused(saved, refused):
    text = json.dumps(saved("ts"))
    refused(
        text.replace('"classes": 4', '"classes": 4, "classes": 4'), "must occur once; found .classes. more"
    )
    refused(text.replace('"temperature":', '"temperature": 1.0, "temperature":', 1), "must occur once")


def test_a_file_cut_off_anywhere_is_refused(saved, refused):
    text = json.dumps(saved("hts"))
    for length in range(0, len(text) - 1, 37):
        refused(text[:length], "must be JSON")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x04\x95garbage", bytes(range(256)), b"\xff\xfe{\x00}\x00", b"not json", b"[" * 100_000],
)
def test_invalid_json_is_refused(refused, content):
    refused(content, "must be JSON")


@pytest.mark.parametrize("content", ["[]", "3", '"text"', "null", "{}"])
def test_json_that_is_not_a_calibrator_is_refused(refused, content):
    refused(content, "JSON object|format")


OPTIONAL = [
    ("class_names", ["a", "b", "c"], "class_names must be 4 names, one per class; found 3"),
    ("class_names", "abcd", "class_names must be a list of text"),
    ("class_names", ["a", "b", "c", 4], "class_names must be a list of text"),
    ("fitted_on", "logits", "fitted_on must be a JSON object"),
    ("fitted_on", {}, "fitted_on lacks kind"),
    ("fitted_on", {"kind": "scores"}, "fitted_on.kind must be one of .* found 'scores'"),
    ("fitted_on", {"kind": ["logits"]}, "fitted_on.kind must be text"),
    ("fitted_on", {"kind": "logits", "floor": 0.1}, "fitted_on.floor is for probabilities only"),
    ("fitted_on", {"kind": "probabilities", "floor": 2}, "fitted_on.floor must be a number from 0 to 1"),
    ("fitted_on", {"kind": "probabilities", "floor": True}, "fitted_on.floor must be a number"),
    ("adaptation", [], "adaptation must be a JSON object"),
    ("adaptation", {"rows": 3}, "adaptation lacks log_prior_ratio"),
    ("adaptation", {"log_prior_ratio": [0.0] * 3}, r"adaptation.log_prior_ratio must have the shape \(4,\)"),
    ("adaptation", {"log_prior_ratio": [0.0] * 4, "rows": 0.5}, "adaptation.rows must be a whole number"),
    (
        "adaptation",
        {"log_prior_ratio": [0.0] * 4, "frequency_errors": [0.1] * 3},
        r"adaptation.frequency_errors must have the shape \(4,\)",
    ),
    (
        "adaptation",
        {"log_prior_ratio": [0.0] * 4, "frequency_errors": [0.1, 0.1, -0.1, 0.1]},
        "adaptation.frequency_errors must be >= 0; found -0.1",
    ),
    ("metadata", ["note"], "metadata must be a JSON object; found list"),
    ("baseline", {}, "baseline lacks accuracy, confidence_quantiles"),
    ("baseline", None, "baseline must be a JSON object; found NoneType"),
]


OPTIONAL_OF_FIT = [
    ("class_counts", [1.0, 2.0], r"fit.class_counts must have the shape \(4,\)"),
    ("class_counts", None, "fit.class_counts must hold numbers only"),
    ("class_counts", [1.0, 2.0, 3.0, -1.0], "fit.class_counts must be >= 0; found -1"),
    ("data_hash", 7, "fit.data_hash must be text"),
    ("date", 7, "fit.date must be text"),
    ("library_version", "\x1b[31m", "fit.library_version must be text of at most 1000 printable"),
    ("library_version", "1" * 2000, "fit.library_version must be text"),
    ("rows", 10**300, "fit.rows must be a whole number"),
    ("iterations", -1, "fit.iterations must be a whole number and at least 0; found -1"),
    ("temperature_quantiles", [1.0], "temperature_quantiles must"),
    ("temperature_quantiles", [1.0, 2.0, None], "temperature_quantiles must"),
    ("temperature_quantiles", [1.0, -1.0, 2.0], "temperature_quantiles must lie between"),
    ("temperature_quantiles", [3.0, 2.0, 1.0], "temperature_quantiles must not decrease"),
]


def test_an_optional_field_that_is_there_is_checked(saved, refused):
    for field, value, message in OPTIONAL:
        refused(saved("hts") | {field: value}, message)
    for field, value, message in OPTIONAL_OF_FIT:
        content = saved("hts")
        content["fit"][field] = value
        refused(content, message)
    content = saved("hts")
    del content["fit"]["temperature_quantiles"]  # which a method with a temperature needs
    refused(content, "fit lacks temperature_quantiles")


def test_each_number_of_the_baseline_is_checked(saved, refused):
    for name in saved("ts")["baseline"]:
        for wrong in ("text", None, [1.0], -1.0):
            content = saved("ts")
            content["baseline"][name] = wrong
            refused(content, f"baseline.{name} must")
        if name in [item.name for item in BASELINE if not item.optional]:
            del content["baseline"][name]
            refused(content, f"baseline lacks {name}")
    for name in ("accuracy", "mean_confidence"):
        content = saved("ts")
        content["baseline"][name] = 1.5
        refused(content, rf"baseline\.{name} must be a number from 0 to 1; found 1\.5")


def nested(levels):
    return levels * '{"a": ' + "1" + levels * "}"


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        ("1e999", "metadata.x must be finite; found inf"),
        ("-1e999", "metadata.x must be finite; found -inf"),
        ("NaN", "metadata.x must be finite; found nan"),
        ("1" * 400, "metadata.x must be finite; found a whole number beyond"),
        ("1" * 5000, "must be JSON .*4300 digits"),
        (nested(40), "metadata.x.a.* must not be nested deeper than 32 levels"),
        ("[" * 40 + "]" * 40, "metadata.x.* must not be nested deeper than 32 levels"),
        (nested(50_000), "must be JSON .*recursion"),
    ],
    ids=["1e999", "-1e999", "NaN", "400 digits", "5000 digits", "objects", "lists", "deep"],
)
def test_numbers_and_nesting_that_cannot_be_held_are_refused_anywhere(saved, refused, literal, message):
    text = json.dumps(saved("ts") | {"metadata": {"x": "@"}})
    refused(text.replace('"@"', literal), message)


def test_metadata_may_be_nested_as_deep_as_is_said():
    nested = 1
    for _ in range(MAX_DEPTH):
        nested = [nested]
    assert plain_json(nested, "metadata") == nested
    with pytest.raises(InputError, match=f"must not be nested deeper than {MAX_DEPTH} levels"):
        plain_json([nested], "metadata")


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (lambda rows: np.nan * rows, "must give probabilities; found rows that do not sum to 1"),
        (lambda rows: 1 // 0, "its numbers must work together; found ZeroDivisionError: "),
    ],
)
def test_a_file_that_predicts_no_probabilities_is_refused(prediction, message, saved, refused, monkeypatch):
    content = saved("ts")
    monkeypatch.setattr(
        "temperance.calibrator_file.apply_to_rows", lambda model, method, rows: prediction(rows)
    )
    refused(content, message)
