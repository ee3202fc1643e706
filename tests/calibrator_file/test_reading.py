"""A file that is not a valid calibrator is refused, with its name and what is wrong."""

import copy
import json

import numpy as np
import pytest

import temperance
from temperance import InputError, make_calibrator
from temperance.calibrator_file import BASELINE, FILE, FITTED_ON, OBJECTS
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
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(InputError, match=f"(?s)spoiled.json is not a calibrator.*{message}"):
            temperance.load(path)

    return check


def changed(content, place, value):
    """Return a content with another value at a place, such as "fit.rows"."""
    content = copy.deepcopy(content)
    *above, name = place.split(".")
    holder = content
    for part in above:
        holder = holder.setdefault(part, {})
    holder[name] = value
    return content


def test_each_field_must_be_there_of_its_type_and_known(method, saved, refused):
    for field in [item.name for item in FILE if not item.optional]:
        content = saved(method)
        del content[field]
        refused(content, field)
        for wrong in (None, 3, "text", [1, 2], True):
            if not (field in ("classes", "version") and wrong == 3):  # whole numbers: another test
                refused(content | {field: wrong}, field)
    for level in ("options", "parameters", "standard_errors"):
        refused(changed(saved(method), f"{level}.surprise", 1), f"{level} has the unknown .surprise")
    for option in saved(method)["options"]:
        content = saved(method)
        del content["options"][option]
        refused(content, f"options lacks {option}")


def test_each_field_of_an_object_must_be_there_and_of_its_type(method, saved, refused):
    for place, table in OBJECTS.items():
        for field in table if place in saved(method) else ():
            content = saved(method)
            value = content[place].pop(field.name, None)
            if not field.optional:
                refused(content, f"{place} lacks {field.name}")
            wrong = [{"a": 1}, [value]] if table is FITTED_ON else [None, {"a": 1}, [value]]
            for one in [*wrong, *([-1.0, "text"] if table is BASELINE else [])]:
                refused(changed(content, f"{place}.{field.name}", one), f"{place}.{field.name} must ")


def test_each_parameter_must_be_there_finite_numbers_and_of_its_shape(method, saved, refused):
    for name in saved(method)["parameters"]:
        content = saved(method)
        value = content["parameters"].pop(name)
        if name != "averaged_variance":  # which early files of the format do not have
            refused(content, f"parameters lacks {name}")

        def refused_as(wrong, message, content=content, name=name):
            refused(changed(content, f"parameters.{name}", wrong), message)

        for wrong in ("text", None, True, {"a": 1}, ["1"]):
            refused_as(wrong, f"{name} must hold numbers only")
        for wrong in ([], [[value]], [*np.atleast_1d(value).tolist(), 1.0], [[1.0], 2.0]):
            refused_as(wrong, f"{name} must have the shape")
        for wrong in (float("nan"), float("inf"), float("-inf")):
            refused_as(wrong, f"parameters.{name} must be finite; found {wrong}")
        # A literal beyond the range of float64, and a whole number beyond it.
        shaped = json.dumps(value)
        number = json.dumps(np.ravel(value).tolist()[0])
        for huge in ("1e999", "-1e999", "1" + 400 * "0"):
            text = json.dumps(changed(content, f"parameters.{name}", "@"))
            refused(text.replace('"@"', shaped.replace(number, huge, 1), 1), f"{name} must")


TOO_OLD, TOO_NEW = ("version must be 2 or 3; found '?{}'?. " + do for do in ("Fit the calibrator", "Update"))
TEMPERATURE = r"temperature must lie between 1e-08 and 1e\+08; found "
EDGES = "edges must be between 0 and 1 and must not decrease"
KNOTS = "map_knots must begin at 0 and increase"
WEIGHTS = "weights must be >= 0 and sum to 1"
ZEROS = [0.0] * 4

