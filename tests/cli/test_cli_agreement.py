"""`fit`, `apply` and `evaluate` give the same results as the library, to the bit."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from compared import CLASS_KEEPING

from temperance import load, logits_from_probs, make_calibrator, metrics, probability_floor
from temperance.core import blocks
from temperance.core.logit_rows import LogitRows
from temperance.metrics.bootstrap import DRAWS
from temperance.metrics.table import METRICS

TYPES = [np.float16, np.float32, np.float64]


@pytest.fixture(params=["whole", "in parts"])
def parts(request, monkeypatch):
    """Read files all at once, or in parts of 64 rows of 4 float32, each one block of the core."""
    if request.param == "in parts":
        monkeypatch.setattr("temperance.streaming.PART_BYTES", 1)
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 10)


def saved(calibrator, path="library.json"):
    """Return a calibrator that went through a file, as those of the command line do."""
    calibrator.save(path, overwrite=True)
    return load(path)


def written(path):
    """Return probabilities and labels of a file, read by other means than the package's."""
    if path.lower().endswith(".npy"):
        return np.load(path), None
    if path.endswith(".npz"):
        with np.load(path) as held:
            return held["probs"], held.get("labels")
    if path.endswith(".csv"):
        head, *lines = csv.reader(Path(path).read_text().splitlines())
        assert head[-1] == "calibrated_by"
        table = pandas.DataFrame([[float(unit) for unit in line[:-1]] for line in lines], columns=head[:-1])
    else:
        table = pandas.read_parquet(path).drop(columns="calibrated_by")
    labels = table.pop("label").to_numpy() if "label" in table else None
    assert list(table) == [f"prob_{k}" for k in range(len(table.columns))]
    return table.to_numpy(), labels


def read(path):
    return Path(path).read_bytes()


def assert_same_bits(got, wanted):
    assert got.shape == wanted.shape
    # A .csv has numbers without a type: the digits are those of the type that they came from.
    assert got.dtype in (wanted.dtype, np.float64)
    np.testing.assert_array_equal(got, wanted.astype(got.dtype), strict=True)


# ---- fit


@pytest.mark.parametrize(
    ("method", "dtype"),
    [*((key, np.float64) for key in CLASS_KEEPING), ("hts", np.float16), ("hts", np.float32)],
)
def test_fit_writes_the_file_that_the_library_saves(method, dtype, run, folder, task):
    logits = task.logits.astype(dtype)
    np.savez("val.npz", logits=logits, labels=task.labels)
    run("fit", "val.npz", "-m", method, "-o", "cal.json")
    make_calibrator(method).fit(logits, task.labels).save("library.json")
    assert {path.name for path in folder.iterdir()} == {"val.npz", "cal.json", "library.json"}
    assert read("cal.json") == read("library.json")


def test_fit_takes_options_and_probabilities_and_one_score(run, files, task, binary, fitted):
    probs = fitted("ts").predict_proba(task.logits)
    np.savez("probs.npz", probs=probs, labels=task.labels)
    run("fit", "probs.npz", "-m", "bts", "--set", "bins=5", "-o", "cal.json").succeeded()
    make_calibrator("bts", bins=5).fit(logits_from_probs(probs), task.labels).save("library.json")
    fitted_on = {"kind": "probabilities", "floor": probability_floor(probs)}
    wanted = json.loads(read("library.json")) | {"fitted_on": fitted_on}
    assert json.loads(read("cal.json")) == wanted
    np.savez("binary.npz", logits=binary[0], labels=binary[1])
    run("fit", "binary.npz", "-o", "binary.json").succeeded()
    make_calibrator("bayes-bias").fit(*binary).save("library.json", overwrite=True)
    assert read("binary.json") == read("library.json")


def test_notes_and_the_names_of_columns_are_kept(run, files, task):
    pandas.DataFrame(task.logits, columns=["cat", "dog", "owl", "eel"]).assign(label=task.labels).to_csv(
        "named.csv", index=False
    )
    notes = ("--metadata", "classifier=resnet50", "--metadata", "epoch=7")
    run("fit", "named.csv", "--input", "logits", "-m", "ts", *notes, "-o", "cal.json").succeeded()
    cal = load("cal.json")
    assert cal.class_names_ == ("cat", "dog", "owl", "eel")
    assert cal.metadata_ == {"classifier": "resnet50", "epoch": 7}


