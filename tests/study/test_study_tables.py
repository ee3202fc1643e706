"""Tables of a study: what is in them, and how it is written for people, for LaTeX and for programs."""

import csv
import re

import numpy as np
import pytest
from making import score_of

from temperance import InputError
from temperance.calibrators import UNCALIBRATED
from temperance.study.protocol import FitKey
from temperance.study.results import Results
from temperance.study.store import ResultStore
from temperance.study.tables import make_table, to_csv, to_latex, to_markdown

RESNET = {"ece50": 0.107095, "nll": 0.78968, "brier": 0.23921}  # the paper's, uncalibrated


def units(table):
    """Return the cells of a Markdown table, without its rule."""
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    return [
        [unit.strip() for unit in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if "| :--" not in line
    ]


def paragraphs(table):
    return to_markdown(table).rstrip("\n").split("\n\n")[1:]


def test_tasks_by_methods_with_the_uncalibrated_first(results):
    table = make_table(results)
    lines = units(table)
    assert lines[0] == ["Data set", "Task", "Uncalibrated", "TS", "HTS", "PTS", "Bayes"]
    assert [line[:2] for line in lines[1:]] == [
        ["cats", "large"], ["", "small"], ["", "Avg. relative"],
        ["dogs", "net"], ["All tasks", "Avg. relative"],
    ]  # fmt: skip
    for task, line in zip(results.tasks, table.data.to_dict("records"), strict=True):
        assert (line["dataset"], line["model"], line["rows"]) == (task.dataset, task.model, 30)
        assert line["hts"] == results.summary("nll", 30).loc[(task.name, "hts")]["mean"]


def test_averages_are_of_scores_relative_to_the_uncalibrated_classifier(made):
    study = made(
        {
            "a__x": {UNCALIBRATED: [2.0], "ts": [1.0, 2.0], "hts": [1.0]},
            "a__y": {UNCALIBRATED: [4.0], "ts": [3.0], "hts": [4.0]},
            "b__z": {UNCALIBRATED: [1.0], "ts": [0.25], "hts": [0.5]},
        }
    )
    _, _, _, average, _, overall = units(make_table(study))
    assert average[2:] == ["1.000", "**0.750**", "**0.750**"]
    assert overall[2:] == ["1.000", "**0.583**", "0.667"]
    study.tasks = study.tasks[:1]
    assert "relative" not in to_markdown(make_table(study)), "one task has no average"


def test_the_lowest_score_and_all_equal_ones_are_bold(made):
    scores = {UNCALIBRATED: [0.5], "ts": [0.40004], "hts": [0.39996], "lts": [0.40006]}
    table = make_table(made({"a__x": scores}))
    assert units(table)[1] == ["a", "x", "0.5000", "**0.4000**", "**0.4000**", "0.4001"]
    assert "mean of up to 1 draw. Lower" in paragraphs(table)[0]


def test_an_ece_is_shown_in_percent_with_two_decimals_and_its_ratio_too(made):
    scores = {UNCALIBRATED: [0.1], "ts": [0.0254]}
    table = make_table(made({"a__x": scores, "a__y": scores}), "ece")
    assert [line[2:] for line in units(table)[1:]] == [["10.00", "**2.54**"]] * 2 + [["1.000", "**0.254**"]]
    assert "ECE (50 bins) in %" in to_markdown(table)
    assert r"ECE (50 bins) in \%" in to_latex(table)
    assert to_csv(table).splitlines()[1] == "a,x,200,10,0.1,0.0254"


def test_errors_are_those_of_means_and_one_draw_has_none(made):
    study = made({"a__x": {UNCALIBRATED: [0.5], "ts": [0.4], "hts": [0.3, 0.3002]}})
    table = make_table(study, errors=True)
    assert units(table)[1][2:] == ["0.5000", "0.4000", "**0.3001** ± 0.0001"]
    assert r"\textbf{0.3001} $\pm$ 0.0001" in to_latex(table)
    assert "mean of up to 2 draws, ± its standard error. Lower is better" in paragraphs(table)[0]
    (line,) = csv.DictReader(to_csv(table).splitlines())
    assert float(line["hts_se"]) == pytest.approx(1e-4)
    assert line["ts_se"] == line["none_se"] == ""
    assert "±" not in to_markdown(make_table(study))
    assert "_se" not in to_csv(make_table(study))


def test_a_missing_result_is_a_dash_and_so_is_the_average_of_the_method(made):
    study = made(
        {
            "a__x": {UNCALIBRATED: [2.0], "ts": [1.0], "hts": [np.nan]},
            "a__y": {UNCALIBRATED: [2.0], "ts": [1.0], "hts": [1.0]},
        }
    )
    table = make_table(study)
    _, x, y, average = units(table)
    assert (x[-1], y[-1], average[-1]) == ("—", "**1.0000**", "—")
    assert r"& \textbf{1.0000} & -- \\" in to_latex(table)
    assert to_csv(table).splitlines()[1] == "a,x,200,10,2.0,1.0,"


def test_infinite_means_are_shown_and_make_infinite_averages(made):
    study = made(
        {
            "a__x": {UNCALIBRATED: [2.0], "ts": [1.0], "hts": [np.inf, 1.0]},
            "a__y": {UNCALIBRATED: [2.0], "ts": [1.0], "hts": [0.5]},
        }
    )
    table = make_table(study, errors=True)
    _, x, y, average = units(table)
    assert (x[-1], y[-1], average[-1]) == ("inf", "**0.5000**", "inf")
    assert x[-2] == "**1.0000**"
    assert to_latex(table).count(r"$\infty$") == 2
    assert to_csv(table).splitlines()[1] == "a,x,200,10,2.0,,1.0,,inf,"


@pytest.mark.parametrize("uncalibrated", [[0.0], [np.inf], []])
def test_a_task_without_ratios_is_left_out_of_averages_and_named(made, uncalibrated):
    scores = {UNCALIBRATED: uncalibrated, "ts": [1.0]}
    table = make_table(made({"a__x": scores, "a__y": {UNCALIBRATED: [2.0], "ts": [1.0]}}))
    assert units(table)[-1][2:] == ["1.000", "**0.500**"]
    notes = paragraphs(table)
    assert any(note.startswith("Not in averages") and note.endswith("infinite: a, x.") for note in notes)


def test_tasks_with_fewer_rows_are_marked_and_counted(made):
    scores = {UNCALIBRATED: [2.0], "ts": [1.0]}
    table = make_table(made({"a__x": scores, "b__y": scores}, rows={"a__x": 312, "b__y": 5000}, n=5000))
    assert [line[1] for line in units(table)[1:3]] == [r"x\*", "y"]
    assert r"\* all rows, fewer than 5000: a, x: 312." in paragraphs(table)
    assert "x* &" in to_latex(table)
    assert [line.split(",")[2] for line in to_csv(table).splitlines()] == ["rows", "312", "5000"]


def test_the_caption_says_what_the_numbers_are(made):
    scores = {UNCALIBRATED: [2.0], "ts": [1.0]}
    caption = paragraphs(make_table(made({"a__x": scores, "a__y": scores | {"ts": [1.0] * 3}})))[0]
    assert caption == (
        "Log loss on test rows of methods fitted to 200 validation rows: mean of up to 3 draws. Lower is "
        "better; the best of a row is bold."
    )


def test_a_method_is_shown_if_it_has_results_with_this_many_rows(made):
    study = made({"a__x": {UNCALIBRATED: [2.0], "ts": [1.0]}}, sizes=[200, 500])
    assert units(make_table(study, n=200))[0][2:] == ["Uncalibrated", "TS"]
    ResultStore(study.folder).add([score_of(FitKey("a__x", 500, 0, "hts"), 1.0)])
    study = Results(study.folder)
    assert units(make_table(study, n=500))[0][2:] == ["Uncalibrated", "HTS"]
    assert units(make_table(study, n=500, methods=["ts"]))[0][2:] == ["Uncalibrated", "TS"]
    assert units(make_table(study, methods=["hts", "ts"]))[0][2:] == ["Uncalibrated", "TS", "HTS"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"methods": ["lts"]},
            "the methods must be from the study, ts, hts, pts, bayes; found 'lts'. Run",
        ),
        ({"methods": ["nonsense"]}, "found 'nonsense'"),
        ({"metric": "accuracy"}, "metric must be one of"),
        ({"n": 31}, "number of rows must be one of 30, 400; found 31"),
        ({"paper": True}, "one of the paper's, 200, 500, 1000, 5000, 10000; found 30"),
    ],
)
def test_a_missing_item_is_refused(results, options, words):
    with pytest.raises(InputError, match=words):
        make_table(results, **options)


