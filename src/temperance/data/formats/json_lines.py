""".jsonl, .ndjson and their .gz, read line by line; every error names its line.

    {"logits": [0.1, 2.3], "label": 1}                  a list
    {"probs": {"cat": 0.2, "dog": 0.8}, "label": "dog"}   by the names of classes
    {"logit_0": 0.1, "logit_1": 2.3, "label": 1}        a table, see columns.py

The first record decides the form; all others must have the same form. Samples of lm-evaluation-harness are
read by harness.py.

The standard library reads them, so every installation can. pyarrow, whose streaming reader other formats use,
is an extra. Its errors name a row of a block instead of a line, it fails when an unused field changes its
type, and it accepts two objects on a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from temperance.data.formats.columns import BESIDE_SCORES, Columns, chosen, group, not_numbers, whole_number
from temperance.data.formats.compression import open_bytes
from temperance.data.lazy_array import TEXT, LazyArray, RecordArray, UnreadableArray
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, Remedy, excerpt, file_error, listed
from temperance.json_fields import unique_fields

_OTHER_LABELS = {str: "the name of a class", bool: "true or false"}
"""Labels that are not numbers, by type. A file has labels of one type only."""


@dataclass(frozen=True)
class Record:
    """The object of one line, numbered as in an editor."""

    path: Path
    line: int
    fields: dict[str, Any]

    def error(self, sentence: str, remedy: Remedy | None = None) -> InputError:
        """Return an error about this line."""
        return file_error(self.path, f"line {self.line}: {sentence}", remedy=remedy)

    def field(self, name: str) -> Any:
        """Return the value of a field that every line must have."""
        value = self.fields.get(name)
        if value is None:
            found = "null" if name in self.fields else f"only {listed(self.fields, str) or 'nothing'}"
            raise self.error(f"{name!r} must be on every line; found {found}. Complete or drop this line.")
        return value


def records(path: Path) -> Iterator[Record]:
    """Yield the object of each line that is not blank."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield Record(path, number, _parsed(path, number, line))


def first_record(path: Path) -> Record:
    """Return the object of the first line that is not blank."""
    first = next(records(path), None)
    if first is None:
        raise file_error(path, "has only blank lines; it must have one record per line. Save it again.")
    return first


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line, object_pairs_hook=unique_fields)
    except InputError as error:
        raise file_error(path, f"line {number}: {error}. Keep one of them.") from None
    except (ValueError, RecursionError):  # not UTF-8, not JSON, nested too deeply
        content = None
    if isinstance(content, dict):
        return content
    start = excerpt(line.decode("utf-8", "replace").strip())
    raise file_error(
        path,
        f"line {number} must be a JSON object, as every line of JSON Lines; found {start}. "
        "Write one object per line, as pandas does with to_json(path, orient='records', lines=True).",
    )


def shown(value: Any) -> str:
    """Return the beginning of a value as JSON, for a message."""
    return excerpt(value, partial(json.dumps, ensure_ascii=False))


def members(path: Path, choice: ReadOptions) -> dict[str, LazyArray]:
    """Return the arrays that the records form."""
    first = first_record(path)
    if choice.length_normalised:
        raise file_error(
            path,
            "must hold samples of lm-evaluation-harness to be normalised by the length of the answers; "
            f"found records with {listed(first.fields, str)}.",
            remedy=Remedy("length_normalised"),
        )
    with open_bytes(path) as file:
        n_rows = sum(not line.isspace() for line in file)
    groups = group(path, list(first.fields), choice)
    return {key: _stored(path, key, columns, first, n_rows, choice) for key, columns in groups.items()}


