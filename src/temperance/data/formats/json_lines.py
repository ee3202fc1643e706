""".jsonl, .ndjson and their .gz: samples of lm-evaluation-harness (see harness.py), or a record for each row.

    {"logits": [0.1, 2.3], "label": 1}                  a list
    {"probs": {"cat": 0.2, "dog": 0.8}, "label": "dog"}   by the names of classes
    {"logit_0": 0.1, "logit_1": 2.3, "label": 1}        a table, see columns.py

The first record says which it is; every other one must be like it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats import harness
from temperance.data.formats.columns import Columns, group, not_numbers
from temperance.data.formats.json_records import Record, count, records, shown
from temperance.data.formats.label_cells import whole_number
from temperance.data.lazy_array import LazyArray, UnreadableArray, file_error
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy

_OTHER_LABELS = {str: "the name of a class", bool: "true or false"}
"""Labels that are not numbers, by their type: a file has only one."""


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays that the records form."""
    first = next(records(path), None)
    if first is None:
        raise file_error(path, "must have a record on each line; found blank lines only. Save it again.")
    if harness.is_sample(first):
        return harness.members(path, choice)
    if choice.length_normalised:
        raise file_error(
            path,
            "must be samples of lm-evaluation-harness to be normalised by the length of the answers; "
            f"found records with {', '.join(list(first.fields)[:8])}.",
            remedy=Remedy("length_normalised"),
        )
    n_rows = count(path)
    groups = group(path, list(first.fields), choice)
    return {key: _stored(path, key, columns, first, n_rows) for key, columns in groups.items()}


def _stored(path: Path, key: str, columns: Columns, first: Record, n_rows: int) -> LazyArray:
    names = columns.names
    values = [first.fields[name] for name in names]
    if key in ("labels", "ids"):
        return _Labels(path, names[0], n_rows, type(values[0]), key=key)
    if len(names) == 1 and isinstance(values[0], dict):
        return _Scores(path, key, (n_rows, len(values[0])), names, tuple(values[0]), by_class=True)
    if len(names) == 1 and isinstance(values[0], list):
        return _Scores(path, key, (n_rows, len(values[0])), names, None)
    wrong = [name for name in names if not _are_numbers([first.fields[name]])]
    if wrong:
        return UnreadableArray(path, key, _fault_in_first(path, key, columns, first, wrong))
    shape = (n_rows,) if columns.flat else (n_rows, len(names))
    scores = _Scores(path, key, shape, names, columns.class_names)
    scores.columns = names
    return scores


def _fault_in_first(path: Path, key: str, columns: Columns, first: Record, wrong: list[str]) -> InputError:
    found = shown(first.fields[wrong[0]])
    if columns.class_names == columns.names and all(isinstance(first.fields[name], str) for name in wrong):
        return not_numbers(path, key, columns, wrong, f"{found} in line {first.line}")
    return first.error(
        f"{wrong[0]!r} must hold a number; found {found}. Name the scores logits or probs, so that other "
        "fields are ignored."
    )


def _are_numbers(values: list[Any]) -> bool:
    """Say whether all are numbers and not NaN; a file has millions, so the loops are in C."""
    try:
        return {*map(type, values)} <= {int, float} and not any(map(math.isnan, values))
    except OverflowError:  # an integer beyond the range of floats
        return False


class _Scores(LazyArray):
    """The scores of each record: some of its fields, or one field with a list or with an object."""

    def __init__(
        self,
        path: Path,
        key: str,
        shape: tuple[int, ...],
        names: tuple[str, ...],
        class_names: tuple[str, ...] | None,
        *,
        by_class: bool = False,
    ) -> None:
        super().__init__(path, key, shape, np.dtype(np.float64))
        self.class_names = class_names
        self._names = names
        self._by_class = by_class

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        # Only the numbers of a block are kept: a record may have many other fields.
        every = (self._row(record) for record in records(self.path))
        while block := list(islice(every, rows)):
            yield np.array(block, self.dtype).reshape(len(block), *self.shape[1:])

    def _row(self, record: Record) -> list[Any]:
        values = [record.field(name) for name in self._names]
        if self._by_class:
            values = self._in_order(record, values[0])
        elif len(self._names) == 1 and len(self.shape) == 2:
            values = self._listed(record, values[0])
        if not _are_numbers(values):
            bad = next(value for value in values if not _are_numbers([value]))
            what = self.key or "every field except the label"
            raise record.error(f"{what} must hold numbers in the range of floats; found {shown(bad)}.")
        return values

    def _in_order(self, record: Record, scores: Any) -> list[Any]:
        assert self.class_names is not None  # an object has them
        if not isinstance(scores, dict) or scores.keys() != set(self.class_names):
            raise record.error(
                f"{self._names[0]!r} must have a number for each class that the first record names, "
                f"{', '.join(map(repr, self.class_names[:6]))}; found {shown(scores)}."
            )
        return [scores[name] for name in self.class_names]

    def _listed(self, record: Record, scores: Any) -> list[Any]:
        if not isinstance(scores, list) or len(scores) != self.shape[1]:
            found = f"{len(scores)}" if isinstance(scores, list) else shown(scores)
            raise record.error(
                f"{self._names[0]!r} must be a list of {self.shape[1]} numbers, as in the first record; "
                f"found {found}. Write one number for each class, and -Infinity for an impossible class."
            )
        return scores


class _Labels(LazyArray):
    """The label of each record: the index of a class, its name, or whether it is the second of two."""

    def __init__(self, path: Path, name: str, n_rows: int, first: type, *, key: str) -> None:
        kind = first if first in _OTHER_LABELS else int
        super().__init__(
            path, key, (n_rows,), np.dtype("U1" if kind is str else "?" if kind is bool else "i8")
        )
        self.columns = (name,)
        self._name = name
        self._kind = kind

    def labels(self) -> NDArray[Any]:
        """Return all labels; the width of text is known only at the end."""
        if self._kind is not str:
            return self.array()
        return np.array([self._label(record) for record in records(self.path)], dtype=str)

    def _blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        every = (self._label(record) for record in records(self.path))
        while block := list(islice(every, rows)):
            yield np.array(block, self.dtype)

    def _label(self, record: Record) -> Any:
        label = record.field(self._name)
        if self._kind in _OTHER_LABELS and type(label) is self._kind:
            return label
        # JSON has one kind of number: 3.0 is the label 3.
        number = whole_number(label) if self._kind is int else None
        if number is not None:
            return number
        wanted = _OTHER_LABELS.get(self._kind, "the index of a class, a whole number")
        raise record.error(f"{self._name!r} must be {wanted}, as in the first record; found {shown(label)}.")
