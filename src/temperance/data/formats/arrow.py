"""Tables that pyarrow reads: .parquet, .arrow and .feather.

A table is as in columns.py, or has lists of numbers in a column `logits` or `probs`. Arrow has two forms: a
file, which is what Feather is, and a stream, which the `datasets` package writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import BESIDE_SCORES, Columns, group, not_numbers
from temperance.data.lazy_array import TEXT, LazyArray, UnreadableArray, in_memory, regrouped
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
    schema, n_rows = _schema_and_length(path)
    try:  # the columns that hold the row index of a pandas DataFrame
        noted = (schema.pandas_metadata or {}).get("index_columns", ())
    except ValueError:  # metadata that is not JSON is ignored
        noted = ()
    index = tuple(name for name in noted if isinstance(name, str) and name in schema.names)
    groups = group(path, list(schema.names), choice, index)
    found = {key: _stored(path, key, columns, schema, n_rows) for key, columns in groups.items()}
    if mark := (schema.metadata or {}).get(_EARLIER_MARK):
        noted_mark = np.array([mark.decode(errors="replace")])
        found.setdefault(MARK_KEY, in_memory(path, MARK_KEY, noted_mark))
    return found


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _schema_and_length(path: Path) -> tuple[Any, int]:
    import_optional("pyarrow", "io", f"{path}: a {path.suffix} file")
    if _is_parquet(path):
        with _open_parquet(path) as file:
            if (n_rows := file.metadata.num_rows) < 0:
                raise ValueError(f"its footer claims {n_rows} rows")
            return file.schema_arrow, n_rows
    with _open_arrow(path, None) as (schema, _):
        names = schema.names[:1]
    with _open_arrow(path, names) as (_, batches):
        return schema, sum(batch.num_rows for batch in batches) if names else 0


def _batches(path: Path, names: list[str], rows: int) -> Iterator[Any]:
    """Yield record batches of some columns; none has more than `rows` rows."""
    if _is_parquet(path):
        with _open_parquet(path) as file:
            yield from file.iter_batches(rows, columns=names)
        return
    with _open_arrow(path, names) as (_, batches):
        for batch in batches:
            batch.validate(full=True)  # damaged offsets would point outside the file
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    from pyarrow import parquet

    damaged = library_errors(path, "is not a Parquet file, or is damaged ({}). Copy it again.")
    with damaged, parquet.ParquetFile(path, **_PARQUET_OPTIONS) as file:
        yield file


@contextmanager
def _open_arrow(path: Path, names: list[str] | None) -> Iterator[tuple[Any, Iterable[Any]]]:
    """Open a file or a stream: its schema, and its record batches with some columns, or all."""
    from pyarrow import OSFile, ipc

    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        raise file_error(
            path, "must be Feather of version 2; found version 1. Save it again with to_feather."
        )
    is_stream = start != b"ARROW1"
    open_reader = ipc.open_stream if is_stream else ipc.open_file
    damaged = library_errors(path, "is not an Arrow or Feather file, or is damaged ({}). Copy it again.")
    with damaged, OSFile(str(path)) as source:
        reader = open_reader(source)
        if names is not None:
            places = [reader.schema.names.index(name) for name in names]
            source.seek(0)
            reader = open_reader(source, options=ipc.IpcReadOptions(included_fields=places))
        yield reader.schema, reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))


def _stored(path: Path, key: str, columns: Columns, schema: Any, n_rows: int) -> LazyArray:
    from pyarrow import types

    kinds = [schema.field(name).type for name in columns.names]
    # A column of categories keeps its values in a dictionary.
    kinds = [kind.value_type if types.is_dictionary(kind) else kind for kind in kinds]
    shape = (n_rows,) if columns.flat else (n_rows, len(kinds))
    first = kinds[0]
    is_view = hasattr(types, "is_string_view") and types.is_string_view(first)
    is_text = types.is_string(first) or types.is_large_string(first) or is_view
    if key in BESIDE_SCORES and is_text:
        return _ArrowArray(path, key, columns, (n_rows,), TEXT)
    is_list = types.is_list(first) or types.is_large_list(first) or types.is_fixed_size_list(first)
    if len(kinds) == 1 and is_list:
        lists = next((batch.column(0) for batch in _batches(path, [columns.names[0]], 1)), None)
        shape = (n_rows, 0 if lists is None or lists.null_count else len(lists[0]))
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
    return _ArrowArray(path, key, columns, shape, dtype)


class _ArrowArray(LazyArray):
    """Some columns of the table: numbers, lists of numbers, or text."""

    def __init__(
        self, path: Path, key: str, columns: Columns, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        super().__init__(path, key, shape, dtype)
        self.class_names, self.columns = columns.class_names, columns.names

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        return regrouped(self._parts(rows), rows)  # a batch can end early, with a row group

    def _parts(self, rows: int) -> Iterator[NDArray[Any]]:
        read = 0
        for batch in _batches(self.path, list(self.columns), rows):
            read += batch.num_rows
            if read > self.shape[0]:
                break  # the caller has no room for more rows
            with library_errors(self.path, "is damaged ({}). Copy it again.", self.key):
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
