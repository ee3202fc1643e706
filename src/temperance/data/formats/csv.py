""".csv: a line that names the columns (see columns.py), then a line for each row; needs no other package."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import ColumnChoice, Columns, group
from temperance.data.lazy_array import LazyArray, damage_explained, file_error
from temperance.errors import InputError

_EXAMPLE = "logit_0,logit_1,label"


def members(path: Path, choice: ColumnChoice) -> dict[str, LazyArray]:
    """Return the arrays of the table. Its lines are counted, not read."""
    with _opened(path) as (names, file):
        n_rows = sum(not line.isspace() for line in file)
    return {
        key: _CsvArray(path, key, names, columns, n_rows)
        for key, columns in group(path, names, choice).items()
    }


@contextmanager
def _opened(path: Path) -> Iterator[tuple[list[str], TextIO]]:
    """Open the table behind its first line, and return the names of that."""
    wrong = "is not text in UTF-8 ({}). Save it as CSV in UTF-8."
    # utf-8-sig: spreadsheets begin a file with a mark of its encoding.
    with damage_explained(path, wrong.format, of=UnicodeDecodeError), path.open(encoding="utf-8-sig") as file:
        yield _names(path, file.readline()), file


def _names(path: Path, line: str) -> list[str]:
    names = [name.strip() for name in _cells(line)]
    if not any(names):
        raise file_error(path, f"the first line must name the columns, as {_EXAMPLE}; it is empty.")
    if all(_is_number(name) for name in names):
        raise file_error(
            path,
            f"the first line must name the columns, as {_EXAMPLE}; it holds numbers only. Add such a line.",
        )
    if len(names) == 1 and (";" in line or "\t" in line):
        raise file_error(path, f"columns must be separated by commas; found {line.strip()[:60]!r}.")
    return names


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return [line]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class _CsvArray(LazyArray):
    """Some columns of the table."""

    def __init__(self, path: Path, key: str, names: list[str], columns: Columns, n_rows: int) -> None:
        shape = (n_rows,) if columns.flat else (n_rows, len(columns.names))
        super().__init__(path, key, shape, np.dtype(np.int64 if key == "labels" else np.float64))
        self.class_names = columns.class_names
        self._names = names
        self._where = [names.index(name) for name in columns.names]

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        with _opened(self.path) as (_, file):
            # Numbered as an editor counts.
            numbered = ((number, line) for number, line in enumerate(file, 2) if not line.isspace())
            while lines := dict(islice(numbered, rows)):
                yield self._numbers(lines)

    def _numbers(self, lines: dict[int, str]) -> NDArray[Any]:
        # np.loadtxt sees only the columns it is asked for. A comma more may be part of a quoted text.
        if any(line.count(",") != len(self._names) - 1 for line in lines.values()):
            self._look_closely(lines)
        try:
            table = np.loadtxt(
                list(lines.values()),
                delimiter=",",
                comments=None,
                quotechar='"',
                usecols=self._where,
                ndmin=2,
                encoding=None,
            )
        except ValueError as error:
            self._look_closely(lines)
            raise self.file_error(f"cannot be read in lines {min(lines)} to {max(lines)}: {error}") from error
        if self.key == "labels":
            self._check_whole(table, list(lines))
        block = table[:, 0] if len(self.shape) == 1 else table
        return block.astype(self.dtype, copy=False)

    def _look_closely(self, lines: dict[int, str]) -> None:
        """Raise for the first line that is at fault."""
        for number, line in lines.items():
            cells = _cells(line)
            if len(cells) != len(self._names):
                raise self.file_error(
                    f"line {number} must have {len(self._names)} cells, as the first line has; "
                    f"it has {len(cells)}."
                )
            for column in self._where:
                if not _is_number(cells[column]):
                    raise self._not(number, column, "a number", cells[column])

    def _check_whole(self, table: NDArray[Any], numbers: list[int]) -> None:
        # Text has no types: 3.0 is the label 3. Above 2^53 a float is no exact index.
        bad = np.flatnonzero(~((table == np.rint(table)) & (np.abs(table) < 2**53)).all(axis=1))
        if bad.size:
            raise self._not(numbers[bad[0]], self._where[0], "a whole number", f"{table[bad[0], 0]:g}")

    def _not(self, line: int, column: int, wanted: str, got: str) -> InputError:
        return self.file_error(
            f"line {line}, column {self._names[column]!r} must hold {wanted}; found {got[:40]!r}. "
            f"Correct it, or name the columns of the scores, as {_EXAMPLE}, so that others are left alone."
        )
