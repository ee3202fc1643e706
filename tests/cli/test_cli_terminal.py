"""Colours and progress on a terminal; in a pipe only results, plain and narrow."""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import threading

import pytest
from running import plain_and_narrow

WIDE = {"TERM": "xterm-256color", "COLUMNS": "200"}
COMPARE = ("compare", "val.npz", "test.npz", "-m", "ts,bts")


@pytest.fixture
def on_terminal(run, monkeypatch):
    """Run a command with a pseudo-terminal for some streams; return what it got, and what the others did."""

    def run_there(*words, stdout=True, stderr=True, columns="80", **environment):
        for name, value in ({"TERM": "xterm", "COLUMNS": columns} | environment).items():
            monkeypatch.setenv(name, value)
        terminal, its_end = pty.openpty()
        got = []
        listener = threading.Thread(target=listen, args=(terminal, got))
        listener.start()
        with os.fdopen(its_end, "w") as stream, monkeypatch.context() as patched:
            for name, wanted in (("stdout", stdout), ("stderr", stderr)):
                if wanted:
                    patched.setattr(sys, name, stream)
            done = run(*words)
        listener.join()
        os.close(terminal)
        assert done.code == 0
        return b"".join(got).decode(), done.out + done.err

    return run_there


def listen(terminal, got):
    """Read until the other end is closed."""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 1 << 16):
            got.append(piece)


@pytest.mark.parametrize(
    "words",
    [
        (*COMPARE, "--report", "report.html"),
        ("compare", "val.npz", "-m", "ts", "--folds", "3"),
        ("fit", "val.npz", "-o", "new.json"),
        ("apply", "cal.json", "test.npz", "-o", "probs.npz"),
        ("evaluate", "test.npz", "-c", "cal.json", "--draws", "20"),
    ],
)
def test_a_pipe_gets_plain_text_of_80_columns_and_nothing_on_standard_error(
    words, run, files, calibrator, monkeypatch
):
    for name, value in WIDE.items():
        monkeypatch.setenv(name, value)
    plain_and_narrow(run(*words).succeeded().out)


@pytest.mark.parametrize("words", [COMPARE, (*COMPARE, "--json"), ("--help",), ("fit", "--help"), ()])
def test_a_reader_that_closes_the_pipe_is_not_a_failure(words, files, run, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", closed)
        assert run(*words).succeeded()


def test_the_first_line_of_a_comparison(files):
    """In a separate process, on a wide terminal with colours."""
    command = f"{sys.executable} -m temperance {' '.join(COMPARE)} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, env=os.environ | WIDE, check=True)
    assert done.stdout == b"200 rows, 4 classes, 15 bins, scores from the test set\n"
    assert done.stderr == b""


def test_a_terminal_gets_colours_and_a_progress_bar_unless_they_are_turned_off(files, on_terminal):
    shown, _ = on_terminal(*COMPARE)
    assert re.search(r"\x1b\[1;32m.*(ts|bts|none) \*", shown)
    assert "Comparing" in shown
    assert "━" in shown
    quiet, _ = on_terminal(*COMPARE, "--quiet")
    assert "Comparing" not in quiet
    assert "scores from the test set" in quiet
    assert "Recommended" not in quiet
    plain, _ = on_terminal(*COMPARE, NO_COLOR="1")
    assert "Recommended: " in plain
    # Bold and the movements of the progress bar are not colours.
    assert not re.search(r"\x1b\[[0-9;]*\b(3[0-9]|4[0-9]|9[0-9])[;m]", plain)


def test_progress_goes_to_a_terminal_alone_while_results_go_wherever_they_are_sent(files, on_terminal):
    shown, piped = on_terminal(*COMPARE, stdout=False)
    assert "Comparing" in shown
    assert "Recommended" not in shown
    plain_and_narrow(piped)
    assert "Recommended" in piped
    shown, piped = on_terminal(*COMPARE, stderr=False)
    assert "Recommended" in shown
    assert "Comparing" not in shown
    assert piped == ""


def test_a_quiet_command_prints_only_the_result(run, files, calibrator):
    assert run("fit", "val.npz", "-m", "ts", "-o", "new.json", "-q").succeeded().out == ""
    assert run("apply", "cal.json", "test.npz", "-o", "probs.npz", "--quiet").succeeded().out == ""
    loud, quiet = (
        run("evaluate", "test.npz", "--draws", 20, *words).succeeded().out for words in ((), ("-q",))
    )
    assert loud == quiet
    assert "smooth_ece" in quiet
    lines = run(*COMPARE, "--report", "report.html", "--quiet").succeeded().out.splitlines()
    assert [line.split()[0] for line in lines[4:] if line.strip()] == ["none", "ts", "bts"]


def test_output_fits_a_narrow_terminal(files, on_terminal):
    shown, _ = on_terminal("evaluate", "test.npz", "-q", "--draws", "20", columns="60")
    assert max(map(len, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines())) <= 60


def test_characters_that_a_stream_cannot_encode_are_not_a_failure(files, run, monkeypatch):
    held = io.BytesIO()
    with io.TextIOWrapper(held, encoding="ascii") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
        assert b"\\xb1" in held.getvalue()  # plus or minus
