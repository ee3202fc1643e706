"""A single row of logits, as formulas see it: bit-identical to `LogitRows`, with the least Python.

Services ask for one row at a time. A number of the row is a float here, not an array of one number, and the
smallest operation on floats takes a tenth of the time of one on arrays. Additions, products, quotients and
roots of floats are those of IEEE 754, like NumPy's; exponentials and logarithms differ between libraries, so
NumPy computes them. Sums are in the type of the logits, and in the order of `LogitRows`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import FEW_CLASSES
from temperance.core.entropy import TINY
from temperance.core.features import RowShape
from temperance.core.kernels import MapTable, mapped, mixed
from temperance.core.logit_rows import IMPOSSIBLE
from temperance.core.numpy_ops import NumpyOps
from temperance.core.ops import Ops
from temperance.core.small_rows import LARGEST, FewRows, LongWayError


class OneRowOps(NumpyOps):
    """Operations on one row: numbers are floats, several of them are an array (1, m)."""

    def clip(self, x: Any, lower: Any, upper: Any) -> Any:
        """Clip x to its limits."""
        return min(max(x, lower), upper) if isinstance(x, float) else super().clip(x, lower, upper)

    def dot(self, x: Matrix, y: Matrix) -> Any:
        """Return the sum of x y."""
        return super().dot(x, y).item()

    def concat(self, arrays: Sequence[Any]) -> Matrix:
        """Return numbers, or arrays, side by side."""
        return np.array([arrays]) if isinstance(arrays[0], float) else super().concat(arrays)

    def split(self, x: Matrix, at: int) -> tuple[Matrix, Any]:
        """Return the first columns, and the others; the last column as a number."""
        others = x[..., at:]
        return x[..., :at], others.item() if others.size == 1 else others

    def outer(self, x: Any, numbers: Sequence[float]) -> Matrix:
        """Return x times each of the numbers."""
        return np.array([[x * number for number in numbers]])

    def columns(self, x: Matrix, number: int) -> list[Any]:
        """Return each of the columns of x."""
        columns: list[Any] = x[0].tolist()
        return columns

    def take(self, table: Matrix, index: Any) -> Any:
        """Return the row of a table at the index."""
        return table[index]


ONE_ROW: Ops = OneRowOps()


class OneRow(FewRows):
    """The features of `core.features`; outputs are probabilities, or calibrated logits if `log`."""

    ops = ONE_ROW

    def __init__(self, values: Floats, *, log: bool = False) -> None:
        self.top = values.argmax()
        self.peak: float = values.item(self.top)
        if not (values.item(values.argmin()) > -LARGEST and self.peak < LARGEST):  # NaN is neither
            raise LongWayError
        super().__init__(values, values - self.peak, log=log)
        self._number = values.dtype.type
        self._log_sums: dict[float, float] = {}

    @property
    def columns(self) -> Indices:
        """The column of the largest logit, as an array."""
        return np.array([self.top])

    def _sum(self, x: Floats) -> Any:
        """Return the sum of the row, in its own type."""
        if self.n_classes < FEW_CLASSES:
            return np.add.accumulate(x, axis=1)[0, -1]
        return np.einsum("ij->i", x)[0]

    def _sums(self, beta: float) -> tuple[float, float]:
        """Return r and mu of `kernels` at one inverse temperature."""
        e = np.exp(self.d if beta == 1 else self.d * beta)
        e[0, self.top] = 0
        r = self._sum(e)
        if self.n_classes < FEW_CLASSES:
            e *= self.d
            mu = self._sum(e)
        else:
            mu = np.einsum("ij,ij->i", e, self.d)[0]
        return float(r), float(mu / (self._number(1) + r))

    def log_entropy(self) -> float:
        """Return log H."""
        r, mu = self._sums(1.0)
        if r < TINY[self.values.itemsize]:
            raise LongWayError
        entropy: float = np.log(np.log1p(r) - mu)
        return entropy

    def log_confidence(self) -> float:
        """Return the logarithm of the largest probability."""
        confidence: float = -np.log1p(self._sums(1.0)[0])
        return confidence

    def shape_at(self, beta: float) -> RowShape:
        """Return the shape of beta z."""
        r, mu = self._sums(beta)
        log_s = self._log_sums[beta] = np.log1p(r).item()
        total = self._sum(self.d)
        if not total >= -IMPOSSIBLE / beta:
            raise LongWayError
        place, ordered = max(self.n_classes - 3, 0), self.d.copy()
        ordered.partition(place)
        third, mean = ordered.item(place), float(total / self._number(self.n_classes))
        entropy = log_s - beta * mu
        log_entropy = np.log(entropy).item() if entropy > 0 else -math.inf
        return RowShape(log_entropy, beta * -third, beta * -mean)

    def project(self, weights: Vector) -> Any:
        """Return (z - mean z) . weights."""
        return super().project(weights).item()

    def divide(self, temperature: Matrix | float) -> Floats:
        """Return softmax(z / T), or z / T."""
        # A float does not change the type of the logits; a number of NumPy would.
        beta = 1 / (temperature.item() if isinstance(temperature, np.ndarray) else float(temperature))
        if self.log:
            return self.values * beta
        e: Floats = self.d * beta
        np.exp(e, out=e)
        e *= self._number(1) / self._sum(e)
        return e

    def mapped_mixture(
        self,
        reference: float,
        knots: Vector,
        slopes: Vector,
        scales: Sequence[float],
        weights: Sequence[float],
    ) -> Floats:
        """Return sum_j w_j softmax(-scale_j map(-log softmax(z / T0))), or its logarithm."""
        beta = 1 / float(reference)
        log_s = self._log_sums.get(beta)
        if log_s is None:
            log_s = np.log1p(self._sums(beta)[0]).item()
        u = mapped(self.values, self.peak, log_s, beta, MapTable.kept(knots, slopes))
        np.subtract(u.item(self.top), u, out=u)
        result = mixed(u, np.array(scales)[:, None], np.array(weights), log=self.log)
        return result.astype(self.values.dtype, copy=False)
