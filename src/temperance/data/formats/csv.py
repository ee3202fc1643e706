""".csv and .tsv: a line that names the columns (see columns.py), then a line for each row.

Needs no other package. How the text is read is in csv_text.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import Columns, group, not_numbers
from temperance.data.formats.csv_text import EXAMPLE, TableText, as_numbers, is_number, read_table_text
from temperance.data.formats.label_cells import label_values
from temperance.data.lazy_array import FILL_BYTES, LazyArray, UnreadableArray
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError

_TEXT_ROWS = FILL_BYTES >> 8  # of one column, at a time


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the table. Its lines are counted, not parsed."""
    text = read_table_text(path)
    with text.lines() as lines:
        first = next(lines, (0, ""))[1]
        n_rows = bool(first) + sum(1 for _ in lines)
    groups = group(path, text.names, choice)
    example = text.cells(first) or []
    named = any(columns.class_names is not None for columns in groups.values())
    found: dict[str, LazyArray] = {}
    for key, columns in groups.items():
        if key == "labels":
            found[key] = _LabelColumn(text, key, columns, n_rows, named)
        elif key == "ids":
            found[key] = _TextColumn(text, key, columns, n_rows)
        else:
            fault = _fault_in_first(text, key, columns, example)
            scores = _NumberColumns(text, key, columns, n_rows)
            found[key] = UnreadableArray(path, key, fault) if fault else scores
    return found


def _fault_in_first(text: TableText, key: str, columns: Columns, cells: list[str]) -> InputError | None:
    """Return the error for columns that hold text in the first row: they do so in all rows."""
    if columns.names != columns.class_names or len(cells) != len(text.names):
        return None  # the error is raised when the line is read
    cell_of = dict(zip(text.names, cells, strict=True))
    held = {name: cell_of[name].strip() for name in columns.names}
    words = [name for name, cell in held.items() if cell and not _is_any_number(cell, text.separator)]
    return not_numbers(text.path, key, columns, words, f"{held[words[0]][:40]!r}") if words else None


def _is_any_number(cell: str, separator: str) -> bool:
    return is_number(cell.replace(",", ".") if separator != "," else cell)


