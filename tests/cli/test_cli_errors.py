"""Bad usage has exit code 2, a failure 1; both are one sentence."""

import contextlib
import errno
import re
from pathlib import Path

import numpy as np
import pytest
from running import half_written

import temperance
from temperance import __version__
from temperance.calibrators.ts import TemperatureScaling
from temperance.cli.options import as_option
from temperance.cli.program import cli
from temperance.data.read_options import ReadOptions

USAGE = {
    "unknown command": (("guess",), "No such command 'guess'", "temperance --help"),
    "unknown option": (("fit", "val.npz", "--better"), "No such option '--better'", "temperance fit --help"),
    "unknown option of all": (("--better",), "No such option '--better'", "temperance --help"),
    "missing file": (("fit", "-o", "cal.json"), "Missing argument 'VAL'", "temperance fit --help"),
    "missing output": (("fit", "val.npz"), "Missing option '-o'", "temperance fit --help"),
    "one file too many": (("fit", "a.npz", "b.npz", "-o", "c.json"), "b.npz", "temperance fit --help"),
    "option without a value": (("evaluate", "a.npz", "--bins"), "--bins", "requires an argument"),
    "no bins": (("evaluate", "a.npz", "--bins", "0"), "--bins", "1<=x<=10000"),
    "bins that are no number": (("evaluate", "a.npz", "--bins", "x"), "--bins", "'x' is not a valid integer"),
    "one fold": (("compare", "a.npz", "--folds", "1"), "--folds", "x>=2"),
    "negative seed": (("compare", "a.npz", "--seed", "-1"), "--seed", "x>=0"),
    "unknown kind": (("evaluate", "a.npz", "--input", "odds"), "--input", "'logits', 'probs'"),
    "unknown part": (
        ("apply", "c.json", "a.npz", "-o", "p.npz", "--part", "train"),
        "--part",
        "'val', 'test'",
    ),
    "no shell": (("completion",), "bash, zsh, fish", "temperance completion --help"),
    "unknown shell": (("completion", "tcsh"), "'bash', 'zsh', 'fish'", "temperance completion --help"),
}


@pytest.mark.parametrize("case", USAGE.values(), ids=USAGE.keys())
def test_bad_usage_is_one_sentence_that_says_where_to_read_more(case, run):
    command, *words = case
    run(*command).failed(2, "See: temperance", *words)


def raiser(error):
    def fail(*_, **__):
        raise error

    return fail


# What is raised; the exit code; what is said.
TROUBLE = [
    (RuntimeError("broken\nin two"), 1, r"this should not have happened \(RuntimeError: broken\\nin two\)"),
    (EOFError("no more"), 1, r"this should not have happened \(EOFError: no more\); please report it"),
    (AssertionError(), 1, r"this should not have happened \(AssertionError: \)"),
    (OSError(errno.ENOSPC, "No space left on device"), 1, r"\[Errno 28\] No space left on device"),
    (OSError(errno.EIO, "Input/output error", "disk"), 1, "disk: input/output error"),
    (MemoryError(), 1, "there is not enough memory"),
    (PermissionError(errno.EACCES, "Permission denied", "secret"), 2, "secret: permission denied"),
    (ModuleNotFoundError("pip install 'temperance[io]'"), 2, r"pip install 'temperance\[io\]'"),
    (KeyboardInterrupt(), 130, "interrupted; no file was left half-written"),
]