def _stored(
    path: Path, key: str, columns: Columns, first: Record, n_rows: int, choice: ReadOptions
) -> LazyArray:
    names, class_names = columns.names, columns.class_names
    values = [first.fields[name] for name in names]
    shape: tuple[int, ...] = (n_rows,) if columns.flat else (n_rows, len(names))
    read: Callable[[Record], Any] = partial(_row, key=key, names=names)
    dtype: Any = np.float64
    if key in BESIDE_SCORES:
        kind = type(values[0]) if type(values[0]) in _OTHER_LABELS else int
        read = partial(_label, name=names[0], kind=kind)
        dtype = {str: TEXT, bool: np.bool_, int: np.int64}[kind]
    elif len(names) == 1 and isinstance(values[0], dict):
        keys = tuple(values[0])
        used = chosen(path, Columns(keys, False, keys), choice)
        shape, class_names = (n_rows, len(used.names)), used.class_names
        read = partial(_row_by_class, key=key, name=names[0], keys=keys, used=used.names)
    elif len(names) == 1 and isinstance(values[0], list):
        shape, class_names = (n_rows, len(values[0])), None
        read = partial(_row_in_list, key=key, name=names[0], length=len(values[0]))
    elif wrong := [name for name in names if not _are_numbers([first.fields[name]])]:
        return UnreadableArray(path, key, _fault_in_first(path, key, columns, first, wrong))
    array = RecordArray(path, key, shape, dtype, partial(records, path), read)
    array.class_names = class_names
    array.columns = () if isinstance(values[0], (dict, list)) else names
    return array


def _fault_in_first(path: Path, key: str, columns: Columns, first: Record, wrong: list[str]) -> InputError:
    found = shown(first.fields[wrong[0]])
    if columns.class_names == columns.names and all(isinstance(first.fields[name], str) for name in wrong):
        return not_numbers(path, key, columns, wrong, f"{found} in line {first.line}")
    return first.error(
        f"{wrong[0]!r} must hold a number; found {found}. Name the scores logits or probs, so that other "
        "fields are ignored."
    )


def _are_numbers(values: list[Any]) -> bool:
    """Say whether all values are numbers other than NaN. A file has millions, so the loops are in C."""
    try:
        return {*map(type, values)} <= {int, float} and not any(map(math.isnan, values))
    except OverflowError:  # an integer beyond the range of floats
        return False


def _row(record: Record, key: str, names: Sequence[str]) -> list[Any]:
    """Return the scores in some fields of a record."""
    return _numbers(record, key, [record.field(name) for name in names])


def _row_by_class(
    record: Record, key: str, name: str, keys: tuple[str, ...], used: tuple[str, ...]
) -> list[Any]:
    """Return the scores in an object with one number per class."""
    scores = record.field(name)
    if not isinstance(scores, dict) or scores.keys() != set(keys):
        raise record.error(
            f"{name!r} must have one number per class of the first record, "
            f"{listed(keys)}; found {shown(scores)}."
        )
    return _numbers(record, key, [scores[one] for one in used])


def _row_in_list(record: Record, key: str, name: str, length: int) -> list[Any]:
    scores = record.field(name)
    if not isinstance(scores, list) or len(scores) != length:
        found = f"{len(scores)}" if isinstance(scores, list) else shown(scores)
        raise record.error(
            f"{name!r} must be a list of {length} numbers, as in the first record; found {found}. "
            "Write one number per class, and -Infinity for an impossible class."
        )
    return _numbers(record, key, scores)


def _numbers(record: Record, key: str, values: list[Any]) -> list[Any]:
    if not _are_numbers(values):
        bad = next(value for value in values if not _are_numbers([value]))
        what = key or "every field except the label"
        raise record.error(f"{what} must hold numbers in the range of floats; found {shown(bad)}.")
    return values


def _label(record: Record, name: str, kind: type) -> Any:
    """Return the label of a record: a class index, a class name, or true for the second of two classes."""
    label = record.field(name)
    if kind in _OTHER_LABELS and type(label) is kind:
        return label
    # JSON has one kind of number: 3.0 is the label 3.
    number = whole_number(label) if kind is int else None
    if number is not None:
        return number
    wanted = _OTHER_LABELS.get(kind, "the index of a class, a whole number")
    raise record.error(f"{name!r} must be {wanted}, as in the first record; found {shown(label)}.")