class _Columns(LazyArray):
    """Some columns of the table."""

    def __init__(
        self, text: TableText, key: str, columns: Columns, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        super().__init__(text.path, key, shape, dtype)
        self.class_names, self.columns = columns.class_names, columns.names
        self._text = text
        places = {name: place for place, name in enumerate(text.names)}
        self._where = [places[name] for name in columns.names]

    def _line_blocks(self, rows: int) -> Iterator[dict[int, str]]:
        with self._text.lines() as numbered:
            while lines := dict(islice(numbered, rows)):
                most = len(self._text.names) - 1
                for number, line in lines.items():
                    # An extra separator may be part of quoted text, which is parsed cell by cell.
                    if line.count(self._text.separator) != most and '"' not in line:
                        self._cells(number, line)
                yield lines

    def _cells(self, number: int, line: str) -> list[str]:
        """Return the cells of the array; raise if the line and the first have different numbers of cells."""
        cells, wanted = self._text.cells(line), len(self._text.names)
        if cells is None:
            raise self.file_error(
                f"line {number} must close the quotes that it opens. Remove line breaks in cells."
            )
        if len(cells) != wanted:
            raise self.file_error(
                f"line {number} must have {wanted} cells, as the first line has; found {len(cells)}."
            )
        return [cells[column].strip() for column in self._where]

    def _load(self, lines: dict[int, str], dtype: Any) -> NDArray[Any]:
        if any('"' in line for line in lines.values()):  # NumPy does not accept quotes after a space
            rows = [self._cells(number, line) for number, line in lines.items()]
            return np.array(rows if dtype is np.str_ else [as_numbers(row) for row in rows], dtype)
        return np.loadtxt(
            list(lines.values()),
            dtype,
            delimiter=self._text.separator,
            comments=None,
            usecols=self._where,
            ndmin=2,
            encoding=None,
        )

    def _not(self, line: int, name: str, wanted: str, found: str, advice: str = "") -> InputError:
        what = repr(found[:40]) if found else "an empty cell"
        usual = f"Correct it, or name the columns of the scores, as {EXAMPLE}, so that others are ignored."
        return self.file_error(
            f"line {line}, column {name!r} must hold {wanted}; found {what}. {advice or usual}"
        )


class _NumberColumns(_Columns):
    """Columns of scores."""

    def __init__(self, text: TableText, key: str, columns: Columns, n_rows: int) -> None:
        shape = (n_rows,) if columns.flat else (n_rows, len(columns.names))
        super().__init__(text, key, columns, shape, np.dtype(np.float64))

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        marks: set[str] = set()
        for lines in self._line_blocks(rows):
            table = self._numbers(lines, marks)
            yield table[:, 0] if len(self.shape) == 1 else table

    def _numbers(self, lines: dict[int, str], marks: set[str]) -> NDArray[Any]:
        """Return the numbers of some lines; `marks` are the decimal marks found so far."""
        separator, has_points = self._text.separator, any("." in line for line in lines.values())
        try:
            table = self._load(lines, np.float64)
        except InputError:
            raise
        except ValueError:
            if separator != "," and any("," in line for line in lines.values()):
                return self._with_decimal_commas(lines, marks, quickly=not (has_points or "." in marks))
            # To name the invalid cell, or to read full-width digits, which NumPy does not.
            rows = [self._parsed(number, self._cells(number, line)) for number, line in lines.items()]
            table = np.array(rows, np.float64)
        if separator != "," and has_points:
            if "," in marks:
                return self._with_decimal_commas(lines, marks)
            marks.add(".")
        return table

    def _with_decimal_commas(
        self, lines: dict[int, str], marks: set[str], *, quickly: bool = False
    ) -> NDArray[Any]:
        """Read numbers with decimal commas, which are possible if the comma is not the separator.

        The fast path is for lines without any point, which could be a decimal point.
        """
        if quickly:
            try:
                table = self._load({at: line.replace(",", ".") for at, line in lines.items()}, np.float64)
            except ValueError:
                pass  # cell by cell, to name the invalid one
            else:
                marks.add(",")
                return table
        rows = []
        for number, line in lines.items():
            cells = "\n".join(self._cells(number, line))  # none of them has a line break
            marks.update(mark for mark in ",." if mark in cells)
            if len(marks) > 1:
                raise self.file_error(
                    f"line {number}: all decimal marks must be points, or all commas; found both in "
                    "this file. Save numbers without thousands separators."
                )
            rows.append(self._parsed(number, cells.replace(",", ".").split("\n")))
        return np.array(rows, np.float64)

    def _parsed(self, number: int, cells: list[str]) -> list[float]:
        """Return the numbers of a line; raise for the first cell that is not a number."""
        try:
            return as_numbers(cells)
        except ValueError:
            pairs = zip(self.columns, cells, strict=True)
            name, cell = next((name, cell) for name, cell in pairs if not is_number(cell))
        decimal = self._text.separator == "," and is_number(cell.replace(",", "."))
        advice = "With decimal commas, separate columns by semicolons." * decimal
        raise self._not(number, name, "a number", cell, advice)


class _TextColumn(_Columns):
    """A column of text cells, without spaces at their ends."""

    def __init__(self, text: TableText, key: str, columns: Columns, n_rows: int) -> None:
        super().__init__(text, key, columns, (n_rows,), np.dtype("U"))

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        for lines in self._line_blocks(rows):
            yield np.char.strip(self._load(lines, np.str_)[:, 0])

    def _array(self) -> NDArray[Any]:
        return np.concatenate([np.empty(0, "U1"), *self._blocks(_TEXT_ROWS)])


class _LabelColumn(_TextColumn):
    """The column of the labels: whole numbers or class names."""

    def __init__(self, text: TableText, key: str, columns: Columns, n_rows: int, named: bool) -> None:
        super().__init__(text, key, columns, n_rows)
        self._named = named

    def _array(self) -> NDArray[Any]:
        codes, places = [np.empty(0, np.intp)], dict[str, int]()
        for block in self._blocks(_TEXT_ROWS):
            different, inverse = np.unique(block, return_inverse=True)
            held = [places.setdefault(cell, len(places)) for cell in different.tolist()]
            codes.append(np.array(held, np.intp)[inverse])
        values = label_values(list(places), self._named)
        whole = np.concatenate(codes)
        if isinstance(values, str):
            wanted = "a label" if self._named else "a whole number"
            row = int(np.flatnonzero(whole == places[values])[0])
            raise self._not(self._line_of(row), self.columns[0], wanted, values, "Correct it.")
        return values[whole]

    def _line_of(self, row: int) -> int:
        with self._text.lines() as numbered:
            return next(islice(numbered, row, None))[0]
