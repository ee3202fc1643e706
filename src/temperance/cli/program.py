"""`temperance`: the group of commands, and how errors become messages and exit codes.

Exit codes: 0 done, 2 bad usage or bad input, 1 the work failed, 130 interrupted; of `check` also 3, act.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click
from click.shell_completion import get_completion_class, shell_complete

import temperance
from temperance.cli.adapt import adapt
from temperance.cli.apply import apply
from temperance.cli.automate import automate
from temperance.cli.check import check
from temperance.cli.compare import compare, demo
from temperance.cli.evaluate import evaluate
from temperance.cli.export import export
from temperance.cli.fit import fit
from temperance.cli.output import as_option, tell_user
from temperance.cli.show import methods, show
from temperance.cli.study import study
from temperance.errors import InputError, OutputExistsError

EXAMPLES = """\b
Examples:
  temperance demo                    every step, on a built-in network
  temperance compare val.npz test.npz --report report.html
  temperance fit val.npz -m bayes -o cal.json
  temperance apply cal.json new.npz -o probs.npz
  temperance evaluate test.npz -c cal.json
  temperance automate cal.json test.npz --max-error 0.05
  temperance check cal.json week42.npz --history checks.jsonl
  temperance export cal.json cal.onnx
  temperance study run tasks/ --out study

\b
Files: .npz with logits (or probs) and labels; also .npy, .csv, .tsv,
.parquet, .safetensors and .pt.
Exit codes: 0 done, 2 bad usage or input, 1 failed; check also 3, act.
"""

COMPLETE = "_TEMPERANCE_COMPLETE"  # the variable in which the shell asks

COMPLETION_EXAMPLES = """\b
Examples:
  temperance completion bash >> ~/.bashrc
  temperance completion zsh >> ~/.zshrc
  temperance completion fish > ~/.config/fish/completions/temperance.fish
"""

# Errors of the operating system about a path that the user chose.
USAGE_ERRORS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
USAGE_ERROR_NUMBERS = (errno.ENAMETOOLONG, errno.EROFS)


@click.command(epilog=COMPLETION_EXAMPLES, short_help="Print the script for shell completion.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and methods in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None  # every choice is a shell that click supports
    click.echo(kind(context.find_root().command, {}, "temperance", COMPLETE).source())


class _InOrder(click.Group):
    """Commands in the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    commands=[
        *(demo, compare, methods, fit, show, apply, evaluate, automate, check, adapt, export, study),
        completion,
    ],
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    invoke_without_command=True,
)
@click.version_option(temperance.__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Probabilities that people can act on, from the outputs of any classifier."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for name in ("SIGTERM", "SIGHUP"):  # SIGHUP, of a closed terminal, does not exist on Windows
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # as nohup asks
            # By an exception, so that unfinished files are removed.
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that the encoding lacks
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Not cli.main: it treats a broken pipe as a failure, and a truncated file as an interruption.
    try:
        if instruction := os.environ.get(COMPLETE):
            return shell_complete(cli, {}, "temperance", COMPLETE, instruction)
        with cli.make_context("temperance", words) as context:
            cli.invoke(context)
        if sys.stdout is not None:  # as `>&-` makes it
            sys.stdout.flush()
    except click.ClickException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "temperance")
        message = " ".join(error.format_message().split()).rstrip(".")
        return _fail(f"{message}{'' if message.endswith('?') else '.'} See: {where} --help", 2)
    except KeyboardInterrupt:
        return _fail("interrupted; no file was left half-written", 130)
    except BrokenPipeError:
        # The reader of our output has closed it. Discard the rest of the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except Exception as error:
        return _fail(*_explain(error))
    return 0


def _explain(error: Exception) -> tuple[str, int]:
    """Return the message of an error. Input errors are sentences already; bugs show their type."""
    if isinstance(error, (InputError, OutputExistsError)):
        return error.worded(as_option), 2
    if isinstance(error, ImportError):
        return str(error), 2
    if isinstance(error, OSError):
        is_usage = isinstance(error, USAGE_ERRORS) or error.errno in USAGE_ERROR_NUMBERS
        trouble = (error.strerror or "cannot be used").lower()
        message = str(error) if error.filename is None else f"{error.filename}: {trouble}"
        return message, 2 if is_usage else 1
    if isinstance(error, MemoryError):
        return "there is not enough memory; apply and evaluate read a file block by block", 1
    from temperance.files import utc_now

    try:
        utc_now()  # other libraries read SOURCE_DATE_EPOCH too, and fail without a sentence
    except InputError as cause:
        return cause.worded(as_option), 2
    return f"this should not have happened ({type(error).__name__}: {error}); please report it", 1


def _fail(sentence: str, code: int) -> int:
    tell_user("error", sentence)
    return code
