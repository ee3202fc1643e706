""".xlsx: the first sheet is a table, see columns.py; its first row names the columns.

The sheet is read once, cell by cell, since it has at most a million rows. For a formula, the value stored in
the file is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import Columns, group, not_numbers
from temperance.data.formats.inflation import is_inflated
from temperance.data.formats.label_cells import whole_number
from temperance.data.lazy_array import Held, LazyArray, UnreadableArray, damage_explained, file_error
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError
from temperance.loaders import import_optional


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the first sheet."""
    with _sheet(path) as sheet, closing(_rows(sheet)) as rows:  # the file stays open until all rows are read
        names = _names(path, next(rows, ()))
        groups = group(path, names, choice)
        readers = {key: _reader(path, key, columns, names) for key, columns in groups.items()}
        for number, cells in enumerate(rows, 2):
            if any(cell is not None for cell in cells):
                for reader in readers.values():
                    reader.take(number, cells)
    return {key: reader.result() for key, reader in readers.items()}


@contextmanager
def _sheet(path: Path) -> Iterator[Any]:
    openpyxl = import_optional("openpyxl", "excel", f"{path}: an {path.suffix} file")
    with damage_explained(path, _damage):
        _check_not_inflated(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            if not book.worksheets:
                raise file_error(path, "must have a sheet with cells; found none. Save the table again.")
            yield book.worksheets[0]
        finally:
            book.close()


def _check_not_inflated(path: Path) -> None:
    """Raise for a workbook whose parts decompress to far more than their size: some are read as a whole."""
    with ZipFile(path) as archive:
        if any(is_inflated(part.file_size, part.compress_size) for part in archive.infolist()):
            raise file_error(
                path, "must not decompress to hundreds of times its size. Save the table as .csv."
            )


def _rows(sheet: Any) -> Generator[tuple[Any, ...], None, None]:
    yield from sheet.iter_rows(values_only=True)


def _damage(error: Exception) -> str:
    first = str(error).partition("\n")[0][:200]
    return f"is not an Excel workbook, or is damaged ({first}). Save it again as .xlsx."


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


class _Reader(ABC):
    """Takes the cells of some columns, row by row."""

    wanted = "a number"

    def __init__(self, path: Path, key: str, columns: Columns, names: list[str]) -> None:
        self._path, self._key, self._columns, self._names = path, key, columns, names
        places = {name: place for place, name in enumerate(names)}
        self._where = [places[name] for name in columns.names]
        self._fault: InputError | None = None

    def take(self, number: int, cells: tuple[Any, ...]) -> None:
        """Keep the cells of a row; the first invalid cell becomes an error when the array is needed."""
        for place in self._where if self._fault is None else ():
            cell = cells[place] if place < len(cells) else None
            if not self._keep(cell):
                self._fault = self._fault_in(number, cells, self._names[place], cell)

    def _fault_in(self, number: int, cells: tuple[Any, ...], name: str, cell: Any) -> InputError:
        found = "an empty cell" if cell is None else repr(cell)[:40]
        return file_error(
            self._path,
            f"row {number}, column {name!r} must hold {self.wanted}; found {found}. "
            "Correct it, or name the columns of the scores, as logit_0, logit_1.",
            self._key,
        )

    @abstractmethod
    def _keep(self, cell: Any) -> bool:
        """Keep a cell, or return what was found instead."""

    def result(self) -> LazyArray:
        """Return the array, or raise its error."""
        if self._fault is not None:
            return UnreadableArray(self._path, self._key, self._fault)
        held = Held(self._path, self._key, self._values())
        held.class_names, held.columns = self._columns.class_names, self._columns.names
        return held

    @abstractmethod
    def _values(self) -> NDArray[Any]: ...


class _Scores(_Reader):
    def __init__(self, *where: Any) -> None:
        super().__init__(*where)
        self._numbers = array("d")

    def _keep(self, cell: Any) -> bool:
        if not isinstance(cell, (int, float)) or isinstance(cell, bool):
            return False
        self._numbers.append(cell)
        return True

    def _fault_in(self, number: int, cells: tuple[Any, ...], name: str, cell: Any) -> InputError:
        held = {self._names[place]: cells[place] for place in self._where if place < len(cells)}
        words = [other for other, value in held.items() if isinstance(value, str)]
        is_first = len(self._numbers) < len(
            self._where
        )  # a column with text in the first row has text everywhere
        if is_first and name in words and self._columns.names == self._columns.class_names:
            found = f"{held[words[0]][:40]!r} in row {number}"
            return not_numbers(self._path, self._key, self._columns, words, found)
        return super()._fault_in(number, cells, name, cell)

    def _values(self) -> NDArray[Any]:
        flat = np.array(self._numbers)
        return flat if self._columns.flat else flat.reshape(-1, len(self._where))


class _Labels(_Reader):
    wanted = "the index of a class, a whole number, or in all rows the name of one, or in all True or False"

    def __init__(self, *where: Any) -> None:
        super().__init__(*where)
        self._labels: list[Any] = []

    def _keep(self, cell: Any) -> bool:
        # Excel has one kind of number: 3.0 is the label 3.
        label = cell if isinstance(cell, (str, bool)) else whole_number(cell)
        if label is None or (self._labels and type(label) is not type(self._labels[0])):
            return False
        self._labels.append(label)
        return True

    def _values(self) -> NDArray[Any]:
        return np.array(self._labels) if self._labels else np.empty(0, np.int64)


def _reader(path: Path, key: str, columns: Columns, names: list[str]) -> _Reader:
    return (_Labels if key in ("labels", "ids") else _Scores)(path, key, columns, names)
