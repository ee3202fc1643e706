"""The paper's figures: as printed there, and found by the scores of the uncalibrated classifier."""

import csv
import math
from importlib import resources
from pathlib import Path

import pytest

from temperance import InputError
from temperance.calibrators.registry import UNCALIBRATED
from temperance.study.paper import METRICS, PAPER_COLUMN, SIZES, WHOLE, PaperTask, paper_figures, recognise
from temperance.study.protocol import METHODS

RESNET = PaperTask("CIFAR-10", "ResNet 50")


@pytest.fixture(scope="module")
def rows():
    text = resources.files("temperance.study").joinpath("paper.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_every_size_and_metric_has_the_fifteen_tasks_once(rows):
    names = [(row["n"], row["metric"], row["dataset"], row["model"]) for row in rows]
    assert len(set(names)) == len(names) == 5 * len(METRICS) * 15
    assert {(int(n), metric) for n, metric, *_ in names} == {(n, m) for n in (*SIZES, WHOLE) for m in METRICS}


def test_a_figure_is_the_printed_one_and_an_ece_is_a_fraction():
    # From the paper's tables nll_ld, ece_ld and bri_mhd.
    assert paper_figures(RESNET, 200, "nll")["ts"] == 0.4489
    assert paper_figures(RESNET, 200, "ece")["ts"] == 0.0269
    assert paper_figures(RESNET, 5000, "brier")["hnlts"] == 0.2014


def test_the_papers_own_size_has_figures_of_its_own():
    for n, figures in ((5000, (0.017, 0.0553, 0.0214)), (10_000, (0.0166, 0.0661, 0.0212))):
        found = paper_figures(RESNET, n, "ece")
        assert (found["pts"], found["pts-ece"], found["hnlts"]) == figures
    with pytest.raises(InputError, match="one of the paper's, 200, 500, 1000, 5000, 10000; found 2000"):
        paper_figures(RESNET, 2000, "ece")


def test_the_page_prints_the_columns_for_the_rows_that_it_names():
    page = (Path(__file__).resolve().parents[2] / "docs/benchmarks/paper.md").read_text("utf-8")
    for label, key in (("HnLTS", "hnlts"), ("PTS", "pts"), ("PTS (ECE loss)", "pts-ece"), ("HTS", "hts")):
        cells = next(line for line in page.splitlines() if line.startswith(f"| {label} | ")).split(" | ")
        printed = [float(cells[2]) / 100, float(cells[4]), float(cells[6].rstrip(" |"))]
        assert printed == pytest.approx([paper_figures(RESNET, 5000, m)[key] for m in METRICS]), label


def test_the_infinite_number_of_the_paper_is_kept():
    assert paper_figures(RESNET, 200, "nll")["pts"] == math.inf


def test_our_methods_are_matched_with_the_papers_columns():
    figures = paper_figures(RESNET, 1000, "nll")
    papers = {UNCALIBRATED, *METHODS} - {"ets", "mono", "bayes", "bayes-bias"}
    assert set(figures) == set(PAPER_COLUMN) == papers
    for key in ("hts", "lts", "hnlts", "pts", "pts-ece"):
        assert figures[f"{key}-sgd"] == figures[key]
    assert figures["pts-plain"] == figures["pts"] != figures["pts-ece"]
    assert figures["ets-brier"] == 0.4520  # the paper's ETS


def test_every_task_is_recognised_by_its_uncalibrated_scores(rows):
    for task in {PaperTask(row["dataset"], row["model"]) for row in rows}:
        for n in SIZES:  # so it is the same classifier in all tables
            scores = {metric: paper_figures(task, n, metric)[UNCALIBRATED] for metric in METRICS}
            assert recognise(scores) == task


@pytest.mark.parametrize("metric", METRICS)
def test_a_task_is_the_papers_only_if_all_three_scores_match(metric):
    scores = {"ece": 0.107095, "nll": 0.78968, "brier": 0.23921}
    assert recognise(scores) == RESNET
    assert recognise(scores | {metric: scores[metric] + 1e-4}) is None


@pytest.mark.parametrize(("n", "metric", "got"), [(300, "nll", "found 300"), (200, "ece15", "found 'ece15'")])
def test_a_number_that_the_paper_lacks_is_refused(n, metric, got):
    with pytest.raises(InputError, match=f"one of the paper's.*{got}"):
        paper_figures(RESNET, n, metric)