def test_settings_reach_the_method_as_numbers_text_booleans_and_lists(run, files):
    settings = {"bayes": ("class_bias", True), "ets": ("loss", "brier"), "pts": ("hidden", [3, 2])}
    for method, (name, value) in settings.items():
        words = value if isinstance(value, str) else json.dumps(value)
        run("fit", "val.npz", "-m", method, "--set", f"{name}={words}", "-o", f"{method}.json").succeeded()
        assert json.loads(read(f"{method}.json"))["options"][name] == value


def test_fit_takes_the_validation_rows_of_a_task_file_and_other_rows_if_told(run, files, task, judged):
    run("fit", "task.npz", "-m", "ts", "-o", "cal.json").succeeded()
    assert load("cal.json").temperature_ == make_calibrator("ts").fit(task.logits, task.labels).temperature_
    run("fit", "task.npz", "-m", "ts", "--part", "test", "-o", "cal.json", "--force").succeeded()
    wanted = make_calibrator("ts").fit(judged.logits, judged.labels).temperature_
    assert load("cal.json").temperature_ == wanted


# ---- apply


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        *((key, ".npz") for key in CLASS_KEEPING),
        *(("hts", suffix) for suffix in (".npy", ".NPY", ".csv", ".parquet")),
    ],
)
@pytest.mark.parametrize("dtype", TYPES)
def test_apply_writes_what_the_calibrator_predicts(method, suffix, dtype, parts, run, fitted, task):
    logits = task.logits.astype(dtype)
    np.savez("new.npz", logits=logits, labels=task.labels)
    calibrator = saved(fitted(method), "cal.json")
    run("apply", "cal.json", "new.npz", "-o", f"probs{suffix}").succeeded()
    probs, labels = written(f"probs{suffix}")
    wanted = calibrator.predict_proba(logits)
    assert probs.dtype == wanted.dtype or suffix == ".csv"
    assert_same_bits(probs, wanted)
    if suffix.lower() != ".npy":
        np.testing.assert_array_equal(labels, task.labels)


