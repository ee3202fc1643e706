"""The bytes of a file that may be compressed by gzip, according to its suffix."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from temperance.data.formats.inflation import MOST_PER_BYTE, is_inflated
from temperance.data.lazy_array import damage_explained, file_error

_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)
_DAMAGED = "is not a gzip file, or is damaged ({}). Copy it again."
_BUFFER = 1 << 17


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its decompressed bytes; a damaged archive is an error about the file."""
    with damage_explained(path, _DAMAGED.format, of=_DAMAGE), _opened(path) as file:
        yield file


def _opened(path: Path) -> BinaryIO:
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    return cast(BinaryIO, io.BufferedReader(_Unpacked(path), _BUFFER))


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, as long as it stays in proportion to the file."""

    def __init__(self, path: Path) -> None:
        self._path, self._size, self._read = path, path.stat().st_size, 0
        self._file = gzip.open(path)  # noqa: SIM115  closed with this one

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        self._read += len(content)
        if is_inflated(self._read, self._size):
            raise file_error(
                self._path,
                f"must not decompress to more than {MOST_PER_BYTE} times its size; found "
                f"{self._read / 1e9:.2g} GB or more. Decompress it first.",
            )
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()
