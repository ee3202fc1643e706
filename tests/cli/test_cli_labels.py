"""Labels and columns: every command reads the same classes from every format as Python does from arrays."""

import json
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pandas
import pytest
import torch

from temperance import (
    InputError,
    automate,
    compare,
    load,
    logits_from_probs,
    make_calibrator,
    metrics,
    monitoring,
)
from temperance.calibrators.label_shift import frequency_changes
from temperance.core.logit_rows import LogitRows
from temperance.data import open_rows, simulate


class Case(NamedTuple):
    """Names of the columns, and what a label of each column is called."""

    names: tuple | None
    labels: list
    only: tuple = (0, 1, 2)
    """Columns whose labels occur."""


CASES = {
    "strings": Case(("cat", "dog", "owl"), ["cat", "dog", "owl"]),
    "numbered": Case(None, [0, 1, 2]),
    "indices of named columns": Case(("cat", "dog", "owl"), [0, 1, 2]),
    "numbers in another order": Case(("0", "2", "1"), [0, 2, 1]),
    "numbers with gaps": Case(("7", "3", "5"), [7, 3, 5]),
    "one-based": Case(("1", "2", "3"), [1, 2, 3]),
    "one-based, one class missing": Case(("1", "2", "3"), [1, 2, 3], only=(0, 1)),
    "negative": Case(("-1", "0", "1"), [-1, 0, 1]),
    "numbers as text": Case(("2", "1", "0"), ["2", "1", "0"]),
    "padded": Case(("01", "10", "02"), ["01", "10", "02"]),
    "floats as text": Case(("2.0", "1.0", "0.0"), [2, 1, 0]),
    "numbers among words": Case(("1", "2", "unknown"), ["1", "2", "unknown"]),
    "only numbers occur among words": Case(("1", "2", "unknown"), ["1", "2", "unknown"], only=(0, 1)),
    "booleans": Case(("False", "True"), [False, True], only=(0, 1)),
    "booleans in another order": Case(("True", "False"), [True, False], only=(0, 1)),
    "booleans as text": Case(("true", "false"), ["true", "false"], only=(0, 1)),
}


def save_columns(path, logits, labels, names, prefix=""):
    """Write columns that are named after the classes, behind a prefix or alone."""
    columns = [f"{prefix}{name}" for name in names or [f"logit_{k}" for k in range(logits.shape[1])]]
    save_frame(path, pandas.DataFrame(logits, columns=columns).assign(label=labels))


def save_named_scores(path, logits, labels, names):
    save_columns(path, logits, labels, names, prefix="logit_" if names else "")


def save_frame(path, frame):
    if path.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    elif path.endswith(".xlsx"):
        frame.to_excel(path, index=False)
    elif path.endswith(".parquet"):
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)


def save_objects(path, logits, labels, names):
    """Write the scores of a row by the names of their classes."""
    rows = [dict(zip(names, row, strict=True)) if names else row for row in logits.tolist()]
    records = [{"logits": row, "label": label} for row, label in zip(rows, labels, strict=True)]
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))


def save_arrays(path, logits, labels, names):
    arrays = {"logits": logits, "labels": np.array(labels)}
    arrays |= {} if names is None else {"classes": np.array(names)}
    if path.endswith(".npz"):
        np.savez(path, **arrays)
    elif path.endswith(".h5"):
        with h5py.File(path, "w") as file:
            for key, array in arrays.items():
                text = array.dtype.kind == "U"
                file.create_dataset(key, data=array.astype(object) if text else array)
    else:
        held = {"logits": torch.from_numpy(logits), "labels": list(labels)}
        if isinstance(labels[0], bool):
            held["labels"] = torch.tensor(labels)
        torch.save(held if names is None else held | {"classes": list(names)}, path)


FORMATS = {
    "csv": (save_columns, ".csv"),
    "csv-scores": (save_named_scores, ".csv"),
    "parquet": (save_columns, ".parquet"),
    "excel": (save_named_scores, ".xlsx"),
    "json-columns": (save_columns, ".jsonl"),
    "json-objects": (save_objects, ".jsonl"),
    "npz": (save_arrays, ".npz"),
    "hdf5": (save_arrays, ".h5"),
    "pt": (save_arrays, ".pt"),
}


def rows_of(case, seed=5):
    """Return logits, the right columns, and the labels as a file has them."""
    task = simulate(n_rows=60, n_classes=len(case.labels), random_state=seed)
    kept = np.isin(task.labels, case.only)
    columns = task.labels[kept]
    return task.logits[kept].round(3), columns, [case.labels[column] for column in columns]


