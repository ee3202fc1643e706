"""Labels of any kind -> column indices, and every message about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.errors import InputError, InputWarning, Remedy, excerpt, listed, warn_user
from temperance.inputs.names import Names, looked_up, resolve
from temperance.inputs.validation import missing_rows

ROWS_PER_CLASS = 20  # on average: of a class that rows like these have, some are labelled
MAX_INDEX = 2**53  # of a class; above it a float is not an exact integer
MARK_CLASSES = ("incorrect", "correct")
"""The classes of answers that were marked."""
_MARKS = {"incorrect": 0, "wrong": 0, "no": 0, "false": 0, "correct": 1, "right": 1, "yes": 1, "true": 1}


def check_labels(
    labels: ArrayLike, n_rows: int, n_classes: int, names: Names | None = None
) -> NDArray[np.intp]:
    """Return the column of each row's label: an index from 0 to n_classes - 1, or one of the class names.

    `names.resolve` tells which. Floats, as for BCEWithLogitsLoss, must be whole numbers.
    """
    array = np.asarray(labels)
    if array.shape == (n_rows, 1):  # as the head of a binary classifier
        array = array[:, 0]
    wanted = f"labels must be integer column indices from 0 to {n_classes - 1}, one per row"
    if array.shape != (n_rows,):
        raise InputError(f"{wanted}; found {_wrong_shape(array, n_rows)}")
    if array.dtype.kind in "fO":
        array = _without_objects(array)
    if array.dtype.kind in "UT":
        if names is None:
            raise _nameless(array, n_classes)
        array = array.astype(str)
    elif array.dtype.kind == "f":
        broken = array[(array != np.trunc(array)) | (np.abs(array) >= MAX_INDEX)]
        if broken.size:
            raise InputError(
                f"{wanted}; found {array.dtype} such as {broken[0]:.4g}, like logits. Pass the logits first "
                "and the labels next."
            )
        array = array.astype(np.int64)
    elif array.dtype.kind not in "iub":
        raise InputError(f"{wanted}; found {array.dtype} such as {str(array.flat[0])!r}.")
    columns = resolve("labels", array, names, n_classes)
    unknown = np.flatnonzero(columns < 0)
    if not unknown.size:
        return columns
    found = excerpt(array[unknown[0]].item())
    if array.dtype.kind in "UT":
        fact = f"every label must be the name of a class: {listed(map(str, names or ()))}; found {found}"
        advice = "Correct the names, or pass the columns' names in their order."
    elif (numbers := looked_up(names)) and None not in numbers:
        known = listed(numbers)
        fact = f"the class names are whole numbers, and labels must be among them: {known}; found {found}"
        advice = "If the labels are column indices, leave these names out or number them from 0."
    else:
        raise _outside(array, unknown, n_classes, wanted)
    raise InputError(fact, rows=unknown, advice=advice)


def check_label_counts(what: str, counts: NDArray[Any], names: Names | None) -> None:
    """Raise if a fit has labels of one class only; warn of a class without labels where rows are many."""
    total, known = float(counts.sum()), range(len(counts)) if names is None else names
    absent = [name for name, count in zip(known, counts, strict=True) if not count]
    if len(absent) == len(counts) - 1:
        only = known[int(np.argmax(counts))]
        raise InputError(
            f"{what} needs labels of at least two classes; found only {only!r}. Add rows of another class. "
            "Rows of one class can be evaluated and checked."
        )
    if absent and total >= ROWS_PER_CLASS * len(counts):
        fact = f"so many rows should have labels of every class; {listed(absent)} have none."
        warn_user(InputWarning(fact, "Add such rows, or drop the column of a class that does not occur."))


def from_marks(labels: NDArray[Any]) -> NDArray[Any]:
    """Return 1 where an answer was marked as correct, right, yes or true, and 0 for the opposites.

    Labels with other words, and numbers, are returned as they are.

    Examples
    --------
    >>> from_marks(np.array(["yes", "No", "right"])), from_marks(np.array(["good", "no"]))
    (array([1, 0, 1]), array(['good', 'no'], dtype='<U4'))
    """
    if labels.dtype.kind not in "UT":
        return labels
    different, inverse = np.unique(labels.astype(str), return_inverse=True)
    marks = [_MARKS.get(word.lower()) for word in different.tolist()]
    return labels if None in marks else np.array(marks, np.intp)[inverse]


def _wrong_shape(array: NDArray[Any], n_rows: int) -> str:
    """Say what is wrong with the shape, what a table probably is, and what to do."""
    if array.ndim == 1 or array.shape[1:] == (1,):
        return f"{len(array)} labels for {n_rows} rows. Check that they match."
    if array.ndim != 2:
        return f"{array.ndim} dimensions."
    if array.dtype.kind in "fiub" and not np.isin(array, (0, 1)).all():
        return (
            f"shape {array.shape}, like logits. Pass the logits of some rows first and their labels next, as "
            "in fit(logits, labels) and compare(val_logits, val_labels, test_logits, test_labels)."
        )
    if array.dtype.kind in "fiub" and (array.sum(axis=1) != 1).any():
        return (
            f"shape {array.shape}, where a row can have several true classes or none. This is a multi-label "
            "problem: calibrate each class as a separate binary problem, with logits[:, k] and labels[:, k]."
        )
    return f"shape {array.shape}, like one-hot rows. Pass labels.argmax(axis=1)."


def _without_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Return objects that are all text, or all whole numbers, as such an array.

    Raise if one of them is missing, or NaN.
    """
    missing = missing_rows(array)
    if missing.size:
        raise InputError(
            "every row must have a label; found missing ones", rows=missing, advice="Drop these rows."
        )
    for kinds, dtype in (((str,), str), ((bool, np.bool_), bool), ((int, np.integer), np.int64)):
        if array.dtype.kind == "O" and all(isinstance(label, kinds) for label in array):
            try:
                return array.astype(dtype)
            except OverflowError:  # too large to be the index of a column
                break
    return array


