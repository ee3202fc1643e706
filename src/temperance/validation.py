"""Every check of user input, and every message about it.

A message says what must hold, what was got, and what to do. All of them are `InputError`, a
`ValueError`, so that a caller can tell bad input from a fault of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.core.blocks import BFloat16, read_blocks
from temperance.core.links import TEMPERATURE_MAX, TEMPERATURE_MIN

if TYPE_CHECKING:
    from temperance.core.logit_rows import LogitRows

__all__ = [
    "InputError",
    "check_choice",
    "check_labels",
    "check_limits",
    "check_logits_shape",
    "check_number",
    "check_probabilities",
    "check_sample_weight",
    "check_seed",
    "check_temperatures",
    "check_unmasked",
    "counted_from",
    "inspector",
]

_LARGEST = 2.0**63  # beyond it NumPy has no whole number, and no option has a use
_SUM_TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-6}  # of a row of probabilities, by item size


class InputError(ValueError):
    """The input does not meet what the function asks for; the message says what to do."""


def counted_from(start: float) -> str:
    """Return the words that make the row of a message one of all rows; nan where nobody has counted them."""
    if np.isnan(start):
        return "in one of the parts, counted from its first row: "
    return f"in the rows from {start:.0f} on, counted from there: " if start else ""


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `choices`."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {listed}; got {value!r}.")


def check_number(
    name: str, value: Any, wanted: str, holds: Callable[[Any], bool], *, whole: bool = False
) -> None:
    """Raise unless `value` is a finite number (a whole one if asked) for which `holds`, as `wanted` says."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not (is_number and -_LARGEST < value < _LARGEST and holds(value)):
        raise InputError(f"{name} must be a {'whole number' if whole else 'number'} {wanted}; got {value!r}.")


def check_seed(name: str, value: object) -> None:
    """Raise unless `value` is None or a whole number >= 0."""
    if value is not None:
        check_number(name, value, ">= 0, or None", lambda seed: seed >= 0, whole=True)


def check_temperatures(name: str, values: NDArray[np.float64]) -> None:
    """Raise unless all `values` are temperatures that a fit can give."""
    if not ((values >= TEMPERATURE_MIN / 100) & (values <= TEMPERATURE_MAX * 100)).all():
        lowest, highest = TEMPERATURE_MIN / 100, TEMPERATURE_MAX * 100
        raise InputError(f"{name} must lie between {lowest:g} and {highest:g}; got {values.tolist()}.")


def check_limits(limits: NDArray[np.float64]) -> None:
    """Raise unless `limits` are a lower and an upper temperature."""
    check_temperatures("temperature_limits", limits)
    if limits[0] > limits[1]:
        raise InputError(f"temperature_limits must be lower <= upper; got {limits.tolist()}.")


def check_logits_shape(values: NDArray[Any] | BFloat16) -> None:
    """Raise unless `values` has the shape of logits: (N, K) with K >= 2, or (N,) for two classes."""
    wanted = "logits must be an (N, K) array, one row for each prediction and one column for each class"
    shape = values.shape
    if len(shape) not in (1, 2):
        raise InputError(
            f"{wanted}; got {len(shape)} dimensions, shape {shape}. Put the classes last and pass "
            "logits.reshape(-1, K)."
        )
    if len(shape) == 2 and shape[1] < 2:
        raise InputError(
            f"{wanted}; got {shape[1]} column. For a binary classifier with one score pass logits[:, 0], "
            "the logit of the second class."
        )


def inspector(values: NDArray[Any] | BFloat16) -> Callable[[LogitRows], None]:
    """Return the check of the rows' largest logits, which the first pass over them runs.

    It costs nothing while all is well; `values` are read again, to say where, only when they are not.
    """

    def inspect(rows: LogitRows) -> None:
        if not np.isfinite(rows.peak).all():
            _raise_for_not_finite(values)
        if rows.labels is not None and not np.isfinite(rows.label_gap).all():
            bad = np.flatnonzero(~np.isfinite(rows.label_gap))
            raise InputError(
                f"the logit of a row's own label must not be -inf; it is in row {bad[0]} of those read "
                f"({bad.size} such rows). A class that occurs is possible: unmask it, or correct the label."
            )

    return inspect


def _raise_for_not_finite(values: NDArray[Any] | BFloat16) -> None:
    wanted = "logits must be finite, but for -inf at an impossible class"
    for what, is_bad, advice in (
        ("NaN", lambda z: np.isnan(z).any(axis=1), "Drop these rows or find out where they come from."),
        ("+inf", lambda z: (z == np.inf).any(axis=1), "Drop these rows or limit the logits."),
        ("-inf in every class", lambda z: (z == -np.inf).all(axis=1), "A row needs a possible class."),
    ):
        bad = _rows_where(values, is_bad)
        if bad.size:
            raise InputError(f"{wanted}; got {what} in {bad.size} rows, the first is row {bad[0]}. {advice}")