def test_apply_to_one_score_gives_two_columns(method, parts, run, fit, binary):
    calibrator = saved(fit(method, *binary), "cal.json")
    np.save("new.npy", binary[0])
    run("apply", "cal.json", "new.npy", "--input", "logits", "-o", "probs.npy").succeeded()
    probs, _ = written("probs.npy")
    assert probs.shape == (200, 2)
    assert_same_bits(probs, calibrator.predict_proba(binary[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_apply_to_probabilities_calibrates_their_logarithms(method, dtype, parts, run, fitted, task):
    given = LogitRows(task.logits.astype(dtype)).softmax(1.0)
    np.savez("new.npz", probs=given)
    calibrator = saved(fitted(method), "cal.json")
    run("apply", "cal.json", "new.npz", "--from-probs", "-o", "probs.npz").succeeded()
    probs, labels = written("probs.npz")
    assert_same_bits(probs, calibrator.predict_proba(logits_from_probs(given)))
    assert labels is None


def test_apply_in_blocks_of_the_usual_size(method, run, fit, monkeypatch):
    """Parts that are not a whole number of vectors long, with the rows of the last one left over."""
    rng = np.random.default_rng(4)
    logits = (3 * rng.standard_normal((70_003, 10))).astype(np.float32)
    labels = logits[:500].argmax(axis=1)
    labels[::4] = 0
    calibrator = saved(fit(method, logits[:500], labels), "cal.json")
    np.save("new.npy", logits)
    monkeypatch.setattr("temperance.streaming.PART_BYTES", 1)
    run("apply", "cal.json", "new.npy", "--input", "logits", "-o", "probs.npy").succeeded()
    assert_same_bits(np.load("probs.npy"), calibrator.predict_proba(logits))


def test_apply_to_whole_numbers_and_to_columns_first(run, calibrator, task):
    numbers = np.rint(task.logits).astype(np.int16)
    np.savez("new.npz", logits=numbers)
    run("apply", "cal.json", "new.npz", "-o", "probs.npz").succeeded()
    assert_same_bits(written("probs.npz")[0], calibrator.predict_proba(numbers.astype(np.float64)))
    np.savez("new.npz", logits=np.asfortranarray(task.logits))
    run("apply", "cal.json", "new.npz", "-o", "probs.npz", "--force").succeeded()
    assert_same_bits(written("probs.npz")[0], calibrator.predict_proba(task.logits))


def test_apply_needs_no_labels_and_leaves_out_invalid_ones(run, calibrator, task):
    np.savez("new.npz", logits=task.logits, labels=np.full(300, -1))
    run("apply", "cal.json", "new.npz", "-o", "probs.npz").succeeded()
    assert written("probs.npz")[1] is None


def test_apply_reports_the_mean_confidence(run, files, calibrator, judged):
    told = run("apply", "cal.json", "task.npz", "-o", "probs.npz", "--json").json
    probs = calibrator.predict_proba(judged.logits)
    assert told["mean_confidence"] == pytest.approx(probs.max(axis=1).mean(), rel=1e-12)
    assert (told["file"]["key"], told["file"]["rows"], told["classes"]) == ("logits_test", 200, 4)


# ---- evaluate


def evaluated(*arguments, **options):
    return json.loads(json.dumps(metrics.evaluate(*arguments, **options).to_dict()))


def test_evaluate_scores_what_the_calibrator_predicts(method, parts, run, files, fitted, judged):
    calibrator = saved(fitted(method), "cal.json")
    told = run("evaluate", "test.npz", "-c", "cal.json", "--draws", 10, "--json").json
    probs = calibrator.predict_proba(judged.logits.astype(np.float64))
    assert told["metrics"] == evaluated(probs, judged.labels, draws=10)
    assert told["calibrator"] == {"path": "cal.json", "method": method}


@pytest.mark.parametrize("dtype", TYPES)
def test_compare_and_evaluate_print_the_same_intervals(dtype, run, files, judged):
    np.savez("narrow.npz", logits=judged.logits.astype(dtype), labels=judged.labels)
    run("fit", "val.npz", "-m", "ts", "-o", "ts.json", "--force").succeeded()
    # In these tests `compare` draws 20 resamples; the defaults are one number.
    told = run("evaluate", "narrow.npz", "-c", "ts.json", "--draws", 20, "--json").json
    compared = run("compare", "val.npz", "narrow.npz", "-m", "ts", "--json").json
    assert told["metrics"] == compared["methods"]["ts"]["scores"]
    assert run("evaluate", "narrow.npz", "--json").json["draws"] == DRAWS
    assert set(told["tests"]) == {"spiegelhalter", "cox", "kuiper", "kolmogorov_smirnov", "cox_classes"}


@pytest.mark.parametrize("dtype", TYPES)
def test_evaluate_without_a_calibrator_scores_the_softmax(dtype, parts, run, folder, judged):
    logits = judged.logits.astype(dtype)
    np.savez("test.npz", logits=logits, labels=judged.labels)
    told = run(
        *("evaluate", "test.npz", "--json", "--bins", 7, "--seed", 3),
        *("--confidence", 0.9, "--draws", 40),
    ).json
    options = {"bins": 7, "random_state": 3, "confidence": 0.9, "draws": 40}
    probs = LogitRows(logits.astype(np.float64)).softmax(1.0)
    assert told["metrics"] == evaluated(probs, judged.labels, **options)
    assert (told["bins"], told["seed"], told["confidence"], told["draws"]) == (7, 3, 0.9, 40)


def test_evaluate_scores_probabilities_as_they_are(run, files, calibrator, judged):
    run("apply", "cal.json", "test.npz", "-o", "probs.npz").succeeded()
    told = run("evaluate", "probs.npz", "--draws", 30, "--json").json
    assert told["metrics"] == evaluated(calibrator.predict_proba(judged.logits), judged.labels, draws=30)
    scored = run("evaluate", "test.npz", "-c", "cal.json", "--draws", 30, "--json").json
    assert told["metrics"] == scored["metrics"]


def test_the_table_has_every_metric_as_the_library_shows_it(run, files, judged):
    lines = run("evaluate", "test.npz", "--draws", 50, "--all").succeeded().out.splitlines()
    result = metrics.evaluate(LogitRows(judged.logits).softmax(1.0), judged.labels, draws=50)
    for name, estimate in result.items():
        value, low, high = (result.shown(name, x) for x in (estimate.value, estimate.low, estimate.high))
        interval = "-" if "-" in (low, high) else f"{low} to {high}"
        label = METRICS[name].label.replace("NLL", "log loss")
        assert f"{label} {value} {interval}" in [" ".join(line.split()) for line in lines]
