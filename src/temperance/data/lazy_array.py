"""An array in a file that has not been read yet: its shape and type, and its rows in order, block by block.

The pages of a memory map can stay in memory as long as it exists, and a pass over a file larger than memory
must not keep what it has read. So blocks are copies.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.errors import InputError, Remedy, file_error, rows_from
from temperance.files import filled_array

FILL_BYTES = 1 << 24  # bytes read at a time if the whole array is needed
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
            return np.concatenate([np.empty(0, "U1"), *self._blocks(max(1, FILL_BYTES // 256))])
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


class SlicedArray(LazyArray):
    """An array whose rows are slices of what `opened` opens, anew per block."""

    def __init__(
        self,
        path: Path,
        key: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        opened: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        super().__init__(path, key, shape, dtype)
        self._opened = opened

    def _array(self) -> NDArray[Any]:
        with self._opened() as array:
            if isinstance(array, np.ndarray) and array.dtype == self.dtype:
                return array
        return super()._array()

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        for start in range(0, self.shape[0], rows):
            with self._opened() as array:
                block = np.array(array[start : start + rows], self.dtype)
            yield block


def in_memory(path: Path, key: str, array: NDArray[Any]) -> LazyArray:
    """Return an array that has been read already."""
    return SlicedArray(path, key, array.shape, array.dtype, partial(nullcontext, array))


def mapped(
    path: Path, key: str, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int, *, order: str = "C"
) -> LazyArray:
    """Return an array whose bytes in the file, starting at `offset`, are the same as in memory."""

    @contextmanager
    def opened() -> Iterator[NDArray[Any]]:
        if not math.prod(shape):  # an empty array cannot be mapped
            yield np.empty(shape, dtype)
            return
        try:
            array = np.memmap(path, dtype, "r", offset, shape, order)  # type: ignore[call-overload]
        except ValueError as error:
            fact = "the file must hold the whole array; it ends too early. Copy it again."
            raise file_error(path, fact, key) from error
        yield array

    return SlicedArray(path, key, shape, dtype, opened)


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
    """The rows of another array, changed by a function of a block and the number of its first row.

    The function can change the number of rows: an entry of the given array holds `rows_in_entry` of them.
    """

    def __init__(
        self,
        array: LazyArray,
        shape: tuple[int, ...],
        change: Callable[[NDArray[Any], int], NDArray[Any]],
        dtype: np.dtype[Any],
        *,
        rows_in_entry: int = 1,
    ) -> None:
        super().__init__(array.path, array.key, shape, dtype)
        self.class_names, self.columns = array.class_names, array.columns
        self._given, self._change, self._rows_in_entry = array, change, rows_in_entry

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        return regrouped(self._changed(max(1, rows // max(1, self._rows_in_entry))), rows)

    def _changed(self, entries: int) -> Iterator[NDArray[Any]]:
        start = 0
        for block in self._given.blocks(entries):
            with self.naming_file(), rows_from(start):
                changed = self._change(block, start)
            yield changed.astype(self.dtype, copy=False)
            start += len(block)


def regrouped(blocks: Iterable[NDArray[Any]], rows: int) -> Iterator[NDArray[Any]]:
    """Yield the rows of some blocks in blocks of `rows` rows; the last block can be smaller."""
    held = None
    for block in blocks:
        held = block if held is None or not len(held) else np.concatenate([held, block])
        while len(held) >= rows:
            yield held[:rows]
            held = held[rows:]
    if held is not None and len(held):
        yield held


def widened(bits: LazyArray) -> LazyArray:
    """Return bfloat16, which NumPy lacks and which is stored as integers, as float32: its upper half."""

    def change(block: NDArray[Any], first: int) -> NDArray[Any]:
        return (block.astype(np.uint32) << 16).view(np.float32)

    return ChangedArray(bits, bits.shape, change, np.dtype(np.float32))
