"""Rows of log probabilities whose moments at nearby inverse temperatures come from one pass.

With l the log probabilities of a row, less its largest, and A some of its classes:

    S(beta) = sum_A exp(beta l)        S(c + x) = sum_j x^j M_j / j!        M_j = sum_A l^j exp(c l)

One pass at c gives M_0 to M_ORDER. They serve every beta for which the last term is negligible, in the sum
over all classes and in its derivative: the first term left out is smaller still. The fits of all folds end
close to each other, so that two or three passes serve them all. The exponentials take half of a pass, and
each power little.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import Scratch
from temperance.core.logit_rows import LogitRows, Moments

ORDER = 10
LARGEST_LAST_TERM = 1e-7  # relative to the sum over all classes
LAST_TERM_OF_SLOPE = 1e-6  # of log S, relative to the slope, both averaged over rows

_TINY = float(np.finfo(np.float64).tiny)
_FACTORIALS = np.array([float(factorial(j)) for j in range(ORDER + 1)])


@dataclass(frozen=True)
class PowerSums:
    """The sums of l^j exp(c l), j = 0 to ORDER, of each row: over some classes, and over all others."""

    centre: float
    own: Matrix
    others: Matrix

    @property
    def radius(self) -> float:
        """How far from the centre the last terms of every row's sum and of the mean slope are negligible."""
        total = self.own + self.others
        first, last = np.abs(total[[1, -1]]) / total[0]
        limits = [
            (LARGEST_LAST_TERM, ORDER, last.max()),
            (LAST_TERM_OF_SLOPE * first.mean(), ORDER - 1, last.mean()),
        ]
        return min(
            (share * _FACTORIALS[power] / max(float(term), _TINY)) ** (1 / power)
            for share, power, term in limits
        )

    def at(self, beta: float) -> tuple[Matrix, Matrix]:
        """Return the sums of exp(beta l), l exp(beta l) and l^2 exp(beta l), of own and of other classes."""
        terms = (beta - self.centre) ** np.arange(ORDER + 1) / _FACTORIALS
        coefficients = np.stack([np.append(np.zeros(i), terms[: ORDER + 1 - i]) for i in range(3)])
        return coefficients @ self.own, coefficients @ self.others


class SeriesRows(LogitRows):
    """Log probabilities less the largest of each row, of which some classes are the row's `own`.

    Where all rows have one beta, `moments` needs a pass only if no earlier one was close.
    """

    def __init__(self, logs: Floats, labels: Indices, own: Indices) -> None:
        super().__init__(logs, labels)
        self._columns = own
        self.own = np.take(logs, own, axis=1)
        self._known: list[tuple[PowerSums, float]] = []

    def moments(self, beta: Vector | float, *, variance: bool = True) -> Moments:
        """Return log s, mu and v of each row at inverse temperature `beta`."""
        values = np.ravel(beta)
        if np.ptp(values) > 0:
            return super().moments(beta, variance=variance)
        self.locate()
        own, others = self.sums_near(float(values[0]))
        s, first, second = own + others
        mu = first / s
        return Moments(np.log(s), mu, np.maximum(second / s - mu * mu, 0.0))

    def sums_near(self, beta: float) -> tuple[Matrix, Matrix]:
        """Return the sums of exp(beta l), l exp(beta l) and l^2 exp(beta l), of own and of other classes."""
        for known, radius in self._known:
            if abs(beta - known.centre) <= radius:
                return known.at(beta)
        read = self._read(beta)
        self._known.append((read, read.radius))
        return read.at(beta)

    def _read(self, centre: float) -> PowerSums:
        own, others = np.empty((2, ORDER + 1, self.n_rows))
        beta = self.dtype.type(centre)  # the centre is the rounded number

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            e = np.multiply(z, beta, out=scratch.e[: j - i])
            np.exp(e, out=e)
            e[:, self._columns] = 0
            _add_powers(e, z, others[:, i:j])
            part = self.own[i:j]
            _add_powers(np.exp(beta * part), part, own[:, i:j])

        self.visit(work)
        return PowerSums(float(beta), own, others)

    def sums_of_others(self, beta: Vector) -> tuple[Vector, Vector]:
        """Return the sums of exp(beta l) and of its squares over the other classes, beta one of each row."""
        b, (sums, squares) = beta.astype(self.dtype), np.empty((2, self.n_rows))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            e = np.multiply(z, b[i:j, None], out=scratch.e[: j - i])
            np.exp(e, out=e)
            e[:, self._columns] = 0
            sums[i:j] = e.sum(axis=1)
            squares[i:j] = np.einsum("ij,ij->i", e, e)

        self.visit(work)
        return sums, squares


def _add_powers(e: Floats, l: Floats, out: Matrix) -> None:  # noqa: E741  the symbol of the formula
    """Write the row sums of e l^j, j = 0, 1, ...; `e` is overwritten."""
    for j, sums in enumerate(out):
        if j:
            np.multiply(e, l, out=e)
        # Adding in pairs keeps the digits that the first terms need, at three times the cost.
        sums[:] = e.sum(axis=1) if j < 3 else np.einsum("ij->i", e)