# Of a method's file, a place, a value, and what is said.
REFUSED = [
    ("ts", "version", 1, TOO_OLD.format(1)),
    *(("ts", "version", version, TOO_NEW.format(version)) for version in (True, 1.5, "3", None, 0, 4, 99)),
    *(
        ("ts", "classes", number, f"classes must be a whole number and at least 2; found '?{number}")
        for number in (1, 0, -3, 3.0, "4")
    ),
    ("ts", "classes", 10**6 + 1, "classes must be a whole number and at most 1000000; found"),
    *(
        ("ts", "method", name, "method must be one of ts, lts,.* found ")
        for name in ("tss", "TS", "", "__init__", 7, ["ts"], {"ts": 1}, None)
    ),
    ("ets", "options.loss", "ece", "options: .*loss"),
    ("bts", "options.top", None, "options: .*top"),
    ("bts", "options.top", [0.5], "options: .*top"),
    ("pts", "options.hidden", 5, "options: .*hidden"),
    ("pts", "options.hidden", [[5], 5], "options: .*hidden"),
    ("pts", "options.weight_decay", [1.0], "options: .*weight_decay"),
    ("pts", "options.weight_decay", None, "options: .*weight_decay"),
    # Numbers that no fit can give.
    ("ts", "parameters.temperature", 0.0, f"{TEMPERATURE}0"),
    ("ts", "parameters.temperature", -1.0, f"{TEMPERATURE}-1"),
    ("ts", "parameters.temperature", 1e-310, TEMPERATURE),
    ("ets", "parameters.temperature", -1.0, f"{TEMPERATURE}-1"),
    ("ets", "parameters.weights", [0.5, 0.6, -0.1], WEIGHTS),
    ("ets", "parameters.weights", [0.5, 0.6, 0.1], WEIGHTS),
    ("hts", "parameters.temperature_limits", [2.0, 1.0], "temperature_limits must be lower <= upper"),
    ("lts", "parameters.temperature_limits", [0.0, 1.0], "temperature_limits must lie between"),
    ("pts", "parameters.temperature_limits", [-1.0, 1.0], "temperature_limits must lie between"),
    ("hts", "parameters.entropy_weight", 1.05e150, r"entropy_weight must be <= 1e\+150; found 1.05e\+150"),
    ("pts", "parameters.input_scale", [1.0, 0.0, 1.0, 1.0], "input_scale must be > 0; found 0"),
    ("pts", "parameters.input_scale", [1e-320] * 4, "input_scale must be > 0"),
    ("pts", "parameters.layer_1_biases", [1e140] * 5, r"weights and biases must be within .*; found 1e\+140"),
    ("bts", "parameters.temperatures", [1.0, 1.0, 0.0, 1.0, 1.0], "temperatures must lie between"),
    ("bts", "parameters.edges", [-0.1, 0.4, 0.6, 0.999], EDGES),
    ("bts", "parameters.edges", [0.2, 0.4, 0.6, 1.1], EDGES),
    ("bts", "parameters.edges", [0.5, 0.4, 0.6, 0.999], EDGES),
    ("mono", "parameters.map_slopes", [-1.0] + 8 * [1.0], "map_slopes must be above 0; found"),
    ("mono", "parameters.map_knots", [0.5, 1, 2, 3, 4, 5, 6, 7, 8], KNOTS),
    ("mono", "parameters.map_knots", [0.0, 2, 1, 3, 4, 5, 6, 7, 8], KNOTS),
    ("mono", "parameters.reference", -1.0, "reference"),
    ("bayes", "parameters.reference", -1.0, "reference"),
    ("bayes", "parameters.temperature_limits", [3.0, 2.0], "limits"),
    ("bayes", "parameters.spread", [1.0, 0.0, 1.0, 1.0], "spread must be at least 1e-30"),
    ("bayes", "parameters.covariance", np.diag([1, 1, 1, 1, -0.01]).tolist(), "variances must be >= 0"),
    ("bayes", "parameters.class_covariance", [[0.0] * 5 + [-0.01]] * 4, "variances must be >= 0; found one"),
    ("bayes", "parameters.centre", [1e308] * 4, r"centre must be <= 1e\+30; found 1e\+308"),
    ("bayes", "parameters.uniform_weight", -0.1, "uniform_weight must be from 0 to below 1"),
    ("bayes", "parameters.uniform_weight", 1.0, "uniform_weight must be from 0 to below 1"),
    ("bayes", "parameters.averaged_variance", 0.0, "averaged_variance"),
    ("bayes", "parameters.averaged_variance", 1.01, "averaged_variance"),
    (
        "bayes",
        "standard_errors.coefficients",
        [1e308] * 5,
        r"standard error of coefficients must be <= 1e\+30",
    ),
    *(
        (method, f"standard_errors.{name}", wrong, message)
        for method, name in (("ts", "temperature"), ("bts", "temperatures"), ("hnlts", "class_weights"))
        for wrong, message in (("text", "numbers only"), ([1.0], "shape"), (float("nan"), "finite"))
    ),
    # The record of the fit.
    ("hts", "fit.class_counts", [1.0, 2.0], r"fit.class_counts must have the shape \(4,\)"),
    ("hts", "fit.class_counts", None, "fit.class_counts must hold numbers only"),
    ("hts", "fit.class_counts", [1.0, 2.0, 3.0, -1.0], "fit.class_counts must be >= 0; found -1"),
    ("hts", "fit.class_counts", ZEROS, "class_counts must have a sum"),
    ("hts", "fit.data_hash", 7, "fit.data_hash must be text"),
    ("hts", "fit.library_version", "\x1b[31m", "fit.library_version must be text of at most 1000 printable"),
    ("hts", "fit.library_version", "1" * 2000, "fit.library_version must be text"),
    ("hts", "fit.rows", 10**300, "fit.rows must be a whole number"),
    ("hts", "fit.iterations", -1, "fit.iterations must be a whole number and at least 0; found -1"),
    ("hts", "fit.temperature_quantiles", [1.0], "temperature_quantiles must"),
    ("hts", "fit.temperature_quantiles", [1.0, 2.0, None], "temperature_quantiles must"),
    ("hts", "fit.temperature_quantiles", [1.0, -1.0, 2.0], "temperature_quantiles must lie between"),
    ("hts", "fit.temperature_quantiles", [3.0, 2.0, 1.0], "temperature_quantiles must not decrease"),
    ("hts", "class_names", ["a", "b", "c"], "class_names must be 4 names, one per class; found 3"),
    ("hts", "class_names", "abcd", "class_names must be a list of text"),
    ("hts", "class_names", ["a", "b", "c", 4], "class_names must be a list of text"),
    ("hts", "fitted_on", "logits", "fitted_on must be a JSON object"),
    ("hts", "fitted_on", {"kind": "scores"}, "fitted_on.kind must be one of .* found 'scores'"),
    ("hts", "fitted_on", {"kind": "logits", "floor": 0.1}, "fitted_on.floor is for probabilities only"),
    (
        "hts",
        "fitted_on",
        {"kind": "probabilities", "floor": 2},
        "fitted_on.floor must be a number from 0 to 1",
    ),
    ("hts", "fitted_on", {"kind": "probabilities", "floor": True}, "fitted_on.floor must be a number"),
    ("hts", "fitted_on", {"kind": "logits", "unit": "percent"}, "fitted_on.unit is for probabilities only"),
    (
        "hts",
        "fitted_on",
        {"kind": "probabilities", "unit": "permille"},
        "fitted_on.unit must be one of 'fraction', 'percent'; found 'permille'",
    ),
    ("ts", "positive", 4, "positive must be a whole number and at most 3; found 4"),
    ("ts", "positive", -1, "positive must be a whole number and at least 0; found -1"),
    ("ts", "positive", "yes", "positive must be a whole number"),
    ("hts", "adaptation", [], "adaptation must be a JSON object"),
    ("hts", "adaptation", {"rows": 3}, "adaptation lacks log_prior_ratio"),
    ("hts", "adaptation", {"log_prior_ratio": [0.0] * 3}, r"log_prior_ratio must have the shape \(4,\)"),
    ("hts", "adaptation", {"log_prior_ratio": [1e308, 0, 0, 0]}, "log_prior_ratio must be <= 100"),
    ("hts", "adaptation", {"log_prior_ratio": ZEROS, "rows": 0.5}, "adaptation.rows must be a whole number"),
    (
        "hts",
        "adaptation",
        {"log_prior_ratio": ZEROS, "frequency_errors": [0.1] * 3},
        r"adaptation.frequency_errors must have the shape \(4,\)",
    ),
    (
        "hts",
        "adaptation",
        {"log_prior_ratio": ZEROS, "frequency_errors": [0.1, 0.1, -0.1, 0.1]},
        "adaptation.frequency_errors must be >= 0; found -0.1",
    ),
    ("hts", "metadata", ["note"], "metadata must be a JSON object; found list"),
    ("hts", "baseline", {}, "baseline lacks accuracy, confidence_quantiles"),
    ("hts", "baseline", None, "baseline must be a JSON object; found NoneType"),
    ("hts", "baseline.accuracy", 1.5, r"baseline\.accuracy must be a number from 0 to 1; found 1\.5"),
    ("hts", "baseline.mean_confidence", 1.5, r"baseline\.mean_confidence must be a number from 0 to 1"),
    ("hts", "baseline.predicted_counts", ZEROS, "predicted_counts must have a sum"),
    ("hts", "baseline.effective_rows", 301, "effective_rows must be at most 300.3; found 301"),
    ("hts", "baseline.rows", 301, "baseline.rows must be at most 300; found 301"),
    ("hts", "baseline.confidence_quantiles", [*[0.9] * 20, 0.5], "confidence_quantiles must not decrease"),
    ("hts", "baseline.confidence_quantiles", [*[0.9] * 20, 1.5], "confidence_quantiles must be <= 1"),
    ("hts", "baseline.entropy_shares", [0.5] * 21, "at least the levels of the quantiles"),
    ("hts", "baseline.confidence_shares", [*[1] * 20, 2], "confidence_shares must be <= 1"),
    ("hts", "baseline.mean_probabilities", [0.5] * 4, "mean_probabilities must sum to 1; found 2"),
    ("hts", "baseline.label_frequencies", [1.5, 0, 0, 0], "label_frequencies must be <= 1; found 1.5"),
    ("hts", "baseline.class_variances", [0.3, 0, 0, 0], "class_variances must be <= 0.25; found 0.3"),
]