def _outside(array: NDArray[Any], outside: NDArray[np.intp], n_classes: int, wanted: str) -> InputError:
    """Return the error for whole numbers that are no columns."""
    different = np.unique(array)
    if different[0] == 1 and different[-1] == n_classes:
        return InputError(
            f"{wanted}; found numbers from 1 to {n_classes}, as if counted from 1; subtract 1 from each. "
            "Pass labels - 1."
        )
    if n_classes == 2 and different.tolist() == [-1, 1]:
        return InputError(
            f"{wanted}; found -1 and 1. If they are the names of the two classes, say so.",
            remedy=Remedy("classes", ([-1, 1],)),
        )
    advice = "Drop the rows without a known class, or check that labels and columns match."
    if np.array_equal(different, np.arange(-1, n_classes - 1)):
        advice = "If they are counted from -1, add 1 to each; if -1 marks rows without a class, drop these."
    fact = f"{wanted}; found other numbers, such as {int(array[outside[0]])},"
    return InputError(fact, rows=outside, advice=advice)


def _nameless(array: NDArray[Any], n_classes: int) -> InputError:
    """Return the error for labels that are names, if the names of the columns are unknown."""
    different = np.unique(array.astype(str)).tolist()
    if all(label.isdecimal() for label in different):
        return InputError(
            f"labels must be integer column indices or names of classes; found text such as "
            f"{different[0]!r}. If they are column indices, pass labels.astype(int)."
        )
    if len(different) > n_classes:
        return InputError(
            f"labels must name {n_classes} classes at most, one per column; found {len(different)} "
            f"names: {listed(different)}. Check that labels and columns match."
        )
    if set(map(str.lower, different)) <= _MARKS.keys() and n_classes == len(different) == 2:
        proposed = sorted(different, key=lambda word: _MARKS[word.lower()])
    else:
        proposed = ["FIRST", "SECOND", "..."]  # only the user knows the order of the columns
    return InputError(
        f"labels that are names, {listed(different)}, need the names of the {n_classes} columns in their "
        "order, which are not known.",
        remedy=Remedy("classes", (proposed,)),
    )
