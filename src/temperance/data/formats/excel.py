""".xlsx: the first sheet is a table (see columns.py), and its first row names the columns.

The sheet is read once, cell by cell, since it has at most a million rows. A formula counts as the value that
the file stores for it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from temperance.data.formats.columns import BESIDE_SCORES, Columns, group, not_numbers, whole_number
from temperance.data.formats.compression import is_inflated
from temperance.data.lazy_array import ArrayInMemory, LazyArray, UnreadableArray
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, excerpt, file_error, library_errors
from temperance.loaders import import_optional


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the first sheet."""
    # The file stays open until all rows are read.
    with _sheet(path) as sheet, closing(row for row in sheet.iter_rows(values_only=True)) as rows:
        names = _names(path, next(rows, ()))
        groups = group(path, names, choice)
        readers = {key: _Reader(path, key, columns, names) for key, columns in groups.items()}
        for number, cells in enumerate(rows, 2):
            if any(cell is not None for cell in cells):
                for reader in readers.values():
                    reader.take(number, cells)
    return {key: reader.result() for key, reader in readers.items()}


@contextmanager
def _sheet(path: Path) -> Iterator[Any]:
    openpyxl = import_optional("openpyxl", "excel", f"{path}: an {path.suffix} file")
    with library_errors(path, "is not an Excel workbook, or is damaged ({}). Save it again as .xlsx."):
        # Some parts are read as a whole.
        with ZipFile(path) as archive:
            if any(is_inflated(part.file_size, part.compress_size) for part in archive.infolist()):
                raise file_error(
                    path, "must not decompress to hundreds of times its size. Save the table as .csv."
                )
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            if not book.worksheets:
                raise file_error(path, "has no sheet with cells. Save the table again.")
            yield book.worksheets[0]
        finally:
            book.close()


def _names(path: Path, cells: tuple[Any, ...]) -> list[str]:
    """Return the names in the first row, without empty cells at its end."""
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not names or all(isinstance(cell, (int, float)) for cell in cells if cell is not None):
        raise file_error(
            path,
            "the first row of the first sheet must name the columns, as logit_0, logit_1, label; found "
            f"{'numbers' if names else 'no cells'}. Add such a row.",
        )
    return names


class _Reader:
    """Takes the cells of some columns, row by row: numbers, or labels and ids."""

    def __init__(self, path: Path, key: str, columns: Columns, names: list[str]) -> None:
        self._path, self._key, self._columns, self._names = path, key, columns, names
        self._where = columns.places_in(names)
        self._are_scores = key not in BESIDE_SCORES
        self._values: array[float] | list[Any] = array("d") if self._are_scores else []
        self._fault: InputError | None = None

    def take(self, number: int, cells: tuple[Any, ...]) -> None:
        """Keep the cells of a row; the first invalid cell becomes an error when the array is needed."""
        for place in self._where if self._fault is None else ():
            cell = cells[place] if place < len(cells) else None
            value = self._value(cell)
            if value is None:
                self._fault = self._fault_in(number, cells, self._names[place], cell)
                return
            self._values.append(value)

    def _value(self, cell: Any) -> Any:
        """Return the number or the label in a cell; None if it is not valid."""
        if self._are_scores:
            return cell if isinstance(cell, (int, float)) and not isinstance(cell, bool) else None
        # Excel has one kind of number: 3.0 is the label 3.
        label = cell if isinstance(cell, (str, bool)) else whole_number(cell)
        is_like_first = not self._values or type(label) is type(self._values[0])
        return label if is_like_first else None

    def _fault_in(self, number: int, cells: tuple[Any, ...], name: str, cell: Any) -> InputError:
        wanted = "a class index (a whole number), or class names in all rows, or True or False in all rows"
        if self._are_scores:
            wanted = "a number"
            held = {self._names[place]: cells[place] for place in self._where if place < len(cells)}
            words = [other for other, value in held.items() if isinstance(value, str)]
            # A column with text in the first row has text in every row.
            is_first = len(self._values) < len(self._where)
            if is_first and name in words and self._columns.names == self._columns.class_names:
                found = f"{excerpt(held[words[0]])} in row {number}"
                return not_numbers(self._path, self._key, self._columns, words, found)
        return file_error(
            self._path,
            f"row {number}, column {name!r} must hold {wanted}; found "
            f"{'an empty cell' if cell is None else excerpt(cell)}. "
            "Correct it, or name the columns of the scores, as logit_0, logit_1.",
            self._key,
        )

    def result(self) -> LazyArray:
        """Return the array; if a cell is invalid, an array that raises the first such error."""
        if self._fault is not None:
            return UnreadableArray(self._path, self._key, self._fault)
        values = np.array(self._values) if self._values else np.empty(0, np.int64)
        if self._are_scores and not self._columns.flat:
            values = values.reshape(-1, len(self._where))
        held = ArrayInMemory(self._path, self._key, values)
        held.class_names, held.columns = self._columns.class_names, self._columns.names
        return held