@pytest.mark.parametrize(("method", "place", "value", "message"), REFUSED)
def test_what_no_file_can_hold_is_refused(saved, refused, method, place, value, message):
    refused(changed(saved(method), place, value), message)


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

    def refused_with(name, value, message, content=biased[n_classes]):
        refused(changed(content, f"parameters.{name}", value), message)

    for name in names:
        content = copy.deepcopy(biased[n_classes])
        value = content["parameters"].pop(name)
        refused(content, f"parameters lacks {name}")
        refused_with(name, 0.5, f"{name} must have the shape")
        refused_with(name, value[:1], f"{name} must have the shape")
        for other in names:
            content["parameters"].pop(other, None)
        refused_with(name, 0.5, "parameters lacks (bias|inter)", content)
    if n_classes == 21:
        refused_with("interactions", 0.5, "parameters has the unknown 'interactions'")
    n_kinds = len(biased[n_classes]["parameters"]["bias_weights"])
    sums = "bias_weights must be >= 0, with a sum above 0 and at most 1; found"
    for first, others in ((-0.1, 0.2), (0.9, 0.2), (0.0, 0.0)):
        refused_with("bias_weights", [first] + [others] * (n_kinds - 1), sums)
    refused_with("bias_betas", [0.0] + [1.0] * (n_kinds - 1), "bias_betas must be above 0; found")


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
    path.write_text(json.dumps(changed(saved(method), f"parameters.{name}", value)))
    np.testing.assert_array_equal(temperance.load(path).parameters()[name], value)


