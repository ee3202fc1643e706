"""Options and arguments that several commands share, and the files behind them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from temperance.data import RowFile

FILE = click.Path(path_type=Path)
CLASSES_AS_GIVEN = "temperance.classes"  # in the context of a command
_LARGEST_LIST = 1 << 26  # bytes of a file with class names


kind_option = click.option(
    "--input",
    "kind",
    type=click.Choice(["logits", "probs"]),
    help="What the numbers are, if the file does not say.",
)


def _read_classes(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Return names separated by commas, or the lines of a file whose name follows an @."""
    if value is None:
        return None
    context.meta[CLASSES_AS_GIVEN] = value
    if not value.startswith("@"):
        return tuple(name.strip() for name in value.split(","))
    from temperance.files import read_regular_file

    try:
        text = read_regular_file(value[1:], most=_LARGEST_LIST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"the file {value[1:]!r} cannot be read as text: {error}") from None
    return tuple(line.strip() for line in text.splitlines() if line.strip())


_TABLE_OPTIONS = (
    click.option(
        "--label-column", metavar="NAME", help="Column of a table with the labels, if it has another name."
    ),
    click.option("--id-column", metavar="NAME", help="Column of a table with the row names."),
    click.option(
        "--classes",
        callback=_read_classes,
        metavar="NAMES",
        help="Class names, separated by commas, or @FILE with one on each line.",
    ),
)


@dataclass(frozen=True)
class TableOptions:
    """What the user has said about the columns of a table and the classes."""

    label_column: str | None = None
    id_column: str | None = None
    classes: tuple[str, ...] | None = None


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --label-column, --id-column and --classes to a command, which takes them as its `table`."""

    @wraps(command)
    def with_table(
        *, label_column: str | None, id_column: str | None, classes: tuple[str, ...] | None, **values: Any
    ) -> Any:
        return command(table=TableOptions(label_column, id_column, classes), **values)

    for option in reversed(_TABLE_OPTIONS):
        with_table = option(with_table)
    return with_table


length_option = click.option(
    "--length-normalised",
    is_flag=True,
    help="Divide log-likelihoods of lm-evaluation-harness by the length of the answers, as acc_norm does.",
)


@dataclass(frozen=True)
class RowOptions:
    """How the rows of a file are read."""

    usual_part: str
    """The part of a task file that is read by default."""
    part: str | None = None
    kind: str | None = None
    labels: Path | None = None
    table: TableOptions = TableOptions()
    length_normalised: bool = False

    def open(self, path: Path, *, need_labels: bool = True) -> RowFile:
        """Open the rows of a file."""
        from temperance.data import open_rows, parts

        part = self.part or (self.usual_part if self.usual_part in parts(path) else None)
        return open_rows(
            path,
            part=part,
            kind=self.kind,
            labels=self.labels,
            need_labels=need_labels,
            length_normalised=self.length_normalised,
            **vars(self.table),
        )

    def open_with_any_labels(self, path: Path) -> RowFile:
        """Open the rows with their labels if these are usable; the command does not need them."""
        from temperance.errors import InputError

        if self.table.label_column is not None:  # the user asked for this column
            return self.open(path)
        try:
            return self.open(path)
        except InputError:
            return self.open(path, need_labels=False)


def input_options(usual_part: str, *, with_labels: bool = True) -> Callable[..., Any]:
    """Add the options about a file of rows to a command, which takes them as its `row_options`.

    They are --input, --part, --length-normalised, those of tables and, if wanted, --labels.
    """
    labels_option = click.option(
        "--labels", type=FILE, help="File with the labels, if they are not in the file of logits."
    )
    part = click.option(
        "--part",
        type=click.Choice(["val", "test"]),
        help=f"Which rows of a task file (logits_val or logits_test).  [default: {usual_part}]",
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_rows(
            *,
            part: str | None,
            kind: str | None,
            labels: Path | None = None,
            table: TableOptions,
            length_normalised: bool,
            **values: Any,
        ) -> Any:
            row_options = RowOptions(usual_part, part, kind, labels, table, length_normalised)
            return command(row_options=row_options, **values)

        with_part = part(length_option(table_options(with_rows)))
        return kind_option(labels_option(with_part) if with_labels else with_part)

    return add


from_probs_option = click.option(
    "--from-probs",
    is_flag=True,
    help="The file holds the classifier's own probabilities: calibrate their logarithms.",
)


force_option = click.option("-f", "--force", is_flag=True, help="Overwrite the output if it exists.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
draws_option = click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=1000,  # metrics.resamples.DRAWS, which would be slow to import here
    help="Bootstrap resamples.",
)
bins_option = click.option(
    "--bins", type=click.IntRange(1, 10_000), default=15, help="Number of bins of the calibration errors."
)
confidence_option = click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Level of the intervals.",
)


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from temperance.calibrators import CALIBRATORS

    *before, last = incomplete.split(",")
    return [",".join([*before, key]) for key in CALIBRATORS if key.startswith(last)]


def methods_option(name: str, **settings: Any) -> Callable[..., Any]:
    """Add -m, completed from the registry."""
    return click.option("-m", name, shell_complete=_complete, **settings)


def split_names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """Return names separated by commas. They may refer to modules in the current folder."""
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
    return methods_option("--methods", callback=split_names, metavar="METHODS", help=words)


def check_apart(out: Path, *inputs: Path | None) -> None:
    """Raise if an output would overwrite its input: --force does not allow this."""
    from temperance.errors import InputError

    for path in inputs:
        if path is not None and path.exists() and out.exists() and path.samefile(out):
            raise InputError(f"the output must not be an input file; found {out} for both.")
