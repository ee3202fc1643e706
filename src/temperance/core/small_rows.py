"""A few rows of logits, as formulas see them: bit-identical to `LogitRows`, with less Python.

A service asks for few rows at a time, and a pass over blocks then takes many times as long as its arithmetic.
Here the rows are one array, the gaps to the top are computed once, and the only check is that no
logit is huge: rows with masked classes, and invalid rows, are left to `LogitRows`. `one_row` has a faster
way for a single row.

Bits agree because every number is computed by the same operations in the same order. The one difference is
the layout: sums over few classes, which `LogitRows` adds class by class, are the last of running sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from temperance.core import kernels
from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.biased_rows import Offsets, bias_rows
from temperance.core.blocks import FEW_CLASSES, BFloat16, row_products
from temperance.core.class_shift import shift_outputs
from temperance.core.entropy import log_entropy
from temperance.core.features import RowShape
from temperance.core.kernels import MapTable, mixed, stack_scales
from temperance.core.logit_rows import IMPOSSIBLE
from temperance.core.numpy_ops import NUMPY

MOST_NUMBERS = 1 << 12
LARGEST = 1e15  # logit whose products cannot overflow


class LongWayError(Exception):
    """The rows need something that only `LogitRows` supports."""


def are_small(values: Floats | BFloat16) -> TypeGuard[Floats]:
    """Say whether these logits are few, and of a type that needs no conversion."""
    if isinstance(values, BFloat16) or not 0 < values.size <= MOST_NUMBERS:
        return False
    return bool(values.dtype.char in "fd" and values.dtype.isnative and values.flags.c_contiguous)


class FewRows:
    """What one row and a few rows share: the logits, the gaps to the top, and what is computed from them."""

    def __init__(self, values: Floats, d: Floats, *, log: bool) -> None:
        self.values, self.d, self.log = values, d, log
        self.n_rows, self.n_classes = values.shape

    def _row_sums(self, x: Floats) -> Floats:
        if self.n_classes < FEW_CLASSES:
            return np.add.accumulate(x, axis=1)[:, -1]
        return np.einsum("ij->i", x)

    def topk(self, k: int) -> Matrix:
        """Return the k largest logits minus the row's mean, in descending order."""
        mean = self._row_sums(self.d) / self.n_classes
        ordered = self.d.copy()
        ordered.sort(axis=1)
        largest: Floats = ordered[:, : -k - 1 : -1] - mean[:, None]
        return largest.astype(np.float64)

    def project(self, weights: Vector) -> Matrix:
        """Return (z - mean z) . weights."""
        centred = (weights - np.add.reduce(weights) / len(weights)).astype(self.values.dtype)
        return row_products(self.d, centred).astype(np.float64)[:, None]

    def mixture(
        self,
        betas: Sequence[Matrix | float],
        weights: Vector,
        bias: Vector | None = None,
        interactions: Matrix | None = None,
    ) -> Floats:
        """Raise: mixtures are left to `LogitRows`."""
        raise LongWayError

    def shift_classes(self, output: Floats, log_ratio: Vector) -> Floats:
        """Return probabilities, or log-probabilities, under new class frequencies, in place."""
        shift_outputs(output, log_ratio, log=self.log)
        return output

    def class_bias(
        self, output: Floats, beta: float, bias: Vector, interactions: Matrix | None, weight: float
    ) -> Floats:
        """Return (1 - weight) p + weight softmax(beta l + bias + M x), or its logarithm, in place."""
        if weight > 0:
            with np.errstate(all="ignore"):
                bias_rows(output, self.d, Offsets(beta, bias, interactions), float(weight), log=self.log)
        return output


class SmallRows(FewRows):
    """The features of `core.features`; outputs are probabilities, or calibrated logits if `log`."""

    ops = NUMPY

    def __init__(self, values: Floats, *, log: bool = False) -> None:
        lowest, highest = values.item(values.argmin()), values.item(values.argmax())
        if not (lowest > -LARGEST and highest < LARGEST):  # NaN is neither
            raise LongWayError
        self.each = np.arange(len(values))
        self.columns = values.argmax(axis=1)
        self.peak = values[self.each, self.columns]
        super().__init__(values, values - self.peak[:, None], log=log)
        self._log_sums: dict[float, Vector] = {}

    @property
    def top(self) -> Indices:
        """The column of each row's largest logit."""
        return self.columns[:, None]

    def _column(self, x: Any) -> Floats:
        column = np.empty((self.n_rows, 1), self.values.dtype)
        column[:] = x
        return column

    def _sums(self, beta: float) -> tuple[Floats, Floats]:
        """Return r and mu of `kernels` at one inverse temperature."""
        e = np.exp(self.d if beta == 1 else self.d * self._column(beta))
        e[self.each, self.columns] = 0
        r = self._row_sums(e)
        if self.n_classes < FEW_CLASSES:
            e *= self.d
            mu = self._row_sums(e)
        else:
            mu = np.einsum("ij,ij->i", e, self.d)
        mu /= 1 + r
        return r, mu

    def log_entropy(self) -> Matrix:
        """Return log H."""
        r, mu = self._sums(1.0)
        return log_entropy(self.values, self.columns, self.peak, r, mu)[:, None]

    def log_confidence(self) -> Matrix:
        """Return the logarithm of the largest probability."""
        confidence: Matrix = -np.log1p(self._sums(1.0)[0], dtype=np.float64)[:, None]
        return confidence

    def shape_at(self, beta: float) -> RowShape:
        """Return the shape of beta z."""
        beta = float(beta)
        r, mu = self._sums(beta)
        log_s = self._log_sums[beta] = np.log1p(r, dtype=np.float64)
        total = self._row_sums(self.d)
        if not np.minimum.reduce(total) >= -IMPOSSIBLE / beta:
            raise LongWayError
        place, ordered = max(self.n_classes - 3, 0), self.d.copy()
        ordered.partition(place, axis=1)
        third = ordered[:, place]
        entropy = log_s - beta * mu.astype(np.float64)
        positive = entropy > 0
        np.log(entropy, out=entropy, where=positive)
        entropy[~positive] = -np.inf
        mean = total / self.n_classes
        return RowShape(entropy[:, None], *(beta * -gap.astype(np.float64)[:, None] for gap in (third, mean)))

    def divide(self, temperature: Matrix | float) -> Floats:
        """Return softmax(z / T), or z / T."""
        beta = self._column(1 / temperature)
        if self.log:
            return self.values * beta
        e = self.d * beta
        np.exp(e, out=e)
        e *= (1 / self._row_sums(e))[:, None]
        return e

    def mapped_mixture(
        self,
        reference: float,
        knots: Vector,
        slopes: Vector,
        scales: Sequence[Matrix | float],
        weights: Sequence[float],
    ) -> Floats:
        """Return sum_j w_j softmax(-scale_j map(-log softmax(z / T0))), or its logarithm."""
        beta, u = 1 / float(reference), np.empty(self.values.shape)
        log_s = self._log_sums.get(beta)
        if log_s is None:
            log_s = np.log1p(self._sums(beta)[0], dtype=np.float64)
        table = MapTable.kept(knots, slopes)
        kernels.map_logits(self.values, self.columns, self.peak, log_s, beta, table, u)
        result = mixed(u, stack_scales(scales, self.n_rows), np.asarray(weights, np.float64), log=self.log)
        return result.astype(self.values.dtype, copy=False)
