"""Bad usage has exit code 2, a failure 1; both are one sentence."""

import errno
import re
from pathlib import Path

import pytest

import temperance
from temperance import __version__
from temperance.calibrators.ts import TemperatureScaling
from temperance.cli.output import as_option
from temperance.cli.program import cli
from temperance.data.read_options import ReadOptions

USAGE = {
    "unknown command": (("guess",), "No such command 'guess'", "temperance --help"),
    "unknown option": (("fit", "val.npz", "--better"), "No such option '--better'", "temperance fit --help"),
    "missing file": (("fit", "-o", "cal.json"), "Missing argument 'VAL'", "temperance fit --help"),
    "missing output": (("fit", "."), "Missing option '-o'", "temperance fit --help"),
    "no bins": (("evaluate", "a.npz", "--bins", "0"), "--bins", "1<=x<=10000"),
    "one fold": (("compare", "a.npz", "--folds", "1"), "--folds", "x>=2"),
    "negative seed": (("compare", "a.npz", "--seed", "-1"), "--seed", "x>=0"),
    "unknown kind": (("evaluate", "a.npz", "--input", "odds"), "--input", "'logits', 'probs'"),
    "unknown part": (
        ("apply", "c.json", "a.npz", "-o", "p.npz", "--part", "train"),
        "--part",
        "'val', 'test'",
    ),
    "no shell": (("completion",), "bash, zsh, fish", "temperance completion --help"),
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
    assert re.fullmatch(f"error: {sentence}.*\n", done.err), done.err
    assert {path.name for path in Path().iterdir()} == files


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
    others = {"max_error", "test_labels", "overwrite", "classifier_output", "groups"}
    assert found == (of_rows - {"ignore_index"}) | of_studies | others
    commands = [cli.commands[name] for name in ("fit", "compare", "apply", "evaluate", "automate", "export")]
    commands.append(cli.commands["study"].commands["table"])
    parameters = [one for command in commands for one in command.params]
    options = {option for parameter in parameters for option in parameter.opts}
    assert {as_option(name, None) for name in found} <= options
    assert [as_option("kind", "probs"), as_option("overwrite", True)] == ["--input probs", "--force"]


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
def test_a_full_standard_output_is_reported_once(files, start):
    with FULL.open("w") as full:
        process = start("--help", stdout=full)
        _, err = process.communicate()
    assert (process.returncode, err.decode()) == (1, "error: [Errno 28] No space left on device\n")


def test_python_m_temperance_is_the_same_program(start):
    process = start("--version")
    out, err = process.communicate()

    assert (out.decode(), err, process.returncode) == (f"temperance {__version__}\n", b"", 0)
