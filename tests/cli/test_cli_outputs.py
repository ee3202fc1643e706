"""No command overwrites a file that it was not told to, or its own input, or leaves half of a file."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from running import half_written
from test_cli_json import small_demo  # noqa: F401  for the report of the demo

# The last word of a command is its output.
WRITING = [
    ("fit", "val.npz", "-m", "ts", "-o", "out.json"),
    ("apply", "cal.json", "test.npz", "-o", "out.npz"),
    ("apply", "cal.json", "test.npz", "-o", "out.npy"),
    ("apply", "cal.json", "test.npz", "-o", "out.csv"),
    ("apply", "cal.json", "test.npz", "-o", "out.parquet"),
    ("adapt", "cal.json", "test.npz", "-o", "out.json"),
    ("automate", "cal.json", "test.npz", "--max-error", "0.4", "-o", "out.json"),
    ("compare", "val.npz", "test.npz", "-m", "ts", "--report", "out.html"),
    ("check", "cal.json", "test.npz", "--report", "out.html"),
    ("demo", "--report", "out.html"),
    ("export", "cal.json", "out.onnx"),
    ("export", "cal.json", "out.pt2"),
]
pytestmark = pytest.mark.usefixtures("files", "calibrator", "small_demo")
every_output = pytest.mark.parametrize("words", WRITING, ids=" ".join)


@every_output
def test_an_output_is_overwritten_only_with_force(words, run, folder):
    out = Path(words[-1])
    out.write_text("old")
    run(*words).failed(2, f"{out} already exists. Choose another name, or pass --force.")
    assert out.read_text() == "old"
    run(*words, "--force").succeeded()
    assert out.read_bytes() != b"old"
    assert not half_written(folder)


@every_output
def test_an_output_needs_a_folder_and_is_none(words, run):
    *command, out = words
    run(*command, f"no/{out}").failed(2, "folder no does not exist")
    Path(out).mkdir()
    run(*words, "--force").failed(2, f"{out} is a folder")


@pytest.mark.parametrize("link", [os.symlink, os.link])
@every_output
def test_no_output_is_an_input(words, link, run):
    *command, out = words
    for name in command[1:]:
        if (given := Path(name)).exists():
            link(given.resolve(), out)
            before = given.read_bytes()
            for force in ("--force", "--quiet"):
                run(*words, force).failed(2, "the output must not be an input file")
            assert given.read_bytes() == before
            Path(out).unlink()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@every_output
def test_a_failure_while_writing_leaves_the_old_output(words, error, run, folder, monkeypatch):
    def fail(file):
        raise error

    out = Path(words[-1])
    out.write_text("old")
    monkeypatch.setattr("os.fsync", fail)
    done = run(*words, "--force")
    assert done.code == (1 if isinstance(error, OSError) else 130)
    assert done.err.count("\n") == 1
    assert "Saved" not in done.out
    assert "Report" not in done.out
    assert out.read_text() == "old"
    assert not half_written(folder)


def test_invalid_rows_at_the_end_of_a_file_leave_the_old_probabilities(run, folder):
    logits = np.zeros((300_000, 4), np.float32)
    logits[-2] = np.nan
    np.save("new.npy", logits)
    Path("out.npy").write_text("old")
    command = ("apply", "cal.json", "new.npy", "--input", "logits", "-o", "out.npy", "--force")
    run(*command).failed(2, "new.npy", "found NaN in at least 1 row (first: row 299998)")
    assert Path("out.npy").read_text() == "old"
    assert not half_written(folder)
