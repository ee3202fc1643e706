"""Which arrays of a file are meant.

A file has the keys `logits` or `probs`, and `labels`. A task file has two sets of rows: `logits_val` or
`probs_val`, `labels_val`, and the same with `_test`. An array under another name, or without one, is taken
if the caller says what it is.
"""

from __future__ import annotations

from pathlib import Path

from temperance.data.formats import open_members
from temperance.data.lazy_array import LazyArray, file_error
from temperance.validation import InputError

__all__ = ["KINDS", "PARTS", "choose_labels", "choose_part", "choose_scores", "parts_of"]

KINDS = ("logits", "probs")
PARTS = ("val", "test")


def parts_of(members: dict[str, LazyArray]) -> tuple[str, ...]:
    """Return which sets of rows a task file has."""
    return tuple(part for part in PARTS if any(f"{kind}_{part}" in members for kind in KINDS))


def _listed(members: dict[str, LazyArray]) -> str:
    return ", ".join(key or "an array without a name" for key in members)


def choose_part(path: Path, members: dict[str, LazyArray], part: str | None) -> str | None:
    """Return the part to read; None for a file that is not a task file."""
    there = parts_of(members)
    if part is not None and part not in there:
        has = (
            f"it has {' and '.join(there)}"
            if there
            else f"it is not a task file; it holds {_listed(members)}"
        )
        raise file_error(path, "", f"has no part {part!r}: {has}. Leave --part out, or choose another file.")
    if part is None and len(there) == 2 and not any(kind in members for kind in KINDS):
        raise file_error(path, "", "has two sets of rows, val and test. Say --part val or --part test.")
    if part is None and len(there) == 1 and not any(kind in members for kind in KINDS):
        return there[0]
    return part


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
        raise stored.file_error(
            f"holds {found}, and --input says {kind}. Leave --input out, or choose another file."
        )
    others = [stored for key, stored in members.items() if key != "labels"]
    if len(others) != 1:
        raise file_error(
            path, "", f"must have an array named logits or probs; it holds {_listed(members)}. Rename one."
        )
    if kind is None:
        under = f", under {others[0].key!r}," if others[0].key else ""
        raise InputError(
            f"{path} does not say whether it holds{under} logits or probabilities. "
            "Say --input logits or --input probs."
        )
    return kind, others[0]


def choose_labels(
    path: Path, members: dict[str, LazyArray], part: str | None, other: str | Path | None
) -> LazyArray:
    """Return where the labels are: in the file `other`, or beside the scores."""
    if other is not None:
        return _in_labels_file(Path(other), part)
    key = f"labels_{part}" if part else "labels"
    if key not in members:
        raise file_error(
            path, "", f"has no {key}; it holds {_listed(members)}. Name a file that has them: --labels FILE."
        )
    return members[key]


def _in_labels_file(path: Path, part: str | None) -> LazyArray:
    members = open_members(path)
    for key in (f"labels_{part}", "labels"):
        if key in members:
            return members[key]
    # In a .csv a number has no type, but for the column of labels; so this must be it by name.
    if len(members) == 1 and path.suffix.lower() != ".csv":
        return next(iter(members.values()))
    what = "a column named label" if path.suffix.lower() == ".csv" else "an array named labels"
    raise file_error(path, "", f"must have {what}; it holds {_listed(members)}. Rename it.")
