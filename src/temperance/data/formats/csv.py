""".csv and .tsv: a line that names the columns (see columns.py), then one line per row.

Spreadsheets and languages write the same table in many ways. The dialect is read from the first bytes (a byte
order mark) and the first two lines; nothing else is guessed.

NumPy and the standard library read them, so every installation can. pyarrow, whose streaming reader other
formats use, is an extra. Its errors name no line, and it reads neither UTF-16, nor row names without a header
as R writes them, nor a quoted cell after a space.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import BESIDE_SCORES, Columns, group, not_numbers, whole_number
from temperance.data.formats.compression import open_bytes
from temperance.data.lazy_array import TEXT, TEXT_ROWS, LazyArray, UnreadableArray
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, excerpt, file_error, library_errors

_EXAMPLE = "logit_0,logit_1,label"


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the table. Its lines are counted, not parsed."""
    text = _read_dialect(path)
    with text.lines() as lines:
        first = next(lines, (0, ""))[1]
        n_rows = bool(first) + sum(1 for _ in lines)
    groups = group(path, text.names, choice)
    example = _cells(first, text.separator) or []
    found: dict[str, LazyArray] = {}
    for key, columns in groups.items():
        if key == "labels":
            found[key] = labels = _LabelColumn(text, key, columns, n_rows)
            of_columns = [others.class_names for others in groups.values()]
            known = [choice.classes, choice.default_classes, *of_columns]
            labels.names = frozenset(name for names in known for name in names or ())
        elif key in BESIDE_SCORES:
            found[key] = _Columns(text, key, columns, n_rows)
        elif fault := _fault_in_first(text, key, columns, example):
            found[key] = UnreadableArray(path, key, fault)
        else:
            found[key] = _NumberColumns(text, key, columns, n_rows, np.dtype(np.float64))
    return found


def _fault_in_first(text: _Table, key: str, columns: Columns, cells: list[str]) -> InputError | None:
    """Return the error for columns with text in the first row, which then have text in all rows."""
    if columns.names != columns.class_names or len(cells) != len(text.names):
        return None  # the error is raised when the line is read
    cell_of = dict(zip(text.names, cells, strict=True))
    held = {name: cell_of[name].strip() for name in columns.names}
    has_commas = text.separator != ","  # then a comma can be a decimal comma
    words = [
        name
        for name, cell in held.items()
        if cell and not _is_score(cell.replace(",", ".") if has_commas else cell)
    ]
    return not_numbers(text.path, key, columns, words, excerpt(held[words[0]])) if words else None


@dataclass(frozen=True)
class _Table:
    """How to read the text of a table."""

    path: Path
    encoding: str
    separator: str
    names: list[str]

    @contextmanager
    def lines(self) -> Iterator[Iterator[tuple[int, str]]]:
        """Open the table after its first line: the lines that hold cells, numbered as in an editor."""
        with _open_text(self.path, self.encoding) as file:
            file.readline()
            yield ((number, line) for number, line in enumerate(file, 2) if not _is_blank(line))


