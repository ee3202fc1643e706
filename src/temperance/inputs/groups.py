"""Rows that belong together: ids of any kind -> group numbers, and every message about them.

The pixels of an image, the visits of a patient and the sentences of a document resemble each other. So N rows
in G groups tell less than N independent rows, and often little more than G.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.errors import InputError, InputWarning, warn_user
from temperance.inputs.validation import missing_rows

MIN_GROUPS = 2
MAX_VALUES = 1000  # of rows that are scored separately: a table that nobody reads has more


def check_groups(groups: Any, n_rows: int, *, at_least: int = MIN_GROUPS) -> NDArray[np.intp]:
    """Return each row's group as a number, counted from 0; ids can be numbers or text.

    Examples
    --------
    >>> check_groups(["anna", "ben", "anna"], 3).tolist()
    [0, 1, 0]
    """
    different, codes = _numbered(
        groups,
        n_rows,
        "groups must have one id per row, the same for rows that belong together",
        "Give each of them an id of its own if they belong to no other row.",
    )
    if len(different) < at_least:
        raise InputError(
            f"groups must have at least {at_least} different ids; found {len(different)}. Leave groups out "
            "if the rows are independent."
        )
    return codes


def warn_of_shared_groups(fitted: Any, judged: Any) -> None:
    """Warn if rows of a fit and rows to evaluate it have ids in common; numbers can be counted in each."""
    ids = [set() if one is None else _texts(one) for one in (fitted, judged)]
    if shared := ids[0] & ids[1]:
        warn_user(
            InputWarning(
                f"groups of the test rows must be new; found {len(shared):,} of {len(ids[1]):,} ids in "
                f"the validation rows, such as {min(shared)!r}.",
                "Scores are then about groups that the fit has seen: leave them out of one of the sets.",
            )
        )


def _texts(ids: Any) -> set[str]:
    return {one for one in np.asarray(ids).ravel().tolist() if isinstance(one, str)}


def check_by(by: Any, n_rows: int) -> tuple[list[str], NDArray[np.intp]]:
    """Return the different values by which rows are scored separately, and the number of each row's value.

    Examples
    --------
    >>> names, codes = check_by(["north", "south", "north"], 3)
    >>> names, codes.tolist()
    (['north', 'south'], [0, 1, 0])
    """
    wanted = "by must have one value per row, such as the hospital"
    advice = "Give them a value such as unknown, or drop these rows."
    different, codes = _numbered(by, n_rows, wanted, advice)
    if not 2 <= len(different) <= MAX_VALUES:
        advice = "Cut numbers into ranges first." if len(different) > MAX_VALUES else "Leave it out."
        raise InputError(
            f"{wanted}, from 2 to {MAX_VALUES:,} different ones; found {len(different):,}. {advice}"
        )
    return [str(one) for one in different.tolist()], codes


def _numbered(given: Any, n_rows: int, wanted: str, advice: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different ids and the number of each row's; raise with `wanted` if some are missing."""
    ids = np.asarray(given)
    if ids.shape != (n_rows,):
        raise InputError(f"{wanted}; found shape {ids.shape} for {n_rows} rows.")
    missing = missing_rows(ids)
    if missing.size:
        raise InputError(f"{wanted}; found rows without one", rows=missing, advice=advice)
    ids = ids.astype(str) if ids.dtype.kind == "O" else ids
    different, codes = np.unique(ids, return_inverse=True)
    return different, codes.reshape(-1)


def groups_of_axes(leading: tuple[int, ...], *, at_least: int = MIN_GROUPS) -> NDArray[np.intp] | None:
    """Return the groups of rows that are pixels or tokens: one per entry of the first axis.

    `leading` is the shape of the logits without the axis of the classes. Rows of a single image or text have
    no groups.
    """
    if len(leading) < 2 or leading[0] < at_least:
        return None
    return np.repeat(np.arange(leading[0]), int(np.prod(leading[1:])))
