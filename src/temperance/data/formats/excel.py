""".xlsx: the first sheet is a table (see columns.py), and its first row names the columns.

The sheet is opened once, since it has at most a million rows. Its cells are then read as text, as in
a .csv. A formula counts as the value that the file stores for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from temperance.data.formats.compression import is_inflated
from temperance.data.formats.csv import Row, TextTable, table_members
from temperance.data.lazy_array import LazyArray
from temperance.data.read_options import ReadOptions
from temperance.errors import file_error, library_errors
from temperance.loaders import import_optional


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the first sheet."""
    numbered = enumerate(_values(path), 1)
    first = next(numbered, (1, ()))[1]
    names = list(map(_text, first))
    while names and not names[-1]:  # empty cells at the end
        names.pop()
    if not names or all(isinstance(cell, (int, float)) for cell in first if cell is not None):
        raise file_error(
            path,
            "the first row of the first sheet must name the columns, as logit_0, logit_1, label; found "
            f"{'numbers' if names else 'no cells'}. Add such a row.",
        )
    held = [(number, row) for number, row in numbered if any(cell is not None for cell in row)]

    def rows() -> Iterator[Row]:
        for number, row in held:
            cells = list(map(_text, row[: len(names)]))
            yield number, cells + [""] * (len(names) - len(cells))

    return table_members(TextTable(path, names, len(held), rows, "row", True), choice)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _values(path: Path) -> list[tuple[Any, ...]]:
    """Return the values of the cells, row by row."""
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
            return list(book.worksheets[0].iter_rows(values_only=True))
        finally:
            book.close()