def options_of(case):
    """Return the options with which every format can be read."""
    is_mixed = case.names is not None and "unknown" in case.names  # columns by number, or by name?
    return ("--input", "logits", *(("--classes", ",".join(case.names)) if is_mixed else ()))


each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_case
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_same_rows(case, name, folder):
    save, suffix = FORMATS[name]
    if name == "csv" and any(label.lstrip("-").replace(".", "").isdigit() for label in case.names or ()):
        save = save_named_scores  # numbers in a header may be a row
    logits, columns, labels = rows_of(case)
    save(f"val{suffix}", logits, labels, case.names)
    # Numbered columns are read in the order of their numbers, unless another is given.
    rows = open_rows(f"val{suffix}", kind="logits", classes=case.names)
    np.testing.assert_array_equal(rows.array(), logits)
    np.testing.assert_array_equal(rows.labels, columns)
    assert rows.class_names == case.names
    by_python = make_calibrator("ts").fit(logits, np.array(labels), classes=case.names)
    assert by_python.temperature_ == make_calibrator("ts").fit(rows.array(), rows.labels).temperature_


@pytest.mark.filterwarnings("ignore:class 2 had fewer than 5 labels at fit")
@pytest.mark.filterwarnings("ignore:.*rows do not determine the frequency")
@each_case
@pytest.mark.parametrize("name", ["csv-scores", "json-columns", "npz"])
def test_every_command_uses_the_classes_that_python_uses(case, name, run):
    save, suffix = FORMATS[name]
    val, new, read = f"val{suffix}", f"new{suffix}", options_of(case)
    logits, columns, labels = rows_of(case)
    save(val, logits, labels, case.names)
    new_logits, new_columns, new_labels = rows_of(case, seed=6)
    save(new, new_logits, new_labels, case.names)
    run("fit", val, *read, "-m", "ts", "-o", "cal.json").succeeded()
    assert load("cal.json").temperature_ == pytest.approx(
        make_calibrator("ts").fit(logits, columns).temperature_, rel=1e-9
    )
    # The calibrator of Python has the names in the order of the columns, whatever that of the numbers is.
    cal = make_calibrator("ts").fit(logits, np.array(labels), classes=case.names)
    cal.save("cal.json", overwrite=True)
    probs = cal.predict_proba(new_logits)
    told = run("evaluate", new, *read, "-c", "cal.json", "--draws", 2, "--json").json
    assert told["metrics"]["nll"]["value"] == pytest.approx(metrics.nll(probs, new_columns), rel=1e-12)
    told = run("evaluate", new, *read, "--draws", 2, "--json").json
    plain = metrics.nll(LogitRows(new_logits).softmax(1.0), new_columns)
    assert told["metrics"]["nll"]["value"] == pytest.approx(plain, rel=1e-12)
    for out in ("probs.csv", "probs.npz"):
        run("apply", "cal.json", new, *read, "-o", out).succeeded()
        made = open_rows(out, classes=case.names)
        np.testing.assert_array_equal(made.array(), probs)
        np.testing.assert_array_equal(made.labels, new_columns)
    told = json.loads(run("check", "cal.json", new, *read, "--history", "checks.jsonl", "--json").out)
    found = monitoring.check(cal, new_logits, np.array(new_labels), name=new, history="python.jsonl")
    assert told["words"] == found.to_dict()["words"]
    assert Path("checks.jsonl").read_text() == Path("python.jsonl").read_text()
    told = run("automate", "cal.json", new, *read, "--max-error", "0.4", "--json").json
    assert told["curve"] == automate(probs, new_columns, 0.4).to_dict()["curve"]
    told = run("adapt", "cal.json", new, *read, "-o", "adapted.json", "--json").json
    assert told["classes"] == [vars(one) for one in frequency_changes(cal.adapt(new_logits).model_)]
    told = run("compare", val, new, *read, "-m", "ts", "--json").json
    by_python = compare(logits, columns, new_logits, new_columns, ["ts"], draws=2)
    compared = told["methods"]["ts"]["scores"]["nll"]["value"]
    assert compared == pytest.approx(by_python.results["ts"].scores["nll"].value, rel=1e-9)


