"""What a command says: tables for people, JSON for machines, progress while it works.

Results go to standard output and everything else to standard error, so that a pipe carries results alone.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import temperance
from temperance.cli.spelling import in_words
from temperance.errors import on_one_line as on_one_line
from temperance.progress import Report

_WIDTH = 80


class _Console(Console):
    """A console that leaves a broken pipe to whoever prints: by itself it would end the program."""

    def on_broken_pipe(self) -> None:
        raise  # it is being handled


class Output:
    """Where results and progress of one command go."""

    def __init__(self, command: str, *, as_json: bool, quiet: bool) -> None:
        self.command, self.as_json, self.quiet = command, as_json, quiet
        self._out, self._err = _Console(highlight=False), _Console(stderr=True, highlight=False)

    def say(self, words: str) -> None:
        """Tell a person something, unless asked to be quiet."""
        if not (self.quiet or self.as_json):
            self._print(words, soft_wrap=False)

    @property
    def is_live(self) -> bool:
        """Whether there is a terminal to show a bar on."""
        return self._err.is_terminal

    def tell(self, words: str) -> None:
        """Say how far the work is, where there is no bar; for a log, unless asked to be quiet."""
        if not self.quiet:
            click.echo(f"temperance: {words}", err=True)

    def warn(self, words: str) -> None:
        """Say what a fit was not happy with."""
        click.echo(f"temperance: warning: {words}", err=True)

    @contextmanager
    def telling_warnings(self) -> Iterator[None]:
        """Say the warnings of the library in sentences, once each, when the context ends."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for sentence in in_words(caught):
            self.warn(sentence)

    def show(self, heading: str, table: Table) -> None:
        """Show a table; it is the result, so that also a quiet command shows it."""
        if not self.as_json:
            self._print(heading)
            self._print(table)

    def text(self, lines: str) -> None:
        """Show a result in words, its lines as they are: also a quiet command shows it."""
        if not self.as_json:
            self._print(lines, soft_wrap=True)

    def result(self, **fields: Any) -> None:
        """Give a machine the result, as one JSON object."""
        if self.as_json:
            about = {"temperance": temperance.__version__, "command": self.command}
            click.echo(json.dumps(about | _finite(fields), indent=1, allow_nan=False))

    def _print(self, what: Any, **options: Any) -> None:
        # A pipe has no width of its own; a wide terminal makes no table easier to read.
        width = min(self._out.width, _WIDTH) if self._out.is_terminal else _WIDTH
        self._out.print(what, width=width, markup=False, **options)

    @contextmanager
    def progress(self, title: str) -> Iterator[Report]:
        """Show a bar on a terminal while the context lasts; (what is being done, share done) moves it."""
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
        hidden = self.quiet or not self.is_live
        with Progress(
            *columns, TimeElapsedColumn(), console=self._err, transient=True, disable=hidden
        ) as progress:
            task = progress.add_task(title, total=1.0)
            yield lambda what, share: progress.update(
                task, description=f"{title}: {what}" if what else title, completed=share
            )


def _finite(value: Any) -> Any:
    """Write what JSON has no number for as null: an infinite loss, the missing end of an interval."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return None
    return value


def output_options(name: str) -> Callable[..., Any]:
    """Add --json and --quiet to a command, which takes them as its `output`."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
    quiet = quiet_option(name, "Print the result and nothing else.")
    return lambda command: as_json(quiet(command))


def quiet_option(name: str, meaning: str = "Print nothing.") -> Callable[..., Any]:
    """Add --quiet to a command, which takes it as its `output`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_output(*, quiet: bool, as_json: bool = False, **values: Any) -> Any:
            return command(output=Output(name, as_json=as_json, quiet=quiet), **values)

        return click.option("-q", "--quiet", is_flag=True, help=meaning)(with_output)

    return add
