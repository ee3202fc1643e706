"""The evaluation of the Bayesian methods: its protocol, and the file of scores that it continues."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from temperance import TemperatureScaling, metrics
from temperance.data import simulate


@pytest.fixture(scope="module")
def evaluation(benchmark_script):
    return benchmark_script("bayes_evaluation")


@pytest.fixture
def tasks(tmp_path):
    val = simulate(n_rows=120, n_classes=3, random_state=0)
    test = simulate(n_rows=90, n_classes=3, random_state=1)
    np.savez(
        tmp_path / "made-up__simulated.npz",
        logits_val=val.logits,
        labels_val=val.labels,
        logits_test=test.logits,
        labels_test=test.labels,
    )
    return tmp_path


def test_all_rows_of_a_large_task_are_shown_at_5000(evaluation):
    assert evaluation.sizes_of(4545, 2) == [200, 1000, 20, 50, 5000]
    assert evaluation.sizes_of(3999, 10) == [200, 1000, 20, 50]
    assert evaluation.sizes_of(312, 2) == [200, 20, 50]
    assert evaluation.sizes_of(2500, 1000) == [200, 1000, 20, 50, 2500]


def test_all_rows_are_one_draw_and_5000_of_more_are_three(evaluation):
    assert evaluation.draws_of(5000, 4545, 10) == evaluation.draws_of(5000, 5000, 10) == 1
    assert evaluation.draws_of(2500, 2500, 10) == 1
    assert evaluation.draws_of(5000, 57036, 10) == 3
    assert evaluation.draws_of(1000, 57036, 10) == 10


def test_of_a_very_large_test_half_a_random_part_is_used(evaluation):
    assert_allclose(evaluation.test_rows(12500, 2), np.arange(5000))
    assert_allclose(evaluation.test_rows(5000, 465), np.arange(2500))
    drawn = evaluation.test_rows(57036, 2)
    assert len(set(drawn)) == 5000
    assert drawn.max() > 50_000


def test_a_line_has_the_mean_over_draws_and_the_mean_ratio_to_ts(evaluation, tasks):
    (path,) = tasks.glob("*.npz")
    (line,) = evaluation.judge(evaluation.Cell(path, 50, ("none",)), None, 2)
    task = evaluation.read_task(path)
    single = []
    for draw in range(2):
        rows = np.random.default_rng(draw).permutation(120)[:50]
        fitted = TemperatureScaling().fit(task.logits[rows], task.labels[rows])
        single.append(metrics.nll(fitted.predict_proba(task.test_logits), task.test_labels))
    odds = np.exp(task.test_logits)
    plain = metrics.nll(odds / odds.sum(axis=1, keepdims=True), task.test_labels)
    assert (line["dataset"], line["draws"], line["method"]) == ("made-up", "2", "none")
    assert_allclose(float(line["nll"]), plain, rtol=1e-5)
    assert_allclose(float(line["nll_ratio"]), np.mean(plain / np.array(single)), rtol=1e-5)


def test_a_method_that_fails_has_the_score_inf(evaluation, tasks, monkeypatch, capsys):
    build = evaluation.build

    def broken(method, prior):
        if method == "hts":
            raise RuntimeError("no fit")
        return build(method, prior)

    monkeypatch.setattr(evaluation, "build", broken)
    (path,) = tasks.glob("*.npz")
    (line,) = evaluation.judge(evaluation.Cell(path, 20, ("hts",)), None, 2)
    assert (line["nll"], line["ece15_ratio"], line["accuracy"]) == ("inf", "inf", "nan")
    assert "hts failed with 20 rows" in capsys.readouterr().err


def test_lines_of_other_methods_are_kept_and_an_existing_cell_is_skipped(evaluation, tasks):
    (path,) = tasks.glob("*.npz")
    out = tasks / "out" / "scores.csv.gz"
    evaluation.add_lines(out, evaluation.judge(evaluation.Cell(path, 20, ("none", "ts")), None, 1))
    before = evaluation.read_lines(out)
    evaluation.add_lines(out, evaluation.judge(evaluation.Cell(path, 20, ("ts",)), None, 2))
    after = evaluation.read_lines(out)
    assert set(after) == set(before) == {(path.stem, 20, "none"), (path.stem, 20, "ts")}
    assert after[path.stem, 20, "none"] == before[path.stem, 20, "none"]
    assert after[path.stem, 20, "ts"]["draws"] == "2"
    planned = evaluation.plan(tasks, ["package"], set(after))
    assert [cell.rows for cell in planned] == [20, 50]
    assert not {"none", "ts"} & set(planned[0].methods)
    assert {"none", "ts", "ets"} <= set(planned[1].methods)


def test_slow_methods_have_fewer_draws_or_are_left_out_where_there_are_many_classes(benchmark_script):
    methods = benchmark_script("bayes_methods")
    draws = [methods.most_draws("probmetrics-vs", n_classes) for n_classes in (3, 50, 51, 150, 151)]
    assert draws == [3, 3, 1, 1, 0]
    assert methods.most_draws("probmetrics-sms", 150) >= 10
    assert methods.most_draws("probmetrics-sms", 151) == 0
    assert min(methods.most_draws(name, 1000) for name in ("none", "ts", "ets", "bayes", "bayes-bias")) >= 10
    words = "all draws up to 2 classes, 3 or more draws with more than 2 classes"
    assert methods.limits_in_words("lts") == words