@pytest.mark.parametrize(
    "case", [CASES[name] for name in ("strings", "numbers in another order", "booleans")]
)
def test_a_file_without_names_has_those_of_the_calibrator(case, run):
    logits, columns, labels = rows_of(case)
    cal = make_calibrator("ts").fit(logits, np.array(labels), classes=case.names)
    cal.save("cal.json")
    logits = logits + 0.25 * np.arange(logits.shape[1])  # not the rows of the fit
    np.savez("new.npz", logits=logits, labels=np.array(labels))
    told = json.loads(run("check", "cal.json", "new.npz", "--json").out)
    wanted = monitoring.check(cal, logits, np.array(labels), name="new.npz")
    assert told["words"] == wanted.to_dict()["words"]
    told = run("evaluate", "new.npz", "-c", "cal.json", "--draws", 2, "--json").json
    assert told["metrics"]["nll"]["value"] == metrics.nll(cal.predict_proba(logits), columns)
    save_arrays("val.npz", rows_of(case)[0], labels, case.names)
    told = run("compare", "val.npz", "new.npz", "-m", "ts", "--json").json
    wanted = metrics.nll(cal.predict_proba(logits), columns)
    assert told["methods"]["ts"]["scores"]["nll"]["value"] == pytest.approx(wanted, rel=1e-9)


def test_labels_in_another_file_are_among_the_names_of_the_scores(folder):
    case = CASES["only numbers occur among words"]
    logits, columns, labels = rows_of(case)
    np.savez("val.npz", logits=logits, classes=np.array(case.names))
    pandas.DataFrame({"label": labels}).to_csv("labels.csv", index=False)
    rows = open_rows("val.npz", labels="labels.csv")
    np.testing.assert_array_equal(rows.labels, columns)


def test_a_number_that_is_an_index_and_a_name_is_refused():
    case = CASES["only numbers occur among words"]
    logits, columns, labels = rows_of(case)
    with pytest.raises(
        InputError, match="labels must be text where a whole number can mean two of the classes"
    ):
        make_calibrator("ts").fit(logits, np.array(labels, int), classes=case.names)
    fitted = make_calibrator("ts").fit(logits, np.array(labels, str), classes=case.names)
    assert fitted.temperature_ == make_calibrator("ts").fit(logits, columns).temperature_


def test_a_calibrator_says_what_the_numbers_of_its_classes_are(run):
    logits, _, labels = rows_of(CASES["strings"])
    probs = LogitRows(logits).softmax(1.0)
    for kind, numbers in (("logits", logits), ("probs", probs)):
        save_columns(f"{kind}.csv", numbers, labels, CASES["strings"].names)
        run("fit", f"{kind}.csv", "--input", kind, "-m", "ts", "-o", f"{kind}.json").succeeded()
        run("apply", f"{kind}.json", f"{kind}.csv", "-o", f"{kind}.npz").succeeded()
        np.testing.assert_allclose(
            np.load(f"{kind}.npz")["probs"],
            load(f"{kind}.json").predict_proba(logits if kind == "logits" else np.log(probs)),
        )
    # Other numbers, and other classes, still need a word.
    run("apply", "logits.json", "probs.csv", "-o", "x.npz").failed(2, "does not say whether it holds logits")
    run("apply", "probs.json", "logits.csv", "-o", "x.npz").failed(2, "does not say whether it holds logits")
    save_columns("other.csv", probs, labels, ("cat", "dog", "eel"))
    run("apply", "probs.json", "other.csv", "-o", "x.npz").failed(2, "does not say whether it holds logits")
    np.save("bare.npy", probs)
    run("apply", "probs.json", "bare.npy", "-o", "x.npz").failed(2, "does not say whether it holds logits")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".jsonl"])
@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_one_numbered_score_is_that_of_the_second_class(kind, suffix, run):
    logits, columns, _ = rows_of(CASES["booleans"])
    score = logits[:, 1] - logits[:, 0]
    score = score if kind == "logit" else (1 / (1 + np.exp(-score))).round(9)
    for words, read in ((columns, ()), (np.array(["no", "yes"])[columns], ("--classes", "no,yes"))):
        save_frame(f"val{suffix}", pandas.DataFrame({f"{kind}_1": score, "Truth": words}))
        run("fit", f"val{suffix}", *read, "-m", "ts", "-o", "cal.json", "-f").succeeded()
        given = score if kind == "logit" else logits_from_probs(score)
        wanted = make_calibrator("ts").fit(given, columns).temperature_
        assert load("cal.json").temperature_ == pytest.approx(wanted, rel=1e-6)
