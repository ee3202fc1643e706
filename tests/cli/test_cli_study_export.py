"""`temperance study export`."""

import pytest
from test_cli_help import examples

from temperance.study.store import ResultStore


@pytest.mark.parametrize("line", examples("study", "export"))
def test_every_example_runs(line, run, folder):
    ResultStore.create("study", 0)
    program, *words = line.split()
    assert program == "temperance"
    done = run(*words).succeeded()
    assert done.out == f"0 results saved to {words[4]}\n"
    assert (folder / words[4]).exists()


def test_a_folder_that_is_not_a_study_is_refused(run, folder):
    run("study", "export", ".", "-o", "all.csv").failed(2, "must be the folder of a study")
    assert not (folder / "all.csv").exists()
