"""Rows that come in batches, in one array that grows in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from temperance.errors import InputError

GROWTH = 1.25  # rows beyond the end are cut off, but have been filled with zeros


class RowBuffer:
    """An array for tensors (n, ...) one after the other.

    A NumPy array is used because its `resize` is that of the allocator: large arrays grow and shrink by
    pages, without a second copy if the system can move pages. bfloat16 is kept as its bits.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._dtype = torch.float32
        self._array: NDArray[Any] | None = None

    def add(self, rows: Tensor, expected: int) -> None:
        """Append rows; `expected` is the expected number of rows in total."""
        bits = (rows.view(torch.int16) if rows.dtype == torch.bfloat16 else rows).numpy()
        if self._array is None:
            self._dtype = rows.dtype
            self._array = np.empty((max(expected, len(bits)), *bits.shape[1:]), bits.dtype)
        if rows.dtype != self._dtype or bits.shape[1:] != self._array.shape[1:]:
            raise InputError(
                "all batches must give logits of one type and number of classes; found "
                f"{self._described(self._array, self._dtype)}, then {self._described(bits, rows.dtype)}."
            )
        end = self.n_rows + len(bits)
        if end > len(self._array):
            self._resize(max(end, int(GROWTH * len(self._array))))
        self._array[self.n_rows : end] = bits
        self.n_rows = end

    def _resize(self, n_rows: int) -> None:
        assert self._array is not None
        self._array.resize((n_rows, *self._array.shape[1:]), refcheck=False)  # no view of it is left

    @staticmethod
    def _described(array: NDArray[Any], dtype: torch.dtype) -> str:
        return f"{dtype} with {'x'.join(map(str, array.shape[1:])) or 1}"

    def result(self) -> Tensor:
        """Return all rows as one tensor."""
        assert self._array is not None
        self._resize(self.n_rows)
        tensor = torch.from_numpy(self._array)
        return tensor.view(torch.bfloat16) if self._dtype == torch.bfloat16 else tensor
