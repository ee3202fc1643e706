"""The paper's figures: as printed there, and found by the scores of the uncalibrated classifier."""

import csv
import math
from importlib import resources

import pytest

from temperance import InputError
from temperance.calibrators.registry import UNCALIBRATED
from temperance.study.paper import METRICS, PAPER_COLUMN, SIZES, PaperTask, paper_figures, recognise
from temperance.study.protocol import METHODS

RESNET = PaperTask("CIFAR-10", "ResNet 50")


@pytest.fixture(scope="module")
def rows():
    text = resources.files("temperance.study").joinpath("paper.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_every_size_and_metric_has_the_fifteen_tasks_once(rows):
    names = [(row["n"], row["metric"], row["dataset"], row["model"]) for row in rows]
    assert len(set(names)) == len(names) == len(SIZES) * len(METRICS) * 15
    assert {(int(n), metric) for n, metric, *_ in names} == {(n, m) for n in SIZES for m in METRICS}


def test_a_figure_is_the_printed_one_and_an_ece_is_a_fraction():
    # From the paper's tables nll_ld, ece_ld and bri_mhd.
    assert paper_figures(RESNET, 200, "nll")["ts"] == 0.4489
    assert paper_figures(RESNET, 200, "ece")["ts"] == 0.0269
    assert paper_figures(RESNET, 5000, "brier")["hnlts"] == 0.2014


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
