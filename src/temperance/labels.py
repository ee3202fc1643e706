"""Labels of any kind -> the columns of their classes, and every message about them.

A label is the index of a column, or the name of a class where the columns have names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.errors import InputError, Remedy

MOST_LISTED = 6
"""Names that a message lists."""


def check_labels(
    labels: ArrayLike, n_rows: int, n_classes: int, names: Sequence[str] | None = None
) -> NDArray[np.intp]:
    """Return the column of each row's label: an index from 0 to n_classes - 1, or one of the class names."""
    array = np.asarray(labels)
    wanted = f"labels must be integer column indices from 0 to {n_classes - 1}, one for each row"
    if problem := _problem_with_shape(array, n_rows):
        raise InputError(f"{wanted}; found {problem}")
    if _is_text(array):
        return _named_columns(array, names)
    if array.dtype.kind == "f":
        raise InputError(
            f"{wanted}; found {array.dtype}. If they are whole numbers, pass labels.astype(int)."
        )
    if array.dtype.kind not in "iub":
        raise InputError(f"{wanted}; found {array.dtype} such as {str(array.flat[0])!r}.")
    if names is not None and _are_other_numbers(names):
        return _named_columns(array, names)
    outside = np.flatnonzero((array < 0) | (array >= n_classes))
    if outside.size:
        raise InputError(
            f"{wanted}; found other numbers, such as {int(array[outside[0]])},",
            rows=outside,
            advice="Drop the rows without a known class, or check that labels and columns match.",
        )
    return array.astype(np.intp, copy=False)


def _problem_with_shape(array: NDArray[Any], n_rows: int) -> str:
    """Return what is wrong with the shape, and what to do; nothing if all is well."""
    if array.ndim == 2 and array.shape[1] == 1:
        return f"shape {array.shape}. Pass labels.ravel()."
    if array.ndim == 2:
        return f"shape {array.shape}, like one-hot rows. Pass labels.argmax(axis=1)."
    if array.ndim != 1:
        return f"{array.ndim} dimensions."
    if len(array) != n_rows:
        return f"{len(array)} labels for {n_rows} rows. Check that they match."
    return ""


def _is_text(array: NDArray[Any]) -> bool:
    """Say whether the labels are names: text, or objects of which the first is text."""
    return array.dtype.kind in "UT" or (
        array.dtype.kind == "O" and array.size > 0 and isinstance(array.flat[0], str)
    )


def _are_other_numbers(names: Sequence[str]) -> bool:
    """Say whether the names are whole numbers, and not those of the columns: 3, 5, 7."""
    numbers = [str(place) for place in range(len(names))]
    return all(name.removeprefix("-").isdecimal() for name in names) and list(names) != numbers


def _named_columns(array: NDArray[Any], names: Sequence[str] | None) -> NDArray[np.intp]:
    different, inverse = np.unique(array.astype(str), return_inverse=True)
    if names is None:
        # Which of them is whose column, only the user knows: no order is proposed.
        raise InputError(
            f"labels that are names, {_listed(different.tolist())}, need the names of the columns in their "
            "order, which the logits do not carry.",
            remedy=Remedy("classes", ("NAMES",)),
        )
    places = {name: place for place, name in enumerate(names)}
    columns = np.array([places.get(label, -1) for label in different.tolist()], np.intp)[inverse]
    unknown = np.flatnonzero(columns < 0)
    if unknown.size:
        raise InputError(
            f"every label must be the name of a class: {_listed(names)}; found {str(array[unknown[0]])!r}",
            rows=unknown,
            advice="Correct the names, or give those of the columns in their order.",
        )
    return columns


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:MOST_LISTED]))
    return f"{shown}, ... ({len(names)} in all)" if len(names) > MOST_LISTED else shown