def test_a_study_without_tasks_is_refused(tmp_path):
    ResultStore.create(tmp_path, 0)
    with pytest.raises(InputError, match="has no results yet"):
        make_table(Results(tmp_path))


def test_names_are_escaped(made):
    scores = {UNCALIBRATED: [2.0], "ts": [1.0]}
    table = make_table(made({"[a_b&c__50%|#$x": scores, "new\nline__\x1b[1m": scores}))
    assert [line[:2] for line in units(table)[1:3]] == [["[a_b&c", r"50%\|#$x"], ["new?line", "?[1m"]]
    assert r"{[}a\_b\&c & 50\%$|$\#\$x & 2.0000" in to_latex(table)  # not an option of the rule above
    assert "\x1b" not in to_markdown(table) + to_latex(table)
    rows = list(csv.reader(to_csv(table).splitlines(keepends=True)))
    assert [row[:2] for row in rows[1:]] == [["[a_b&c", "50%|#$x"], ["new\nline", "\x1b[1m"]]


def test_latex_is_balanced_and_has_the_columns_it_declares(made):
    many = {f"cifar__{i}": {UNCALIBRATED: [2.0], "ts": [1.0], "hts": [1.5]} for i in range(4)}
    text = to_latex(make_table(made(many | {"b__z": {UNCALIBRATED: [2.0], "ts": [1.0]}}), errors=True))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert [row.split(" & ")[0] for row in rows] == ["Data set", "b", "cifar", "", "", "", "", "All tasks"]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {4}
    assert r"\begin{tabular}{llrrr}" in text
    assert re.findall(r"\\begin{(.*?)}", text) == re.findall(r"\\end{(.*?)}", text)[::-1]
    assert text.count("{") == text.count("}")
    assert text.count(r"\midrule") == 3