def _read_dialect(path: Path) -> _Table:
    """Return how to read a table."""
    with open_bytes(path) as start:
        # UTF-16 is Excel's "Unicode text"; -sig: a byte order mark is not part of the first name.
        encoding = "utf-16" if start.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with _open_text(path, encoding) as file:
        first = file.readline()
        second = next((line for line in file if not _is_blank(line)), "")
    if _is_blank(first):
        raise file_error(path, f"the first line must name the columns, as {_EXAMPLE}; found an empty line.")

    def fitness(separator: str) -> tuple[int, bool]:
        names, cells = (len(_cells(line, separator) or ()) for line in (first, second))
        return names, cells in (names, names + 1)

    # The most cells in the first line; if tied, one that fits the second line.
    separator = max((",", ";", "\t", "|"), key=fitness)
    names = [name.strip() for name in _cells(first, separator) or [first]]
    _check_names(path, first, names)
    cells = _cells(second, separator) or []
    # R's write.table writes no header for the row names. An empty last cell means something else: lines that
    # end in a separator.
    if len(cells) == len(names) + 1 and cells[-1].strip():
        names.insert(0, "")
    return _Table(path, encoding, separator, names)


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text file, compressed or not."""
    decoding = library_errors(path, "is not text in UTF-8 ({}). Save it as CSV in UTF-8.", of=UnicodeError)
    with decoding, open_bytes(path) as file, TextIOWrapper(file, encoding=encoding) as text:
        yield text


def _is_blank(line: str) -> bool:
    return not line.strip(" \r\n")  # tabs separate cells, even empty ones


def _cells(line: str, separator: str) -> list[str] | None:
    """Return the cells of a line; None if a quoted cell does not end on it."""
    try:
        found = csv.reader([line], delimiter=separator, strict=True, skipinitialspace=separator != "\t")
        return next(found, [])
    except csv.Error:
        return None


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


class _Columns(LazyArray):
    """Some columns of the table, or one column of text; cells without leading and trailing spaces."""

    def __init__(
        self, text: _Table, key: str, columns: Columns, n_rows: int, dtype: np.dtype[Any] = TEXT
    ) -> None:
        shape = (n_rows,) if columns.flat else (n_rows, len(columns.names))
        super().__init__(text.path, key, shape, dtype)
        self.class_names, self.columns = columns.class_names, columns.names
        self._text = text
        self._where = columns.places_in(text.names)

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        for lines in self._line_blocks(rows):
            yield np.char.strip(self._load(lines, np.str_)[:, 0])

    def _array(self) -> NDArray[Any]:
        cells = super()._array()
        if self.dtype == TEXT:
            quoted = np.char.startswith(cells, "'")
            cells[quoted] = [without_quote(cell) for cell in cells[quoted].tolist()]
        return cells

    def _line_blocks(self, rows: int) -> Iterator[dict[int, str]]:
        with self._text.lines() as numbered:
            while lines := dict(islice(numbered, rows)):
                most = len(self._text.names) - 1
                for number, line in lines.items():
                    # An extra separator can be part of quoted text, which is parsed cell by cell.
                    if line.count(self._text.separator) != most and '"' not in line:
                        self._cells(number, line)
                yield lines

    def _cells(self, number: int, line: str) -> list[str]:
        """Return the cells of the array; raise if the line and the first have different numbers of cells."""
        cells, wanted = _cells(line, self._text.separator), len(self._text.names)
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
            return np.array(rows if dtype is np.str_ else [_as_scores(row) for row in rows], dtype)
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
        what = excerpt(found) if found else "an empty cell"
        usual = f"Correct it, or name the columns of the scores, as {_EXAMPLE}, so that others are ignored."
        return self.file_error(
            f"line {line}, column {name!r} must hold {wanted}; found {what}. {advice or usual}"
        )


class _NumberColumns(_Columns):
    """Columns of scores."""

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
            # Finds the invalid cell, or reads full-width digits, which NumPy does not.
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
                pass  # below, cell by cell, to name the invalid one
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
            return _as_scores(cells)
        except ValueError:
            pairs = zip(self.columns, cells, strict=True)
            name, cell = next((name, cell) for name, cell in pairs if not _is_score(cell))
        decimal = self._text.separator == "," and _is_score(cell.replace(",", "."))
        advice = "With decimal commas, separate columns by semicolons." * decimal
        raise self._not(number, name, "a number", cell, advice)


class _LabelColumn(_Columns):
    """The column of the labels: whole numbers, or class names if the columns have names."""

    names: frozenset[str] = frozenset()
    """Known class names, or none."""

    def _array(self) -> NDArray[Any]:
        codes, places = [np.empty(0, np.intp)], dict[str, int]()
        for block in self._blocks(TEXT_ROWS):
            different, inverse = np.unique(block, return_inverse=True)
            held = [places.setdefault(cell, len(places)) for cell in different.tolist()]
            codes.append(np.array(held, np.intp)[inverse])
        cells = [
            plain if (plain := without_quote(cell)) in self.names or cell not in self.names else cell
            for cell in places
        ]
        values = _label_values(cells, self.names)
        whole = np.concatenate(codes)
        if isinstance(values, str):
            wanted = "a label" if self.names else "a whole number"
            row = int(np.flatnonzero(whole == cells.index(values))[0])
            with self._text.lines() as numbered:
                line = next(islice(numbered, row, None))[0]
            raise self._not(line, self.columns[0], wanted, values, "Correct it.")
        return values[whole]


def _label_values(cells: Sequence[str], names: frozenset[str]) -> NDArray[Any] | str:
    """Return the labels that these distinct cells mean, integers or text; or the invalid cell.

    `names` are class names. Without them, text among numbers is invalid.
    """
    if "" in cells:
        return ""
    # Text has no types. A cell that equals a class name is one, even if it looks like a number; otherwise 3.0
    # is the label 3.
    numbers = [whole_number(float(cell)) if _is_number(cell) else None for cell in cells]
    if None not in numbers and not names.issuperset(cells):
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
        return [float(cell[:-1]) / 100 if cell.endswith("%") else float(cell) for cell in cells]
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
