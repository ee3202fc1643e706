"""Data frames of any package, without importing one: column names and numbers.

pandas, polars and pyarrow are recognised by their attributes. Numbered columns have no names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.errors import InputError, listed


def column_names(logits: Any) -> NDArray[np.object_] | None:
    """Return the names of a data frame's columns, if they are text."""
    given = getattr(logits, "column_names", None)  # of pyarrow, whose `columns` are the data
    names = list(getattr(logits, "columns", ()) if given is None else given)
    return np.array(names, object) if names and all(isinstance(name, str) for name in names) else None


def check_column_names(
    expected: Sequence[str] | NDArray[np.object_],
    logits: Any,
    *,
    argument: str = "logits",
    names: str = "cal.get_feature_names_out()",
) -> None:
    """Raise if the columns of a data frame, or their order, differ from those of the fit.

    The advice calls the frame by its `argument`, and names the expression that has the `names`.
    """
    found, wanted = column_names(logits), list(expected)
    if found is None or found.tolist() == wanted:
        return
    must = f"the columns must be those of the fit, in their order: {listed(wanted)}"
    missing = [name for name in wanted if name not in found]
    if not missing:
        other = "others among them" if len(found) > len(wanted) else "another order"
        chosen = f".select(list({names}))" if hasattr(logits, "column_names") else f"[list({names})]"
        raise InputError(f"{must}; found {other}: {listed(found.tolist())}. Pass {argument}{chosen}.")
    raise InputError(
        f"{must}; found {listed(found.tolist())}, without {listed(missing)}. If these are the same classes "
        "in the same order under other names, pass "
        f"np.asarray({argument}, float)."
    )


def numbers_of(frame: Any) -> Any:
    """Return an input for NumPy: for a frame of nullable or Arrow numbers, the numbers as floats.

    NumPy alone would convert these to objects. A missing number is NaN.
    """
    if not (hasattr(frame, "iloc") and hasattr(frame, "dtypes")):
        return frame
    types = list(np.atleast_1d(np.array(frame.dtypes, object)))
    if not any(hasattr(dtype, "na_value") for dtype in types):
        return frame
    all_numbers = all(dtype.kind in "fiub" for dtype in types)
    return frame.to_numpy(dtype=np.float64, na_value=np.nan) if all_numbers else frame
