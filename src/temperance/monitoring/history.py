r"""A file of checks: JSON Lines, one line for each check, appended only.

A line is written in one piece and flushed to disk before the check reports. If the process is killed while
writing, the incomplete line is recognised, reported and skipped; the next check begins a new line. Two checks
at the same time wait for each other, from reading the file to appending.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from temperance.errors import InputError
from temperance.files import check_writable
from temperance.monitoring.record import OPENING, Record, read_record, write_record

try:
    import fcntl
except ImportError:  # pragma: no cover  not on Windows, where a line is still written in one piece
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class History:
    """The checks in a file, and its incomplete lines."""

    path: Path
    records: tuple[Record, ...]
    torn_lines: tuple[int, ...]
    file: BinaryIO
    ends_within_line: bool

    def add(self, record: Record) -> None:
        """Append a record, all of it or nothing, and wait until it is on disk."""
        line = b"\n" * self.ends_within_line + write_record(record)
        number = self.file.fileno()
        size = os.fstat(number).st_size
        try:
            while line:
                line = line[os.write(number, line) :]
            os.fsync(number)
        except OSError as error:  # such as a full disk
            os.ftruncate(number, size)
            error.filename = str(self.path)
            raise


@contextmanager
def open_history(path: str | Path) -> Iterator[History]:
    """Open or create a history, and lock it until the end of the context."""
    given = Path(path)
    check_writable(given, overwrite=True)
    is_new = not given.exists()
    with given.open("a+b", buffering=0) as file:
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if is_new:
            _sync_folder(given)
        file.seek(0)
        content = file.read() or b""
        records, torn = _read(content, given)
        yield History(given, records, torn, file, bool(content) and not content.endswith(b"\n"))


def _sync_folder(path: Path) -> None:
    """Make sure that the directory entry of a new file is on disk, too."""
    if os.name == "posix":
        folder = os.open(path.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(content: bytes, path: Path) -> tuple[tuple[Record, ...], tuple[int, ...]]:
    """Return the records, and the numbers of incomplete lines."""
    records, torn = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            records.append(read_record(line))
        except InputError as error:
            if not _is_cut_off(line):
                error.where = f"{path}, line {number}"
                error.advice = "Choose another file for the history, or remove this line."
                raise
            torn.append(number)
    return tuple(records), tuple(torn)


def _is_cut_off(line: bytes) -> bool:
    """Say whether a line is the beginning of a record, or disk space that was never written."""
    if not line.strip(b"\0"):
        return True
    opening = OPENING.encode()
    if not opening.startswith(line[: len(opening)]):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False
