"""Recalibration where most classes have no bias of their own, as in a vocabulary.

A class that is no row's label, and whose probabilities add up to less than 1/4 of a row, would get a bias
between -1/4 and 0 under its prior; we set it to 0. If most classes are like this, a fit of biases merges them
into one class, with their total probability at the best temperature, and reads only the other classes. From
the merged classes it needs only the sum of exp(beta l). With l the log probabilities of a row, minus their
maximum, and A some of its classes:

    S(beta) = sum_A exp(beta l)        S(c + x) = sum_j x^j M_j / j!        M_j = sum_A l^j exp(c l)

One pass at c gives M_0 to M_ORDER. They serve every beta for which the last term is negligible, in the sum
over all classes and in its derivative: the first omitted term is even smaller. The fits of all folds end
close to each other, so two or three passes serve them all. The exponentials take half of a pass, each power
little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import Scratch, for_each_block
from temperance.core.logit_rows import LogitRows, Moments
from temperance.metrics.predictions import Predictions
from temperance.metrics.recalibration import (
    Recalibration,
    Recalibrator,
    Recalibrators,
    fit_bias,
    fit_temperature,
    log_probabilities,
    losses_of_parts,
    parameter_precision,
    probabilities_of,
)

ORDER = 10
MAX_LAST_TERM = 1e-7  # relative to the sum over all classes
MAX_LAST_TERM_OF_SLOPE = 1e-6  # of log S, relative to the slope, both averaged over rows
_MIN_TOTAL = 0.25  # smallest sum of probabilities at which a class that is no row's label has its own bias

_FACTORIALS = np.array([float(factorial(j)) for j in range(ORDER + 1)])


def open_recalibration(rows: Predictions) -> Recalibration | VocabularyRecalibration:
    """Return the recalibration of these rows."""
    has_bias = rows.class_totals >= _MIN_TOTAL
    has_bias[rows.labels] = True
    logs = log_probabilities(rows.probs, np.float32)
    if 2 * has_bias.sum() < len(has_bias):
        return VocabularyRecalibration(logs, rows.labels, np.flatnonzero(has_bias))
    return Recalibration(logs, rows.labels)


class VocabularyRecalibration:
    """The log probabilities to recalibrate, and the classes with a bias, to which all labels belong."""

    def __init__(self, logs: Floats, labels: Indices, own: Indices) -> None:
        self.logs, self.own = logs, own
        self.rows = SeriesRows(logs, labels, own)
        self.place = np.searchsorted(own, labels)
        self.start = (Recalibrator(1.0, np.zeros(len(own))),) * 2

    def fit(self, weight: Vector, start: Recalibrators) -> Recalibrators:
        """Return temperature scaling, and temperature scaling with biases, for these weights."""
        beta = fit_temperature(self.rows, weight, start[0].beta)
        merged = LogitRows(self._merged(beta), self.place)
        before = Recalibrator(1.0, np.append(start[1].bias, 0.0))
        found = fit_bias(merged, weight, before, last_is_fixed=True)
        return Recalibrator(beta, start[0].bias), Recalibrator(beta * found.beta, found.bias[:-1])

    def precision(self, weight: Vector, model: Recalibrator) -> Vector:
        """Return the information on log T and on each bias."""
        merged = LogitRows(self._merged(model.beta), self.place)
        at_merged = Recalibrator(1.0, np.append(model.bias, 0.0))
        return parameter_precision(merged, weight, at_merged)[:-1]

    def recalibrated(self, model: Recalibrator, column: Indices) -> Vector:
        """Return the probability of one class of each row after a model."""
        _, (others, *_) = self.rows.sums_near(model.beta)
        *_, log_sums = model.odds(self.rows.own)
        with np.errstate(divide="ignore"):
            log_totals = np.logaddexp(log_sums, np.log(np.maximum(others, 0)))
        bias = np.zeros(self.logs.shape[1])
        bias[self.own] = model.bias
        return probabilities_of(self.logs, column, model.beta, bias[column], log_totals)

    def _merged(self, beta: float) -> Floats:
        """Return beta l of the classes with biases, and the log of the sum of exp(beta l) of all others."""
        _, (others, *_) = self.rows.sums_near(beta)
        merged = np.empty((self.rows.n_rows, len(self.start[0].bias) + 1), np.float32)
        np.multiply(self.rows.own, np.float32(beta), out=merged[:, :-1])
        merged[:, -1] = np.log(np.maximum(others, np.finfo(np.float32).tiny))
        return merged

    def losses(self, models: Sequence[Recalibrator], fold: Indices) -> tuple[Vector, Vector]:
        """Return the negative log-likelihood and the Brier score of each row by the model of its fold."""
        others, squares = self.rows.sums_of_others(np.array([model.beta for model in models])[fold])
        nll, brier = np.empty((2, len(fold)))
        for held, model in enumerate(models):
            rows = np.flatnonzero(fold == held)
            of_own = model.parts(self.rows.own[rows], self.place[rows])
            nll[rows], brier[rows] = _joined_losses(*of_own, others[rows], squares[rows])
        return nll, brier


def _joined_losses(
    at_label: Floats, log_sums: Vector, own_squares: Vector, others: Vector, squares: Vector
) -> tuple[Vector, Vector]:
    """Return the losses of rows including other classes, given by sums of exp(beta l) and of its squares."""
    with np.errstate(divide="ignore"):
        total = np.logaddexp(log_sums, np.log(others))
    share = np.exp(log_sums - total)  # the total probability of the classes with a bias
    return losses_of_parts(at_label - total, own_squares * share**2 + squares * np.exp(-2 * total))


@dataclass(frozen=True)
class PowerSums:
    """The sums of l^j exp(c l), j = 0 to ORDER, of each row: over some classes, and over all others."""

    centre: float
    own: Matrix
    others: Matrix

    @cached_property
    def radius(self) -> float:
        """How far from the centre the last terms of every row's sum and of the mean slope are negligible."""
        total = self.own + self.others
        first, last = np.abs(total[[1, -1]]) / total[0]
        limits = [
            (MAX_LAST_TERM, ORDER, last.max()),
            (MAX_LAST_TERM_OF_SLOPE * first.mean(), ORDER - 1, last.mean()),
        ]
        return min(
            (share * _FACTORIALS[power] / max(float(term), np.finfo(np.float64).tiny)) ** (1 / power)
            for share, power, term in limits
        )

    def at(self, beta: float) -> tuple[Matrix, Matrix]:
        """Return the sums of exp(beta l), l exp(beta l) and l^2 exp(beta l), of own and of other classes."""
        terms = (beta - self.centre) ** np.arange(ORDER + 1) / _FACTORIALS
        coefficients = np.stack([np.append(np.zeros(i), terms[: ORDER + 1 - i]) for i in range(3)])
        return coefficients @ self.own, coefficients @ self.others


