"""What a command says: sentences and tables for people, JSON for machines, progress while it works.

Results go to standard output and everything else to standard error, so a pipe carries only results.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import temperance
from temperance.errors import InputWarning, on_one_line
from temperance.progress import Report

if TYPE_CHECKING:
    from temperance.metrics.by_group import CalibrationByGroup

_WIDTH = 80
MAX_TABLE_VALUES = 20  # of --by in the table
# Options whose names differ from the library arguments that they set.
_OPTIONS = {"kind": "--input", "overwrite": "--force", "groups": "--group-column"}


class _Console(Console):
    """A console that raises on a broken pipe; rich's own would end the program."""

    def on_broken_pipe(self) -> None:
        raise  # re-raise the error that rich is handling


def as_option(argument: str, value: object) -> str:
    """Write an argument of the library as the option that sets it."""
    option = _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")
    if (argument, value) == ("classes", "NAMES"):  # which are too many for a line, or contain commas
        return "--classes @FILE, a file with one name on each line"
    if value is False:
        return option.replace("--", "--no-", 1)
    if isinstance(value, list):
        return f"{option} {shlex.quote(','.join(map(str, value)))}"
    return option if value is None or value is True else f"{option} {shlex.quote(str(value))}"


def tell_user(kind: str, sentence: str) -> None:
    """Print an error, a warning or a note to standard error: wrapped for a terminal, one line for a log."""
    line = f"{kind}: {on_one_line(sentence)}"
    if sys.stderr is not None and sys.stderr.isatty():
        width = min(_Console(stderr=True).width, _WIDTH)
        # What is to be pasted must not be broken.
        line = textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    click.echo(line, err=True)


class Output:
    """Where results and progress of one command go."""

    def __init__(self, command: str, *, as_json: bool = False, quiet: bool = False) -> None:
        self.command, self.as_json, self.quiet = command, as_json, quiet
        self._out, self._err = _Console(highlight=False), _Console(stderr=True, highlight=False)
        if not self._out.is_terminal:
            self._out.width = 1 << 16  # nothing is cut from what a program reads
        self.warnings: list[str] = []
        """Those that were printed while the command made progress."""
        self.is_live = self._err.is_terminal
        """Whether there is a terminal to show a progress bar on."""

    def say(self, what: str | Table, *, wrap: bool = True) -> None:
        """Print lines or a table for people, unless --quiet or --json is set."""
        if not self.quiet:
            self.show(what, wrap=wrap)

    def show(self, what: str | Text | Table, *, style: str | None = None, wrap: bool = True) -> None:
        """Print lines or a table of the result, unless --json is set.

        Lines with commands or names of files are not wrapped, so that they can be pasted.
        """
        if self.as_json:
            return
        # Long lines are hard to read, so sentences are narrow, and tables as wide as the terminal at most.
        width = self._out.width if isinstance(what, Table) else min(self._out.width, _WIDTH)
        self._out.print(what, style=style, width=width, soft_wrap=not wrap, markup=False)

    def tell(self, words: str) -> None:
        """Print a line of progress to standard error, for logs without a progress bar."""
        if not self.quiet:
            tell_user("note", words)

    def say_by_group(self, by: str | None, found: CalibrationByGroup | None) -> None:
        """Print the calibration by values of the column or array `by`, if it was asked for."""
        if found is None:
            return
        head, values = found.table()
        shown = [[on_one_line(cell) for cell in row] for row in values[:MAX_TABLE_VALUES]]
        self.say(f"Calibration by {on_one_line(by)}; {found.about}")
        self.say(new_table(*head, rows=shown))
        if len(values) > MAX_TABLE_VALUES:
            self.say(f"{len(values) - MAX_TABLE_VALUES:,} more values: --json lists all.")

    def result(self, **fields: Any) -> None:
        """Print the result as one JSON object, with --json."""
        if self.as_json:
            about = {"temperance": temperance.__version__, "command": self.command}
            click.echo(json.dumps(about | _finite(fields), indent=1, allow_nan=False))

    @contextmanager
    def progress(self, title: str) -> Iterator[Report]:
        """Show a progress bar on a terminal; call the result with (what is being done, share done).

        The bar moves from side to side until a share is known, which is not nan. At the end, the warnings of
        the library are printed, once each, with options in place of arguments.
        """
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
        hidden = self.quiet or not self.is_live
        with (
            warnings.catch_warnings(record=True) as caught,
            Progress(
                *columns, TimeElapsedColumn(), console=self._err, transient=True, disable=hidden
            ) as progress,
        ):
            warnings.simplefilter("always")
            task = progress.add_task(title, total=None)
            yield lambda what, share: progress.update(
                task,
                description=f"{title}: {what}" if what else title,
                total=None if math.isnan(share) else 1.0,
                completed=None if math.isnan(share) else share,  # None changes nothing
            )
        for message in (warning.message for warning in caught):
            words = message.worded(as_option) if isinstance(message, InputWarning) else str(message)
            if words not in self.warnings:
                self.warnings.append(words)
                tell_user("warning", words)


def new_table(first: str, *numbers: str, rows: Iterable[Sequence[str]] = ()) -> Table:
    """Return a table: a column of names, which a narrow terminal folds, and columns of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _finite(value: Any) -> Any:
    """Write numbers that JSON lacks as null: an infinite loss, the missing end of an interval."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return None
    return value


def count(number: int, noun: str) -> str:
    """Return "1 row" or "10,000 rows".

    Examples
    --------
    >>> count(1, "row"), count(10_000, "prediction")
    ('1 row', '10,000 predictions')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
