""".arrow and .feather: a table, see arrow_columns.py, as Arrow keeps it in memory.

There are two forms: a file, which is what Feather is, and a stream, which the datasets package writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temperance.data.formats.arrow_columns import arrays_of
from temperance.data.lazy_array import LazyArray, damage_explained, file_error
from temperance.data.read_options import ReadOptions
from temperance.loaders import import_optional

_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the table."""
    return arrays_of(path, choice, _opened)


class _ArrowFile:
    def __init__(self, pyarrow: Any, source: Any, *, is_stream: bool) -> None:
        self._pyarrow, self._source, self._is_stream = pyarrow, source, is_stream
        self.schema = self._reader(None).schema
        first = self.schema.names[:1]
        self.n_rows = sum(batch.num_rows for batch in self._whole_batches(first)) if first else 0

    def batches(self, rows: int, names: list[str]) -> Iterator[Any]:
        for batch in self._whole_batches(names):
            batch.validate(full=True)  # damaged offsets would point outside the file
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def _whole_batches(self, names: list[str]) -> Iterator[Any]:
        reader = self._reader(names)
        if self._is_stream:
            yield from reader
        else:
            yield from map(reader.get_batch, range(reader.num_record_batches))

    def _reader(self, names: list[str] | None) -> Any:
        """Open the file from the start, for some columns or for all."""
        places = None if names is None else [self.schema.names.index(name) for name in names]
        options = self._pyarrow.ipc.IpcReadOptions(included_fields=places)
        self._source.seek(0)
        read = self._pyarrow.ipc.open_stream if self._is_stream else self._pyarrow.ipc.open_file
        return read(self._source, options=options)


@contextmanager
def _opened(path: Path) -> Iterator[_ArrowFile]:
    pyarrow = import_optional("pyarrow", "io", f"{path}: a {path.suffix} file")
    with path.open("rb") as file:
        start = file.read(len(_FILE))
    if start.startswith(_FEATHER_1):
        raise file_error(
            path, "must be Feather of version 2; found version 1. Save it again with to_feather."
        )
    with damage_explained(path, _damage), pyarrow.OSFile(str(path)) as source:
        yield _ArrowFile(pyarrow, source, is_stream=start != _FILE)


def _damage(error: Exception) -> str:
    first = str(error).partition("\n")[0][:200]
    return f"is not an Arrow or Feather file, or is damaged ({first}). Copy it again."
