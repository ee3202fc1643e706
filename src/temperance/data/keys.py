"""The role of each array in a file.

A file has the keys `logits` or `probs`, and `labels`. A task file has two sets of rows: `logits_val` or
`probs_val`, `labels_val`, and the same with `_test`. An array with another name, or without one, is used if
the caller says what it is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from temperance.data.formats import ARRAYS, format_of, open_members
from temperance.data.lazy_array import LazyArray, file_error
from temperance.data.read_options import KINDS, PARTS, ReadOptions
from temperance.errors import Remedy

CLASS_KEYS = ("classes", "class_names")
MARK_KEY = "calibrated_by"
_BESIDE_SCORES = ("labels", "ids", MARK_KEY, *CLASS_KEYS)


def parts_of(members: dict[str, LazyArray]) -> tuple[str, ...]:
    """Return which sets of rows a task file has."""
    return tuple(part for part in PARTS if any(f"{kind}_{part}" in members for kind in KINDS))


def _listed(members: dict[str, LazyArray]) -> str:
    return ", ".join(key or "an array without a name" for key in members)


def choose_part(path: Path, members: dict[str, LazyArray], options: ReadOptions) -> str | None:
    """Return the part to read; None for a file that is not a task file."""
    there = parts_of(members)
    part = options.part or (options.default_part if options.default_part in there else None)
    if part is not None and part not in there:
        has = " and ".join(there) or f"{_listed(members)}: it is not a task file"
        raise file_error(path, f"must have the part {part!r}; found {has}.", remedy=Remedy("part"))
    if part is not None or not there or any(kind in members for kind in KINDS):
        return part
    if len(there) == 2:
        raise file_error(path, "has two sets of rows, val and test.", remedy=Remedy("part", PARTS))
    return there[0]


def choose_scores(
    path: Path, members: dict[str, LazyArray], part: str | None, kind: str | None
) -> tuple[str, LazyArray]:
    """Return whether logits or probabilities, and where."""
    suffix = f"_{part}" if part else ""
    named = {kind: members[kind + suffix] for kind in KINDS if kind + suffix in members}
    if kind in named:
        return kind, named[kind]
    if named:
        (found, stored), *_ = named.items()  # logits first
        if kind is None:
            return found, stored
        raise stored.file_error(f"must hold {kind}, as requested; found {found}.", Remedy("kind"))
    others = [stored for key, stored in members.items() if key not in _BESIDE_SCORES]
    if len(others) != 1:
        raise file_error(
            path, f"must have an array named logits or probs; found {_listed(members)}. Rename one."
        )
    others[0].check_numbers()  # arrays that cannot be read are not listed
    if kind is None:
        sentence = "does not say whether it holds logits or probabilities."
        raise others[0].file_error(sentence, Remedy("kind", KINDS))
    return kind, others[0]


def find_labels(
    path: Path, members: dict[str, LazyArray], part: str | None, options: ReadOptions, *, required: bool
) -> LazyArray | None:
    """Return where the labels are, in the file of the scores or in another; None if there are none."""
    if options.labels is not None:
        return _in_labels_file(Path(options.labels), part, ReadOptions(label_column=options.label_column))
    key = f"labels_{part}" if part else "labels"
    if key in members or not required:
        return members.get(key)
    if _is_table(path):
        return _labels_of_table(path, options)  # an error, which lists the columns of the table
    raise file_error(path, f"must have {key}; found {_listed(members)}.", remedy=Remedy("labels", ("FILE",)))


def class_names(members: dict[str, LazyArray], n_classes: int) -> tuple[str, ...] | None:
    """Return the class names in a file of arrays.

    Numbers of another shape, such as the number of classes, are not names.
    """
    for key in CLASS_KEYS:
        array = members.get(key)
        if array is not None and (array.dtype.kind in "UO" or array.shape == (n_classes,)):
            return tuple(array.labels().astype(str).ravel().tolist())
    return None


def mark(members: dict[str, LazyArray], scores: LazyArray) -> str | None:
    """Return the calibrator that made the probabilities, if the file names it."""
    if MARK_KEY in members and members[MARK_KEY].dtype.kind == "U":
        return " ".join(members[MARK_KEY].labels().ravel().tolist())
    return scores.calibrated_by


def _in_labels_file(path: Path, part: str | None, options: ReadOptions) -> LazyArray:
    if _is_table(path):
        return _labels_of_table(path, options)
    members = open_members(path, options)
    for key in (f"labels_{part}", "labels"):
        if key in members:
            return members[key]
    if len(members) == 1:
        return next(iter(members.values()))
    raise file_error(path, f"must have an array named labels; found {_listed(members)}. Rename it.")


def _is_table(path: Path) -> bool:
    return format_of(path) not in ARRAYS


def _labels_of_table(path: Path, options: ReadOptions) -> LazyArray:
    """Return the label column, whatever others hold; the error for a table without one lists them all.

    Numbers in a table have no type, so a single column holds labels only if its name says so.
    """
    return open_members(path, replace(options, labels_only=True))["labels"]
