"""Options and arguments that several commands share, and how a command gets their values.

The options for reading rows are the fields of `ReadOptions`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from temperance.cli.output import Output, as_option
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy, missing_file, on_one_line

_CLASSES_AS_GIVEN = "temperance.classes"  # in the context of a command


class ReadOption(click.Option):
    """An option about how a file is read."""


class Command(click.Command):
    """A command whose function takes `output`, and `reading` if it reads rows, besides its own parameters."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with one object for all options about reading, and one for those about output.

        First, check that the files to write can be written: an input is never overwritten, even with --force.
        """
        from temperance.files import check_writable

        given, name = ctx.params, ctx.command_path.partition(" ")[2]
        others: list[Any] = [given[one.name] for one in self.params if one.type is INPUT]
        for one in self.params:
            out = given[one.name]
            if one.type not in (OUTPUT, LOG) or out is None:
                continue
            if any(isinstance(other, Path) and _is_same(other, out) for other in others):
                raise InputError(f"the output must not be an input file; found {out} for both.")
            check_writable(out, overwrite=one.type is LOG or given["force"])
            others.append(out)  # nor another output
        quiet, as_json = given.pop("quiet", False), given.pop("as_json", False)
        given["output"] = Output(name, as_json=as_json, quiet=quiet)
        read = {one.name: given.pop(one.name) for one in self.params if isinstance(one, ReadOption)}
        if read:
            if ctx.get_parameter_source("part") is ParameterSource.DEFAULT:
                read["default_part"] = read.pop("part")
            reading = given["reading"] = ReadOptions(**read)
            if reading.from_probs and reading.kind == "logits":
                raise InputError(
                    "--from-probs and --input logits exclude each other.", remedy=Remedy("from_probs")
                )
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the help; those about reading files have a group of their own."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], "Reading files": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups["Reading files" if isinstance(parameter, ReadOption) else "Options"].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Input(click.Path):
    """A file or folder to be read. It must exist: known before the libraries are imported."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        if not path.exists():
            raise missing_file(path)
        return path


def _is_same(path: Path, other: Path) -> bool:
    """Say whether two paths, or links, are one file, even if it does not exist yet."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


INPUT, FOLDER = _Input(path_type=Path), click.Path(path_type=Path)
OUTPUT = click.Path(path_type=Path)
"""A file to write, which can exist if --force is given."""
LOG = click.Path(path_type=Path)
"""A file to append to, which can exist."""


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
    """Add options for reading rows to a command, which takes them as `reading`.

    They are all fields of `ReadOptions` that have help, or only some. `default_part` is the part of a task
    file that is read by default; `helps` replaces the help of a field.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(ReadOptions.described()):
            if one.name in without or (only and one.name not in only):
                continue
            settings = dict(one.metadata)
            if choices := settings.pop("choices", None):
                settings["type"] = click.Choice(choices)
            if settings.pop("file", False):
                settings["type"] = INPUT
            if one.name == "classes":
                settings["callback"] = _read_classes
            settings["is_flag"] = one.default is False
            settings["default"] = default_part if one.name == "part" else one.default
            settings["help"] = helps.get(one.name, settings["help"])
            name = as_option(one.name, None)
            command = click.option(name, one.name, cls=ReadOption, **settings)(command)
        return command

    return add


def command_line(*words: object, reading: ReadOptions | None = None) -> str:
    """Return a command to paste, with the options with which rows were read."""
    given = {} if reading is None else reading.given()
    if "classes" in given:
        given["classes"] = click.get_current_context().meta[_CLASSES_AS_GIVEN]  # a file stays a file
    read = [as_option(name, value) for name, value in given.items()]
    return on_one_line(" ".join([shlex.join(["temperance", *map(str, words)]), *read]))


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json and --quiet to a command that prints a result."""
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print the result and nothing else.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
    return as_json(quiet(command))


force = click.option("-f", "--force", is_flag=True, help="Overwrite the output if it exists.")
seed = click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
bins = click.option(
    "--bins", type=click.IntRange(1, 10_000), default=15, help="Number of bins of the calibration errors."
)
share = click.FloatRange(0, 1, min_open=True, max_open=True)
confidence = click.option("--confidence", type=share, default=0.95, help="Level of the intervals.")


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


def methods(default: str) -> Callable[..., Any]:
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


metrics = click.option(
    "--metrics",
    callback=split_names,
    help="Additional metrics: functions of (probs, labels) as package.module:name, separated by commas.",
)
