"""From a table with names to calibrated probabilities and a report; nothing is calibrated twice."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from pyarrow import feather, parquet
from test_cli_labels import save_frame

from temperance import load
from temperance.data import open_rows, simulate

NAMES = ["cat", "dog", "owl", "eel"]


@pytest.fixture
def run(run):
    """Run a command in a new folder, which must end with `code`; return its output, or its error."""

    def told(*words, code=0):
        done = run(*words)
        assert done.code == code, done
        return done.err if code else done.out

    return told


@pytest.fixture
def frame(run):
    """Write a table with names of classes and rows; return it."""
    task = simulate(n_rows=200, n_classes=4, random_state=7)
    made = pandas.DataFrame(task.logits, columns=NAMES, index=[f"row {i}" for i in range(200)])
    made["label"] = np.array(NAMES)[task.labels]
    made.to_csv("val.csv")
    return made


def fit(run, *options, method="ts"):
    return run("fit", "val.csv", "--input", "logits", "-m", method, "-o", "cal.json", *options)


def test_names_are_kept_from_the_file_to_the_report(run, frame):
    out = fit(run, "--details", method="lts")
    assert (
        "val.csv: columns of classes: 'cat', 'dog', 'owl', 'eel'; labels: 'label'; ids: the first"
        in " ".join(out.split())
    )
    assert "classes: cat, dog, owl, eel" in out
    assert "class cat:" in out or "class dog:" in out
    fitted = load("cal.json")
    assert fitted.classes_.tolist() == NAMES
    for suffix in (".csv", ".parquet", ".npz"):
        run("apply", "cal.json", "val.csv", "--input", "logits", "-o", f"probs{suffix}")
    for made in (pandas.read_csv("probs.csv"), pandas.read_parquet("probs.parquet")):
        assert list(made) == ["id", *(f"prob_{name}" for name in NAMES), "label", "calibrated_by"]
        assert made["id"].tolist() == list(frame.index)
        assert made["label"].tolist() == frame["label"].tolist()
        np.testing.assert_allclose(made.iloc[:, 1:5], fitted.predict_proba(frame[NAMES].to_numpy()))
    with np.load("probs.npz") as held:
        assert held["classes"].tolist() == NAMES
        assert held["ids"].tolist() == list(frame.index)
    for suffix in (".csv", ".parquet", ".npz"):
        rows = open_rows(f"probs{suffix}")
        assert rows.class_names == tuple(NAMES)
        assert [NAMES[label] for label in rows.labels] == frame["label"].tolist()
        run("evaluate", f"probs{suffix}", "--draws", 5)


def test_json_and_the_report_have_names(run, frame):
    told = json.loads(fit(run, "--json"))["file"]
    assert told["columns"] == {"scores": NAMES, "label": "label", "id": ""}
    assert told["class_names"] == NAMES
    words = ("compare", "val.csv", "--input", "logits", "-m", "ts", "--folds", 2)
    assert json.loads(run(*words, "--json"))["files"][0]["columns"]["label"] == "label"
    run(*words, "--report", "report.html")
    page = Path("report.html").read_text()
    assert all(name in page for name in NAMES)


def test_names_of_classes_from_the_command_line(run, frame):
    logits, labels = frame[NAMES].to_numpy(), frame["label"].to_numpy(str)
    np.savez("val.npz", logits=logits, labels=labels)
    said = run("fit", "val.npz", "-o", "cal.json", code=2)
    assert "labels that are names, 'cat', 'dog', 'eel', 'owl', need" in said
    assert "Pass --classes FIRST,SECOND,..." in said
    Path("names.txt").write_text("\n".join(NAMES) + "\n")
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json", "--classes", "@names.txt")
    assert load("cal.json").class_names_ == tuple(NAMES)
    run("fit", "val.npz", "-m", "ts", "-o", "other.json", "--classes", ",".join(NAMES))
    assert load("other.json").temperature_ == load("cal.json").temperature_
    assert "cannot be read" in run("fit", "val.npz", "-o", "x.json", "--classes", "@nowhere", code=2)


def test_columns_in_another_order_are_found_by_name_and_others_are_refused(run, frame):
    fit(run)
    frame[["owl", "cat", "dog", "eel"]].to_csv("new.csv")
    words = ("apply", "cal.json", "new.csv", "--input", "logits", "-o", "probs.csv")
    run(*words)
    run("apply", "cal.json", "val.csv", "--input", "logits", "-o", "straight.csv")
    assert (
        pandas.read_csv("probs.csv")["prob_owl"].tolist()
        == pandas.read_csv("straight.csv")["prob_owl"].tolist()
    )
    np.savez("new.npz", logits=frame[NAMES], classes=NAMES[::-1])
    assert "Reorder the columns" in run("apply", "cal.json", "new.npz", "-o", "new.csv", "-f", code=2)
    frame[["cat", "dog", "owl"]].to_csv("new.csv")
    said = run(*words, "-f", code=2)
    assert said.strip().endswith("Choose the file or the calibrator of the same classifier.")


def test_files_of_a_comparison_have_the_same_classes(run, frame):
    words = ("compare", "val.csv", "test.csv", "--input", "logits", "-m", "ts")
    frame[[*NAMES[::-1], "label"]].to_csv("test.csv")
    assert "found the same 200 rows" in run(*words, code=2)  # by the names of their columns
    frame.rename(columns={"cat": "lynx"}).iloc[:, :4].assign(label="dog").to_csv("test.csv")
    assert "named as in the validation file" in run(*words, code=2)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_nothing_is_calibrated_twice(run, frame, suffix):
    fit(run)
    made = f"probs{suffix}"
    run("apply", "cal.json", "val.csv", "--input", "logits", "-o", made)
    for words in (
        ("apply", "cal.json", made, "--from-probs", "-o", "twice.npz"),
        ("evaluate", made, "-c", "cal.json"),
        ("adapt", "cal.json", made, "-o", "adapted.json"),
        ("fit", made, "-o", "again.json"),
        ("compare", made, "-m", "ts"),
    ):
        assert "already calibrated by ts (temperance " in run(*words, code=2), words
    run("evaluate", made, "--draws", 5)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".jsonl"])
def test_the_mark_stays_in_a_converted_file_until_it_is_dropped(run, frame, suffix):
    fit(run)
    run("apply", "cal.json", "val.csv", "--input", "logits", "-o", "probs.csv")
    made = pandas.read_csv("probs.csv")
    save_frame(f"again{suffix}", made)
    said = run("fit", f"again{suffix}", "-o", "again.json", code=2)
    assert "already calibrated by ts (temperance " in said
    assert said.strip().endswith("drop calibrated_by from the file.")
    save_frame(f"again{suffix}", made.drop(columns="calibrated_by"))
    run("fit", f"again{suffix}", "-m", "ts", "-o", "again.json")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_the_mark_of_version_0_2_is_known(run, frame, suffix):
    fit(run)
    run("apply", "cal.json", "val.csv", "--input", "logits", "-o", "probs.parquet")
    made = parquet.read_table("probs.parquet").drop_columns("calibrated_by")
    made = made.replace_schema_metadata({"temperance.calibrated_by": "ts (temperance 0.2.0)"})
    parquet.write_table(made, "old.parquet")
    feather.write_feather(made, "old.feather")
    for words in (("apply", "cal.json", f"old{suffix}", "--from-probs"), ("fit", f"old{suffix}")):
        assert "already calibrated by ts (temperance 0.2.0)" in run(*words, "-o", "again.npz", code=2)
    run("evaluate", f"old{suffix}", "--draws", 5)


def test_probabilities_for_a_calibrator_of_logits(run, frame):
    fit(run)
    logits = frame[NAMES].to_numpy()
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = [NAMES.index(name) for name in frame["label"]]
    np.savez("probs.npz", probs=probs, labels=labels)
    np.save("probs.npy", probs)
    for words in (
        ("apply", "cal.json", "probs.npz", "-o", "out.npz"),
        ("evaluate", "probs.npz", "-c", "cal.json", "--draws", "5"),
    ):
        assert "must hold logits, which the calibrator was fitted to; found prob" in run(*words, code=2)
        assert "Pass --from-probs." in run(*words, code=2)
        run(*words, "--from-probs")
    run("apply", "cal.json", "probs.npy", "--from-probs", "-o", "same.npz")
    assert np.array_equal(np.load("same.npz")["probs"], np.load("out.npz")["probs"])
    assert "exclude each other" in run(
        "apply", "cal.json", "probs.npy", "--from-probs", "--input", "logits", "-o", "x.npz", code=2
    )
    run("fit", "probs.npz", "-m", "ts", "-o", "of-probs.json")
    said = run("apply", "of-probs.json", "val.csv", "--input", "logits", "-o", "x.npz", code=2)
    assert "must hold probabilities, which the calibrator was fitted to; found logits" in said


def test_classes_named_by_numbers_keep_their_labels_in_every_file(run):
    task = simulate(n_rows=300, n_classes=3, random_state=1)
    made = pandas.DataFrame(task.logits, columns=[f"logit_{k}" for k in (1, 2, 3)]).assign(
        label=task.labels + 1
    )
    made[:150].to_csv("val.csv", index=False)
    made[150:].query("label > 1").to_csv("test.csv", index=False)
    run("fit", "val.csv", "-m", "ts", "-o", "cal.json")
    found = set()
    for suffix in (".csv", ".npz", ".parquet"):
        run("apply", "cal.json", "test.csv", "-o", f"probs{suffix}")
        found.add(json.loads(run("evaluate", f"probs{suffix}", "--json"))["metrics"]["nll"]["value"])
    assert max(found) == pytest.approx(min(found), rel=1e-12)
    run("compare", "val.csv", "test.csv", "-m", "ts")


def test_a_comparison_needs_the_same_kind_of_outputs_in_both_files(run):
    task = simulate(n_rows=200, n_classes=3, random_state=1)
    np.savez("val.npz", probs=task.probabilities[:100], labels=task.labels[:100])
    np.savez("test.npz", logits=task.logits[100:], labels=task.labels[100:])
    said = run("compare", "val.npz", "test.npz", "-m", "ts", code=2)
    assert "must hold probabilities, as val.npz does; found logits" in " ".join(said.split())


def test_ids_with_the_name_of_a_label_column_are_read_back(run, frame):
    frame.rename(columns={"label": "truth"}).assign(y=range(len(frame))).to_csv("named.csv", index=False)
    fit(run)
    columns = ("--input", "logits", "--id-column", "y", "--label-column", "truth")
    run("apply", "cal.json", "named.csv", *columns, "-o", "probs.csv")
    rows = open_rows("probs.csv", id_column="id")
    assert rows.ids.astype(int).tolist() == list(range(len(frame)))
    run("evaluate", "probs.csv", "--id-column", "id")


def test_an_option_that_was_not_given_is_not_advised_to_be_left_out(run, frame):
    fit(run)
    frame.rename(columns={name: f"logit_{name}" for name in NAMES}).to_csv("named.csv", index=False)
    for words in (("-c", "cal.json"), ()):
        said = " ".join(run("evaluate", "named.csv", *words, "--from-probs", code=2).split())
        assert "Leave --from-probs out" in said
    np.save("labels.npy", np.zeros(len(frame), int))
    options = ("--labels", "labels.npy", "--label-column", "y")
    said = " ".join(run("evaluate", "named.csv", *options, code=2).split())
    assert "labels.npy: is not a table and has no columns. Leave --label-column out" in said
