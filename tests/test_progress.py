"""The progress line of a long call: it appears late, only on a terminal, and is erased at the end."""

import io
import math
from types import SimpleNamespace

import pytest

import temperance
from temperance.data import simulate
from temperance.progress import DELAY, is_watched, reporting


class Terminal(io.StringIO):
    def isatty(self):
        return True


class NotebookStream(io.StringIO):
    __module__ = "ipykernel.iostream"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Return the clock of progress lines, which stands still."""
    clock = Clock()
    monkeypatch.setattr("temperance.progress.time", SimpleNamespace(monotonic=clock))
    return clock


@pytest.mark.parametrize("stream", [Terminal(), NotebookStream()])
def test_the_line_appears_late_and_is_erased(stream, clock, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream)
    with reporting("Comparing", True) as report:
        report("ts", 0.1)
        assert stream.getvalue() == ""
        clock.now = DELAY
        report("hnlts", 0.25)
        assert stream.getvalue() == "\rComparing: hnlts  25%"
        report("bayes", 0.3)  # too soon after the last
        clock.now += 1
        report("ts", 0.5)
        assert stream.getvalue().endswith("\rComparing: ts  50%   ")
        clock.now += 1
        report("ts", math.nan)
        assert stream.getvalue().endswith("\rComparing: ts     ")
    assert stream.getvalue().endswith("\r" + " " * len("Comparing: ts") + "\r")


@pytest.mark.parametrize(
    ("progress", "stream"), [(False, Terminal()), (None, Terminal()), (True, io.StringIO())]
)
def test_nothing_is_written_without_a_request_or_a_terminal(progress, stream, clock, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream)
    with reporting("Comparing", progress) as report:
        clock.now = 100.0
        report("ts", 0.5)
    assert stream.getvalue() == ""


def test_a_program_without_standard_error_gets_no_progress_line():
    assert not is_watched(None)
    closed = Terminal()
    closed.close()
    assert not is_watched(closed)


def test_compare_evaluate_and_the_curve_report_to_a_function_or_a_line(monkeypatch, tmp_path):
    task = simulate(200, 3, random_state=0)
    found = []
    comparison = temperance.compare(
        task.logits, task.labels, methods=["ts"], draws=5, progress=lambda *step: found.append(step)
    )
    assert found == [("none", 0), ("ts", 1 / 2)]
    monkeypatch.setattr("temperance.progress.DELAY", -1.0)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    temperance.compare(task.logits, task.labels, methods=["ts"], draws=5)
    assert "Comparing: none   0%" in stream.getvalue()
    temperance.metrics.evaluate(task.probabilities, task.labels, draws=5)
    assert "Evaluating: intervals 100%" in stream.getvalue()
    temperance.compare(task.logits, task.labels, methods=["ts"], draws=5, learning_curve=True)
    assert "Learning curve: ts, 20 rows   0%" in stream.getvalue()
    before = stream.getvalue()
    comparison.save_report(tmp_path / "quiet.html")
    temperance.metrics.evaluate(task.probabilities, task.labels, draws=5, progress=False)
    assert stream.getvalue() == before


def test_a_long_line_fits_80_columns_and_is_erased_after_an_error(clock, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := Terminal())

    def interrupted():
        with reporting("Comparing", True) as report:
            clock.now = DELAY
            report("x" * 200, 0.5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().endswith(" \r")
    assert max(map(len, stream.getvalue().split("\r"))) <= 79
