"""The examples run as they are."""

import contextlib
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not beside the tests")


def test_the_quickstart_compares_saves_and_calibrates(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "quickstart.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "Calibrate with " in told
    assert "saved to " in told
    assert "in truth" in told


def test_tokens_are_calibrated(capsys):
    """With 1000 of its 50,000 tokens, in this process."""
    pytest.importorskip("torch")
    source = (EXAMPLES / "tokens.py").read_text()
    smaller = source.replace("LENGTH = 50_000", "LENGTH = 1_000")
    assert smaller != source
    exec(compile(smaller, "tokens.py", "exec"), {"__name__": "__main__"})
    told = numbers(capsys.readouterr().out)
    assert told["before"][0] > told["after"][0] + 0.2
    assert told["before"][1] > 3 * told["after"][1]


def numbers(text):
    """Return the numbers of each line that has a name."""
    return {
        name: [float(number) for number in re.findall(r"[0-9.]+", line)]
        for name, _, line in (line.partition(": ") for line in text.splitlines())
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it measures the memory as Linux tells it")
def test_fifty_thousand_tokens_are_calibrated_in_bounded_memory():
    pytest.importorskip("torch")
    ran = subprocess.run([sys.executable, EXAMPLES / "tokens.py"], capture_output=True, text=True, check=True)
    told = numbers(ran.stdout)
    assert "collected (1000, 50000) torch.bfloat16" in ran.stdout
    (nll_before, ece_before), (nll_after, ece_after) = told["before"], told["after"]
    assert nll_after < nll_before - 0.5
    assert ece_after < ece_before / 3
    assert told["peak memory"][0] < 700, "MB; the 1000 rows are 95 in bfloat16"


def test_the_pipeline_is_better_calibrated_and_no_less_accurate(capsys):
    runpy.run_path(str(EXAMPLES / "sklearn_pipeline.py"), run_name="__main__")
    told = capsys.readouterr().out
    before, after, chosen = (float(number) for number in re.findall(r"log loss ([\d.]+)", told))
    assert chosen < after < 0.3 * before
    plain, calibrated = (float(number) for number in re.findall(r"accuracy ([\d.]+)", told))
    assert calibrated >= plain
    assert "best of 6: {'calibrator': " in told


def test_a_cluster_calibrates(capsys, monkeypatch):
    """With a tenth of the rows, and Dask's threads instead of its cluster."""
    pytest.importorskip("distributed")
    spec = importlib.util.spec_from_file_location("dask_cluster", EXAMPLES / "dask_cluster.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for name, value in {"ROWS": 10_000, "CLASSES": 10, "IN_A_PART": 2_500}.items():
        monkeypatch.setattr(example, name, value)
    for name in ("LocalCluster", "Client"):
        monkeypatch.setattr(example, name, lambda *_, **__: contextlib.nullcontext())
    example.main()
    told = capsys.readouterr().out
    temperature, confidence, right = (float(n) for n in re.findall(r"(\d+\.\d+)", told))
    assert "10 classes, fitted on 10000 rows" in told
    assert temperature == pytest.approx(2, abs=0.15)
    assert confidence == pytest.approx(right, abs=1.5)  # three standard errors


@pytest.mark.slow
def test_a_cluster_calibrates_logits_that_it_never_sends():
    pytest.importorskip("distributed")
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "dask_cluster.py"], capture_output=True, text=True, check=True
    )
    temperature, confidence, right = (float(n) for n in re.findall(r"(\d+\.\d+)", ran.stdout))
    assert "50 classes, fitted on 100000 rows" in ran.stdout
    assert temperature == pytest.approx(2, abs=0.03)
    assert confidence == pytest.approx(right, abs=0.4)  # three standard errors and a bit
