"""Colours and progress on a terminal; in a pipe only results, plain and narrow."""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from running import plain_and_narrow

from temperance.data import simulate

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
    assert done.stdout == b"Calibrate with ts.\n"
    assert done.stderr == b""


def test_a_terminal_gets_colours_and_a_progress_bar_unless_they_are_turned_off(files, on_terminal):
    shown, _ = on_terminal(*COMPARE)
    assert "\x1b[1mCalibrate with ts." in shown
    assert "Comparing" in shown
    assert "━" in shown
    quiet, _ = on_terminal(*COMPARE, "--quiet")
    assert "Comparing" not in quiet
    assert "Calibrate with ts." in quiet
    assert "Why ts" not in quiet
    plain, _ = on_terminal(*COMPARE, NO_COLOR="1")
    assert "Why ts: " in plain
    # Bold and the movements of the progress bar are not colours.
    assert not re.search(r"\x1b\[[0-9;]*\b(3[0-9]|4[0-9]|9[0-9])[;m]", plain)


def test_progress_goes_to_a_terminal_alone_while_results_go_wherever_they_are_sent(files, on_terminal):
    shown, piped = on_terminal(*COMPARE, stdout=False)
    assert "Comparing" in shown
    assert "Calibrate with" not in shown
    plain_and_narrow(piped)
    assert "Calibrate with" in piped
    shown, piped = on_terminal(*COMPARE, stderr=False)
    assert "Calibrate with" in shown
    assert "Comparing" not in shown
    assert piped == ""


def test_a_quiet_command_prints_only_the_result(run, files, calibrator):
    assert run("fit", "val.npz", "-m", "ts", "-o", "new.json", "-q").succeeded().out == ""
    assert run("apply", "cal.json", "test.npz", "-o", "probs.npz", "--quiet").succeeded().out == ""
    words = ("evaluate", "test.npz", "--draws", 20)
    loud, quiet = run(*words).succeeded().out, run(*words, "-q").succeeded().out
    assert loud.startswith(quiet)
    assert quiet.startswith("Overconfident by ")
    assert len(quiet.splitlines()) == 1
    loud, quiet = (run(*COMPARE, *words).succeeded().out for words in ((), ("-q", "--report", "page.html")))
    assert loud.startswith(f"{quiet}\n")
    assert loud.removeprefix(quiet).splitlines()[1].split()[:3] == ["method", "log", "loss"]
    assert loud.splitlines()[-1] == "Next: temperance fit val.npz -m ts -o cal.json"


def test_a_long_name_is_not_cut_and_a_warning_appears_once(run, files, task):
    Path(f"{'m' * 60}.py").write_text(
        "import warnings\nclass Same:\n    def fit(self, z, y):\n        warnings.warn('careful')\n"
        "    def predict_proba(self, z):\n        from scipy.special import softmax\n"
        "        return softmax(z, axis=1)\nclass Other(Same):\n    pass\n"
    )
    names = [f"{'m' * 60}:{name}" for name in ("Same", "Other")]
    done = run("compare", "val.npz", "-m", ",".join([*names, "ts"]))
    assert all(f"\n{name} " in done.out for name in names)
    assert done.err.splitlines() == [f"warning: {names[0]}, {names[1]}: careful"]


def test_a_method_that_fit_cannot_save_is_recommended_with_how_to_fit_it(run, folder):
    task = simulate(3000, 2, temperature=1.0, random_state=1)
    curved = np.sign(task.logits[:, 1] - task.logits[:, 0]) * 9.0
    np.savez("val.npz", logits=np.column_stack([0 * curved, curved]), labels=task.labels)
    done = run("compare", "val.npz", "-m", "sklearn-isotonic")
    assert done.out.startswith("Calibrate with sklearn-isotonic.")
    assert "Next: fit sklearn-isotonic in Python; `temperance fit` saves only methods of this" in done.out
    assert "temperance fit val.npz" not in done.out


def test_output_fits_a_narrow_terminal(files, on_terminal):
    shown, _ = on_terminal("evaluate", "test.npz", "-q", "--draws", "20", columns="60")
    assert max(map(len, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines())) <= 60


def test_characters_that_a_stream_cannot_encode_are_not_a_failure(files, run, monkeypatch):
    held = io.BytesIO()
    with io.TextIOWrapper(held, encoding="ascii") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        run("fit", "val.npz", "-m", "ts", "-o", "cal.json", "--details").succeeded()
        assert b"\\xb1" in held.getvalue()  # plus or minus