class TestPaper:
    """The paper's figures next to ours for the same task, whatever the name of its file."""

    @pytest.fixture
    def study(self, made):
        hts = [{"ece50": 0.02, "nll": 0.44 + 0.002 * i, "brier": 0.2} for i in range(2)]
        ours = {"ets": [0.449], "ets-brier": [0.4553], "hts": hts, "pts": [0.448], "bayes": [0.44]}
        others = {UNCALIBRATED: [2.0], "hts": [1.0]}
        return made({"mine__x": {UNCALIBRATED: [RESNET]} | ours, "mine__y": others})

    def test_the_papers_results_are_below_ours(self, study):
        lines = units(make_table(study, paper=True))
        assert [line[1] for line in lines] == ["Task", "x", "(paper: ResNet 50)", "y", "Avg. relative"]
        figures = dict(zip(lines[0], lines[2], strict=True))
        assert [figures[name] for name in ("Uncalibrated", "HTS", "PTS")] == ["0.7897", "0.4489", "inf"]
        assert [figures[name] for name in ("ETS", "ETS-Brier", "Bayes")] == ["—", "0.4553", "—"]
        assert lines[-1] == units(make_table(study))[-1], "averages include only our results"

    def test_csv_output_is_in_natural_units(self, study):
        lines = list(csv.DictReader(to_csv(make_table(study, "ece", paper=True, errors=True)).splitlines()))
        assert [line["model"] for line in lines] == ["x", "(paper: ResNet 50)", "y"]
        assert (lines[1]["dataset"], lines[1]["hts"], lines[1]["none"]) == ("mine", "0.0251", "0.1071")
        assert lines[1]["hts_se"] == lines[1]["ets"] == ""

    def test_a_study_without_its_tasks_says_so(self, made):
        study = made({"cifar10__resnet50": {UNCALIBRATED: [RESNET | {"nll": 0.79}], "ts": [0.4]}})
        table = make_table(study, paper=True, errors=True)
        assert "No task of the study is one of the paper's." in paragraphs(table)[-1]
        assert len(table.data) == 1
