"""The examples run as they are."""

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
