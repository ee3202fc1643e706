"""JSON Lines: one object on each line, read line by line; every error has its line number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temperance.data.formats.packed import open_bytes
from temperance.data.lazy_array import file_error
from temperance.errors import InputError, Remedy

_SHOWN = 40  # characters of a line or a text in a message


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
            found = "null" if name in self.fields else f"only {', '.join(list(self.fields)[:8]) or 'nothing'}"
            raise self.error(f"{name!r} must be on every line; found {found}. Complete or drop this line.")
        return value


def records(path: Path) -> Iterator[Record]:
    """Yield the object of each line that is not blank."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield Record(path, number, _parsed(path, number, line))


def count(path: Path) -> int:
    """Return how many lines have a record; they are not read as JSON."""
    with open_bytes(path) as file:
        return sum(not line.isspace() for line in file)


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, nested too deeply
        content = None
    if isinstance(content, dict):
        return content
    start = line.decode("utf-8", "replace").strip()[:_SHOWN]
    raise file_error(
        path,
        f"line {number} must be a JSON object, as every line of JSON Lines; found {start!r}. "
        "Write one object on each line, as pandas does with to_json(path, orient='records', lines=True).",
    )


def shown(value: Any) -> str:
    """Return the beginning of a value as JSON, for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
