"""Confidences of answers and their marks: one column of each, read as P(correct) without any option."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from temperance import InputError, load
from temperance.data import open_rows, read_options
from temperance.formulas import fit_record

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
        2, "a.csv", "confidences must be percentages, 0 or from 1 to 100; found 0.9", "Correct them"
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


RATINGS = RNG.integers(1, 6, 200), RNG.integers(6, 11, 200), RNG.integers(1, 11, 200) / 2 + 1


@pytest.mark.parametrize("ratings", RATINGS, ids=["1 to 5", "6 to 10", "with halves"])
@pytest.mark.parametrize(
    "words", [("fit", "a.csv", "-o", "c.json"), ("evaluate", "a.csv"), ("compare", "a.csv")]
)
def test_ratings_are_no_percentages_unless_the_user_says_so(ratings, words, run):
    save("a.csv", ratings)
    run(*words).failed(
        2, "a.csv", "like ratings. Divide ratings by the largest possible one", "--unit percent."
    )
    with pytest.raises(InputError, match=r"like ratings.*unit='percent'"):
        open_rows("a.csv")
    np.testing.assert_allclose(open_rows("a.csv", unit="percent").array(), ratings / 100)
    assert run(*words, "--unit", "percent", *(["-m", "ts"] if words[0] == "compare" else [])).code == 0
    save("a.csv", ratings / 10)
    assert open_rows("a.csv").unit == "fraction"


def new_rows(*confidences):
    Path("new.csv").write_text("\n".join(["question,confidence", *(f"q,{one}" for one in confidences)]))


def applied(run, *words):
    done = run("apply", "cal.json", "new.csv", "-o", "out.csv", "-f", "--id-column", "question", *words)
    assert done.code == 0, done
    return pandas.read_csv("out.csv").prob_correct.to_numpy()


def test_the_unit_of_the_fit_is_that_of_every_later_row(run):
    """One percent is one percent, whatever is beside it."""
    save("percent.csv", (100 * CONFIDENCE).round())
    save("fraction.csv", CONFIDENCE)
    run("fit", "fraction.csv", "-m", "ts", "-o", "cal.json")
    assert load("cal.json").fitted_on_.unit == "fraction"
    new_rows(0.01, 0.9)
    wanted = applied(run)
    run("fit", "percent.csv", "-m", "ts", "-o", "cal.json", "-f")
    assert load("cal.json").fitted_on_.unit == "percent"
    new_rows(1, 90)
    np.testing.assert_allclose(applied(run), wanted, rtol=1e-6)
    new_rows(1)  # alone, it could be a fraction
    np.testing.assert_allclose(applied(run), wanted[:1], rtol=1e-6)
    Path("one.csv").write_text("confidence,correct\n1,0\n1,0\n1,1\n")
    for words in (["evaluate", "one.csv", "-c", "cal.json", "--draws", 5], ["check", "cal.json", "one.csv"]):
        done = run(*words)
        assert done.out.startswith("one.csv: columns of P(correct): 'confidence', in percent"), done


def test_numbers_that_cannot_be_in_the_unit_of_the_fit_ask_for_theirs(run):
    save("a.csv", (100 * CONFIDENCE).round())
    run("fit", "a.csv", "-m", "ts", "-o", "cal.json")
    new_rows(0.9, 0.8)
    command = ("apply", "cal.json", "new.csv", "-o", "out.csv", "--id-column", "question")
    run(*command).failed(
        2, "percentages, 0 or from 1 to 100, as in the fit", "--unit fraction or --unit percent"
    )
    of_fractions = applied(run, "--unit", "fraction")
    new_rows(90, 80)
    np.testing.assert_allclose(applied(run), of_fractions, rtol=1e-6)
    new_rows(0.5)
    np.testing.assert_allclose(applied(run, "--unit", "percent"), applied(run, "--unit", "fraction"), atol=1)
    new_rows(101)
    run(*command, "-f", "--unit", "percent").failed(
        2, "percentages, from 0 to 100; found 101", "Correct them."
    )
    save("a.csv", CONFIDENCE)
    run("fit", "a.csv", "-m", "ts", "-o", "cal.json", "-f")
    new_rows(90, 80)
    run(*command, "-f").failed(2, "fractions, from 0 to 1, as in the fit; found 90", "Pass --unit percent.")
    np.testing.assert_allclose(applied(run, "--unit", "percent"), of_fractions, rtol=1e-6)


def test_a_calibrator_without_a_unit_asks_for_it_where_numbers_exceed_1(run):
    """As files before version 3 are."""
    save("a.csv", CONFIDENCE)
    run("fit", "a.csv", "-m", "ts", "-o", "cal.json")
    new_rows(0.9, 0.8)
    wanted = applied(run)
    content = json.loads(Path("cal.json").read_text())
    content["version"] = 2
    del content["fitted_on"]["unit"]
    Path("cal.json").write_text(json.dumps(content))
    np.testing.assert_array_equal(applied(run), wanted)
    new_rows(90, 80)
    command = ("apply", "cal.json", "new.csv", "-o", "out.csv", "-f", "--id-column", "question")
    run(*command).failed(
        2, "the calibrator does not say what its confidences were in; found 90", "--unit percent."
    )
    np.testing.assert_allclose(applied(run, "--unit", "percent"), wanted, rtol=1e-6)


def test_test_rows_are_in_the_unit_of_the_validation_rows(run):
    save("val.csv", (100 * CONFIDENCE).round())
    Path("test.csv").write_text("confidence,correct\n" + "\n".join(f"1,{i % 2}" for i in range(30)))
    told = run("compare", "val.csv", "test.csv", "-m", "ts", "--json").json
    own = next(iter(told["methods"].values()))["scores"]
    assert own["nll"]["value"] == pytest.approx(-np.log(0.01 * 0.99) / 2)


def test_the_unit_is_for_one_column(run):
    Path("a.csv").write_text("prob_0,prob_1,label\n50,50,1\n10,90,0\n")
    run("evaluate", "a.csv", "--unit", "percent").failed(
        2, "the unit belongs to a single column", "Leave --unit out"
    )
    Path("a.csv").write_text("prob_1,label\n50,1\n90,0\n")
    assert open_rows("a.csv", unit="percent").array().tolist() == [0.5, 0.9]


def test_the_units_of_options_and_of_files_are_the_same():
    assert read_options.UNITS == fit_record.UNITS
