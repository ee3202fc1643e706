"""Recalibration where most classes have no bias of their own, as in a vocabulary.

A class that is no row's label, and whose probabilities add up to less than 1/4 of a row, would get a bias
between -1/4 and 0 by its prior: it gets 0. Where these are most classes, a fit of biases sees them as one
class, which has their probability at the best temperature: it reads N rows of the other classes, not of all.
What it needs of them is their sum of exp(beta l), which `series_rows` gives for all folds from a few passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.logit_rows import LogitRows
from temperance.metrics.recalibration import (
    Recalibration,
    Recalibrator,
    Recalibrators,
    fit_bias,
    fit_temperature,
    losses_of_parts,
    parameter_precision,
    probabilities_of,
)
from temperance.metrics.series_rows import SeriesRows

_LEAST_TOTAL = 0.25  # of the probabilities of a class that is no label, for a bias of its own
_TINY = float(np.finfo(np.float32).tiny)


def open_recalibration(
    logs: Floats, labels: Indices, totals: Vector
) -> Recalibration | VocabularyRecalibration:
    """Return what recalibrates these rows; `totals` are the sums of the probabilities of each class."""
    has_bias = totals >= _LEAST_TOTAL
    has_bias[labels] = True
    if 2 * has_bias.sum() < len(totals):
        return VocabularyRecalibration(logs, labels, np.flatnonzero(has_bias))
    return Recalibration(logs, labels)


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
        merged[:, -1] = np.log(np.maximum(others, _TINY))
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
    """Return the losses of rows with other classes besides: their sums of exp(beta l), and of its squares."""
    with np.errstate(divide="ignore"):
        total = np.logaddexp(log_sums, np.log(others))
    share = np.exp(log_sums - total)  # of the probability that the classes with a bias have
    return losses_of_parts(at_label - total, own_squares * share**2 + squares * np.exp(-2 * total))
