"""Checks of arguments, logits and weights; labels and probabilities have their own modules.

A message says what must hold, what was found, and what to do. All of them are `InputError`, a `ValueError`,
so a caller can distinguish invalid input from a bug.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.core.blocks import read_blocks
from temperance.core.logit_rows import LogitRows
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN
from temperance.errors import InputError, InputWarning, Remedy, excerpt, guess, warn_user

INSPECTED_ROWS = 200  # rows that are checked for probabilities, and for columns of whole numbers
MIN_SCORES = 20  # this many (N,) scores from 0 to 1 are not by chance
NOT_CLASSES = ("fold", "split", "id", "idx", "index", "weight", "weights")  # last words of columns' names
MAX_LOGIT = np.float64(1e100)  # of a fit: sums of its square are far from the largest float64
SUM_TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-6}  # of a row of probabilities, by item size
SCORES_LIKE = "numbers that are all from 0 to 1"
ROWS_LIKE = "rows of numbers from 0 to 1 that sum to 1"
ROUNDING, MAX_ROUNDING = 0.005, 0.1  # of a probability with two decimals, and of the sum of many


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `choices`."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        fact = f"{name} must be one of {listed}; found {excerpt(value)}."
        raise InputError(fact, advice=guess(value, choices))


def check_number(
    name: str, value: Any, wanted: str, holds: Callable[[Any], bool], *, whole: bool = False
) -> None:
    """Raise unless `value` is a finite number that `holds` accepts; `wanted` describes it."""
    # NumPy has no integers above 2**63, and no option needs them.
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not (is_number and -(2.0**63) < value < 2.0**63 and holds(value)):
        raise InputError(
            f"{name} must be a {'whole number' if whole else 'number'} {wanted}; found {excerpt(value)}."
        )


def check_seed(name: str, value: object) -> None:
    """Raise unless `value` is None or a whole number >= 0."""
    if value is not None:
        check_number(name, value, ">= 0, or None", lambda seed: seed >= 0, whole=True)


def random_generator(name: str, value: Any) -> np.random.Generator:
    """Return the generator for a random seed: a whole number, None, or anything NumPy accepts."""
    if not isinstance(value, (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)):
        check_seed(name, value)
    return np.random.default_rng(value)


def check_temperatures(name: str, values: NDArray[np.float64]) -> None:
    """Raise unless all `values` are temperatures that a fit can give."""
    if not ((values >= TEMPERATURE_MIN / 100) & (values <= TEMPERATURE_MAX * 100)).all():
        lowest, highest = TEMPERATURE_MIN / 100, TEMPERATURE_MAX * 100
        found = excerpt(values.tolist())
        raise InputError(f"{name} must lie between {lowest:g} and {highest:g}; found {found}.")


def check_limits(limits: NDArray[np.float64]) -> None:
    """Raise unless `limits` are a lower and an upper temperature."""
    check_temperatures("temperature_limits", limits)
    if limits[0] > limits[1]:
        raise InputError(f"temperature_limits must be lower <= upper; found {limits.tolist()}.")


def check_max_entropy(entropy: Any) -> None:
    """Raise unless a formula for positions has the entropy of equal probabilities; others have None."""
    if entropy is not None and not entropy > 0:
        raise InputError(f"max_entropy must be log K, above 0; found {float(entropy):g}.")


def check_logits_shape(values: NDArray[Any]) -> None:
    """Raise unless `values` has the shape of logits: (N, K) with K >= 2, or (N,) for two classes."""
    wanted = "logits must be an (N, K) array, one row per prediction and one column per class"
    shape = values.shape
    if len(shape) not in (1, 2):
        raise InputError(
            f"{wanted}; found {len(shape)} dimensions, shape {shape}. Put the classes last and pass "
            "logits.reshape(-1, K)."
        )
    if len(shape) == 2 and shape[1] < 2:
        raise InputError(
            f"{wanted}; found {shape[1]} column. For a binary classifier with one score pass logits[:, 0], "
            "the logit of the second class."
        )


def like_probabilities(values: NDArray[Any], *, few: bool = False) -> str:
    """Say what makes the first rows look like probabilities; "" if they do not.

    (N,) scores of a binary classifier arrive as the columns [0, z]; a `few` of them can be by chance.
    """
    if not values.shape[0]:
        return ""
    for number in (1, INSPECTED_ROWS):  # the first row rules out probabilities quickly
        rows = values[:number]
        if not 0 <= rows[0, 0] <= 1 or not ((rows >= 0) & (rows <= 1)).all():
            return ""
    if rows.shape[1] == 2 and not rows[:, 0].any() and (few or len(rows) >= MIN_SCORES):
        return SCORES_LIKE
    tolerance = SUM_TOLERANCE.get(rows.dtype.itemsize, 1e-6)
    if rows.dtype == np.float32 and not (np.ascontiguousarray(rows).view(np.uint32) & 0xFFFF).any():
        tolerance = SUM_TOLERANCE[2]  # numbers that were bfloat16
    if len(rows) >= MIN_SCORES:  # logits of so many rows do not sum to about 1 by chance
        tolerance += min(ROUNDING * rows.shape[1], MAX_ROUNDING)
    off = np.abs(rows.sum(axis=1, dtype=np.float64) - 1) > tolerance
    return "" if off.any() else ROWS_LIKE


def check_are_logits(values: NDArray[Any], *, at_use: bool = False) -> bool:
    """Raise if the first rows are probabilities beyond doubt; if there are few, warn. Return whether it did.

    At the use of a calibrator, binary scores from 0 to 1 are in doubt: rows can be chosen by their score.
    """
    what = like_probabilities(values)
    if not what:
        return False
    fact = f"logits are unbounded scores; found {what}, like probabilities."
    if len(values) >= MIN_SCORES and not (at_use and what == SCORES_LIKE):
        raise InputError(fact, remedy=Remedy("from_probs", (True, False)))
    warn_user(InputWarning(fact, "If they are, pass from_probs=True.", Remedy("kind", ("probs",))))
    return True


def is_missing(value: object) -> bool:
    """Say whether a label or an id is missing: None, NaN, or a missing value of pandas."""
    if value is None or (isinstance(value, (float, np.floating)) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def missing_rows(values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows whose label or id is missing."""
    if values.dtype.kind == "O":
        return np.array([row for row, value in enumerate(values) if is_missing(value)], np.intp)
    return np.flatnonzero(values != values)


