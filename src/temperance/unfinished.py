"""Unfinished files: `.name.xxxxxxxx.part` next to the file that is being written.

A process that is killed leaves its unfinished file behind. A living one holds a lock on its own, which the
system takes back when the process ends, however it ends. So the next write to the same name can tell the two
apart, and removes what was abandoned.
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
    """Mark an unfinished file as that of a living process, also when it is closed; return what ends that."""
    if fcntl is None:  # pragma: no cover  not on Windows
        return lambda: None
    second = os.dup(file.fileno())  # which shares the lock
    with suppress(OSError):  # a file system without locks, where nothing is removed either
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lambda: os.close(second)


def remove_abandoned(target: Path) -> None:
    """Remove the unfinished files of a target that no living process holds."""
    if fcntl is None:  # pragma: no cover  not on Windows
        return
    pattern = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{8}\.part")
    for path in target.parent.iterdir():
        if pattern.fullmatch(path.name):
            with suppress(OSError):  # held, gone, or not ours to remove
                _remove_unless_held(path)


def _remove_unless_held(path: Path) -> None:
    if not path.is_file() or path.is_symlink():
        return
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(file.fileno())
        is_new = status.st_size == 0 and time.time() - status.st_mtime < _NEW
        if not is_new:  # as one is between its making and its lock
            path.unlink()


def _prefix(target: Path) -> str:
    return f".{os.fsencode(target.name)[:_LONGEST].decode('utf-8', 'ignore')}."
