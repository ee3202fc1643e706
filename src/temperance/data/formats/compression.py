"""Compressed files: the bytes of a .gz, and files that claim far more than they hold.

Memory and time must stay in proportion to the size of the file.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temperance.data.lazy_array import LazyArray, UnreadableArray
from temperance.errors import file_error, library_errors

ALWAYS_FINE = 1 << 28  # bytes: small enough for a file of any size
MAX_SMALL_TEXT = 1 << 24  # the same for text, whose lines take far longer than numbers
MAX_PER_BYTE = 200  # the outputs of a classifier compress to about half; only constants come close to this


def is_inflated(unpacked: int, packed: int) -> bool:
    """Say whether a file claims implausibly many bytes for its size."""
    return unpacked > max(ALWAYS_FINE, MAX_PER_BYTE * packed)


def unless_inflated(array: LazyArray, size: int) -> LazyArray:
    """Return an array of a file of `size` bytes, or an unreadable one if it claims too much."""
    claimed = math.prod(array.shape) * max(1, array.dtype.itemsize)  # text has no size yet
    if not is_inflated(claimed, size):
        return array
    reason = (
        f"must not claim more than {MAX_PER_BYTE} times the bytes of its file; found shape {array.shape}, "
        f"{claimed / 1e9:.2g} GB, in a file of {size / 1e6:.2g} MB. Save it uncompressed, with np.savez."
    )
    return UnreadableArray(array.path, array.key, reason)


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """Open a file to read its bytes; a .gz is decompressed."""
    wrong = "is not a gzip file, or is damaged ({}). Copy it again."
    is_packed = path.suffix.lower() == ".gz"
    with (
        library_errors(path, wrong, of=(EOFError, gzip.BadGzipFile, zlib.error)),
        gzip.open(path) if is_packed else path.open("rb") as file,
    ):
        yield file


def check_unpacked_size(path: Path) -> None:
    """Raise unless what a .gz holds is in proportion to the file: parsing it could take a minute."""
    unpacked = 0
    with open_bytes(path) as file:
        while content := file.read(1 << 17):
            unpacked += len(content)
            if unpacked > max(MAX_SMALL_TEXT, MAX_PER_BYTE * file.fileobj.tell()):
                raise file_error(
                    path,
                    f"must not decompress to more than {MAX_PER_BYTE} times its size; found "
                    f"{unpacked / 1e9:.2g} GB or more. Decompress it first.",
                )
