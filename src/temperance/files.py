"""Files: atomic writing, scratch space for large arrays, files that are read as a whole, the current time.

Writing is atomic: either the old file or the new one exists, never half of it. Until it is complete, a new
file is called `.name.xxxxxxxx.part`, next to the file that it becomes. A process that is killed leaves its
unfinished file behind. A running process holds a lock on its file, which the system releases when the process
ends for any reason. So the next write to the same name can tell abandoned files from others, and removes
them.

A prediction service imports this module, so slow imports (pathlib, tempfile) happen on use.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from temperance.errors import InputError, OutputExistsError

try:
    import fcntl
except ImportError:  # pragma: no cover  not on Windows, where nothing is removed
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pathlib import Path

# Scratch arrays of this many bytes or more are on disk.
MEMORY_LIMIT = 1 << 30
# Largest file that is read as a whole, in bytes: thousands of times a calibrator file of 1,000 classes.
MAX_WHOLE_FILE = 1 << 28
# Errors during writing that do not name the file.
_OF_WRITING = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_MAX_NAME_BYTES = 200  # of an unfinished file: a file system allows 255, and the suffix needs some
_LOCKED_AFTER = 10.0  # seconds: a newer empty file might not be locked yet


def write_atomically(path: str | Path, content: bytes, *, overwrite: bool = False) -> None:
    """Write `content` to a temporary file in the folder of `path`, and then rename it to `path`."""
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(content)


@contextmanager
def atomic_file(path: str | Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`; at the end it is renamed, or deleted if anything is raised."""
    from pathlib import Path

    check_writable(path, overwrite=overwrite)
    target = Path(path).resolve()  # a link stays a link, and its target is written
    _remove_abandoned(target)
    # Named before it is created, so that there is no moment at which it could be left behind.
    temporary = target.with_name(f"{_part_prefix(target)}{os.urandom(4).hex()}.part")
    try:
        with ExitStack() as until_in_place:
            with temporary.open("xb") as file:
                until_in_place.callback(_lock(file))
                yield file
                file.flush()
                os.fsync(file.fileno())
            _put_in_place(temporary, target, Path(path), overwrite=overwrite)
    except OSError as error:
        if error.filename == str(temporary):
            check_writable(path, overwrite=True)  # raises if the folder is gone
            error.filename = str(path)
        elif error.filename is None and error.errno in _OF_WRITING:
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # gone with its folder
            try:
                temporary.unlink(missing_ok=True)
            except (KeyboardInterrupt, SystemExit):  # a signal at this very moment
                temporary.unlink(missing_ok=True)
                raise


def _put_in_place(temporary: Path, target: Path, given: Path, *, overwrite: bool) -> None:
    """Give a file its final name; without `overwrite`, keep a file that another process wrote meanwhile."""
    if not overwrite:
        try:
            os.link(temporary, target)
            return
        except FileExistsError:
            raise OutputExistsError(given) from None
        except OSError:  # a file system without hard links
            check_writable(given)
    temporary.replace(target)


def _part_prefix(target: Path) -> str:
    return f".{os.fsencode(target.name)[:_MAX_NAME_BYTES].decode('utf-8', 'ignore')}."


def _lock(file: BinaryIO) -> Callable[[], None]:
    """Lock an unfinished file for this process, even after it is closed; return the unlock function."""
    if fcntl is None:  # pragma: no cover  not on Windows
        return lambda: None
    second = os.dup(file.fileno())  # shares the lock
    with suppress(OSError):  # a file system without locks, where nothing is removed either
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lambda: os.close(second)


def _remove_abandoned(target: Path) -> None:
    """Remove the unfinished files of a target that no running process holds."""
    if fcntl is None:  # pragma: no cover  not on Windows
        return
    pattern = re.compile(re.escape(_part_prefix(target)) + r"[0-9a-f]{8}\.part")
    for path in target.parent.iterdir():
        if not pattern.fullmatch(path.name) or not path.is_file() or path.is_symlink():
            continue
        with suppress(OSError), path.open("r+b") as file:  # locked, gone, or owned by someone else
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(file.fileno())
            if status.st_size or time.time() - status.st_mtime >= _LOCKED_AFTER:
                path.unlink()


def check_writable(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise unless a file can be written at `path`; call it before the work whose result goes there."""
    from pathlib import Path

    given, target = Path(path), Path(path).resolve()
    folder = f"{target.parent}, to which {given} links," if given.is_symlink() else given.parent
    if target.is_dir():
        raise IsADirectoryError(f"{given} is a folder. Pass the name of a file.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{given} is a device or a pipe, not a file. Choose another name.")
    if target.exists() and not overwrite:
        raise OutputExistsError(given)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {folder} does not exist. Create it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {folder} is not writable. Choose another.")


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an empty array: in memory or, if it is large, mapped to an unnamed file.

    The file is deleted with the array, even if the process is killed.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < MEMORY_LIMIT:
        return np.empty(shape, kind)
    import tempfile

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
    # Reserve the blocks: otherwise a full disk would crash the process at the first failing write.
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:  # pragma: no cover  not on Linux
            os.truncate(file, size)
    except OSError as error:
        from tempfile import gettempdir

        raise OSError(
            error.errno,
            f"{gettempdir()} has no room for {size / 1e9:.1f} GB of scratch space. Free some, or set the "
            "environment variable TMPDIR to another folder",
        ) from error


def sha256(path: str | Path) -> str:
    """Return the digest of a file, read in pieces."""
    import hashlib

    with open(path, "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_regular_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file that is not too large to be read as a whole."""
    check_regular(path)
    with open(path, "rb") as file:  # noqa: PTH123
        size = os.fstat(file.fileno()).st_size
        # Python reserves what a read can return. Some files of the system have a size of 0, but a content.
        content = file.read(min(max(size, 1 << 16), MAX_WHOLE_FILE) + 1)
    if len(content) > MAX_WHOLE_FILE:
        raise InputError(
            f"must have at most {MAX_WHOLE_FILE >> 20} MB; found {size >> 20} MB. Choose another file.",
            where=os.fspath(path),
        )
    return content


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise for a pipe or a device, whose content might never arrive or never end."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return  # opening it raises the error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(
            "must be a file; found a device or a pipe. Save it to a file first.", where=os.fspath(path)
        )


def utc_now() -> str:
    """Return the time in UTC; SOURCE_DATE_EPOCH sets it for reproducible builds.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch.dict("os.environ", SOURCE_DATE_EPOCH="86400"):
    ...     utc_now()
    '1970-01-02T00:00:00Z'
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"the environment variable SOURCE_DATE_EPOCH must be a number of seconds; found {given[:40]!r}. "
            "Correct it or unset it."
        ) from None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
