"""Options and arguments that several commands share, and the files behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from temperance.data import RowFile

__all__ = [
    "FILE",
    "check_apart",
    "confidence_option",
    "force_option",
    "input_options",
    "kind_option",
    "methods_option",
    "open_part",
    "part_option",
    "seed_option",
    "studied_methods_option",
]

FILE = click.Path(path_type=Path)


kind_option = click.option(
    "--input",
    "kind",
    type=click.Choice(["logits", "probs"]),
    help="What the numbers are, where a file does not say it.",
)


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --input and --labels."""
    labels = click.option(
        "--labels", type=FILE, help="A file with the labels, if they are not beside the logits."
    )
    return kind_option(labels(command))


def part_option(default: str) -> Callable[..., Any]:
    """Add --part, for task files."""
    return click.option(
        "--part",
        type=click.Choice(["val", "test"]),
        help=f"Which rows of a task file, with keys as logits_val and logits_test.  [default: {default}]",
    )


force_option = click.option("-f", "--force", is_flag=True, help="Overwrite the output if it exists.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For all chance."
)

confidence_option = click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)


def _complete(keys: Iterable[str], incomplete: str) -> list[str]:
    *before, last = incomplete.split(",")
    return [",".join([*before, key]) for key in keys if key.startswith(last)]


def _complete_methods(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from temperance.calibrators import CALIBRATORS

    return _complete(CALIBRATORS, incomplete)


def _complete_studied(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from temperance.study.methods import METHODS

    return _complete(METHODS, incomplete)


def methods_option(name: str, **settings: Any) -> Callable[..., Any]:
    """Add -m, completed from the registry."""
    return click.option("-m", name, shell_complete=_complete_methods, **settings)


def _keys(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [key.strip() for key in value.split(",") if key.strip()]


def studied_methods_option(default: str) -> Callable[..., Any]:
    """Add -m/--methods, completed from the methods of a study: keys with commas become a list."""
    return click.option(
        "-m",
        "--methods",
        callback=_keys,
        shell_complete=_complete_studied,
        help=f"Keys with commas.  [default: {default}]",
    )


def open_part(
    path: Path,
    part: str | None,
    default: str,
    kind: str | None,
    labels: Path | None,
    *,
    need_labels: bool = True,
) -> RowFile:
    """Open the rows of a file: of a task file the part asked for, else the usual one of the command."""
    from temperance.data import open_rows, parts

    chosen = part or (default if default in parts(path) else None)
    return open_rows(path, part=chosen, kind=kind, labels=labels, need_labels=need_labels)


def check_apart(out: Path, *inputs: Path | None) -> None:
    """Raise if an output would take the place of what it is made from: --force is not meant for that."""
    from temperance.validation import InputError

    for path in inputs:
        if path is not None and path.exists() and out.exists() and path.samefile(out):
            raise InputError(f"the output must be another file than the input; found {out} for both.")
