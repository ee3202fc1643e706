"""Tables that pyarrow reads: .parquet, .arrow and .feather.

A table is as in columns.py, or has lists of numbers in a column `logits` or `probs`. Arrow has two forms: a
file, which is what Feather is, and a stream, which the `datasets` package writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import BESIDE_SCORES, Columns, group, not_numbers
from temperance.data.lazy_array import TEXT, ArrayInMemory, LazyArray, UnreadableArray, regrouped
from temperance.data.read_options import MARK_KEY, ReadOptions
from temperance.errors import file_error, library_errors
from temperance.loaders import import_optional

_EARLIER_MARK = f"temperance.{MARK_KEY}".encode()
"""Key of the metadata in which version 0.2.0 noted the calibrator; it is a column now."""

# No read-ahead of whole row groups, and a small buffer per column, since a table can have thousands of
# columns. What remains in memory is one page per column, by default 1 MB; a column of lists needs far less.
_PARQUET_OPTIONS = {"pre_buffer": False, "buffer_size": 1 << 14, "page_checksum_verification": True}


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of the table."""
    with _opened(path) as table:
        schema = table.schema
        try:  # the columns that hold the row index of a pandas DataFrame
            noted = (schema.pandas_metadata or {}).get("index_columns", ())
        except ValueError:  # metadata that is not JSON is ignored
            noted = ()
        index = tuple(name for name in noted if isinstance(name, str) and name in schema.names)
        groups = group(path, list(schema.names), replace(choice, index=index))
        found = {key: _stored(path, key, columns, table) for key, columns in groups.items()}
        if mark := (schema.metadata or {}).get(_EARLIER_MARK):
            noted_mark = np.array([mark.decode(errors="replace")])
            found.setdefault(MARK_KEY, ArrayInMemory(path, MARK_KEY, noted_mark))
        return found


@dataclass(frozen=True)
class _Table:
    """An open table: its schema, its number of rows, and a reader of record batches of limited size."""

    schema: Any
    n_rows: int
    batches: Callable[[int, list[str]], Iterator[Any]]


@contextmanager
def _opened(path: Path) -> Iterator[_Table]:
    pyarrow = import_optional("pyarrow", "io", f"{path}: a {path.suffix} file")
    wrong = "is not {}, or is damaged ({{}}). Copy it again."
    if path.suffix.lower() in (".parquet", ".pq"):
        from pyarrow import parquet

        with (
            library_errors(path, wrong.format("a Parquet file")),
            parquet.ParquetFile(path, **_PARQUET_OPTIONS) as file,
        ):
            n_rows = file.metadata.num_rows
            if n_rows < 0:
                raise ValueError(f"its footer claims {n_rows} rows")
            yield _Table(
                file.schema_arrow, n_rows, lambda rows, names: file.iter_batches(rows, columns=names)
            )
        return
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        raise file_error(
            path, "must be Feather of version 2; found version 1. Save it again with to_feather."
        )
    with (
        library_errors(path, wrong.format("an Arrow or Feather file")),
        pyarrow.OSFile(str(path)) as source,
    ):
        yield _arrow_table(pyarrow.ipc, source, is_stream=start != b"ARROW1")


def _arrow_table(ipc: Any, source: Any, *, is_stream: bool) -> _Table:
    def reader(names: list[str] | None) -> Any:
        """Open the file from the start, for some columns or for all."""
        places = None if names is None else [schema.names.index(name) for name in names]
        source.seek(0)
        read = ipc.open_stream if is_stream else ipc.open_file
        return read(source, options=ipc.IpcReadOptions(included_fields=places))

    def whole_batches(names: list[str]) -> Iterator[Any]:
        opened = reader(names)
        return opened if is_stream else map(opened.get_batch, range(opened.num_record_batches))

    def batches(rows: int, names: list[str]) -> Iterator[Any]:
        for batch in whole_batches(names):
            batch.validate(full=True)  # damaged offsets would point outside the file
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    schema = reader(None).schema
    first = schema.names[:1]
    return _Table(schema, sum(batch.num_rows for batch in whole_batches(first)) if first else 0, batches)