@pytest.mark.parametrize(("error", "code", "sentence"), TROUBLE, ids=lambda value: type(value).__name__)
def test_a_failure_is_one_sentence_without_a_traceback(error, code, sentence, run, files, monkeypatch):
    monkeypatch.setattr(TemperatureScaling, "fit", raiser(error))
    done = run("fit", "val.npz", "-m", "ts", "-o", "cal.json")
    assert (done.code, done.out) == (code, "")
    assert re.fullmatch(f"temperance: {sentence}.*\n", done.err), done.err
    assert {path.name for path in Path().iterdir()} == files


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (("fit", "val.npz", "-m", "ts", "-o", "out.json"), "out.json"),
        (("apply", "cal.json", "test.npz", "-o", "out.npz"), "out.npz"),
        (("apply", "cal.json", "test.npz", "-o", "out.npy"), "out.npy"),
        (("apply", "cal.json", "test.npz", "-o", "out.csv"), "out.csv"),
        (("apply", "cal.json", "test.npz", "-o", "out.parquet"), "out.parquet"),
        (("compare", "val.npz", "test.npz", "-m", "ts", "--report", "out.html"), "out.html"),
    ],
)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_while_writing_leaves_the_old_output(
    command, out, error, run, files, calibrator, folder, monkeypatch
):
    Path(out).write_text("old")
    monkeypatch.setattr("os.fsync", raiser(error))
    done = run(*command, "--force")
    assert done.code == (1 if isinstance(error, OSError) else 130)
    assert done.err.count("\n") == 1
    assert "Saved" not in done.out
    assert "Report" not in done.out
    assert Path(out).read_text() == "old"
    assert not half_written(folder)


def test_a_failure_between_two_parts_leaves_the_old_probabilities(
    run, files, calibrator, folder, monkeypatch
):
    monkeypatch.setattr("temperance.streaming.PART_BYTES", 1)
    monkeypatch.setattr("temperance.core.blocks.BLOCK_BYTES", 1 << 10)
    predict, calls = TemperatureScaling.predict_proba, []

    def fail_later(self, logits):
        calls.append(len(logits))
        if len(calls) == 3:
            raise OSError(errno.EIO, "Input/output error")
        return predict(self, logits)

    monkeypatch.setattr(TemperatureScaling, "predict_proba", fail_later)
    Path("out.npz").write_text("old")
    run("apply", "cal.json", "test.npz", "-o", "out.npz", "--force").failed(1, "Input/output error")
    assert len(calls) == 3
    assert Path("out.npz").read_text() == "old"
    assert not half_written(folder)


def test_invalid_rows_at_the_end_of_a_file_leave_the_old_probabilities(run, calibrator, folder):
    logits = np.zeros((300_000, 4), np.float32)
    logits[-2] = np.nan
    np.save("new.npy", logits)
    Path("out.npy").write_text("old")
    command = ("apply", "cal.json", "new.npy", "--input", "logits", "-o", "out.npy", "--force")
    run(*command).failed(2, "new.npy", "found NaN in at least 1 row (first: row 299998)")
    assert Path("out.npy").read_text() == "old"
    assert not half_written(folder)


def test_every_argument_that_an_error_advises_to_change_is_an_option():
    """The names of all remedies in the library, and what the command line calls them."""
    package = Path(temperance.__file__).parent
    found = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r'(?:Remedy\(|spelling\()[\'"](\w+)[\'"]', path.read_text(encoding="utf-8"))
    }
    of_rows = {one.name for one in ReadOptions.described()}
    of_studies = {"better", "methods"}
    assert found == of_rows | of_studies | {"test_labels", "overwrite", "output"}
    commands = [cli.commands[name] for name in ("fit", "compare", "apply", "export")]
    commands.append(cli.commands["study"].commands["table"])
    parameters = [one for command in commands for one in command.params]
    options = {option for parameter in parameters for option in parameter.opts}
    assert {as_option(name, None) for name in found} <= options
    assert [as_option("kind", "probs"), as_option("overwrite", True)] == ["--input probs", "--force"]
    assert as_option("from_probs", False) in {
        option for parameter in parameters for option in parameter.secondary_opts
    }


FULL = Path("/dev/full")
NO_ROOM = "temperance: [Errno 28] No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
def test_a_full_standard_output_is_a_failure(files, run, monkeypatch):
    with contextlib.suppress(OSError), FULL.open("w") as full, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", full)
        done = run("evaluate", "test.npz", "--draws", "5")
    assert (done.code, done.err) == (1, NO_ROOM)


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
def test_a_full_standard_output_is_reported_once(files, start):
    with FULL.open("w") as full:
        process = start("--help", stdout=full)
        _, err = process.communicate()
    assert (process.returncode, err.decode()) == (1, NO_ROOM)


def test_python_m_temperance_is_the_same_program(start):
    process = start("--version")
    out, err = process.communicate()

    assert (out.decode(), err, process.returncode) == (f"temperance {__version__}\n", b"", 0)
