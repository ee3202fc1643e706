"""Ranks and improvements: against other code, and as they are written."""

import csv
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from temperance import InputError
from temperance.calibrators import UNCALIBRATED
from temperance.study.comparisons import (
    _interval,
    critical_difference,
    friedman,
    mean_improvements,
    rank_methods,
)
from temperance.study.tables import make_table, to_csv, to_latex, to_markdown

METHODS = (UNCALIBRATED, "ts", "hts", "bayes")


@pytest.fixture
def random_study(made):
    """Return a study of 13 tasks of 6 data sets with scores as given, and the scores."""
    rng = np.random.default_rng(3)
    names = [f"{'abcdef'[i % 6]}__{i}" for i in range(13)]
    values = rng.lognormal(0.3 * np.arange(4)[::-1], 1.0, (13, 4)).round(1) + 0.1  # with ties
    results = made(
        {name: dict(zip(METHODS, row, strict=True)) for name, row in zip(names, values, strict=True)}
    )
    order = [names.index(task.name) for task in results.tasks]
    return results, values[order]


# ---- ranks


@pytest.mark.parametrize("decimals", [0, 1, 6])
@pytest.mark.parametrize("shape", [(5, 3), (40, 11)])
def test_friedman_is_that_of_scipy_with_and_without_ties(shape, decimals):
    scores = np.random.default_rng(1).normal(size=shape).round(decimals)
    statistic, p_value = friedman(rankdata(scores, axis=1))
    expected = friedmanchisquare(*scores.T)
    assert statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert p_value == pytest.approx(expected.pvalue, rel=1e-10)
    assert friedman(np.full((4, 3), 2.0)) == (0.0, 1.0), "always tied"


