"""Columns that pyarrow reads, from any file -> arrays: numbers, lists of numbers, and labels as text.

A table is as in columns.py, or has lists of numbers in a column `logits` or `probs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.columns import Columns, group, not_numbers
from temperance.data.lazy_array import LazyArray, UnreadableArray
from temperance.data.read_options import ReadOptions

MARK = b"temperance.calibrated_by"
"""The key of the metadata with the calibrator that made the probabilities."""
_TEXTS_PER_BLOCK = 1 << 16


class ArrowTable(Protocol):
    """An open file with a table."""

    schema: Any
    n_rows: int

    def batches(self, rows: int, names: list[str]) -> Iterator[Any]:
        """Yield record batches of these columns, of at most `rows` rows."""
        ...


Opener = Callable[[Path], AbstractContextManager[ArrowTable]]


def arrays_of(path: Path, choice: ReadOptions, opened: Opener) -> dict[str, LazyArray]:
    """Return the arrays of the table."""
    with opened(path) as table:
        schema = table.schema
        groups = group(path, list(schema.names), replace(choice, index=_index(schema)))
        found = {key: _stored(path, key, columns, table, opened) for key, columns in groups.items()}
    mark = (schema.metadata or {}).get(MARK)
    for array in found.values():
        array.calibrated_by = None if mark is None else mark.decode(errors="replace")
    return found


def _index(schema: Any) -> tuple[str, ...]:
    """Return the columns that pandas has written as the index of its rows."""
    try:
        noted = (schema.pandas_metadata or {}).get("index_columns", ())
    except ValueError:  # metadata that is not JSON is ignored
        noted = ()
    return tuple(name for name in noted if isinstance(name, str) and name in schema.names)


def _stored(path: Path, key: str, columns: Columns, table: ArrowTable, opened: Opener) -> LazyArray:
    from pyarrow import types

    kinds = [_plain(types, table.schema.field(name).type) for name in columns.names]
    width = None if columns.flat else len(kinds)
    if key in ("labels", "ids") and _is_text(types, kinds[0]):
        return _TextColumn(path, key, columns, (table.n_rows,), np.dtype("U1"), opened)
    if len(kinds) == 1 and _is_list(types, kinds[0]):
        width = _list_width(table, columns.names[0], kinds[0], types)
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
    shape = (table.n_rows,) if width is None else (table.n_rows, width)
    return _ArrowArray(path, key, columns, shape, dtype, opened)


def _plain(types: Any, kind: Any) -> Any:
    """Return the type of the values, which a column of categories keeps in a dictionary."""
    return kind.value_type if types.is_dictionary(kind) else kind


def _is_text(types: Any, kind: Any) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or _is_string_view(types, kind)


def _is_string_view(types: Any, kind: Any) -> bool:
    return hasattr(types, "is_string_view") and types.is_string_view(kind)


def _is_list(types: Any, kind: Any) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _list_width(table: ArrowTable, name: str, kind: Any, types: Any) -> int:
    if types.is_fixed_size_list(kind):
        return int(kind.list_size)
    first = next((batch for batch in table.batches(1, [name]) if batch.num_rows), None)
    return 0 if first is None or first.column(0).null_count else len(first.column(0)[0])


class _ArrowArray(LazyArray):
    """Some columns of the table."""

    def __init__(
        self,
        path: Path,
        key: str,
        columns: Columns,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        opened: Opener,
    ) -> None:
        super().__init__(path, key, shape, dtype)
        self.class_names, self.columns = columns.class_names, columns.names
        self._names = columns.names
        self._opened = opened

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        held = np.empty((0, *self.shape[1:]), self.dtype)
        for batch in self._batches(rows):
            block = self._block(batch)
            # A batch may end at the end of a row group.
            held = np.concatenate([held, block]) if len(held) else block
            if len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if len(held):
            yield held

    def _batches(self, rows: int) -> Iterator[Any]:
        read = 0
        with self._opened(self.path) as table:
            for batch in table.batches(rows, list(self._names)):
                read += batch.num_rows
                # Counted before it is yielded: the caller has room for this many rows.
                if read > self.shape[0]:
                    break
                yield batch
        if read != self.shape[0]:
            raise self.file_error(
                f"is damaged: it must have {self.shape[0]} rows; found {read}. Copy it again."
            )

    def _block(self, batch: Any) -> NDArray[Any]:
        out = np.empty((batch.num_rows, *self.shape[1:]), self.dtype)
        if len(self._names) == 1 and len(self.shape) == 2 and hasattr(batch.column(0), "flatten"):
            out[:] = self._lists(batch.column(0))
            return out
        table = out.reshape(len(out), len(self._names))
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
                f"the lists in column {name!r} must have the same length, one number for each class; "
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


class _TextColumn(_ArrowArray):
    """Text: class names or row names."""

    def labels(self) -> NDArray[Any]:
        """Return all labels; their width is known only at the end."""
        blocks = [self._texts(batch.column(0)) for batch in self._batches(_TEXTS_PER_BLOCK)]
        return np.concatenate([np.empty(0, "U1"), *blocks])

    def _texts(self, column: Any) -> NDArray[Any]:
        self._refuse_nulls(column, self._names[0], "the name of a class" if self.key == "labels" else "text")
        return np.array(column.to_pylist(), dtype=str)