class SeriesRows(LogitRows):
    """Log probabilities minus the maximum of each row; the classes `own` have their own bias.

    If all rows have one beta, `moments` needs a pass only if no earlier pass was close.
    """

    def __init__(self, logs: Floats, labels: Indices, own: Indices) -> None:
        super().__init__(logs, labels)
        self._columns = own
        self.own = np.take(logs, own, axis=1)
        self._known: list[PowerSums] = []

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
        for known in self._known:
            if abs(beta - known.centre) <= known.radius:
                return known.at(beta)
        self._known.append(self._read(beta))
        return self._known[-1].at(beta)

    def _read(self, centre: float) -> PowerSums:
        own, others = np.empty((2, ORDER + 1, self.n_rows))
        beta = self.dtype.type(centre)  # the rounded number is the centre

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            e = np.multiply(z, beta, out=scratch.e[: j - i])
            np.exp(e, out=e)
            e[:, self._columns] = 0
            _add_powers(e, z, others[:, i:j])
            part = self.own[i:j]
            _add_powers(np.exp(beta * part), part, own[:, i:j])

        self.passes += 1
        for_each_block(self.values, work)
        return PowerSums(float(beta), own, others)

    def sums_of_others(self, beta: Vector) -> tuple[Vector, Vector]:
        """Return the sums of exp(beta l) and of its squares over the other classes, with one beta per row."""
        b, (sums, squares) = beta.astype(self.dtype), np.empty((2, self.n_rows))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            e = np.multiply(z, b[i:j, None], out=scratch.e[: j - i])
            np.exp(e, out=e)
            e[:, self._columns] = 0
            sums[i:j] = e.sum(axis=1)
            squares[i:j] = np.einsum("ij,ij->i", e, e)

        self.passes += 1
        for_each_block(self.values, work)
        return sums, squares


def _add_powers(e: Floats, l: Floats, out: Matrix) -> None:  # noqa: E741  the symbol of the formula
    """Write the row sums of e l^j, j = 0, 1, ...; `e` is overwritten."""
    for j, sums in enumerate(out):
        if j:
            np.multiply(e, l, out=e)
        # Adding in pairs keeps the precision that the first terms need, at three times the cost.
        sums[:] = e.sum(axis=1) if j < 3 else np.einsum("ij->i", e)