@pytest.mark.parametrize(("k", "quantile"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_quantiles_of_the_paper(k, quantile):
    assert critical_difference(k, 30) == pytest.approx(quantile * math.sqrt(k * (k + 1) / 180), abs=3e-4)
    exact = studentized_range.isf(0.1, k, np.inf) / math.sqrt(2)
    assert critical_difference(k, 7, alpha=0.1) == pytest.approx(exact * math.sqrt(k * (k + 1) / 42))


def test_mean_ranks_are_over_tasks_with_ties_averaged(random_study):
    results, values = random_study
    found = rank_methods(results)
    mean = rankdata(values, axis=1).mean(axis=0)
    assert found.mean.to_dict() == pytest.approx(dict(zip(METHODS, mean, strict=True)))
    assert found.mean.is_monotonic_increasing
    assert found.p_value == pytest.approx(friedmanchisquare(*values.T).pvalue)
    assert len(found.scores.tasks) == 13


def test_over_datasets_each_data_set_is_ranked_once(random_study):
    results, values = random_study
    datasets = np.array([task.dataset for task in results.tasks])
    ranks = rankdata(values, axis=1)
    blocks = [ranks[datasets == name].mean(axis=0) for name in "abcdef"]
    found = rank_methods(results, over="datasets")
    assert found.scores.datasets == 6
    assert found.statistic == pytest.approx(friedmanchisquare(*np.transpose(blocks)).statistic)
    assert found.critical_difference == pytest.approx(critical_difference(4, 6))


def test_groups_hold_all_that_the_critical_difference_spans(made):
    rng = np.random.default_rng(0)
    scores = {f"d{i}__x": dict(zip(METHODS, rng.normal([4, 2, 1.9, 1], 0.3), strict=True)) for i in range(40)}
    found = rank_methods(made(scores))
    assert found.groups == (("bayes",), tuple(found.mean.index[1:3]), ("none",))
    mean = found.mean
    for group in found.groups:
        assert mean[group[-1]] - mean[group[0]] <= found.critical_difference
    for one, two in pairwise(found.groups):
        assert mean[two[-1]] - mean[one[0]] > found.critical_difference
    lines = [line.split("|") for line in to_markdown(found).splitlines()[2:6]]
    assert [line[3].strip() for line in lines] == ["a", "b", "b", "c"]


def test_without_a_difference_all_methods_are_in_one_group(made):
    scores = {f"d{i}__x": dict(zip(METHODS, np.roll([1.0, 2.0, 3.0, 4.0], i), strict=True)) for i in range(4)}
    found = rank_methods(made(scores))
    assert (found.p_value, len(found.groups)) == (1.0, 1)
    assert "It finds no difference at 5%" in to_markdown(found)


def test_a_task_without_a_score_is_left_out_and_named_and_an_infinite_one_is_the_worst(made):
    whole = dict(zip(METHODS, [3.0, np.inf, 1.0, 2.5], strict=True))
    found = rank_methods(made({"a__x": whole, "cifar10__resnet50": {UNCALIBRATED: 1.0, "ts": 1.0}}))
    assert len(found.scores.tasks) == 1
    assert found.mean.index[-1] == "ts", "infinite is the worst"
    assert "Left out, since a score is missing or has no ratio: cifar10, resnet50." in to_markdown(found)


def test_methods_that_share_no_task_are_refused_and_the_remedy_works(made):
    results = made({"a__x": {UNCALIBRATED: 1.0, "ts": 1.0}, "b__x": {UNCALIBRATED: 1.0, "hts": 1.0}})
    with pytest.raises(InputError, match=r"no task has results of none, ts, hts .*Pass methods=\['ts'\]"):
        rank_methods(results)
    assert list(rank_methods(results, methods=["ts"]).mean.index) == ["none", "ts"]


# ---- improvements


def test_improvements_are_geometric_means_of_ratios(random_study):
    results, values = random_study
    found = mean_improvements(results)
    expected = np.prod(values / values[:, [1]], axis=0) ** (1 / 13)
    np.testing.assert_allclose(found.table["ratio"], expected)
    assert found.reference == "ts"
    assert found.table["low"].notna().all()
    assert list(found.table.loc["ts"]) == [1.0, 1.0, 1.0, 0.0]
    assert found.table.at["hts", "better_on"] == np.mean(values[:, 2] < values[:, 1])
    to_none = mean_improvements(results, to=UNCALIBRATED)
    np.testing.assert_allclose(to_none.table["ratio"], expected / expected[0])


@pytest.mark.parametrize("sizes", [(1,) * 5, (2, 2, 2, 3, 3), (1, 1, 2, 3, 5), (1,) * 12, (1, 2, 3) * 8])
@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_the_interval_contains_the_truth_in_19_of_20_studies(sizes, noise):
    rng = np.random.default_rng(0)
    clusters, n_studies = np.repeat(np.arange(len(sizes)), sizes), 4000
    shared, own = rng.standard_normal((n_studies, len(sizes))), rng.standard_normal((n_studies, sum(sizes)))
    if noise == "skewed":
        shared = rng.gamma(4.0, 0.5, shared.shape) - 2
    # Each column is a study, whose true mean log ratio is 0.
    low, high = _interval((shared[:, clusters] + own).T, clusters)
    covered = np.mean((low < 0) & (high > 0))
    assert 0.93 < covered < 0.97


@pytest.mark.parametrize("n", [4, 5])
def test_fewer_than_five_data_sets_have_no_interval(n, made):
    found = mean_improvements(made({f"{name}__x": {UNCALIBRATED: 2.0, "ts": 1.0} for name in "abcde"[:n]}))
    assert found.table["low"].isna().all() == (n < 5)
    assert "\N{MINUS SIGN}100.0" in to_markdown(found)
    said = "none, since there are fewer than 5" if n < 5 else "Student's, by leaving out each of the 5"
    assert f"Interval: {said} data sets" in to_markdown(found)


def test_infinite_and_zero_scores_are_shown_and_a_reference_of_zero_is_left_out(made):
    scores = [{UNCALIBRATED: 2.0, "ts": 1.0, "hts": np.inf, "bayes": 0.0}, dict.fromkeys(METHODS, 1.0)]
    results = made({"a__x": scores[0], "b__x": scores[1], "c__x": scores[1] | {"ts": 0.0}})
    found = mean_improvements(results)
    np.testing.assert_allclose(found.table["ratio"], [math.sqrt(2), 1.0, np.inf, 0.0])
    assert found.table["low"][2:].isna().all()
    assert [task.name for task in found.scores.left_out] == ["c__x"]
    assert "\N{MINUS SIGN}inf" in to_markdown(found)


# ---- direction


def test_a_metric_from_outside_needs_its_direction(made):
    scores = {UNCALIBRATED: 0.7, "ts": 0.8}
    results = made({"a__x": scores, "b__x": scores}, metric="accuracy")
    with pytest.raises(InputError, match=r"unknown whether .*better='lower' or better='higher'"):
        rank_methods(results, "accuracy")
    assert rank_methods(results, "accuracy", better="higher").mean.to_dict() == {"ts": 1.0, UNCALIBRATED: 2.0}
    found = mean_improvements(results, "accuracy", to=UNCALIBRATED, better="higher")
    assert found.improvement(found.table["ratio"])["ts"] == pytest.approx(1 / 7)
    with pytest.raises(InputError, match="better must be 'lower' for nll; found 'higher'"):
        rank_methods(results, "nll", better="higher")


def test_the_best_of_a_metric_from_outside_is_marked_only_if_the_direction_is_known(made):
    results = made({"a__x": {UNCALIBRATED: 0.7, "ts": 0.8}}, metric="accuracy")
    unknown, higher, lower = (
        to_markdown(make_table(results, "accuracy", better=way)) for way in (None, "higher", "lower")
    )
    assert "**" not in unknown
    assert "It is unknown whether lower or higher is better" in unknown
    assert "**0.8000**" in higher
    assert "Higher is better" in higher
    assert "**0.7000**" in lower


def test_negative_scores_have_no_ratios(made):
    results = made({"a__x": {UNCALIBRATED: 0.7, "ts": -0.8}}, metric="skill")
    with pytest.raises(InputError, match=r"found -0\.8 for skill\. Use ranks"):
        mean_improvements(results, "skill", better="higher")


# ---- text


@pytest.mark.parametrize("make", [rank_methods, mean_improvements])
def test_all_formats_have_a_line_for_each_method(random_study, make):
    found = make(random_study[0])
    markdown, latex = to_markdown(found), to_latex(found)
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({len(line) for line in lines}) == 1
    methods = 3 if make is mean_improvements else 4
    assert len(lines) == 2 + methods
    assert "13 tasks of 6 data sets" in markdown
    assert latex.count("{") == latex.count("}")
    assert sum(line.endswith(r"\\") for line in latex.splitlines()) == 1 + methods
    rows = {row["method"]: row for row in csv.DictReader(to_csv(found).splitlines())}
    assert len(rows) == methods
    if make is rank_methods:  # with all digits
        assert {method: float(row["mean_rank"]) for method, row in rows.items()} == found.mean.to_dict()
        assert float(rows["ts"]["p_value"]) == found.p_value
    else:
        for name in ("ratio", "low", "high"):
            assert float(rows["hts"][name]) == found.table.at["hts", name]
