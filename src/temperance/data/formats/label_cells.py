"""The meaning of label cells in formats that have only text: numbers or names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data.formats.csv_text import is_number

LARGEST_INDEX = 2**53  # above it a float is not an exact integer


def whole_number(value: object) -> int | None:
    """Return an integral number as an integer, 3.0 as 3; None for anything else, such as True."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if abs(value) < LARGEST_INDEX and value == value // 1 else None


def label_values(cells: Sequence[str], named: bool) -> NDArray[Any] | str:
    """Return the labels that these distinct cells mean, integers or text; or the invalid cell.

    `named` says whether the columns have class names. Without them, text among numbers is invalid.
    """
    if "" in cells:
        return ""
    numbers = [_whole(cell) for cell in cells]
    if None not in numbers and not (named and any(map(_is_padded, cells))):
        return np.array(numbers, np.int64)
    odd = [cell for cell, number in zip(cells, numbers, strict=True) if number is None]
    if not named and (len(odd) < len(cells) or any(map(is_number, odd))):
        return odd[0]
    return np.array(cells, np.str_)


def _is_padded(cell: str) -> bool:
    """Say whether a cell is a class name that looks like a number, such as 01."""
    return len(cell) > 1 and cell.isdigit() and cell.startswith("0")


def _whole(cell: str) -> int | None:
    """Return the whole number in a cell; text has no types, so 3.0 is the label 3."""
    return whole_number(float(cell)) if is_number(cell) else None
