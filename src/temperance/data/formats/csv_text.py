"""A table as text: its encoding, its separator, the names in its first line, and the cells of a line.

Spreadsheets and languages write the same table in many ways. The dialect is read from the first bytes (a byte
order mark) and the first two lines; nothing else is guessed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from temperance.data.formats.packed import open_bytes
from temperance.data.lazy_array import damage_explained, file_error
from temperance.errors import excerpt

EXAMPLE = "logit_0,logit_1,label"
SEPARATORS = (",", ";", "\t", "|")
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}  # as Excel's "Unicode text" has one


@dataclass(frozen=True)
class TableText:
    """How the text of a table is read."""

    path: Path
    encoding: str
    separator: str
    names: list[str]

    @contextmanager
    def lines(self) -> Iterator[Iterator[tuple[int, str]]]:
        """Open the table after its first line: the lines that hold cells, numbered as in an editor."""
        with open_text(self.path, self.encoding) as file:
            file.readline()
            yield ((number, line) for number, line in enumerate(file, 2) if not _is_blank(line))

    def cells(self, line: str) -> list[str] | None:
        """Return the cells of a line; None if a quoted cell does not end on it."""
        return _cells(line, self.separator)


def read_table_text(path: Path) -> TableText:
    """Return how a table is to be read."""
    encoding = _encoding(path)
    with open_text(path, encoding) as file:
        first = file.readline()
        second = next((line for line in file if not _is_blank(line)), "")
    if _is_blank(first):
        raise file_error(path, f"the first line must name the columns, as {EXAMPLE}; found an empty line.")
    separator = _separator(first, second)
    names = [name.strip() for name in _cells(first, separator) or [first]]
    _check_names(path, first, names)
    cells = _cells(second, separator) or []
    # R's write.table writes no header for the row names. An empty last cell is another case: lines that end
    # in a
    # separator.
    if len(cells) == len(names) + 1 and cells[-1].strip():
        names.insert(0, "")
    return TableText(path, encoding, separator, names)


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a file of text, which may be compressed."""
    advice = "Save it as CSV in UTF-8."
    decoding = damage_explained(
        path, lambda error: f"is not text in UTF-8 ({error}). {advice}", of=UnicodeError
    )
    with decoding, open_bytes(path) as file, TextIOWrapper(file, encoding=encoding) as text:
        yield text


def _encoding(path: Path) -> str:
    with open_bytes(path) as file:
        return _MARKS.get(file.read(2), "utf-8-sig")  # -sig: a byte order mark is not part of the first name


def _is_blank(line: str) -> bool:
    return not line.strip(" \r\n")  # tabs separate cells, even empty ones


def _cells(line: str, separator: str) -> list[str] | None:
    try:
        found = csv.reader([line], delimiter=separator, strict=True, skipinitialspace=separator != "\t")
        return next(found, [])
    except csv.Error:
        return None


def _separator(first: str, second: str) -> str:
    """Return the separator with the most cells in the first line; if tied, one that fits the second line."""

    def fitness(separator: str) -> tuple[int, bool]:
        names, cells = (len(_cells(line, separator) or ()) for line in (first, second))
        return names, cells in (names, names + 1)

    return max(SEPARATORS, key=fitness)


def _check_names(path: Path, line: str, names: list[str]) -> None:
    wanted = f"the first line must name the columns, as {EXAMPLE}"
    if not any(names):
        raise file_error(path, f"{wanted}; found an empty line.")
    if len(names) == 1 and len(line.split()) > 1:
        raise file_error(
            path,
            f"columns must be separated by a comma, a semicolon, a tab or |; found {excerpt(line.strip())}.",
        )
    if all(map(is_number, names)) and not _are_columns_of_an_array(names):
        raise file_error(path, f"{wanted}; found only numbers. Add such a line.")
    measured = [name for name in names if is_number(name) and not name.isalnum()]
    if measured:
        raise file_error(path, f"{wanted}; found {excerpt(measured[0])} among the names. Add such a line.")


def _are_columns_of_an_array(names: list[str]) -> bool:
    """Say whether the names are 0, 1, ..., as pandas calls the columns of an array."""
    return len(names) > 1 and names == [str(number) for number in range(len(names))]


def as_numbers(cells: list[str]) -> list[float]:
    """Return the numbers in some cells."""
    if "_" in "".join(cells):  # Python also accepts 1_000
        raise ValueError("_")
    return list(map(float, cells))


def is_number(cell: str) -> bool:
    """Say whether a cell holds a number."""
    try:
        as_numbers([cell])
    except ValueError:
        return False
    return True
