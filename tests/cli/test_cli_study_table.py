"""`temperance study table` and `export`: the formats, and what is refused in one sentence."""

from pathlib import Path

import pytest
from test_cli_help import examples

from temperance.calibrators import UNCALIBRATED
from temperance.study.protocol import FitKey, Score
from temperance.study.store import ResultStore
from temperance.study.tasks import TaskFile


@pytest.fixture
def study(folder):
    """Work beside a study of one task, which is the paper's: two methods, two draws, two sizes."""
    store = ResultStore.create("study", 0)
    store.add_tasks([TaskFile("cifar10__resnet", Path("a.npz"), "0", 900, 100, 10)], [200, 1000])
    store.add([Score(FitKey("cifar10__resnet", 0, 0, UNCALIBRATED), 0.10710, 0.1, 0.78970, 0.23920)])
    for n, nll in ((200, 0.45), (900, 0.44)):
        for method in ("ts", "bayes"):
            store.add(
                Score(FitKey("cifar10__resnet", n, draw, method), 0.02, 0.03, nll + draw / 1000, 0.2)
                for draw in range(2)
            )
    return Path("study")


@pytest.fixture
def table(run, study):
    return lambda *words: run("study", "table", study, *words)


def test_only_the_table_is_printed(table):
    lines = table().succeeded().out.splitlines()
    heads = [unit.strip() for unit in lines[0].split("|")[1:-1]]
    assert heads == ["Data set", "Task", "Uncalibrated", "TS", "Bayes"]
    assert "**0.4505**" in lines[2]
    assert "fitted to 200 validation rows" in lines[4]


def test_the_options_choose_what_is_in_the_table(table):
    out = table("--metric", "ece15", "--n", 1000, "-m", "bayes").succeeded().out
    assert "3.00" in out
    assert "TS" not in out
    out = table("--errors", "--paper").succeeded().out
    assert "0.4505** ± 0.0005" in out
    assert "(paper: ResNet 50)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ranks",), "Mean rank by log loss with 200 rows over 1 task of 1 data set"),
        (("improvements", "--to", "none", "--metric", "ece"), "Mean improvement over Uncalibrated in %"),
        (("ranks", "--format", "latex", "--over", "datasets"), r"\caption{Mean rank by log loss"),
        (("scores", "--format", "csv", "--metric", "ece"), "\ncifar10,resnet,200,10,0.1071,0.02,0.02\n"),
        (("scores", "--format", "latex"), "\\begin{table}"),
    ],
)
def test_other_kinds_of_tables(table, words, said):
    assert said in table("--kind", *words).succeeded().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "lts"), "from the study, ts, bayes; found 'lts'. Run the study with it"),
        (("--format", "html"), "html"),
        (("--kind", "ranks", "--errors"), "--errors is for --kind scores; found --kind ranks. Leave it out"),
        (("--kind", "ranks", "--paper"), "--paper is for --kind scores"),
        (("--over", "tasks"), "--over is for --kind ranks; found --kind scores"),
        (("--to", "ts"), "--to is for --kind improvements"),
    ],
)
def test_a_missing_item_is_refused_in_one_sentence(table, words, said):
    table(*words).failed(2, said)


@pytest.mark.parametrize("words", [("table", "."), ("export", ".", "-o", "all.csv")])
def test_a_folder_that_is_not_a_study_is_refused(words, run, folder):
    run("study", *words).failed(2, "is not the folder of a study")
    assert list(folder.iterdir()) == []


def test_the_examples_run(run, study):
    lines = examples("study", "table")
    assert len(lines) >= 2
    for line in lines:
        words = line.split(" > ")[0].replace("ts,hts,bayes", "ts,bayes").split()
        run(*words[1:]).succeeded()


@pytest.mark.parametrize("line", examples("study", "export"))
def test_every_example_of_the_export_runs(line, run, folder):
    ResultStore.create("study", 0)
    program, *words = line.split()
    assert program == "temperance"
    done = run(*words).succeeded()
    assert done.out == f"0 results saved to {words[4]}\n"
    assert (folder / words[4]).exists()
