"""Which columns of a table form which array.

    label, target, y, class, truth, ... (see LABEL_NAMES)      labels, or the column that the user names
    a first column without a name, or the one the user names   ids
    logit_0 ... logit_{K-1}, logits_*    logits (N, K);     logit, logits      logits (N,) of two classes
    logit_1 alone                        logits (N,) of two classes
    logit_cat, logit_dog, ...            logits (N, K) of classes with names
    prob_0 ... prob_{K-1}, probs_*       probs, in the same ways
    confidence beside correct; prob_correct alone    probs (N,) of the classes incorrect and correct: how sure
                                         an answer was, and whether it was correct
    groups, or the column that the user names    groups
    the column that the user names       by, whose values are scored separately
    calibrated_by                        the calibrator that made the probabilities

A table without any logit or prob column has one array without a name: all columns except the labels and the
ids, each named after its class. If there are logit or prob columns, other columns are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from temperance.data.read_options import MARK_KEY, ReadOptions
from temperance.errors import MAX_LISTED, InputError, Remedy, excerpt, file_error, listed
from temperance.inputs.labels import MARK_CLASSES, MAX_INDEX
from temperance.inputs.names import STEMS, after_stem, places_of

BESIDE_SCORES = ("labels", "ids", "groups", "by", MARK_KEY)
"""Keys of columns that can hold text."""
LABEL_NAMES = ("label", "labels", "target", "y", "y_true", "class", "truth", "true_label", "ground_truth")
CONFIDENCE, MARK, PROB_CORRECT = "confidence", "correct", "prob_correct"
"""Columns of answers: how sure each was, whether it was correct; and the first under a name of its own."""
NAMELESS = ("", "Unnamed: 0", "__index_level_0__")
"""Names of a data frame's index in a file: as written, and as pandas reads it."""
MAX_ARGUMENT = 200  # characters of names that are shown in an argument
MAX_DIGITS = 9  # digits of the number of a class; with more, it is a name


@dataclass(frozen=True)
class Columns:
    """The columns of an array, in order; a single column can be a one-dimensional array."""

    names: tuple[str, ...]
    flat: bool
    class_names: tuple[str, ...] | None = None
    """The classes, if the columns are named after them; None if they are numbered."""
    others: tuple[str, ...] = ()
    """Arguments that might have to name one of these columns, the likeliest first."""


def group(
    path: Path, names: list[str], choice: ReadOptions, index: tuple[str, ...] = ()
) -> dict[str, Columns]:
    """Return the columns of each array by its key; `index` are those that the file marks as its index."""
    twice = sorted(name for name, times in Counter(names).items() if name and times > 1)
    if twice:
        raise file_error(path, f"must name each column once; found {listed(twice)} more than once.")
    answered = _confidence_of_answers(names, choice)
    marks = [name for name in names if answered and name.lower() == MARK and choice.label_column is None]
    label = marks[0] if len(marks) == 1 else _label(path, names, choice)
    if choice.labels_only:
        return {"labels": Columns((_required(path, names, label, "label_column"),), flat=True)}
    identifier = index[0] if len(index) == 1 else None
    if choice.id_column is not None:
        identifier = _required(path, names, choice.id_column, "id_column")
    elif names and names[0] in NAMELESS and not index:
        identifier = names[0]
    if label is not None and label == identifier:
        raise file_error(path, f"labels and ids must be two columns; found {excerpt(label)} for both.")
    found: dict[str, Columns] = {}
    if label is not None:
        found["labels"] = Columns((label,), flat=True)
    if identifier is not None:
        found["ids"] = Columns((identifier,), flat=True)
    grouping = choice.group_column or ("groups" if "groups" in names else None)
    for key, name, argument in (("groups", grouping, "group_column"), ("by", choice.by, "by")):
        if name is not None:
            found[key] = Columns((_required(path, names, name, argument),), flat=True)
    if MARK_KEY in names:
        found[MARK_KEY] = Columns((MARK_KEY,), flat=True)
    taken = {label, identifier, grouping, choice.by, MARK_KEY, *index}
    free = [name for name in names if name not in taken]
    if answered is not None:
        return found | {"probs": Columns((answered,), flat=True, class_names=choice.classes or MARK_CLASSES)}
    for key, stem in STEMS.items():
        if columns := _scores(path, stem, free, choice):
            found[key] = chosen(path, columns, choice)
    if not found.keys() & STEMS.keys() and free:
        scores = _unnamed_scores(path, names, free, identifier, choice)
        absent = {"label_column": label is None and choice.labels is None, "id_column": identifier is None}
        if choice.classes is None:
            scores = replace(scores, others=tuple(name for name, is_absent in absent.items() if is_absent))
        found[""] = scores
    return found


