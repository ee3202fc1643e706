"""Labels of any kind -> column indices, and every message about them.

A label is the index of a column, or a class name if the columns have names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.errors import InputError, Remedy, excerpt, listed, on_one_line
from temperance.inputs.validation import check_number

MAX_INDEX = 2**53  # of a class; above it a float is not an exact integer
MARK_CLASSES = ("incorrect", "correct")
"""The classes of answers that were marked."""
_MARKS = {"incorrect": 0, "wrong": 0, "no": 0, "false": 0, "correct": 1, "right": 1, "yes": 1, "true": 1}
Names = Sequence[str] | Sequence[int]
"""Class names in the order of the columns: text or whole numbers."""


def check_labels(
    labels: ArrayLike, n_rows: int, n_classes: int, names: Names | None = None
) -> NDArray[np.intp]:
    """Return the column of each row's label: an index from 0 to n_classes - 1, or one of the class names.

    Whole numbers are indices, unless the names are whole numbers themselves: 3, 5 and 7, or 1.0 and 2.0. If
    only some names are, a number can mean two columns and raises an error. Floats, as for
    BCEWithLogitsLoss, must be whole numbers.
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
        wanted = "every label must be the name of a class"
        advice = "Correct the names, or pass the columns' names in their order."
        return _columns_of(array.astype(str), list(map(str, names)), wanted, advice)
    if array.dtype.kind == "f":
        broken = array[(array != np.trunc(array)) | (np.abs(array) >= MAX_INDEX)]
        if broken.size:
            raise InputError(
                f"{wanted}; found {array.dtype} such as {broken[0]:.4g}, like logits. Pass the logits first "
                "and the labels next."
            )
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise InputError(f"{wanted}; found {array.dtype} such as {str(array.flat[0])!r}.")
    numbers = [] if names is None else [_whole_number(name) for name in names]
    if None in numbers or not numbers or numbers == list(range(n_classes)):
        columns = _checked_indices(array, n_classes, wanted)
        twofold = [number for place, number in enumerate(numbers) if number not in (None, place)]
        doubtful = np.flatnonzero(np.isin(array, twofold))
        if doubtful.size:
            raise InputError(
                "labels must be text if only some class names are whole numbers; found "
                f"{int(array[doubtful[0]])}, which could be an index or a name,",
                rows=doubtful,
                advice="Pass the names as text.",
            )
        return columns
    wanted = "the class names are whole numbers, and labels must be among them"
    advice = "If the labels are column indices, leave these names out or number them from 0."
    return _columns_of(array, numbers, wanted, advice)


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


def _whole_number(name: str | int) -> int | None:
    """Return a name as a whole number, true as 1 and false as 0; None if it is not one."""
    try:
        number = float({"true": 1, "false": 0}.get(str(name).lower(), name))
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def check_classes(classes: Any, n_classes: int) -> Names:
    """Return the given names of the columns, checked."""
    wanted = f"classes must be a list of {n_classes} different names, one per column in their order"
    ordered = isinstance(classes, Iterable) and not isinstance(classes, (str, Set))
    names = [_plain_name(name) for name in classes] if ordered else []
    if not (all(isinstance(name, str) for name in names) or all(isinstance(name, int) for name in names)):
        raise InputError(f"{wanted}, all text or all whole numbers; found {listed(names)}.")
    if not ordered or len(set(names)) != n_classes or len(names) != n_classes:
        raise InputError(f"{wanted}; found {listed(names) if names else repr(classes)}.")
    return tuple(names)


def check_class(argument: str, value: Any, names: Names | None, n_classes: int) -> int:
    """Return the column of one class, given by its name if the columns have names, or by its column."""
    if names is not None and value in list(names):
        return list(names).index(value)
    if isinstance(value, str):
        if names is None:
            fact = f"{argument} must be a column from 0 to {n_classes - 1} where columns have no names"
            raise InputError(f"{fact}; found {value!r}.", advice="Pass the names of the columns as classes.")
        raise InputError(f"{argument} must be one of {listed(list(names))}; found {value!r}.")
    check_number(argument, value, f"from 0 to {n_classes - 1}", lambda k: 0 <= k < n_classes, whole=True)
    return int(value)


def class_in_words(column: int, names: Names | None) -> str:
    """Return the name of a class: "class 3" in a sentence, where "3" would be a number."""
    name = str(column if names is None else names[column])
    return f"class {name}" if name.isdecimal() else on_one_line(name)


def _plain_name(name: Any) -> Any:
    """Return a name as a Python string or integer; booleans become strings."""
    if isinstance(name, (str, bool, np.bool_)):
        return str(name)
    is_whole = isinstance(name, (np.integer, float, np.floating)) and float(name).is_integer()
    return int(name) if is_whole else name


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
    if array.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(array))
    else:
        missing = np.array([row for row, label in enumerate(array) if _is_missing(label)], np.intp)
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


def _is_missing(label: object) -> bool:
    if label is None or (isinstance(label, float) and label != label):
        return True
    return type(label).__name__ in ("NAType", "NaTType")  # pandas types; pandas might not be installed


def _checked_indices(array: NDArray[Any], n_classes: int, wanted: str) -> NDArray[np.intp]:
    outside = np.flatnonzero((array < 0) | (array >= n_classes))
    if not outside.size:
        return array.astype(np.intp, copy=False)
    if array.min() == 1 and array.max() == n_classes:
        raise InputError(
            f"{wanted}; found numbers from 1 to {n_classes}, as if counted from 1; subtract 1 from each. "
            "Pass labels - 1."
        )
    advice = "Drop the rows without a known class, or check that labels and columns match."
    if np.array_equal(np.unique(array), np.arange(-1, n_classes - 1)):
        advice = "If they are counted from -1, add 1 to each; if -1 marks rows without a class, drop these."
    fact = f"{wanted}; found other numbers, such as {int(array[outside[0]])},"
    raise InputError(fact, rows=outside, advice=advice)


def _columns_of(array: NDArray[Any], names: Sequence[object], wanted: str, advice: str) -> NDArray[np.intp]:
    """Return the place of each label among the names; `wanted` and `advice` are said if there is none."""
    places = {name: place for place, name in enumerate(names)}
    different, inverse = np.unique(array, return_inverse=True)
    columns = np.array([places.get(label, -1) for label in different.tolist()], np.intp)[inverse]
    unknown = np.flatnonzero(columns < 0)
    if unknown.size:
        found = excerpt(array[unknown[0]].item())
        raise InputError(f"{wanted}: {listed(names)}; found {found}", rows=unknown, advice=advice)
    return columns


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