def test_a_fit_of_one_row_that_is_adapted_to_one_row_is_read(saved, tmp_path):
    content, path = saved("ts"), tmp_path / "cal.json"
    content["adaptation"] = {"log_prior_ratio": [0.0] * content["classes"], "rows": 1}
    content["adaptation"]["frequency_errors"] = None
    content["fit"] |= {"rows": 1, "iterations": 0, "passes": 0}
    content["baseline"] |= {"rows": 1, "effective_rows": 1.0, "fit_rows": 1.0}
    path.write_text(json.dumps(content))
    model = temperance.load(path).model_
    assert (model.n_rows, model.adaptation_rows, model.record.baseline.rows) == (1, 1, 1)
    assert model.frequency_errors is None


def test_positions_have_no_positive_class(saved, refused):
    content = changed(saved("hts"), "positive", 1)
    content = changed(content, "parameters.max_entropy", 1.0)
    refused(changed(content, "fitted_on.positions", True), "positive is for classes, and fitted_on.positions")


def test_a_method_with_a_temperature_needs_its_quantiles(saved, refused):
    content = saved("hts")
    del content["fit"]["temperature_quantiles"]
    refused(content, "fit lacks temperature_quantiles")


def test_text_that_is_no_json_object_is_refused(saved, refused):
    text = json.dumps(saved("ts"))
    twice = text.replace('"classes": 4', '"classes": 4, "classes": 4')
    refused(twice, "must occur once; found .classes. more")
    refused(text.replace('"temperature":', '"temperature": 1.0, "temperature":', 1), "must occur once")
    for length in range(0, len(text) - 1, 37):
        refused(text[:length], "must be JSON")
    for content in (b"\x80\x04\x95garbage", bytes(range(256)), b"\xff\xfe{\x00}\x00", b"[" * 100_000):
        refused(content, "must be JSON")
    for content in ("[]", "3", '"text"', "null", "{}"):
        refused(content, "JSON object|format")


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
