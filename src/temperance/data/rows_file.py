"""A file of logits or probabilities, with its labels: what the commands read.

Which keys it has is in keys.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.containers import logits_from_probs
from temperance.data.formats import KINDS, open_members
from temperance.data.formats.columns import ColumnChoice
from temperance.data.keys import PARTS, choose_labels, choose_part, choose_scores, parts_of
from temperance.data.lazy_array import FILL_BYTES, LazyArray
from temperance.errors import rows_from
from temperance.files import filled_array
from temperance.labels import check_labels
from temperance.validation import check_choice


@dataclass(frozen=True)
class RowFile:
    """Rows of logits or probabilities in a file, read when they are asked for, and their labels."""

    path: Path
    key: str
    kind: str
    labels: NDArray[np.intp] | None
    stored: LazyArray = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, K), or (N,) for a binary classifier with one score."""
        return self.stored.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the logits: whole numbers become float64."""
        return self.stored.dtype if self.stored.dtype.kind == "f" else np.dtype(np.float64)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of a table's columns, where they are not numbered; None where the file has none."""
        return self.stored.class_names

    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield what is stored, in order, `rows` rows at a time, the last time what is left."""
        return self.stored.blocks(rows)

    def array(self) -> NDArray[Any]:
        """Return what is stored as a whole: a memory map where the format allows it."""
        return self.stored.array()

    def logit_blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield logits, in order and as `blocks` does; of probabilities their logarithms."""
        start = 0
        for block in self.blocks(rows):
            with self.stored.naming_file(), rows_from(start):
                logits = logits_from_probs(block) if self.kind == "probs" else block
            yield logits.astype(self.dtype, copy=False)
            start += len(block)

    def logits(self) -> NDArray[Any]:
        """Return all logits; those of probabilities are computed block by block into scratch space."""
        if self.kind == "logits" and self.stored.dtype.kind == "f":
            return self.array()
        row_bytes = self.dtype.itemsize * (self.shape[1] if len(self.shape) == 2 else 1)
        return filled_array(self.shape, self.dtype, self.logit_blocks(max(1, FILL_BYTES // row_bytes)))


def open_rows(
    path: str | Path,
    *,
    part: str | None = None,
    kind: str | None = None,
    labels: str | Path | None = None,
    need_labels: bool = True,
    length_normalised: bool = False,
) -> RowFile:
    """Open a file of logits or probabilities; nothing but the labels is read.

    Parameters
    ----------
    path : path
        Of a format in `temperance.data.formats.FORMATS`, such as .npz, .csv, .parquet, .pt or .jsonl.
    part : {"val", "test"}, optional
        Which rows of a task file.
    kind : {"logits", "probs"}, optional
        What the file holds, where its keys do not say it or say both.
    labels : path, optional
        Another file with the labels.
    need_labels : bool
        Whether missing labels are an error. If False, those of `path` are not even looked at, as they may
        be unknown; those of a file given as `labels` are read all the same.
    length_normalised : bool
        Divide the log-likelihoods in samples of lm-evaluation-harness by the characters of the answers.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.savez(f"{folder.name}/val.npz", logits=np.zeros((4, 3)), labels=[0, 1, 2, 0])
    >>> rows = open_rows(f"{folder.name}/val.npz")
    >>> rows.kind, rows.shape, rows.labels
    ('logits', (4, 3), array([0, 1, 2, 0]))
    >>> [len(block) for block in rows.blocks(3)]
    [3, 1]
    >>> folder.cleanup()
    """
    for name, value, choices in (("part", part, PARTS), ("kind", kind, KINDS)):
        if value is not None:
            check_choice(name, value, choices)
    path = Path(path)
    members = open_members(path, ColumnChoice(length_normalised=length_normalised))
    part = choose_part(path, members, part)
    found, stored = choose_scores(path, members, part, kind)
    _check_scores(stored, found)
    asked = need_labels or labels is not None
    columns = None
    if asked:
        columns = _read_labels(choose_labels(path, members, part, labels), stored.shape, stored.class_names)
    return RowFile(path, stored.key, found, columns, stored)


def parts(path: str | Path) -> tuple[str, ...]:
    """Return which sets of rows a task file has, as ("val", "test"); () if it is not one."""
    return parts_of(open_members(path))


def _check_scores(stored: LazyArray, kind: str) -> None:
    stored.check_numbers()
    shape = stored.shape
    wanted = f"{kind} must be an (N, K) array, a row for each prediction and a column for each class"
    advice = ""
    if len(shape) > 2:
        advice = "Put the classes last and save reshape(-1, K)."
    elif len(shape) == 2 and shape[1] < 2:
        advice = "For a binary classifier with one score save (N,), the score of the second class."
    elif shape[0] == 0:
        advice = "Save at least one row."
    if advice:
        raise stored.file_error(f"{wanted}; found shape {shape}. {advice}")


def _read_labels(
    stored: LazyArray, shape: tuple[int, ...], names: tuple[str, ...] | None
) -> NDArray[np.intp]:
    # Members of a zip archive need not be aligned; compiled loops need aligned labels.
    array = np.require(stored.labels(), requirements="A")
    with stored.naming_file():
        return check_labels(array, shape[0], shape[1] if len(shape) == 2 else 2, names)