def check_unmasked(values: NDArray[Any] | BFloat16, row_means: NDArray[np.float64], method: str) -> None:
    """Raise if a row has -inf, for a method that looks at every logit."""
    if np.isfinite(row_means).all():
        return
    bad = _rows_where(values, lambda z: np.isneginf(z).any(axis=1))
    if not bad.size:
        raise InputError(
            "logits must be small enough to add up; the sum of a row overflows. Scale them down."
        )
    raise InputError(
        f"logits must be finite for {method}, which weighs every one of them; got -inf in {bad.size} rows, "
        f"the first is row {bad[0]}. Use bayes, TS, HTS, BTS or ETS, which allow impossible classes."
    )


def _rows_where(values: NDArray[Any] | BFloat16, is_bad: Callable[[NDArray[Any]], Any]) -> NDArray[np.intp]:
    found = [start + np.flatnonzero(is_bad(block)) for block, start, _, _ in read_blocks(values)]
    return np.concatenate(found)


def check_labels(labels: ArrayLike, n_rows: int, n_classes: int) -> NDArray[np.intp]:
    """Return `labels` as column indices: one integer from 0 to n_classes - 1 for each row."""
    array = np.asarray(labels)
    wanted = f"labels must be integer column indices from 0 to {n_classes - 1}, one for each row"
    if array.ndim == 2 and array.shape[1] == 1:
        raise InputError(f"{wanted}; got shape {array.shape}. Pass labels.ravel().")
    if array.ndim == 2:
        raise InputError(
            f"{wanted}; got shape {array.shape}, as of one-hot rows. Pass labels.argmax(axis=1)."
        )
    if array.ndim != 1:
        raise InputError(f"{wanted}; got {array.ndim} dimensions.")
    if len(array) != n_rows:
        raise InputError(f"{wanted}; got {len(array)} labels for {n_rows} rows. Check that they match.")
    if array.dtype.kind == "f":
        raise InputError(f"{wanted}; got {array.dtype}. If they are whole numbers, pass labels.astype(int).")
    if array.dtype.kind not in "iub":
        example = array.flat[0] if array.size else ""
        raise InputError(
            f"{wanted}; got {array.dtype} such as {str(example)!r}. "
            "Replace each name by the index of its column in the logits."
        )
    outside = np.flatnonzero((array < 0) | (array >= n_classes))
    if outside.size:
        first = int(outside[0])
        raise InputError(
            f"{wanted}; got {int(array[first])} in row {first} ({outside.size} such rows). "
            "Drop the rows without a known class, or check that labels and columns match."
        )
    return array.astype(np.intp, copy=False)


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights as float64, or None if there are none."""
    if sample_weight is None:
        return None
    wanted = "sample_weight must be one finite number >= 0 for each row, not all of them 0"
    given = np.asarray(sample_weight)
    if given.dtype.kind not in "fiub":
        raise InputError(f"{wanted}; got {given.dtype}.")
    weights = given.astype(np.float64, copy=False)
    if weights.shape != (n_rows,):
        raise InputError(f"{wanted}; got shape {weights.shape} for {n_rows} rows.")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        raise InputError(f"{wanted}; got {weights[bad[0]]} in row {bad[0]} ({bad.size} such rows).")
    if not weights.any():
        raise InputError(f"{wanted}; all {n_rows} are zero.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 1e-100 < total < 1e100:
        raise InputError(
            f"sample_weight must add up to a number of ordinary size; got {total:g}. Scale the weights."
        )
    return weights


def check_probabilities(probs: ArrayLike) -> NDArray[np.floating[Any]]:
    """Return `probs` as an (N, K) array of probabilities; (N,) is the probability of class 1."""
    array = np.asarray(probs)
    wanted = "probabilities must be an (N, K) array of numbers from 0 to 1 whose rows sum to 1"
    if array.dtype.kind not in "fiub":
        raise InputError(f"{wanted}; got {array.dtype}.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] < 2):
        raise InputError(f"{wanted}, or (N,) for the second of two classes; got shape {array.shape}.")
    if len(array) == 0:
        raise InputError(f"{wanted}; got no rows.")
    table = array.reshape(len(array), -1)
    outside = _rows_where(table, lambda p: ~((p >= 0) & (p <= 1)).all(axis=1))
    if outside.size:
        first = int(outside[0])
        raise InputError(
            f"{wanted}; row {first} is not ({outside.size} such rows): {_excerpt(array[first])}. "
            "If these are logits, calibrate them first or pass their softmax."
        )
    if array.ndim == 1:
        return np.column_stack([1 - array, array])
    sums = array.sum(axis=1, dtype=np.float64)
    off = np.flatnonzero(np.abs(sums - 1) > _SUM_TOLERANCE.get(array.dtype.itemsize, 1e-6))
    if off.size:
        first = int(off[0])
        raise InputError(
            f"{wanted}; row {first} sums to {sums[first]:.6g} ({off.size} such rows). "
            "Divide each row by its sum, or pass the softmax of the logits."
        )
    return array


def _excerpt(row: NDArray[Any]) -> str:
    values = ", ".join(f"{value:.4g}" for value in np.atleast_1d(row)[:5])
    return f"[{values}{', ...' if np.size(row) > 5 else ''}]"
