"""Atomic writing: there is either the old file or the new one, never a part. Scratch space for large arrays.

Also the digest of a file.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from temperance.errors import InputError, OutputExistsError
from temperance.unfinished import hold, part_name, remove_abandoned

# A scratch array of this many bytes or more is on disk.
MEMORY_LIMIT = 1 << 30
# Errors of writing, which do not name the file.
_OF_WRITING = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def write_atomically(path: str | Path, content: bytes, *, overwrite: bool = False) -> None:
    """Write `content` to a temporary file in the same folder, then rename it to `path`."""
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(content)


@contextmanager
def atomic_file(path: str | Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file in the folder of `path`; rename it at the end, or remove it on an exception."""
    check_writable(path, overwrite=overwrite)
    target = Path(path).resolve()  # a link stays a link, and its target is written
    remove_abandoned(target)
    # Named before it is created, so that it can never be left behind.
    temporary = part_name(target)
    try:
        with ExitStack() as until_in_place:
            with temporary.open("xb") as file:
                until_in_place.callback(hold(file))
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
    except OSError as error:
        if error.filename is None and error.errno in _OF_WRITING:
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise unless a file may be written at `path`: to call before the work begins."""
    given, target = Path(path), Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{given} is a folder. Pass the name of a file.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{given} is a device or a pipe, not a file. Choose another name.")
    if target.exists() and not overwrite:
        raise OutputExistsError(given)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {given.parent} does not exist. Make it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"you may not write in the folder {given.parent}. Choose another.")


def read_regular_file(path: str | Path, *, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes."""
    given = Path(path)
    check_regular(given)
    with given.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(
            f"must have at most {most >> 20} MB; found {given.stat().st_size >> 20} MB. Choose another file.",
            where=str(given),
        )
    return content


def check_regular(path: Path) -> None:
    """Raise for a pipe or a device, whose content may never arrive or never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            "must be a file; found a device or a pipe. Save it to a file first.", where=str(path)
        )


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array to fill: in memory, or mapped to a file without a name if it is large.

    The file disappears with the array, even if the process is killed.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < MEMORY_LIMIT:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile() as file:
        _reserve(file.fileno(), size)
        return np.memmap(file, dtype=kind, mode="r+", shape=shape)


def filled_array(shape: tuple[int, ...], dtype: DTypeLike, blocks: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return a scratch array filled with rows that arrive block by block."""
    out, start = scratch_array(shape, dtype), 0
    for block in blocks:
        out[start : start + len(block)] = block
        start += len(block)
    return out


def _reserve(file: int, size: int) -> None:
    # Reserve the blocks: otherwise a full disk would kill the process while the array is filled.
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:  # pragma: no cover  not on Linux
            os.truncate(file, size)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{size / 1e9:.1f} GB of scratch space are needed in {tempfile.gettempdir()}, which has too "
            "little. Free some, or name another folder in the environment variable TMPDIR",
        ) from error


def sha256(path: str | Path) -> str:
    """Return the digest of a file, which is read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