def doubtful_columns(names: Sequence[str], rows: NDArray[Any]) -> dict[str, str]:
    """Return columns of a table that are hardly the logits of a class, and why.

    Their name means something else; or their numbers, unlike in other columns, are whole or all
    the same. A column of zeros can be a reference class. `rows` can be empty, if the names are to decide.
    """
    found = {
        name: f"its name is {name!r}"
        for name in names
        if re.split(r"[\W_]+", name.lower())[-1] in NOT_CLASSES
    }
    if len(rows) < MIN_SCORES:
        return found
    finite = [column[np.isfinite(column)] for column in rows.T]
    constant = [bool(column.size) and np.ptp(column) == 0 for column in finite]
    whole = [bool(column.size) and bool((column == np.trunc(column)).all()) for column in finite]
    for why, holds in (("all its numbers are the same", constant), ("all its numbers are whole", whole)):
        if not all(holds):
            alike = [
                name
                for name, is_so, column in zip(names, holds, finite, strict=True)
                if is_so and column.any()
            ]
            found = dict.fromkeys(alike, f"{why}, unlike in other columns") | found
    return found


def check_labelled_rows(rows: LogitRows) -> None:
    """Raise unless the logits of labelled rows can be fitted; all of them are read once, if not before."""
    _, peak, label_gap = rows.locate()
    masked_label = not (label_gap >= -MAX_LOGIT).all()
    if masked_label:
        _raise_for_not_finite(rows.values)
    check_peaks(rows.values, peak)
    too_large = np.flatnonzero(np.abs(peak) > MAX_LOGIT)
    if too_large.size:
        raise InputError(
            f"logits must lie between {-MAX_LOGIT:g} and {MAX_LOGIT:g} to be fitted; found "
            f"{peak[too_large[0]]:g}",
            rows=too_large,
            advice="Divide all logits by one constant: a calibrator adapts to any scale.",
        )
    if masked_label:
        bad = np.flatnonzero(~(label_gap >= -MAX_LOGIT))
        raise InputError(
            f"the logit of a row's own label must not be -inf or close to it; found {label_gap[bad[0]]:g}",
            rows=bad,
            advice="A class that occurs is possible: unmask it, or correct the label.",
        )


def check_peaks(values: NDArray[Any], peak: NDArray[np.floating[Any]]) -> None:
    """Raise unless the largest logits of some rows are finite; `values` are read again to find the others."""
    if not np.isfinite(peak).all():
        _raise_for_not_finite(values)


