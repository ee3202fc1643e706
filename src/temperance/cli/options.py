"""Options and arguments that several commands share, and how they are written.

The options for reading rows are the fields of `ReadOptions`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy, missing_file

WRITTEN = ("out", "report", "history")
"""Parameters that name what a command writes; files of other parameters are read, and must exist."""
_CLASSES_AS_GIVEN = "temperance.classes"  # in the context of a command
# Options whose names differ from the library arguments that they set.
_OPTIONS = {"kind": "--input", "overwrite": "--force", "groups": "--group-column"}


class ReadOption(click.Option):
    """An option about how a file is read."""


def format_options(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options of a command to its help; those about reading files have a group of their own."""
    groups: dict[str, list[tuple[str, str]]] = {"Options": [], "Reading files": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            groups["Reading files" if isinstance(parameter, ReadOption) else "Options"].append(record)
    for title, records in groups.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


class _File(click.Path):
    """A file or folder. If it is to be read, it must exist: known before the libraries are imported."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if param is not None and param.name not in WRITTEN and not path.exists():
            raise missing_file(path)
        return path


FILE = _File()


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


def _read_classes(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Return names separated by commas, or the lines of a file whose name follows an @."""
    if value is None:
        return None
    context.meta[_CLASSES_AS_GIVEN] = value
    if not value.startswith("@"):
        return tuple(name.strip() for name in value.split(","))
    from temperance.files import read_regular_file

    try:
        text = read_regular_file(value[1:]).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"the file {value[1:]!r} cannot be read as text: {error}") from None
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def read_options(
    *only: str, without: Sequence[str] = (), default_part: str | None = None, **helps: str
) -> Callable[..., Any]:
    """Add options for reading rows to a command, which takes them as its `options`.

    They are all fields of `ReadOptions` that have help, or only some. `default_part` is the part of a task
    file that is read by default; `helps` replaces the help of a field.
    """
    described = [one for one in ReadOptions.described() if one.name not in without]
    chosen = [one for one in described if not only or one.name in only]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_options(**values: Any) -> Any:
            read = {one.name: values.pop(one.name) for one in chosen}
            options = ReadOptions(default_part=default_part, **read)
            if options.from_probs and options.kind == "logits":
                raise InputError(
                    "--from-probs and --input logits exclude each other.", remedy=Remedy("from_probs")
                )
            return command(options=options, **values)

        for one in reversed(chosen):
            settings = dict(one.metadata)
            if choices := settings.pop("choices", None):
                settings["type"] = click.Choice(choices)
            if settings.pop("file", False):
                settings["type"] = FILE
            if one.default is False:
                settings["is_flag"] = True
            if one.name == "classes":
                settings["callback"] = _read_classes
            settings["help"] = helps.get(one.name, settings["help"])
            if one.name == "part":
                settings["help"] += f"  [default: {default_part}]"
            name = as_option(one.name, None)
            with_options = click.option(name, one.name, cls=ReadOption, **settings)(with_options)
        return with_options

    return add


def as_words(options: ReadOptions) -> list[str]:
    """Return the options with which rows were read as words of a command."""
    given = options.given()
    if "classes" in given:
        given["classes"] = click.get_current_context().meta[_CLASSES_AS_GIVEN]  # a file stays a file
    return [as_option(name, value) for name, value in given.items()]


force_option = click.option("-f", "--force", is_flag=True, help="Overwrite the output if it exists.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
bins_option = click.option(
    "--bins", type=click.IntRange(1, 10_000), default=15, help="Number of bins of the calibration errors."
)
confidence_option = click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Level of the intervals.",
)


def separated(read: Callable[[str], Any], what: str) -> Callable[..., Any]:
    """Return a callback of an option that reads values separated by commas."""

    def split(context: click.Context, parameter: click.Parameter, value: str | None) -> list[Any] | None:
        try:
            return None if value is None else [read(word) for word in value.split(",")]
        except ValueError:
            raise click.BadParameter(f"must be {what} separated by commas; found {value!r}") from None

    return split


def complete_methods(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the last of some methods separated by commas."""
    from temperance.calibrators import CALIBRATORS

    *before, last = incomplete.split(",")
    return [",".join([*before, key]) for key in CALIBRATORS if key.startswith(last)]


def split_names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """Return names separated by commas. They can refer to modules in the current folder."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise click.BadParameter(f"must have at least one name; found {value!r}")
    if ":" in value and "" not in sys.path:
        sys.path.insert(0, "")
    return names


def method_names_option(default: str) -> Callable[..., Any]:
    """Add -m/--methods: names separated by commas become a list."""
    words = f"Keys, or package.module:Class for your own method, separated by commas.  [default: {default}]"
    return click.option(
        "-m",
        "--methods",
        callback=split_names,
        shell_complete=complete_methods,
        metavar="METHODS",
        help=words,
    )


metric_names_option = click.option(
    "--metrics",
    callback=split_names,
    help="Additional metrics: functions of (probs, labels) as package.module:name, separated by commas.",
)


def check_output_file(out: Path, *inputs: Path | None, overwrite: bool) -> None:
    """Raise unless an output can be written; an input is never overwritten, even with --force."""
    from temperance.files import check_writable

    for path in inputs:
        if path is not None and path.exists() and out.exists() and path.samefile(out):
            raise InputError(f"the output must not be an input file; found {out} for both.")
    check_writable(out, overwrite=overwrite)
