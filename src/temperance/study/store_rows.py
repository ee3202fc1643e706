"""What a row of each table of a store must hold: SQLite does not enforce column types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temperance.errors import InputError, excerpt

Kinds = tuple[type | tuple[type, ...], ...]

_NAMES = {str: "text", int: "a whole number", float: "a number", type(None): "null"}
_NUMBER = (int, float)
_NUMBER_OR_NULL = (int, float, type(None))  # null stands for nan

FIT_KEY: Kinds = (str, int, int, str)
TASK: Kinds = (str, str, str, int, int, int)
METRIC: Kinds = (*FIT_KEY, str, _NUMBER_OR_NULL)
SCORE: Kinds = (*FIT_KEY, *(_NUMBER_OR_NULL,) * 4, int, int, str, _NUMBER, _NUMBER)


def checked_row(path: Path, table: str, kinds: Kinds, row: Sequence[Any]) -> Sequence[Any]:
    """Return a row; raise if a column is missing or has the wrong type."""
    if len(row) != len(kinds):
        raise _damage(path, f"{table} must have {len(kinds)} columns; found {len(row)}")
    for value, kind in zip(row, kinds, strict=True):
        if not isinstance(value, kind):
            names = " or ".join(_NAMES[one] for one in (kind if isinstance(kind, tuple) else (kind,)))
            raise _damage(path, f"a column of {table} must hold {names}; found {excerpt(value)}")
    return row


def _damage(path: Path, what: str) -> InputError:
    return InputError(
        f"{path} must be the store of a study; its table {what}. Copy it again, or repeat the study."
    )
