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


kind_option = click.option(
    "--input",
    "kind",
    type=click.Choice(["logits", "probs"]),
    help="What the numbers are, where a file does not say it.",
)


length_option = click.option(
    "--length-normalised",
    is_flag=True,
    help="Divide log-likelihoods of lm-evaluation-harness by the length of the answers, as acc_norm does.",
)


@dataclass(frozen=True)
class RowOptions:
    """How the rows of a file are read."""

    usual_part: str
    """Of a task file, unless another is asked for."""
    part: str | None = None
    kind: str | None = None
    labels: Path | None = None
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
        )

    def open_with_any_labels(self, path: Path) -> RowFile:
        """Open the rows with their labels, if there are any that can be used: nothing depends on them."""
        from temperance.validation import InputError

        try:
            return self.open(path)
        except InputError:
            return self.open(path, need_labels=False)


def input_options(usual_part: str, *, with_labels: bool = True) -> Callable[..., Any]:
    """Add --input, --part, --length-normalised and, if wanted, --labels to a command: its `row_options`."""
    labels_option = click.option(
        "--labels", type=FILE, help="A file with the labels, if they are not beside the logits."
    )
    part = click.option(
        "--part",
        type=click.Choice(["val", "test"]),
        help=f"Which rows of a task file, with keys as logits_val and logits_test.  [default: {usual_part}]",
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_rows(
            *,
            part: str | None,
            kind: str | None,
            length_normalised: bool,
            labels: Path | None = None,
            **values: Any,
        ) -> Any:
            row_options = RowOptions(usual_part, part, kind, labels, length_normalised)
            return command(row_options=row_options, **values)

        with_part = part(length_option(with_rows))
        return kind_option(labels_option(with_part) if with_labels else with_part)

    return add


force_option = click.option("-f", "--force", is_flag=True, help="Overwrite the output if it exists.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
bins_option = click.option("--bins", type=click.IntRange(min=1), default=15, help="Of the binned errors.")
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
    """Return names given with commas. A module in the folder of the command can be named as well."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise click.BadParameter(f"must name at least one; found {value!r}")
    if ":" in value and "" not in sys.path:
        sys.path.insert(0, "")
    return names


def method_names_option(default: str) -> Callable[..., Any]:
    """Add -m/--methods: names with commas become a list."""
    words = f"Keys, or package.module:Class for a method of yours, with commas.  [default: {default}]"
    return methods_option("--methods", callback=split_names, metavar="METHODS", help=words)


def check_apart(out: Path, *inputs: Path | None) -> None:
    """Raise if an output would take the place of what it is made from: --force is not meant for that."""
    from temperance.validation import InputError

    for path in inputs:
        if path is not None and path.exists() and out.exists() and path.samefile(out):
            raise InputError(f"the output must be another file than the input; found {out} for both.")
