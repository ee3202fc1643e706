"""JSON Lines: one object per line, read line by line; every error names its line.

The standard library reads them, so every installation can. pyarrow, whose streaming reader other formats use,
is an extra. Its errors name a row of a block instead of a line, it fails when an unused field changes its
type, and it accepts two objects on a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from temperance.data.formats.compression import open_bytes
from temperance.errors import InputError, Remedy, excerpt, file_error, listed


@dataclass(frozen=True)
class Record:
    """The object of one line, numbered as in an editor."""

    path: Path
    line: int
    fields: dict[str, Any]

    def error(self, sentence: str, remedy: Remedy | None = None) -> InputError:
        """Return an error about this line."""
        return file_error(self.path, f"line {self.line}: {sentence}", remedy=remedy)

    def field(self, name: str) -> Any:
        """Return the value of a field that every line must have."""
        value = self.fields.get(name)
        if value is None:
            found = "null" if name in self.fields else f"only {listed(self.fields, str) or 'nothing'}"
            raise self.error(f"{name!r} must be on every line; found {found}. Complete or drop this line.")
        return value


def records(path: Path) -> Iterator[Record]:
    """Yield the object of each line that is not blank."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield Record(path, number, _parsed(path, number, line))


def count(path: Path) -> int:
    """Return the number of lines with a record, without parsing them."""
    with open_bytes(path) as file:
        return sum(not line.isspace() for line in file)


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, nested too deeply
        content = None
    if isinstance(content, dict):
        return content
    start = excerpt(line.decode("utf-8", "replace").strip())
    raise file_error(
        path,
        f"line {number} must be a JSON object, as every line of JSON Lines; found {start}. "
        "Write one object per line, as pandas does with to_json(path, orient='records', lines=True).",
    )


def shown(value: Any) -> str:
    """Return the beginning of a value as JSON, for a message."""
    return excerpt(value, partial(json.dumps, ensure_ascii=False))