def _confidence_of_answers(names: list[str], choice: ReadOptions) -> str | None:
    """Return the column of the probabilities that answers are correct, if the only scores are such.

    A confidence beside other labels can be about another class in each row.
    """
    scores = [name for name in names if re.fullmatch(r"(logit|prob)s?(_.+)?", name)]
    if scores:
        return scores[0] if scores == [PROB_CORRECT] else None
    found = [name for name in names if name.lower() == CONFIDENCE]
    said = choice.label_column or next((name for name in names if name.lower() == MARK), "")
    is_marked = said.lower() == MARK or MARK_CLASSES in (choice.classes, choice.default_classes)
    return found[0] if len(found) == 1 and is_marked and choice.kind != "logits" else None


def _label(path: Path, names: list[str], choice: ReadOptions) -> str | None:
    if choice.label_column is not None:
        return _required(path, names, choice.label_column, "label_column")
    labels = [name for name in names if name.lower() in LABEL_NAMES and name != choice.id_column]
    if len(labels) > 1:
        raise file_error(
            path,
            f"must have one column of labels; found {' and '.join(map(repr, labels))}.",
            remedy=Remedy("label_column", tuple(labels)),
        )
    return labels[0] if labels else None


def _required(path: Path, names: list[str], name: str | None, argument: str) -> str:
    """Return the name of a column that must be there; None stands for a column of labels of any name."""
    if name is None or name not in names:
        what = "a column of labels" if name is None else f"the column {name!r}"
        raise file_error(
            path, f"must have {what}; found {listed(names)}.", remedy=Remedy(argument, ("NAME",))
        )
    return name


def _scores(path: Path, stem: str, names: list[str], choice: ReadOptions) -> Columns | None:
    """Return the columns named as scores: by number, else by class, else a single column."""
    by_class: dict[str, str] = {}
    for name in names:
        if (one := after_stem(name, stem)) is not None:
            _check_other(path, by_class.setdefault(one, name), name)
    numbers = [one for one in by_class if re.fullmatch(rf"-?[0-9]{{1,{MAX_DIGITS}}}", one)]
    counts_from_0 = min(map(int, numbers), default=-1) == 0
    if len(numbers) == len(by_class) and counts_from_0:
        return _numbered(path, stem, by_class)
    if 0 < len(numbers) < len(by_class) and choice.classes is None:
        word = next(name for one, name in by_class.items() if one not in numbers)
        choices = [numbers, list(by_class)] if len(numbers) > 1 else [list(by_class)]  # a class is not alone
        raise file_error(
            path,
            f"columns of {stem}s must all have numbers, or all names; "
            f"found {excerpt(by_class[numbers[0]])} and {excerpt(word)}.",
            remedy=Remedy("classes", tuple(map(joined, choices))),
        )
    if len(by_class) == 1:  # the second of two classes, which is numbered from 0 or has a name
        (name,) = by_class
        return Columns(tuple(by_class.values()), True, None if name == "1" else (f"not {name}", name))
    if by_class:  # numbers that do not begin with 0 are names, as 1, 2 or -1, 0, 1
        return Columns(tuple(by_class.values()), False, tuple(by_class))
    single = [name for name in names if name in (stem, f"{stem}s")]
    return Columns((single[0],), flat=True) if single else None


def _numbered(path: Path, stem: str, by_number: dict[str, str]) -> Columns:
    numbered: dict[int, str] = {}
    for number, name in by_number.items():
        _check_other(path, numbered.setdefault(int(number), name), name)
    missing = [number for number in range(len(numbered)) if number not in numbered]
    if missing:
        raise file_error(
            path,
            f"must have columns {stem}_0 to {stem}_{{K-1}} for K classes; found {len(numbered)}, without "
            f"{stem}_{missing[0]}. Save one column per class.",
        )
    return Columns(tuple(numbered[number] for number in sorted(numbered)), flat=False)


