"""The bytes of a file that gzip may have packed, as its suffix says."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from temperance.data.lazy_array import damage_explained

_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)
_DAMAGED = "is not a gzip file, or a damaged one ({}). Copy it again."


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked; damage to the packing is an error about the file."""
    with damage_explained(path, _DAMAGED.format, of=_DAMAGE), _opened(path) as file:
        yield file


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")
