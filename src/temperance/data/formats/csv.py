""".csv and .tsv: a line that names the columns (see columns.py), then one line per row.

Spreadsheets and languages write the same table in many ways. The dialect is read from the first bytes (a byte
order mark) and the first two lines; nothing else is guessed.

The standard library reads them, so every installation can. pyarrow, whose streaming reader other formats use,
is an extra. Its errors name no line, and it reads neither UTF-16, nor row names without a header as R writes
them, nor a quoted cell after a space.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import BESIDE_SCORES, Columns, group, not_numbers, whole_number
from temperance.data.formats.compression import open_bytes
from temperance.data.lazy_array import TEXT, LazyArray, RecordArray, UnreadableArray
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, excerpt, file_error, library_errors

_EXAMPLE = "logit_0,logit_1,label"
Row = tuple[int, list[str]]
"""The number of a line, as in an editor, and its cells."""


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the table. Its lines are counted, not parsed."""
    with open_bytes(path) as start:
        # UTF-16 is Excel's "Unicode text"; -sig: a byte order mark is not part of the first name.
        encoding = "utf-16" if start.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with _open_text(path, encoding) as text:
        head = text.readline()
        lines = (line for line in text if line.strip(" \n"))  # tabs separate cells, even empty ones
        second = next(lines, "")
        n_rows = bool(second) + sum(1 for _ in lines)

    def fitness(separator: str) -> tuple[int, bool]:
        names, cells = (len(_cells(line, separator)) for line in (head, second))
        return names, cells in (names, names + 1)

    # The most cells in the first line; if tied, one that fits the second line.
    separator = max((",", ";", "\t", "|"), key=fitness)
    names = [name.strip() for name in _cells(head, separator) or [head]]
    _check_names(path, head, names)
    cells = _cells(second, separator)
    # R's write.table writes no header for the row names. An empty last cell means something else: lines that
    # end in a separator.
    if len(cells) == len(names) + 1 and cells[-1].strip():
        names.insert(0, "")
    rows = partial(_rows, path, encoding, separator, len(names))
    return table_members(TextTable(path, names, n_rows, rows, "line", separator != ","), choice)


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    decoding = library_errors(path, "is not text in UTF-8 ({}). Save it as CSV in UTF-8.", of=UnicodeError)
    with decoding, open_bytes(path) as file, TextIOWrapper(file, encoding=encoding) as text:
        yield text


def _reader(lines: Iterable[str], separator: str) -> Any:
    return csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=separator != "\t")


def _cells(line: str, separator: str) -> list[str]:
    """Return the cells of a line; none if a quoted cell does not end on it."""
    with suppress(csv.Error):
        return next(_reader([line], separator), [])
    return []


def _rows(path: Path, encoding: str, separator: str, n_columns: int) -> Iterator[Row]:
    """Yield the cells of each line after the first that has any."""
    number = 1
    with _open_text(path, encoding) as text:
        text.readline()
        reader = _reader(text, separator)
        try:
            for cells in reader:
                if reader.line_num > number:
                    raise csv.Error("a cell goes on in the next line")
                number += 1
                if len(cells) < 2 and not "".join(cells).strip(" "):
                    continue
                if len(cells) != n_columns:
                    fact = f"must have {n_columns} cells, as the first line has; found {len(cells)}."
                    raise file_error(path, f"line {number} {fact}")
                yield number, cells
        except csv.Error as error:
            fact = "must close the quotes that it opens. Remove line breaks in cells."
            raise file_error(path, f"line {number + 1} {fact}") from error


def _check_names(path: Path, line: str, names: list[str]) -> None:
    wanted = f"the first line must name the columns, as {_EXAMPLE}"
    if not any(names):
        raise file_error(path, f"{wanted}; found an empty line.")
    if len(names) == 1 and len(line.split()) > 1:
        raise file_error(
            path,
            f"columns must be separated by a comma, a semicolon, a tab or |; found {excerpt(line.strip())}.",
        )
    # pandas calls the columns of an array 0, 1, ...
    is_array = len(names) > 1 and names == [str(number) for number in range(len(names))]
    if all(map(_is_number, names)) and not is_array:
        raise file_error(path, f"{wanted}; found only numbers. Add such a line.")
    measured = [name for name in names if _is_number(name) and not name.isalnum()]
    if measured:
        raise file_error(path, f"{wanted}; found {excerpt(measured[0])} among the names. Add such a line.")


@dataclass(frozen=True)
class TextTable:
    """A table whose cells are text: its columns, and how its rows are read."""

    path: Path
    names: list[str]
    n_rows: int
    rows: Callable[[], Iterator[Row]]
    row_word: str
    """What an error calls a row, before its number."""
    has_decimal_commas: bool
    """Whether a comma in a number can be a decimal comma."""

    def error(self, key: str, place: int, name: str, wanted: str, found: str, advice: str) -> InputError:
        """Return the error about a cell."""
        what = excerpt(found) if found else "an empty cell"
        fact = f"{self.row_word} {place}, column {name!r} must hold {wanted}; found {what}."
        return file_error(self.path, f"{fact} {advice}", key)


