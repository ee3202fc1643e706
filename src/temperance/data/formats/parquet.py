""".parquet: a table as in columns.py, or with lists of numbers in a column `logits` or `probs`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import ColumnChoice, Columns, group, not_numbers
from temperance.data.lazy_array import LazyArray, UnreadableArray, damage_explained
from temperance.loaders import import_optional

# Without a read-ahead of whole row groups; a little in each column, of which there may be thousands. What
# remains in memory is a page of each column, by default 1 MB: a column of lists needs far less.
_OPTIONS = {"pre_buffer": False, "buffer_size": 1 << 14, "page_checksum_verification": True}

MARK = b"temperance.calibrated_by"
"""The note in the file that says which calibrator has made its probabilities."""


def members(path: Path, choice: ColumnChoice) -> dict[str, LazyArray]:
    """Return the arrays of the table."""
    with _opened(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        groups = group(path, list(schema.names), replace(choice, index=_index(schema)))
        found = {key: _stored(path, key, columns, file, schema, n_rows) for key, columns in groups.items()}
    mark = (schema.metadata or {}).get(MARK)
    for array in found.values():
        array.calibrated_by = None if mark is None else mark.decode(errors="replace")
    return found


def _index(schema: Any) -> tuple[str, ...]:
    """Return the columns that pandas has written as the index of its rows."""
    try:
        noted = (schema.pandas_metadata or {}).get("index_columns", ())
    except ValueError:  # a note that is no JSON says nothing
        noted = ()
    return tuple(name for name in noted if isinstance(name, str) and name in schema.names)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    parquet = import_optional("pyarrow.parquet", "io", f"{path}: a {path.suffix} file")
    with damage_explained(path, _damage), parquet.ParquetFile(path, **_OPTIONS) as file:
        yield file


def _damage(error: Exception) -> str:
    first = str(error).partition("\n")[0][:200]
    return f"is not a Parquet file, or a damaged one ({first}). Copy it again."


def _stored(path: Path, key: str, columns: Columns, file: Any, schema: Any, n_rows: int) -> LazyArray:
    from pyarrow import types

    kinds = [schema.field(name).type for name in columns.names]
    if key in ("labels", "ids") and _is_text(types, kinds[0]):
        return _TextColumn(path, key, columns, (n_rows,), np.dtype("U"))
    width = None if columns.flat else len(kinds)
    if len(kinds) == 1 and _is_list(types, kinds[0]):
        width = _list_width(file, columns.names[0], kinds[0], types)
        kinds = [kinds[0].value_type]
    others = {
        name: kind
        for name, kind in zip(columns.names, kinds, strict=True)
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
    }
    if others:
        kind = next(iter(others.values()))
        return UnreadableArray(path, key, not_numbers(path, key, columns, list(others), f"{kind}"))
    dtype = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
    shape = (n_rows,) if width is None else (n_rows, width)
    return _ParquetArray(path, key, columns, shape, dtype)


def _is_text(types: Any, kind: Any) -> bool:
    if types.is_dictionary(kind):  # as pandas writes a categorical column
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_list(types: Any, kind: Any) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _list_width(file: Any, name: str, kind: Any, types: Any) -> int:
    if types.is_fixed_size_list(kind):
        return int(kind.list_size)
    first = next(file.iter_batches(1, columns=[name]), None)
    return 0 if first is None or first.column(0).null_count else len(first.column(0)[0])


class _ParquetArray(LazyArray):
    """Some columns of the table."""

    def __init__(
        self, path: Path, key: str, columns: Columns, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        super().__init__(path, key, shape, dtype)
        self.class_names, self.columns = columns.class_names, columns.names
        self._names = columns.names

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        held = np.empty((0, *self.shape[1:]), self.dtype)
        for block in self._batches(rows):
            # A batch may end where a row group of the file does.
            held = np.concatenate([held, block]) if len(held) else block
            if len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if len(held):
            yield held

    def _batches(self, rows: int) -> Iterator[NDArray[Any]]:
        read = 0
        with _opened(self.path) as file:
            for batch in file.iter_batches(rows, columns=list(self._names)):
                read += batch.num_rows
                # Counted before it is given out: whoever takes the rows has room for so many.
                if read > self.shape[0]:
                    break
                yield self._block(batch)
        if read != self.shape[0]:
            raise self.file_error(
                f"is damaged: it should have {self.shape[0]} rows, and has {read}. Copy it again."
            )

    def _block(self, batch: Any) -> NDArray[Any]:
        out = np.empty((batch.num_rows, *self.shape[1:]), self.dtype)
        if len(self._names) == 1 and len(self.shape) == 2 and hasattr(batch.column(0), "flatten"):
            out[:] = self._lists(batch.column(0))
            return out
        table = out.reshape(len(out), -1)
        for place, name in enumerate(self._names):
            table[:, place] = self._numbers(batch.column(name), name)
        return out

    def _lists(self, column: Any) -> NDArray[Any]:
        name = self._names[0]
        self._refuse_nulls(column, name)
        values = self._numbers(column.flatten(), name)
        from pyarrow import compute

        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        if not (lengths == self.shape[1]).all():
            raise self.file_error(
                f"the lists in column {name!r} must be of one length, one number for each class; "
                f"found {self.shape[1]} and {lengths[lengths != self.shape[1]][0]}."
            )
        return values.reshape(len(column), self.shape[1])

    def _numbers(self, column: Any, name: str) -> NDArray[Any]:
        self._refuse_nulls(column, name)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _refuse_nulls(self, column: Any, name: str) -> None:
        if column.null_count:
            what = "text" if self.dtype.kind == "U" else "a number"
            raise self.file_error(
                f"column {name!r} must have {what} in every row; {column.null_count} of the "
                f"{len(column)} read are missing. Drop these rows or fill them in."
            )


class _TextColumn(_ParquetArray):
    """A column of text: names of classes, or of rows."""

    def _array(self) -> NDArray[Any]:
        blocks = [np.array(block, np.str_) for block in self._text()]
        return np.concatenate([np.empty(0, "U1"), *blocks])

    def _text(self) -> Iterator[list[str]]:
        with _opened(self.path) as file:
            for batch in file.iter_batches(columns=list(self._names)):
                self._refuse_nulls(batch.column(0), self._names[0])
                yield batch.column(0).to_pylist()
