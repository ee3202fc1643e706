"""The examples run as they are."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not beside the tests")
def test_the_quickstart_compares_saves_and_calibrates(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "quickstart.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "Recommended: " in told
    assert "saved to " in told
    assert "in truth" in told


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not beside the tests")
def test_the_pipeline_is_better_calibrated_and_decides_the_same(capsys):
    runpy.run_path(str(EXAMPLES / "sklearn_pipeline.py"), run_name="__main__")
    told = capsys.readouterr().out
    before, after, chosen = (float(number) for number in re.findall(r"log loss ([\d.]+)", told))
    assert chosen < after < 0.3 * before
    assert len(set(re.findall(r"accuracy ([\d.]+)", told))) == 1
    assert "best of 6: {'calibrator': " in told
