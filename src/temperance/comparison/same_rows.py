"""Whether test rows were also used to fit: rows whose logits are the same to the bit in both sets.

A network hardly ever gives two inputs the same logits. A forest of few trees often does. So rows that repeat
within a set are not counted, and if many repeat, a warning needs as many shared rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.blocks import BFloat16, block_rows, read_blocks
from temperance.errors import InputError, InputWarning, warn_user

MANY = 0.1
"""The share of test rows that may be among the validation rows without a warning."""

Values = NDArray[Any] | BFloat16


def check_apart(val: Values, test: Values) -> None:
    """Raise if both sets are the same; warn if many test rows are validation rows."""
    val_prints, test_prints = _fingerprints(val), _fingerprints(test)
    if np.array_equal(val_prints, test_prints) and _equal_rows(val, test).all():
        raise InputError(
            f"test rows must differ from the validation rows; found the same {len(test)} rows in both. Pass "
            "other test rows, or none to use cross-validation."
        )
    val_rows, test_rows = _rows_once(val_prints), _rows_once(test_prints)
    _, in_val, in_test = np.intersect1d(
        val_prints[val_rows], test_prints[test_rows], assume_unique=True, return_indices=True
    )
    if in_test.size <= MANY * len(test):
        return
    shared = int(_equal_rows(val[val_rows[in_val]], test[test_rows[in_test]]).sum())
    repeated = max(1 - len(val_rows) / len(val), 1 - len(test_rows) / len(test))
    if shared / len(test) > max(MANY, repeated):
        warn_user(
            InputWarning(
                f"test rows must differ from the validation rows; found {shared} of {len(test)} test rows "
                "among the validation rows, to the bit.",
                "Scores on these rows are optimistic. Leave them out of one of the sets.",
            )
        )


def _fingerprints(values: Values) -> NDArray[np.uint64]:
    """Return a number for each row that depends only on its logits; equal numbers by chance are rare."""
    factors = np.random.default_rng(0).integers(1 << 63, size=values.shape[1], dtype=np.uint64) * 2 + 1
    prints = np.empty(len(values), np.uint64)
    for block, start, end, _ in read_blocks(values):
        bits = (block.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 + 0.0 = 0.0
        bits ^= bits >> np.uint64(29)
        prints[start:end] = bits @ factors
    return prints


def _rows_once(prints: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the rows whose fingerprint no other row has."""
    _, first, counts = np.unique(prints, return_index=True, return_counts=True)
    return first[counts == 1]


def _equal_rows(one: Values, other: Values) -> NDArray[np.bool_]:
    """Say which rows have the same logits in both sets, which have the same number of rows."""
    equal = np.empty(len(one), np.bool_)
    size = block_rows(one.shape[1], 8)
    blocks = zip(read_blocks(one, size), read_blocks(other, size), strict=True)
    for (block, start, end, _), (another, *_) in blocks:
        equal[start:end] = (block == another).all(axis=1)
    return equal