def table_members(table: TextTable, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of a table."""
    groups = group(table.path, table.names, choice)
    # Of columns without a name, the first holds ids.
    places = {name: place for place, name in reversed(list(enumerate(table.names)))}
    of_columns = [columns.class_names for columns in groups.values()]
    class_names = {
        name for names in (choice.classes, choice.default_classes, *of_columns) for name in names or ()
    }
    _, first = next(table.rows(), (0, None))
    found: dict[str, LazyArray] = {}
    for key, columns in groups.items():
        where = [places[name] for name in columns.names]
        array: RecordArray
        if key == "labels":
            array = _LabelColumn(table, columns.names[0], where[0], class_names)
        elif key in BESIDE_SCORES:
            array = RecordArray(
                table.path, key, (table.n_rows,), TEXT, table.rows, partial(_text, place=where[0])
            )
        elif first is not None and (fault := _fault_in_first(table, key, columns, [first[k] for k in where])):
            found[key] = UnreadableArray(table.path, key, fault)
            continue
        else:
            shape = (table.n_rows,) if columns.flat else (table.n_rows, len(where))
            read = _score_reader(table, key, columns.names, where)
            array = RecordArray(table.path, key, shape, np.float64, table.rows, read)
        array.class_names, array.columns = columns.class_names, columns.names
        found[key] = array
    return found


def _fault_in_first(table: TextTable, key: str, columns: Columns, cells: list[str]) -> InputError | None:
    """Return the error for columns with text in the first row, which then have text in all rows."""
    if columns.names != columns.class_names:
        return None  # the error is raised when the row is read
    held = dict(zip(columns.names, map(str.strip, cells), strict=True))
    words = [
        name
        for name, cell in held.items()
        if cell and not _is_score(cell.replace(",", ".") if table.has_decimal_commas else cell)
    ]
    return not_numbers(table.path, key, columns, words, excerpt(held[words[0]])) if words else None


def _text(row: Row, place: int) -> str:
    return without_quote(row[1][place].strip())


def _score_reader(
    table: TextTable, key: str, names: Sequence[str], where: list[int]
) -> Callable[[Row], list[float]]:
    """Return the function that reads the scores of a row; all rows have the same decimal mark."""
    marks: set[str] = set()

    def read(row: Row) -> list[float]:
        place, cells = row[0], [row[1][column] for column in where]
        plain = cells
        if table.has_decimal_commas:
            text = "\n".join(cells)  # none of them has a line break
            marks.update(mark for mark in ",." if mark in text)
            if len(marks) > 1:
                raise file_error(
                    table.path,
                    f"{table.row_word} {place}: all decimal marks must be points, or all commas; found both "
                    "in this file. Save numbers without thousands separators.",
                    key,
                )
            plain = text.replace(",", ".").split("\n")
        try:
            return _as_scores(plain)
        except ValueError:
            wrong = next(k for k, cell in enumerate(plain) if not _is_score(cell))
        advice = f"Correct it, or name the columns of the scores, as {_EXAMPLE}, so that others are ignored."
        if not table.has_decimal_commas and _is_score(cells[wrong].replace(",", ".")):
            advice = "With decimal commas, separate columns by semicolons."
        raise table.error(key, place, names[wrong], "a number", cells[wrong].strip(), advice)

    return read


class _LabelColumn(RecordArray):
    """The column of the labels: whole numbers, true and false, or names of classes."""

    def __init__(self, table: TextTable, name: str, place: int, class_names: set[str]) -> None:
        super().__init__(
            table.path, "labels", (table.n_rows,), TEXT, table.rows, lambda row: row[1][place].strip()
        )
        self._table, self._name, self._class_names = table, name, class_names

    def _array(self) -> NDArray[Any]:
        different, codes = np.unique(super()._array(), return_inverse=True)
        known = self._class_names
        cells = [
            plain if (plain := without_quote(cell)) in known or cell not in known else cell
            for cell in different.tolist()
        ]
        values = _label_values(cells, known)
        if isinstance(values, str):
            wanted = "a label" if known else "a whole number"
            row = int(np.flatnonzero(codes == cells.index(values))[0])
            line = next(islice(self._table.rows(), row, None))[0]
            raise self._table.error(self.key, line, self._name, wanted, values, "Correct it.")
        return values[codes]


def _label_values(cells: Sequence[str], names: set[str]) -> NDArray[Any] | str:
    """Return the labels that these distinct cells mean: integers, booleans or text; or the invalid cell.

    `names` are class names. Without them, text among numbers is invalid.
    """
    if "" in cells:
        return ""
    # Text has no types. A cell that equals a class name is one, even if it looks like a number; otherwise 3.0
    # is the label 3.
    if not names.issuperset(cells):
        truths = [{"true": True, "false": False}.get(cell.lower()) for cell in cells]
        if None not in truths:
            return np.array(truths, bool)
        numbers = [whole_number(float(cell)) if _is_number(cell) else None for cell in cells]
        if None not in numbers:
            return np.array(numbers, np.int64)
        odd = [cell for cell, number in zip(cells, numbers, strict=True) if number is None]
        if not names and (len(odd) < len(cells) or any(map(_is_number, odd))):
            return odd[0]
    return np.array(cells, np.str_)


def with_quote(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs as a formula: text like a formula gets a leading '."""
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def without_quote(cell: str) -> str:
    """Return the text that `with_quote` was given."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    """Say whether a spreadsheet might run this text after removing leading quotes; -1 is a number."""
    text = cell.lstrip("'")
    return text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _is_number(text)


def _as_scores(cells: list[str]) -> list[float]:
    """Return the numbers in some cells: `93 %` is 0.93."""
    text = "".join(cells)
    if "_" in text:  # Python also accepts 1_000
        raise ValueError("_")
    if "%" in text:
        held = map(str.strip, cells)
        return [float(cell[:-1]) / 100 if cell.endswith("%") else float(cell) for cell in held]
    return list(map(float, cells))


def _is_score(cell: str) -> bool:
    """Say whether a cell holds a number or a percentage."""
    try:
        _as_scores([cell])
    except ValueError:
        return False
    return True


def _is_number(cell: str) -> bool:
    """Say whether a label or a column name is a number; 5% is not, since it can be a class name."""
    return "%" not in cell and _is_score(cell)
