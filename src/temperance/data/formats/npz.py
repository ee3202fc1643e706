""".npz: a zip archive of .npy files, one for each key.

A member that is stored uncompressed, as by np.savez, is memory-mapped within the archive. A compressed one,
as by np.savez_compressed, is decompressed while reading. Either way its checksum is verified, as by np.load.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.npy import Header, read_header
from temperance.data.lazy_array import FILL_BYTES, LazyArray, Mapped, damage_explained
from temperance.data.read_options import ReadOptions
from temperance.files import filled_array

# Size of the header before each member; the lengths of the name and the extra field are at its end.
_LOCAL_HEADER = struct.Struct("<4s22sHH")
# All errors that damaged archives were seen to raise in the standard library.
_DAMAGE = (
    BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # an unknown method of compression
    RuntimeError,  # encrypted
    OSError,
    ValueError,
    OverflowError,
    struct.error,
    IndexError,
)


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays of a .npz by their keys."""
    found: dict[str, LazyArray] = {}
    with _damage_named(path, ""), ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            key = info.filename.removesuffix(".npy")
            with _damage_named(path, key), archive.open(info) as stream:
                header = read_header(path, key, stream, info.file_size)
            found[key] = _Member(path, key, info, header)
    return found


def _damage_named(path: Path, key: str) -> AbstractContextManager[None]:
    what = "is damaged" if key else "is not a zip archive, as a .npz is, or is damaged"
    wrong = f"{what} ({{}}). Copy it again, or save it by np.savez."
    return damage_explained(path, wrong.format, key, of=_DAMAGE)


@contextmanager
def _opened(path: Path, key: str, info: ZipInfo) -> Iterator[IO[bytes]]:
    with _damage_named(path, key), ZipFile(path) as archive, archive.open(info) as stream:
        yield stream


class _Member(LazyArray):
    """One array of the archive."""

    def __init__(self, path: Path, key: str, info: ZipInfo, header: Header) -> None:
        super().__init__(path, key, header.shape, header.dtype)
        self._info = info
        self._header = header

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        n_rows, *inner = self.shape
        if not (self._header.fortran and inner):
            for block in self._in_order(max(1, rows * math.prod(inner))):
                yield block.reshape(-1, *inner)
        elif self._is_mapped():
            yield from self._mapped().blocks(rows)
        else:  # a compressed stream cannot be read column by column
            whole = self._array()
            for start in range(0, n_rows, rows):
                yield whole[start : start + rows]

    def _array(self) -> NDArray[Any]:
        if self._is_mapped():
            return self._mapped()._array()  # of text as well
        numbers = self._in_order(FILL_BYTES // self.dtype.itemsize)
        flat = filled_array((math.prod(self.shape),), self.dtype, numbers)
        return flat.reshape(self.shape, order="F" if self._header.fortran else "C")

    def _in_order(self, count: int) -> Iterator[NDArray[Any]]:
        """Yield the numbers in the order of the file, `count` of them at a time."""
        total = math.prod(self.shape)
        with self._data() as stream:
            for start in range(0, total, count):
                yield self._numbers(stream, min(count, total - start) * self.dtype.itemsize)
            stream.read()  # the checksum is verified at the end

    @contextmanager
    def _data(self) -> Iterator[IO[bytes]]:
        with _opened(self.path, self.key, self._info) as stream:
            stream.read(self._header.size)
            yield stream

    def _numbers(self, stream: IO[bytes], size: int) -> NDArray[Any]:
        data = stream.read(size)
        if len(data) < size:
            raise self.file_error("the archive must hold the whole array; it ends too early. Copy it again.")
        return np.frombuffer(data, self._header.dtype).astype(self.dtype, copy=False)

    def _is_mapped(self) -> bool:
        return self._info.compress_type == ZIP_STORED

    def _mapped(self) -> Mapped:
        # A memory map verifies no checksum. This pass does, and leaves the file in the page cache.
        with self._data() as stream:
            while stream.read(FILL_BYTES):
                pass
        with self.path.open("rb") as file:
            file.seek(self._info.header_offset)
            _, _, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        start = self._info.header_offset + _LOCAL_HEADER.size + name + extra + self._header.size
        fortran = self._header.fortran
        return Mapped(self.path, self.key, self.shape, self._header.dtype, start, fortran=fortran)