def _check_other(path: Path, before: str, name: str) -> None:
    if before != name:
        raise file_error(path, f"columns {before!r} and {name!r} are the same. Drop one.")


def _unnamed_scores(
    path: Path, names: list[str], free: list[str], identifier: str | None, choice: ReadOptions
) -> Columns:
    """Return the class columns of a table without logit or prob columns: all that are left."""
    first = 1 if identifier == "" else 0  # ids without a name are in the first column
    if "" in names[first:] and not set(choice.classes or [""]) <= set(free) - {""}:
        at, named = names.index("", first) + 1, [name for name in free if name]
        what = f"every class column must have a name; column {at} has none. Name it, or drop it."
        raise file_error(path, what, remedy=Remedy("classes", (joined(named),)) if len(named) > 1 else None)
    doubtful = [name for name in free if name.lower() in LABEL_NAMES]
    if doubtful and choice.classes is None:
        rest = [name for name in free if name not in doubtful]
        raise file_error(
            path,
            f"column {doubtful[0]!r} might be a class, or labels that are not asked for.",
            remedy=Remedy("classes", (joined(rest), joined(free))),
        )
    several = len(free) > 1
    columns = Columns(tuple(free), not several, tuple(free) if several else None)
    return chosen(path, columns, choice)


def chosen(path: Path, columns: Columns, choice: ReadOptions) -> Columns:
    """Return the columns of the classes that the user names: by these names, or in the order of the file.

    If the user names none, and the columns are the known classes in another order, they are put in order.
    """
    numbered = columns.class_names is None
    own = [] if columns.flat else columns.class_names or [str(place) for place in range(len(columns.names))]
    classes = choice.classes
    if classes is None and choice.default_classes and set(choice.default_classes) == set(own):
        classes = choice.default_classes
    if classes is None:
        return columns
    places = places_of(own, classes, numbered=numbered, where=str(path))
    if places is not None:
        return replace(columns, names=tuple(columns.names[place] for place in places), class_names=classes)
    if not columns.flat:  # a single column can hold lists, so its cells determine the number of classes
        check_number_of_classes(path, len(columns.names), classes)
    return replace(columns, class_names=classes)


def check_number_of_classes(path: Path, n_classes: int, classes: Sequence[str]) -> None:
    """Raise unless every class has a different name."""
    different = len(set(classes))
    if len(classes) != n_classes or different != n_classes:
        found = f"{len(classes)}{f', {different} of them different' if different < len(classes) else ''}"
        raise file_error(path, f"classes must be {n_classes} different names, one per class; found {found}.")


def not_numbers(path: Path, key: str, columns: Columns, wrong: Sequence[str], found: str) -> InputError:
    """Return the error about columns of scores that hold no numbers, with advice."""
    fact = f"column {wrong[0]!r} must hold numbers; found {found}."
    if columns.names != columns.class_names:
        return file_error(path, f"{fact} Change it, or leave it out.", key)
    numbers = [name for name in columns.names if name not in wrong]
    classes = Remedy("classes", (joined(numbers),)) if len(numbers) > 1 else None
    ids = Remedy("id_column", (wrong[0],))
    if len(wrong) == 1 and "label_column" in columns.others:
        remedy = Remedy("label_column", (wrong[0],), ids if "id_column" in columns.others else classes)
        use = "holds the labels or names the rows" if remedy.instead is ids else "holds the labels"
        return file_error(path, f"{fact} If it {use}, say so.", key, remedy)
    if len(wrong) == 1 and "id_column" in columns.others:
        return file_error(path, f"{fact} If it names the rows, say so.", key, ids)
    if classes is None:
        advice = "Name a column of scores logit or prob, several logit_0, logit_1; others are ignored."
        return file_error(path, f"{fact} {advice}", key)
    return file_error(path, f"{fact} Say which columns are the classes.", key, classes)


def joined(names: Sequence[str]) -> str:
    """Return names as the argument `classes` takes them, or a placeholder.

    The placeholder is used for many names, and for a name that contains a comma.
    """
    plain = len(names) <= MAX_LISTED and not any("," in name for name in names)
    together = ",".join(names)
    return together if plain and len(together) <= MAX_ARGUMENT else "NAMES"


def whole_number(value: object) -> int | None:
    """Return an integral number as an integer, 3.0 as 3; None for anything else, such as True."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if abs(value) < MAX_INDEX and value == value // 1 else None
