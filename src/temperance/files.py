"""Atomic file writing: either the old file or the new one exists, never half of it.

Also scratch space for large arrays, and the digest of a file.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from temperance.errors import OutputExistsError
from temperance.unfinished import hold, part_name, remove_abandoned

# A scratch array of this many bytes or more is on disk.
MEMORY_LIMIT = 1 << 30
# Errors of writing, which do not name the file.
_OF_WRITING = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def write_atomically(path: str | Path, content: bytes, *, overwrite: bool = False) -> None:
    """Write `content` to `path`: to a temporary file in the same folder first, which is then renamed."""
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(content)


@contextmanager
def atomic_file(path: str | Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`; at the end it is renamed, or deleted if anything is raised."""
    check_writable(path, overwrite=overwrite)
    target = Path(path).resolve()  # a link stays a link, and its target is written
    remove_abandoned(target)
    # Named before it is created, so that it cannot be left behind at any moment.
    temporary = part_name(target)
    try:
        with ExitStack() as until_in_place:
            with temporary.open("xb") as file:
                until_in_place.callback(hold(file))
                yield file
                file.flush()
                os.fsync(file.fileno())
            _put_in_place(temporary, target, Path(path), overwrite=overwrite)
    except OSError as error:
        if error.filename == str(temporary):
            check_writable(path, overwrite=True)  # says so if the folder is gone
            error.filename = str(path)
        elif error.filename is None and error.errno in _OF_WRITING:
            error.filename = str(path)
        raise
    finally:
        _remove(temporary)


def _remove(temporary: Path) -> None:
    with suppress(OSError):  # gone with its folder
        try:
            temporary.unlink(missing_ok=True)
        except (KeyboardInterrupt, SystemExit):  # a signal at this very moment
            temporary.unlink(missing_ok=True)
            raise


def _put_in_place(temporary: Path, target: Path, given: Path, *, overwrite: bool) -> None:
    """Give a file its name; unless `overwrite`, a file that another process wrote meanwhile stays."""
    if not overwrite:
        try:
            os.link(temporary, target)
            return
        except FileExistsError:
            raise OutputExistsError(given) from None
        except OSError:  # a file system without hard links
            check_writable(given)
    temporary.replace(target)


def check_writable(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise unless a file may be written at `path`; call it before the work whose result goes there."""
    given, target = Path(path), Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{given} is a folder. Pass the name of a file.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{given} is a device or a pipe, not a file. Choose another name.")
    if target.exists() and not overwrite:
        raise OutputExistsError(given)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {given.parent} does not exist. Create it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"you may not write in the folder {given.parent}. Choose another.")


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an empty array: in memory or, if it is large, mapped to an unnamed file.

    The file is deleted with the array, even if the process is killed.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < MEMORY_LIMIT:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile() as file:
        _reserve(file.fileno(), size)
        return np.memmap(file, dtype=kind, mode="r+", shape=shape)


def filled_array(shape: tuple[int, ...], dtype: DTypeLike, blocks: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return a scratch array filled with rows, block by block."""
    out, start = scratch_array(shape, dtype), 0
    for block in blocks:
        out[start : start + len(block)] = block
        start += len(block)
    return out


def _reserve(file: int, size: int) -> None:
    # Unless its blocks are reserved, a full disk would crash the process at the first failing write.
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:  # pragma: no cover  not on Linux
            os.truncate(file, size)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{size / 1e9:.1f} GB of scratch space are needed in {tempfile.gettempdir()}, which has no room "
            "for them. Free some, or name another folder in the environment variable TMPDIR",
        ) from error


def sha256(path: str | Path) -> str:
    """Return the digest of a file, read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
