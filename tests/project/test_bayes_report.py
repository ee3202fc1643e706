"""The tables about the Bayesian methods: computed as they say, and current in the docs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def scores(benchmark_script):
    return benchmark_script("bayes_report").read_scores()


@pytest.fixture(scope="module")
def tables(benchmark_script, scores):
    return benchmark_script("bayes_report").tables(scores)


def lines(ratios, rows=200):
    """Lines of a file of scores, from a mapping of (task, method) to the NLL ratio."""
    return pd.DataFrame(
        {"task": task, "dataset": task.split("__")[0], "rows": rows, "method": method}
        | {f"{metric}_ratio": ratio for metric in ("nll", "ece15")}
        for (task, method), ratio in ratios.items()
    )


def test_the_tables_of_the_pages_come_from_the_scores(benchmark_script, tables):
    fill = benchmark_script("generated_blocks").fill_blocks
    for page in benchmark_script("bayes_report").PAGES:
        text = page.read_text(encoding="utf-8")
        assert fill(text, tables) == text, "run bayes_report.py"


def test_the_scores_have_one_line_for_each_cell_and_method_and_ts_is_its_own_reference(scores):
    assert not scores.duplicated(["task", "rows", "method"]).any()
    assert_allclose(scores[scores.method == "ts"].filter(like="_ratio"), 1)


def test_a_win_is_a_lower_score_than_another_method_on_a_task(benchmark_script):
    scores = pd.DataFrame(
        {"a": [1.0, 3.0, np.inf], "b": [2.0, 3.0, np.inf], "c": [3.0, np.nan, 1.0]}, index=["t", "u", "v"]
    )
    rates = benchmark_script("bayes_tables").win_rates(scores)
    # a: beats b and c on t; ties with b on u, where c was not run; loses to c on v and ties with b.
    assert_allclose(rates["a"], 2 / 5)
    assert_allclose(rates["b"], 1 / 5)
    assert_allclose(rates["c"], 2 / 4)


def test_averages_are_over_the_tasks_of_a_data_set_first(benchmark_script):
    per_task = pd.DataFrame({"m": {"x__1": 1.0, "x__2": 3.0, "y__1": 6.0, "y__2": np.nan}})
    assert benchmark_script("bayes_tables").over_datasets(per_task).to_dict() == {"m": 4.0}


def test_a_reduction_is_one_minus_the_ratio_to_no_calibration(benchmark_script):
    scores = pd.DataFrame({"none": [1.0, 2.0], "m": [0.5, 2.0], "n": [np.inf, 1.0]}, index=["x__1", "y__1"])
    assert benchmark_script("bayes_tables").reduction(scores).to_dict() == {
        "none": 0,
        "m": 0.25,
        "n": -np.inf,
    }


def test_the_best_other_method_is_named_where_it_is_better(benchmark_script):
    data = lines({("x__1", "bayes"): 0.9, ("x__1", "ets"): 0.8, ("x__1", "hts"): 0.6, ("x__1", "mono"): 0.5})
    found = benchmark_script("bayes_tables").better_rivals(data, "bayes", 200)
    assert found.rival.to_dict() == {"x": "hts"}
    assert_allclose(found.ratio, 1.5)
    assert benchmark_script("bayes_tables").better_rivals(data, "mono", 200).empty


def test_a_block_is_replaced_and_the_rest_of_the_page_is_not(benchmark_script):
    fill = benchmark_script("generated_blocks").fill_blocks
    page = "before\n<!-- generated: a -->\nold\n<!-- end -->\nbetween\n<!-- generated: b -->\n<!-- end -->\n"
    filled = fill(page, {"a": "| new |", "b": "| two |\n"})
    assert "old" not in filled
    assert filled.startswith("before\n<!-- generated: a -->\n\n| new |\n\n<!-- end -->\nbetween\n")
    assert fill(filled, {"a": "| new |", "b": "| two |"}) == filled
    with pytest.raises(KeyError, match=r"found 'b'\. Tables: a"):
        fill(page, {"a": ""})
