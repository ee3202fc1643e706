"""Logits of any shape as rows of classes, and back.

Pixels have logits (N, K, H, W) with the classes in axis 1, tokens (N, T, K) with the classes last. Whatever
the shape, a calibrator sees (rows, K), and its results get the shape of the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.blocks import BFloat16
from temperance.errors import InputError


@dataclass(frozen=True)
class ClassAxis:
    """The axis of the classes, counted from the first, and the shape of the array."""

    dim: int
    shape: tuple[int, ...]

    @property
    def leading(self) -> tuple[int, ...]:
        """The shape of the labels: that of the array without the axis of the classes."""
        return _without(self.shape, self.dim)

    @property
    def is_plain(self) -> bool:
        """Whether the array is already (rows, classes), or (rows,) scores of a binary classifier."""
        return len(self.shape) < 2 or (len(self.shape), self.dim) == (2, 1)

    def rows(self, values: NDArray[Any] | BFloat16) -> NDArray[Any] | BFloat16:
        """Return the array as (rows, classes), without a copy if it already is."""
        if self.is_plain:
            return values
        if isinstance(values, BFloat16):
            return BFloat16(self._rows(values.bits))
        return self._rows(values)

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        n_rows, n_classes = int(np.prod(self.leading)), self.shape[self.dim]
        return np.moveaxis(values, self.dim, -1).reshape(n_rows, n_classes)

    def restored(self, result: NDArray[Any]) -> NDArray[Any]:
        """Return results for rows, (rows, classes) or (rows,), in the original shape of the array."""
        if self.is_plain:
            return result
        if result.ndim == 1:
            return result.reshape(self.leading)
        return np.moveaxis(result.reshape(*self.leading, -1), -1, self.dim)

    def flat(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        """Return labels or weights, which have the leading shape, as one for each row."""
        if len(self.shape) < 2:
            return values
        if values.shape == self.leading:
            return values.reshape(-1)
        fitting = [dim for dim in range(len(self.shape)) if _without(self.shape, dim) == values.shape]
        if len(self.leading) == 1 and not fitting:
            return values  # their own check raises the error
        raise InputError(
            f"{name} must have the shape of the logits without the axis of the classes; found shape "
            f"{values.shape} for logits of shape {self.shape} with the classes in axis {self.dim}.",
            advice=f"Pass dim={fitting[0]}." if fitting else f"Pass {name} of shape {self.leading}.",
        )


def class_axis(shape: tuple[int, ...], dim: int) -> ClassAxis:
    """Return the axis of the classes; raise if the array has no such axis."""
    n_axes = max(1, len(shape))
    if not isinstance(dim, (int, np.integer)) or not -n_axes <= dim < n_axes:
        raise InputError(
            f"dim must be the axis of the classes, from {-n_axes} to {n_axes - 1} for logits of shape "
            f"{shape}; found {dim!r}."
        )
    return ClassAxis(int(dim) % n_axes, tuple(shape))


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], *shape[dim + 1 :])
