r"""A file of checks: JSON Lines, one line per check, appended only.

A line has the sums, the digests and the evidence so far, as plain JSON. It is written in one piece and
flushed to disk before the check reports. If the process is killed while writing, the incomplete line is
recognised, reported and skipped; the next check begins a new line. Two checks at the same time take turns,
from reading the file to appending.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from temperance.errors import InputError, excerpt
from temperance.files import check_writable
from temperance.json_fields import (
    Field,
    check_count,
    check_names,
    check_object,
    parse_object,
    read_fields,
    reading_errors,
)
from temperance.monitoring.sums import EDITION, LabelledSums, PredictionSums

try:
    import fcntl
except ImportError:  # pragma: no cover  on Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

LOCKED_BYTE = 1 << 30
OPENING = '{"temperance_history": '
"""The beginning of every line, by which an incomplete one is recognised. The edition follows."""


def _check_positive(column: Any, where: str) -> int | None:
    return None if column is None else check_count(column, where, 0)


FIELDS = (
    Field("calibrator", str),
    Field("date", str),
    Field("name", str),
    Field("rows_digest", str),
    Field("labels_digest", str, optional=True),  # not in the first histories
    Field("groups", bool, optional=True),
    Field("positive", object, optional=True, check=_check_positive),
    Field("tolerance", float, low=0, high=0.5),
    Field("alpha", float, low=0, high=0.5),
    Field("log_e", float, low=-1e18, high=1e18),
    Field("highest_log_e", float, low=-1e18, high=1e18),
    Field("shift_alarm", bool),
    Field("action", str),
)
"""The parts of a line that are no sums."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """One check. Its evidence and its advice are known once it has been evaluated with the earlier ones.

    Attributes
    ----------
    calibrator : str
        Digest of the calibrator.
    date : str
        Date of the check, ISO 8601 in UTC.
    name : str
        Name of the rows, such as their file name.
    rows_digest : str
        Digest of the logits.
    labels_digest : str
        Digest of the labels; empty if there are none, or if an early history did not keep it.
    groups : bool
        Whether the sums count groups of rows, each as one row.
    edition : int
        Of the limits, which enter the bets (`sums.allowed`): the number with which a line begins.
    positive : int or None
        The class whose probability is evaluated, if there is one; unknown in edition 1.
    tolerance, alpha : float
        Settings of the evidence.
    log_e, highest_log_e : float
        Logarithm of the e-value after this check, and the highest so far.
    shift_alarm : bool
        Whether the predictions differ from those at the fit.
    action : str
        What the check advised.
    predictions : PredictionSums
        Counts of what needs no labels.
    labelled : LabelledSums or None
        Sums of what needs labels.
    """

    calibrator: str
    date: str
    name: str
    rows_digest: str
    labels_digest: str = ""
    groups: bool = False
    edition: int = EDITION
    positive: int | None = None
    tolerance: float
    alpha: float
    log_e: float = 0.0
    highest_log_e: float = 0.0
    shift_alarm: bool = False
    action: str = ""
    predictions: PredictionSums
    labelled: LabelledSums | None


def write_record(record: Record) -> bytes:
    """Return a record as one line."""
    content = asdict(record)
    edition = content.pop("edition")
    text = json.dumps(content, allow_nan=False, default=np.ndarray.tolist)
    return f"{OPENING}{edition}, {text[1:]}\n".encode()


def read_record(line: bytes) -> Record:
    """Return the record of a line; raise InputError if it is not one."""
    with reading_errors("must be a check written by this version"):
        plain = parse_object(line)
        edition = plain.pop("temperance_history", None)
        if type(edition) is not int or not 1 <= edition <= EDITION:
            raise InputError(f"temperance_history must be from 1 to {EDITION}; found {excerpt(edition)}")
        check_names("it", plain, required=("predictions", "labelled"))
        given, labelled = check_object(plain.pop("predictions"), "predictions"), plain.pop("labelled")
        predicted = given.get("predicted")
        n_classes = len(predicted) if isinstance(predicted, list) else 0
        predictions = PredictionSums.read(given, "predictions", n_classes, edition, counts="predicted")
        if labelled is not None:
            labelled = LabelledSums.read(labelled, "labelled", n_classes, edition, counts="labels")
        own = read_fields(plain, FIELDS, only=True)
        return Record(predictions=predictions, labelled=labelled, edition=edition, **own)


@dataclass(frozen=True, eq=False)
class History:
    """The checks in a file, and its incomplete lines; none without a file."""

    path: Path | None = None
    records: tuple[Record, ...] = ()
    torn_lines: tuple[int, ...] = ()
    file: BinaryIO | None = None
    ends_within_line: bool = False

    def add(self, record: Record) -> None:
        """Append a record to the file, all of it or nothing, and wait until it is on disk."""
        if self.file is None:
            return
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
def open_history(path: str | Path | None) -> Iterator[History]:
    """Open or create a history, and lock it until the end of the context."""
    if path is None:
        yield History()
        return
    given = Path(path)
    check_writable(given, overwrite=True)
    with given.open("a+b", buffering=0) as file:
        _lock(file)
        file.seek(0)
        content = file.read() or b""
        records, torn = _read(content, given)
        yield History(given, records, torn, file, bool(content) and not content.endswith(b"\n"))


def _lock(file: BinaryIO) -> None:
    """Lock the file for this process until it is closed; wait while another one holds the lock.

    It is the file itself: a second file, as the package filelock would need, would be left behind, with the
    permissions of whoever was first. Windows locks bytes, here one that no history reaches.
    """
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        return
    file.seek(LOCKED_BYTE)
    while True:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        except OSError as error:  # after ten seconds
            if error.errno not in (errno.EDEADLOCK, errno.EACCES):
                raise
        else:
            return


def _read(content: bytes, path: Path) -> tuple[tuple[Record, ...], tuple[int, ...]]:
    """Return the records, and the numbers of incomplete lines."""
    records: list[Record] = []
    torn: list[int] = []
    for at, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = read_record(line)
            if records and record.edition != records[0].edition:
                raise InputError("temperance_history must be the same in all lines")
            records.append(record)
        except InputError as error:
            if not _is_cut_off(line):
                error.where = f"{path}, line {at}"
                error.advice = "Choose another file for the history, or remove this line."
                raise
            torn.append(at)
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
