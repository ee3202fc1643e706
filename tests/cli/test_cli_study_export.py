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
