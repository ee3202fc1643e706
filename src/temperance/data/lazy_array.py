"""An array in a file that has not been read yet: its shape and type, and its rows in order, block by block.

Blocks are read, not mapped: the pages of a memory map can stay in memory as long as it exists, and a pass
over a file larger than memory must not keep what it has read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from temperance.errors import InputError, Remedy, file_error, rows_from
from temperance.files import filled_array
from temperance.inputs.validation import check_number

FILL_BYTES = 1 << 24  # bytes read at a time if the whole array is needed
TEXT_ROWS = 1 << 16  # rows of a text column read at a time
TEXT = np.dtype("U")
"""The type of an array of text whose width is not known before it is read."""


class LazyArray(ABC):
    """An array in a file, under a key that is empty if it has no name there."""

    def __init__(self, path: Path, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path = path
        self.key = key
        self.shape = shape
        # Blocks have the byte order of this machine.
        self.dtype = dtype.newbyteorder("=")
        self.class_names: tuple[str, ...] | None = None
        self.columns: tuple[str, ...] = ()
        """The columns of the array, if the file is a table."""

    def file_error(self, sentence: str, remedy: Remedy | None = None) -> InputError:
        """Return an error about this array."""
        return file_error(self.path, sentence, self.key, remedy)

    @contextmanager
    def naming_file(self) -> Iterator[None]:
        """Name the file and the key in errors about numbers that came from here."""
        try:
            yield
        except InputError as error:
            error.where = error.where or self.file_error("").where  # a prior is another file
            raise

    def check_numbers(self) -> None:
        """Raise unless the array has rows of numbers."""
        if self.dtype.hasobject:
            raise self.file_error(
                "holds Python objects, which are stored as a pickle and could run code. "
                "Save a plain array of numbers. Save text as np.array(labels, dtype=str)."
            )
        if self.dtype.kind not in "fiub":
            raise self.file_error(
                f"must hold numbers; found {self.dtype}. Save an array of floats, or of integers for labels."
            )
        if not self.shape:
            raise self.file_error("must be an array with rows; found a single number.")

    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield all rows in order, in blocks of `rows` rows; the last block can be smaller."""
        check_number("rows", rows, ">= 1", lambda number: number >= 1, whole=True)
        self.check_numbers()
        return self._blocks(rows)

    def array(self) -> NDArray[Any]:
        """Return the whole array: memory-mapped if the format allows it, else read into scratch space."""
        self.check_numbers()
        return self._array()

    def labels(self) -> NDArray[Any]:
        """Return the whole array, including text: class names or row names."""
        if self.dtype.kind != "U":
            self.check_numbers()
        return self._array()

    @abstractmethod
    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]: ...

    def _array(self) -> NDArray[Any]:
        if self.dtype == TEXT:  # its width is known only at the end
            return np.concatenate([np.empty(0, "U1"), *self._blocks(TEXT_ROWS)])
        row_bytes = max(1, self.dtype.itemsize * math.prod(self.shape[1:]))
        return filled_array(self.shape, self.dtype, self._blocks(max(1, FILL_BYTES // row_bytes)))


class UnreadableArray(LazyArray):
    """An array that cannot be used, and why; other keys of its file still can."""

    def __init__(self, path: Path, key: str, reason: str | InputError) -> None:
        super().__init__(path, key, (), np.dtype(object))
        self._error = reason if isinstance(reason, InputError) else self.file_error(reason)

    def check_numbers(self) -> None:
        """Raise, always."""
        raise self._error

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        raise self._error


class ArrayInMemory(LazyArray):
    """An array that is already in memory, for formats that are read as a whole."""

    def __init__(self, path: Path, key: str, array: NDArray[Any]) -> None:
        super().__init__(path, key, array.shape, array.dtype)
        self._held = array

    def _array(self) -> NDArray[Any]:
        return self._held

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        return (self._held[start : start + rows] for start in range(0, len(self._held), rows))


class RecordArray(LazyArray):
    """An array with one row per record of a file: what `read` returns for the record."""

    def __init__(
        self,
        path: Path,
        key: str,
        shape: tuple[int, ...],
        dtype: Any,
        records: Callable[[], Iterator[Any]],
        read: Callable[[Any], Any],
    ) -> None:
        super().__init__(path, key, shape, np.dtype(dtype))
        self._records, self.read = records, read

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        # Only the numbers of a block are kept: a record can have many other fields.
        every = map(self.read, self._records())
        while block := list(islice(every, rows)):
            yield np.array(block, self.dtype).reshape(len(block), *self.shape[1:])


class ChangedArray(LazyArray):
    """The blocks of another array, each changed by a function."""

    def __init__(
        self, array: LazyArray, change: Callable[[NDArray[Any]], NDArray[Any]], shape: tuple[int, ...]
    ) -> None:
        dtype = array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
        super().__init__(array.path, array.key, shape, dtype)
        self.class_names, self.columns = array.class_names, array.columns
        self._given, self._change = array, change

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        start = 0
        for block in self._given.blocks(rows):
            with self.naming_file(), rows_from(start):
                changed = self._change(block)
            yield changed.astype(self.dtype, copy=False)
            start += len(block)


class RowsOfArray(LazyArray):
    """The rows of an array with more axes, the classes in axis `dim`; or some of the rows of any array."""

    def __init__(self, array: LazyArray, dim: int = 1, kept: NDArray[np.bool_] | None = None) -> None:
        leading = (*array.shape[:dim], *array.shape[dim + 1 :])
        n_rows = math.prod(leading) if kept is None else int(kept.sum())
        super().__init__(array.path, array.key, (n_rows, *array.shape[dim : dim + 1]), array.dtype)
        self.class_names, self.columns = array.class_names, array.columns
        self._given, self._dim, self._kept = array, dim, kept
        self._rows_in_one = math.prod(leading[1:])  # rows in an entry of the first axis

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        start, held = 0, np.empty((0, *self.shape[1:]), self.dtype)
        for block in self._given.blocks(max(1, rows // max(1, self._rows_in_one))):
            if block.ndim > 1:
                block = np.moveaxis(block, self._dim, -1).reshape(-1, self.shape[1])
            if self._kept is not None:
                start, block = start + len(block), block[self._kept[start : start + len(block)]]
            held = np.concatenate([held, block]) if len(held) else block
            while len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if len(held):
            yield held


class MappedArray(LazyArray):
    """An array whose bytes in the file, starting at `offset`, are the same as in memory."""

    def __init__(
        self,
        path: Path,
        key: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int,
        *,
        fortran: bool = False,
    ) -> None:
        super().__init__(path, key, shape, dtype)
        self._held = dtype
        self._offset = offset
        self._fortran = fortran and len(shape) > 1

    def _array(self) -> NDArray[Any]:
        if not self._held.isnative or not math.prod(self.shape):  # an empty array cannot be mapped
            return super()._array()
        order = "F" if self._fortran else "C"
        return np.memmap(self.path, self._held, "r", self._offset, self.shape, order)  # type: ignore[call-overload]

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        n_rows, *inner = self.shape
        read = self._columns if self._fortran else self._rows
        with self.path.open("rb") as file:
            for start in range(0, n_rows, rows):
                block = read(file, start, min(rows, n_rows - start), math.prod(inner))
                yield block.astype(self.dtype, copy=False)

    def _rows(self, file: BinaryIO, start: int, count: int, width: int) -> NDArray[Any]:
        flat = self._read(file, start * width, count * width)
        return flat.reshape(count, *self.shape[1:])

    def _columns(self, file: BinaryIO, start: int, count: int, width: int) -> NDArray[Any]:
        """Read the rows of an array that is stored column by column, one column at a time."""
        out = np.empty((count, width), self._held, order="F")
        for column in range(width):
            out[:, column] = self._read(file, column * self.shape[0] + start, count)
        return out.reshape((count, *self.shape[1:]), order="F")

    def _read(self, file: BinaryIO, first: int, count: int) -> NDArray[Any]:
        file.seek(self._offset + first * self._held.itemsize)
        flat = np.fromfile(file, self._held, count)
        if len(flat) < count:
            raise self.file_error("the file must hold the whole array; it ends too early. Copy it again.")
        return flat
