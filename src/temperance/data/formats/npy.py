"""NumPy's formats: a .npy has one array, without a name; a .npz is a zip archive with one .npy per key.

A .npy is memory-mapped. The members of an archive are read in order, as np.load does, so that their checksums
are verified.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from temperance.data.lazy_array import FILL_BYTES, LazyArray, mapped
from temperance.data.read_options import ReadOptions
from temperance.errors import file_error, library_errors
from temperance.files import filled_array


@dataclass(frozen=True)
class _Header:
    """The header of a .npy, and its size in bytes."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the array of a .npy, under the empty key."""
    total = path.stat().st_size
    with path.open("rb") as file:
        header = _read_header(path, "", file, total)
    order = "F" if header.fortran else "C"
    return {"": mapped(path, "", header.shape, header.dtype, header.size, order=order)}


def _read_header(path: Path, key: str, file: IO[bytes], total: int) -> _Header:
    """Read the header of a .npy of `total` bytes; `file` is then at its first number."""
    wrong = "is not a .npy array, or is damaged ({}). Copy or save it again."
    with library_errors(path, wrong, key), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about files written by Python 2, which can be read
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} is for arrays of records")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        header = _Header(*read(file), file.tell())
        if min(header.shape, default=0) < 0:
            raise ValueError(f"shape {header.shape}")
    data_bytes = math.prod(header.shape) * header.dtype.itemsize
    # Objects are rejected later for their type; their pickle can have any size.
    if not header.dtype.hasobject and header.size + data_bytes != total:
        raise file_error(
            path,
            f"is damaged: an array of shape {header.shape} and type {header.dtype} must have "
            f"{data_bytes} bytes; found {total - header.size}. Copy or save it again.",
            key,
        )
    return header


def archive_members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of a .npz by their keys."""
    found: dict[str, LazyArray] = {}
    with _archive_errors(path, ""), ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            key = info.filename.removesuffix(".npy")
            with _archive_errors(path, key), archive.open(info) as stream:
                header = _read_header(path, key, stream, info.file_size)
            found[key] = _Member(path, key, info, header)
    return found


def _archive_errors(path: Path, key: str) -> AbstractContextManager[None]:
    what = "is damaged" if key else "is not a zip archive, as a .npz is, or is damaged"
    return library_errors(path, f"{what} ({{}}). Copy it again, or save it by np.savez.", key)


class _Member(LazyArray):
    """One array of the archive."""

    def __init__(self, path: Path, key: str, info: ZipInfo, header: _Header) -> None:
        super().__init__(path, key, header.shape, header.dtype)
        self._info = info
        self._header = header

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        n_rows, *inner = self.shape
        if self._header.fortran and inner:  # the rows are complete only at the end
            whole = self._array()
            for start in range(0, n_rows, rows):
                yield whole[start : start + rows]
            return
        for numbers in self._in_order(max(1, rows * math.prod(inner))):
            yield numbers.reshape(-1, *inner)

    def _array(self) -> NDArray[Any]:
        numbers = self._in_order(FILL_BYTES // self.dtype.itemsize)
        flat = filled_array((math.prod(self.shape),), self.dtype, numbers)
        return flat.reshape(self.shape, order="F" if self._header.fortran else "C")

    def _in_order(self, count: int) -> Iterator[NDArray[Any]]:
        """Yield the numbers in the order of the file, `count` of them at a time."""
        total = math.prod(self.shape)
        named = _archive_errors(self.path, self.key)
        with named, ZipFile(self.path) as archive, archive.open(self._info) as stream:
            stream.read(self._header.size)
            for start in range(0, total, count):
                size = min(count, total - start) * self.dtype.itemsize
                data = stream.read(size)
                if len(data) < size:
                    raise self.file_error(
                        "the archive must hold the whole array; it ends too early. Copy it again."
                    )
                yield np.frombuffer(data, self._header.dtype).astype(self.dtype, copy=False)
            stream.read()  # the checksum is verified at the end
