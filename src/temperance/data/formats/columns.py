"""Which columns of a table form which array.

    label, labels                        labels
    logit_0 ... logit_{K-1}, logits_*    logits (N, K);     logit, logits      logits (N,) of two classes
    prob_0 ... prob_{K-1}, probs_*       probs (N, K);      prob, probs        probs (N,) of class 1

A table without any logit or prob has one array without a name: all columns but the label. Beside named
ones, other columns (an identifier, say) are left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from temperance.data.lazy_array import file_error

STEMS = {"logits": "logit", "probs": "prob"}
_INDEX = "__index_level_0__"  # how pandas names the row index in a file


@dataclass(frozen=True)
class Columns:
    """The columns of an array, in order; a single one may stand for an array of one dimension."""

    names: tuple[str, ...]
    flat: bool
    class_names: tuple[str, ...] | None = None
    """The names, where they are those of the classes: where columns are not numbered."""


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a table the user has named: that of the labels, and that which identifies the rows.

    And whether log-likelihoods of answers are to be divided by the length of these.
    """

    label: str | None = None
    identifier: str | None = None
    length_normalised: bool = False


ANY_COLUMNS = ColumnChoice()


def group(path: Path, names: list[str], choice: ColumnChoice) -> dict[str, Columns]:
    """Return the columns of each array by its key."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise file_error(
            path, f"must name each column once; found {', '.join(map(repr, twice))} more than once."
        )
    found: dict[str, Columns] = {}
    labels = [name for name in names if name in ("label", "labels")]
    if len(labels) > 1:
        raise file_error(path, "must have one column of labels; found both 'label' and 'labels'. Drop one.")
    if labels:
        found["labels"] = Columns((labels[0],), flat=True)
    for key, stem in STEMS.items():
        if columns := _scores(path, stem, names):
            found[key] = columns
    others = tuple(name for name in names if name not in labels and name != _INDEX)
    if not found.keys() & STEMS.keys() and others:
        found[""] = Columns(others, True) if len(others) == 1 else Columns(others, False, others)
    return found


def _scores(path: Path, stem: str, names: list[str]) -> Columns | None:
    numbered: dict[int, str] = {}
    for name in names:
        if match := re.fullmatch(rf"{stem}s?_([0-9]+)", name):
            number = int(match[1])
            if number in numbered:
                raise file_error(path, f"columns {numbered[number]!r} and {name!r} are the same. Drop one.")
            numbered[number] = name
    missing = [number for number in range(len(numbered)) if number not in numbered]
    if missing:
        raise file_error(
            path,
            f"must have columns {stem}_0 to {stem}_{{K-1}} for K classes; it has {len(numbered)}, and "
            f"{stem}_{missing[0]} is not among them. Give one column for each class.",
        )
    if numbered:
        return Columns(tuple(numbered[number] for number in sorted(numbered)), flat=False)
    single = [name for name in names if name in (stem, f"{stem}s")]
    return Columns((single[0],), flat=True) if single else None
