"""Unfinished files: `.name.xxxxxxxx.part` next to the file that is being written.

A process that is killed leaves its unfinished file behind. A running process holds a lock on its file, which
the system releases when the process ends, however it ends. So the next write to the same name can distinguish
the two, and removes abandoned files.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # pragma: no cover  not on Windows, where nothing is removed
    fcntl = None  # type: ignore[assignment]

_NEW = 10.0  # seconds
_LONGEST = 200  # bytes of the name: a file system allows 255, and the suffix needs some


def part_name(target: Path) -> Path:
    """Return the path of a new unfinished file next to a target."""
    return target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}.part")


def hold(file: BinaryIO) -> Callable[[], None]:
    """Lock an unfinished file for this process, even after it is closed; return the unlock function."""
    if fcntl is None:  # pragma: no cover  not on Windows
        return lambda: None
    second = os.dup(file.fileno())  # which shares the lock
    with suppress(OSError):  # a file system without locks, where nothing is removed either
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lambda: os.close(second)


def remove_abandoned(target: Path) -> None:
    """Remove the unfinished files of a target that no running process holds."""
    if fcntl is None:  # pragma: no cover  not on Windows
        return
    pattern = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{8}\.part")
    for path in target.parent.iterdir():
        if pattern.fullmatch(path.name):
            with suppress(OSError):  # locked, gone, or owned by someone else
                _remove_unless_held(path)


def _remove_unless_held(path: Path) -> None:
    if not path.is_file() or path.is_symlink():
        return
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(file.fileno())
        is_new = status.st_size == 0 and time.time() - status.st_mtime < _NEW
        if not is_new:  # it may not be locked yet
            path.unlink()


def _prefix(target: Path) -> str:
    return f".{os.fsencode(target.name)[:_LONGEST].decode('utf-8', 'ignore')}."
