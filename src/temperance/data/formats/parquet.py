""".parquet: a table, see arrow_columns.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temperance.data.formats.arrow_columns import arrays_of
from temperance.data.lazy_array import LazyArray, damage_explained
from temperance.data.read_options import ReadOptions
from temperance.loaders import import_optional

# No read-ahead of whole row groups, and a small buffer for each column, of which there may be thousands. What
# remains in memory is a page of each column, by default 1 MB; a column of lists needs far less.
_OPTIONS = {"pre_buffer": False, "buffer_size": 1 << 14, "page_checksum_verification": True}


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the table."""
    return arrays_of(path, choice, _opened)


class _ParquetTable:
    def __init__(self, file: Any) -> None:
        self.schema = file.schema_arrow
        self.n_rows = file.metadata.num_rows
        if self.n_rows < 0:
            raise ValueError(f"its footer says {self.n_rows} rows")
        self._file = file

    def batches(self, rows: int, names: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(rows, columns=names)


@contextmanager
def _opened(path: Path) -> Iterator[_ParquetTable]:
    parquet = import_optional("pyarrow.parquet", "io", f"{path}: a {path.suffix} file")
    with damage_explained(path, _damage), parquet.ParquetFile(path, **_OPTIONS) as file:
        yield _ParquetTable(file)


def _damage(error: Exception) -> str:
    first = str(error).partition("\n")[0][:200]
    return f"is not a Parquet file, or is damaged ({first}). Copy it again."
