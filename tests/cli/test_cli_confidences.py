"""Confidences of answers and their marks: one column of each, read as P(correct) without any option."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from temperance import load
from temperance.data import open_rows

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.beta(6, 1.5, 200).round(2)
CORRECT = RNG.uniform(size=200) < 0.2 + 0.6 * CONFIDENCE
MARKS = {
    "numbers": ("0", "1"),
    "yes and no": ("no", "yes"),
    "pandas": ("False", "True"),
    "JavaScript": ("false", "true"),
    "right and wrong": ("wrong", "right"),
    "names of the classes": ("incorrect", "correct"),
}


def save(path, confidence, marks=("0", "1"), names=("question", "confidence", "correct")):
    """Write a table of questions, with a comma in each."""
    lines = [",".join(names)]
    for number, one in enumerate(confidence):
        lines.append(f'"How, exactly: {number}?",{one},{marks[int(CORRECT[number])]}')
    Path(path).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS.keys())
def test_a_table_of_confidences_and_marks_needs_no_option(marks, run):
    save("val.csv", CONFIDENCE, marks)
    done = run("fit", "val.csv", "-o", "cal.json")
    assert done.code == 0, done
    assert done.out.startswith("val.csv: columns of P(correct): 'confidence'; labels: 'correct'\n")
    assert load("cal.json").class_names_ == ("incorrect", "correct")
    told = run("evaluate", "val.csv", "--draws", 10, "--json").json
    finding = told["finding"]
    assert finding["mean"] == pytest.approx(CONFIDENCE.mean())
    assert (finding["class"], finding["rate"]) == ("correct", CORRECT.mean())
    for words in (("check", "cal.json", "val.csv"), ("compare", "val.csv", "-m", "ts", "--folds", 2)):
        assert run(*words).code == 0


def test_new_rows_without_marks_are_read_as_at_the_fit(run):
    save("val.csv", CONFIDENCE)
    run("fit", "val.csv", "-o", "cal.json")
    Path("new.csv").write_text("question,confidence\nWhy?,0.9\nHow?,0.5\n")
    done = run("apply", "cal.json", "new.csv", "-o", "out.csv", "--id-column", "question")
    assert done.code == 0, done
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0].startswith("question,prob_incorrect,prob_correct")
    assert [line.split(",")[0] for line in lines[1:]] == ["Why?", "How?"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".jsonl"])
@pytest.mark.parametrize("name", ["confidence", "prob_correct"])
def test_percentages_are_noted_in_every_format(name, suffix, run):
    frame = pandas.DataFrame({"answer": "x", name: (100 * CONFIDENCE).round(), "correct": CORRECT})
    writer = {".csv": "to_csv", ".parquet": "to_parquet", ".xlsx": "to_excel", ".jsonl": "to_json"}[suffix]
    kwargs = {"orient": "records", "lines": True} if suffix == ".jsonl" else {"index": False}
    getattr(frame, writer)(f"a{suffix}", **kwargs)
    rows = open_rows(f"a{suffix}")
    np.testing.assert_allclose(rows.array(), CONFIDENCE)
    np.testing.assert_array_equal(rows.labels, CORRECT)
    said = run("evaluate", f"a{suffix}", "--draws", 10).out
    assert said.startswith(f"a{suffix}: columns of P(correct): '{name}', in percent; labels: 'correct'\n")


def test_shares_among_percentages_are_refused(run):
    save("a.csv", ["0.9", "85", *(["70"] * 198)])
    run("fit", "a.csv", "-o", "cal.json").failed(
        2, "a.csv", "confidences must all be from 0 to 1, or all percentages", "found 85 and 0.9"
    )


def test_a_confidence_beside_other_labels_is_not_taken_as_that_of_the_second_class(run):
    """It may be the confidence in whichever class was predicted."""
    save("a.csv", CONFIDENCE, names=("question", "confidence", "label"))
    run("fit", "a.csv", "-o", "cal.json").failed(2, "a.csv", "column 'question' must hold numbers")
    named = ("--classes", "incorrect,correct")
    assert run("fit", "a.csv", "-o", "cal.json", *named).code == 0


def test_words_beside_a_single_probability_propose_their_order(run):
    save("a.csv", CONFIDENCE, ("no", "yes"), names=("question", "prob_1", "correct"))
    command = ("fit", "a.csv", "-o", "cal.json", "--label-column", "correct")
    run(*command).failed(2, "a.csv", "Pass --classes no,yes.")
    assert run(*command, "--classes", "no,yes").code == 0