def _stored(path: Path, key: str, columns: Columns, table: _Table) -> LazyArray:
    from pyarrow import types

    kinds = [table.schema.field(name).type for name in columns.names]
    # A column of categories keeps its values in a dictionary.
    kinds = [kind.value_type if types.is_dictionary(kind) else kind for kind in kinds]
    width = None if columns.flat else len(kinds)
    first = kinds[0]
    is_view = hasattr(types, "is_string_view") and types.is_string_view(first)
    is_text = types.is_string(first) or types.is_large_string(first) or is_view
    if key in BESIDE_SCORES and is_text:
        return _ArrowArray(path, key, columns, (table.n_rows,), TEXT)
    is_list = types.is_list(first) or types.is_large_list(first) or types.is_fixed_size_list(first)
    if len(kinds) == 1 and is_list:
        width = _list_width(table, columns.names[0], first, types)
        kinds = [first.value_type]
    others = {
        name: kind
        for name, kind in zip(columns.names, kinds, strict=True)
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
    }
    if others:
        kind = next(iter(others.values()))
        return UnreadableArray(path, key, not_numbers(path, key, columns, list(others), f"{kind}"))
    dtype = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
    shape = (table.n_rows,) if width is None else (table.n_rows, width)
    return _ArrowArray(path, key, columns, shape, dtype)


def _list_width(table: _Table, name: str, kind: Any, types: Any) -> int:
    if types.is_fixed_size_list(kind):
        return int(kind.list_size)
    first = next((batch for batch in table.batches(1, [name]) if batch.num_rows), None)
    return 0 if first is None or first.column(0).null_count else len(first.column(0)[0])


class _ArrowArray(LazyArray):
    """Some columns of the table: numbers, lists of numbers, or text."""

    def __init__(
        self, path: Path, key: str, columns: Columns, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        super().__init__(path, key, shape, dtype)
        self.class_names, self.columns = columns.class_names, columns.names

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        return regrouped(self._batches(rows), rows)  # a batch can end early, with a row group

    def _batches(self, rows: int) -> Iterator[NDArray[Any]]:
        read = 0
        with _opened(self.path) as table:
            for batch in table.batches(rows, list(self.columns)):
                read += batch.num_rows
                if read > self.shape[0]:
                    break  # the caller has no room for more rows
                yield self._block(batch)
        if read != self.shape[0]:
            raise self.file_error(
                f"is damaged: it must have {self.shape[0]} rows; found {read}. Copy it again."
            )

    def _block(self, batch: Any) -> NDArray[Any]:
        if self.dtype == TEXT:
            wanted = "the name of a class" if self.key == "labels" else "text"
            self._refuse_nulls(batch.column(0), self.columns[0], wanted)
            return np.array(batch.column(0).to_pylist(), dtype=str)
        out = np.empty((batch.num_rows, *self.shape[1:]), self.dtype)
        if len(self.columns) == 1 and len(self.shape) == 2 and hasattr(batch.column(0), "flatten"):
            out[:] = self._lists(batch.column(0))
            return out
        table = out.reshape(len(out), len(self.columns))
        for place, name in enumerate(self.columns):
            table[:, place] = self._numbers(batch.column(name), name)
        return out

    def _lists(self, column: Any) -> NDArray[Any]:
        name = self.columns[0]
        self._refuse_nulls(column, name)
        values = self._numbers(column.flatten(), name)
        from pyarrow import compute

        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        if not (lengths == self.shape[1]).all():
            raise self.file_error(
                f"the lists in column {name!r} must have the same length, one number per class; "
                f"found {self.shape[1]} and {lengths[lengths != self.shape[1]][0]}."
            )
        return values.reshape(len(column), self.shape[1])

    def _numbers(self, column: Any, name: str) -> NDArray[Any]:
        self._refuse_nulls(column, name)
        return np.asarray(_decoded(column).to_numpy(zero_copy_only=False))

    def _refuse_nulls(self, column: Any, name: str, what: str = "a number") -> None:
        missing = _decoded(column).null_count
        if missing:
            raise self.file_error(
                f"column {name!r} must have {what} in every row; {missing} of the "
                f"{len(column)} read are missing. Drop these rows or fill them in."
            )


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