def _raise_for_not_finite(values: NDArray[Any]) -> None:
    wanted = "logits must be finite, or -inf for an impossible class"
    for what, is_bad, advice in (
        ("NaN", lambda z: np.isnan(z).any(axis=1), "Drop these rows or correct the classifier."),
        ("+inf", lambda z: (z == np.inf).any(axis=1), "Drop these rows or clip the logits."),
        ("-inf in every class", lambda z: (z == -np.inf).all(axis=1), "A row needs a possible class."),
    ):
        bad = rows_where(values, is_bad)
        if bad.size:
            raise InputError(f"{wanted}; found {what}", rows=bad, advice=advice)


def check_unmasked(
    values: NDArray[Any], row_numbers: NDArray[np.float64], method: str, *, fits: bool
) -> None:
    """Raise if a row has -inf, or numbers that a fit cannot square, for a method that weights every logit.

    `row_numbers` are finite if the logits of the row are.
    """
    largest = MAX_LOGIT if fits else np.finfo(np.float64).max
    if (np.abs(row_numbers) <= largest).all():
        return
    advice = "Use a method that accepts impossible classes, such as ts or bayes."
    bad = rows_where(values, lambda z: np.isneginf(z).any(axis=1))
    if bad.size:
        fact = f"logits must be finite for {method}, which weighs every one of them; found -inf"
        raise InputError(fact, rows=bad, advice=advice)
    raise InputError(
        f"logits must lie between {-largest:.3g} and {largest:.3g} and have a finite sum for {method}, which "
        "weighs every one of them; found others",
        rows=np.flatnonzero(~(np.abs(row_numbers) <= largest)),
        advice=f"Divide all logits by one constant. If large negative ones mark impossible classes: {advice}",
    )


def rows_where(values: NDArray[Any], is_bad: Callable[[NDArray[Any]], Any]) -> NDArray[np.intp]:
    """Return the rows for which a function of blocks (rows, K) says so."""
    found = [start + np.flatnonzero(is_bad(block)) for block, start, _, _ in read_blocks(values)]
    return np.concatenate(found)


def check_priors(priors: ArrayLike, n_classes: int) -> NDArray[np.float64]:
    """Return class frequencies as float64: one per class, above 0, summing to 1."""
    wanted = f"priors must be {n_classes} class frequencies above 0 that sum to 1"
    given = np.asarray(priors)
    if given.dtype.kind not in "fiu" or given.shape != (n_classes,):
        raise InputError(f"{wanted}; found {given.dtype} of shape {given.shape}.")
    values = given.astype(np.float64)
    if not (values > 0).all():
        raise InputError(
            f"{wanted}; found {values[~(values > 0)][0]:g}. Give a rare class a small frequency such as "
            "1e-6, and an impossible one the logit -inf."
        )
    total = float(values.sum())
    if not abs(total - 1) <= 1e-6:
        raise InputError(f"{wanted}; found the sum {total:.6g}. Divide them by their sum.")
    return values / total


def warn_of_small_weights(total: float, n_rows: int) -> None:
    """Warn if the weights of the rows of a fit make it count fewer than half of them."""
    if total < n_rows / 2:
        fact = f"in a fit, a weight of k counts as k rows; found {n_rows:,} rows that count as {total:.3g}."
        advice = "Pass sample_weight / sample_weight.mean(), unless the rows are worth so few."
        warn_user(InputWarning(fact, advice))


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights as float64, or None if there are none."""
    if sample_weight is None:
        return None
    wanted = "sample_weight must be one finite number >= 0 per row, not all of them 0"
    given = np.asarray(sample_weight)
    if given.dtype.kind not in "fiub":
        raise InputError(f"{wanted}; found {given.dtype}.")
    weights = given.astype(np.float64, copy=False)
    if weights.shape != (n_rows,):
        raise InputError(f"{wanted}; found shape {weights.shape} for {n_rows} rows.")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        raise InputError(f"{wanted}; found other numbers, such as {weights[bad[0]]},", rows=bad)
    if not weights.any():
        raise InputError(f"{wanted}; found zero in all {n_rows} rows.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 1e-100 < total < 1e100:
        raise InputError(f"sample_weight must have a sum from 1e-100 to 1e100; found {total:g}. Rescale it.")
    return weights
