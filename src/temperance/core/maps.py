"""Increasing maps of log-probabilities: the likelihood of labels as a function of the slopes of the map.

With e = -log softmax(z / T0) of each class, knots 0 = k_1 < ... < k_J and positive slopes w_j:

    u = sum_j w_j length_j(e)        length_j(e): how much of [0, e] lies between k_j and k_j+1
    p = softmax(-u)

One increasing function for all classes keeps their order. It can change small probabilities differently from
large ones, which no temperature can. With q = length - length of the top class, all moments of a row
come from sums over the classes of each segment (`kernels`), since q_i q_j = q_j times a constant for i < j:

    gradient of w:  q_label - E_p q            Hessian: Cov_p q, positive semi-definite: convex in w
    Cov(q_i, q_j) = (rest_i - E q_i) E q_j     for i < j; rest_i: q_i of a class beyond segment i

So no covariance matrix is formed for a row: sums over rows of such products are matrix products, and so are
sums along a row of the matrix. Arrays are (segments, rows), so that both run along the rows.

`RowMapLikelihood` lets the slopes of a row be w / (T(z) / T0), with log w and log T linear in parameters. It
gives extra weight to what users act on: whether the predicted class is correct. With p the confidence and c
whether the predicted class is correct, each row adds to its negative log-likelihood EMPHASIS times

    b = -c log p - (1 - c) log(1 - p)

One map has to serve the top probability and all the others. Where they disagree, the many small ones
dominate the likelihood, and the top probability is less well calibrated. With g the derivative of log p by
the logs of the slopes, b has the derivative -(c - p) / (1 - p) g and the Fisher matrix p / (1 - p) g g'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Matrix, Vector
from temperance.core.kernels import KNOTS, MapTable
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.objective import LogLikelihood, ObjectivePoint, Prior, RowObjective
from temperance.core.predictors import ByClass, Link

# Chosen by leaving data sets out, see docs/bayesian.md: less calibration error at no cost in likelihood.
EMPHASIS = 0.4
MAX_LOG_SLOPE = 12.0  # in absolute terms: beyond, a class is practically certain or impossible
MAP_SEGMENTS = len(KNOTS)
_WIDTHS = np.append(np.diff(KNOTS), np.inf)
_CLOSED = np.append(np.diff(KNOTS), 0.0)[:, None]  # the last segment is unbounded; nothing lies beyond it
_BEYOND = np.triu(np.ones((MAP_SEGMENTS, MAP_SEGMENTS)), 1)  # times numbers of segments: sums over later ones


@dataclass(frozen=True)
class _RowMoments:
    """Moments of some rows for the slopes: log-probabilities, q of the label, E q, rest - E q, Var q."""

    log_sum: Vector  # log of the sum of p / p of the top class
    label: Matrix
    mean: Matrix
    ahead: Matrix
    variance: Matrix

    def sum_of_covariances(self, share: Vector) -> Matrix:
        """Return the sum over rows of share times Cov q."""
        upper = np.triu((self.ahead * share) @ self.mean.T, 1)
        return upper + upper.T + np.diag(self.variance @ share)

    def covariances_with_sum(self, slopes: Vector, extra: Vector) -> Matrix:
        """Return Cov(q_j, slopes . q) + extra E q_j per data row, (segments, rows)."""
        result = (_BEYOND.T * slopes) @ self.ahead
        result += extra
        result *= self.mean
        result += self.variance * slopes[:, None]
        later = (_BEYOND * slopes) @ self.mean
        later *= self.ahead
        result += later
        return result


def _lengths(e: Vector) -> Matrix:
    """Return how much of [0, e] lies in each segment, (segments, rows)."""
    return np.minimum(np.maximum(e - KNOTS[:, None], 0.0), _WIDTHS[:, None])


def _moments(e_top: Vector, e_label: Vector, sums: Matrix) -> _RowMoments:
    """Turn the sums over segments of all classes but the top into moments of q."""
    P, Q, R = sums
    top = _lengths(e_top)
    mean = Q - top * P
    squares = Q + mean
    squares *= top
    np.subtract(R, squares, out=squares)
    rest = _CLOSED - top
    of_others = _BEYOND @ P
    total = P[0] + of_others[0]
    of_others *= rest
    mean += of_others
    of_others *= rest
    squares += of_others
    mean /= 1 + total
    squares /= 1 + total
    squares -= mean * mean
    rest -= mean
    label = _lengths(e_label)
    label -= top
    return _RowMoments(np.log1p(total), label, mean, rest, np.maximum(squares, 0.0, out=squares))


MomentsWork = Callable[[slice, _RowMoments], tuple[Vector, ...]]
"""From rows and their moments to arrays that are added up over the blocks."""


def _sum_moments(
    rows: LogitRows, reference: float, slopes: Vector, scale: Vector | float, use: MomentsWork
) -> list[Vector]:
    """Add up what `use` returns per block, in one pass; the row's `scale` multiplies the slopes."""

    def use_sums(at: slice, sums: Matrix) -> tuple[Vector, ...]:
        e_top = rows.log_sum_at(1 / reference)[at]
        return use(at, _moments(e_top, e_top - rows.label_gap[at] / reference, sums))

    scales = np.broadcast_to(np.asarray(scale, np.float64), rows.n_rows)
    return rows.sum_segments(1 / reference, MapTable.of(KNOTS, slopes), scales, use_sums)


class MapLikelihood(RowObjective):
    """The mean negative log-likelihood as a function of the slopes of one map for all rows: convex."""

    def __init__(
        self, rows: LogitRows, reference: float, weights: Vector | None = None, prior: Prior | None = None
    ) -> None:
        super().__init__(rows, weights, prior)
        self.reference = reference

    @property
    def order(self) -> int:
        """Order of convergence: 2, since the matrix is exact."""
        return 2

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        return type(self)(rows, self.reference, weights, self.prior)

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives, without the prior."""

        def use(at: slice, m: _RowMoments) -> tuple[Vector, ...]:
            share = self.share[at]
            value = share @ (m.log_sum + theta @ m.label)
            return np.array([value]), (m.label - m.mean) @ share, m.sum_of_covariances(share)

        value, gradient, hessian = _sum_moments(self.rows, self.reference, theta, 1.0, use)
        return ObjectivePoint(float(value[0]), gradient, hessian)

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        result = np.empty((self.rows.n_rows, len(theta)))

        def use(at: slice, m: _RowMoments) -> tuple[()]:
            result[at] = (m.label - m.mean).T
            return ()

        _sum_moments(self.rows, self.reference, theta, 1.0, use)
        return result


class RowMapLikelihood(LogLikelihood):
    """The likelihood as a function of [theta of log T, increments of log w], with extra top-label weight.

    Row i has the slopes w T0 / T_i. The logs of the slopes are `basis` @ increments.
    """

    predictor: ByClass

    def __init__(
        self,
        rows: LogitRows,
        reference: float,
        predictor: ByClass,
        link: Link,
        basis: Matrix,
        weights: Vector | None = None,
        prior: Prior | None = None,
    ) -> None:
        super().__init__(rows, predictor, link, weights, prior)
        self.reference, self.basis = reference, basis
        self.n_parameters = predictor.n_parameters + basis.shape[1]

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        predictor = self.predictor.take(index, rows)
        return type(self)(rows, self.reference, predictor, self.link, self.basis, weights, self.prior)

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives, without the prior."""
        own, increments = np.split(theta, [self.predictor.n_parameters])
        beta = self.link.beta(self.predictor.predict(own))
        w, basis = slopes_of(self.basis, increments)
        scale = beta.value * self.reference
        relative = beta.first / beta.value  # derivative of the log slopes of a row by its predictor
        da, curvature = np.empty((2, self.rows.n_rows))
        crossed = np.empty((MAP_SEGMENTS, self.rows.n_rows))
        right = self.rows.top == self.rows.labels

        def use(at: slice, m: _RowMoments) -> tuple[Vector, ...]:
            # These are the moments of q; the slopes of row i, w times its scale, multiply them.
            of_row = scale[at]
            share, by_row = self.share[at], relative[at] * self.share[at]
            mean = of_row * (w @ m.mean)  # the derivative of the log confidence by all log slopes
            label = of_row * (w @ m.label)
            value, pull, emphasis = _with_top_label(m.log_sum, right[at])
            da[at] = (label - pull * mean) * by_row
            along_rows = m.covariances_with_sum(w, emphasis * mean / of_row)
            squared = of_row**2
            np.multiply(along_rows, squared * by_row, out=crossed[:, at])
            curvature[at] = (w @ crossed[:, at]) * relative[at]
            gradient = w * (m.label @ (of_row * share) - m.mean @ (pull * of_row * share))
            total = m.sum_of_covariances(squared * share)
            total += (m.mean * (emphasis * squared * share)) @ m.mean.T
            return np.array([share @ (value + label)]), gradient, total

        value, by_slope, covariances = _sum_moments(self.rows, self.reference, w, scale, use)
        of_own, fisher = self.predictor.pull_back(own, da, curvature)
        slopes = basis * w[:, None]
        mixed = self.predictor.gather(crossed.T) @ slopes
        return ObjectivePoint(
            float(value[0]),
            np.concatenate([of_own, by_slope @ basis]),
            np.block([[fisher, mixed], [mixed.T, slopes.T @ covariances @ slopes]]),
        )

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        own, increments = np.split(theta, [self.predictor.n_parameters])
        beta = self.link.beta(self.predictor.predict(own))
        w, basis = slopes_of(self.basis, increments)
        scale, right = beta.value * self.reference, self.rows.top == self.rows.labels
        da, of_map = np.empty(self.rows.n_rows), np.empty((self.rows.n_rows, basis.shape[1]))

        def use(at: slice, m: _RowMoments) -> tuple[()]:
            _, pull, _ = _with_top_label(m.log_sum, right[at])
            gradient = w[:, None] * scale[at] * (m.label - pull * m.mean)
            da[at], of_map[at] = gradient.sum(axis=0), gradient.T @ basis
            return ()

        _sum_moments(self.rows, self.reference, w, scale, use)
        da *= beta.first / beta.value
        return np.hstack([da[:, None] * self.predictor.jacobian(own), of_map])


def _with_top_label(log_sum: Vector, right: NDArray[np.bool_]) -> tuple[Vector, Vector, Vector]:
    """Return what the extra weight of the predicted class adds to each data row.

    The first is the value without the term of the label; the others multiply E q in the gradient, and the
    product of E q with itself in the Fisher matrix.
    """
    confidence = np.exp(-log_sum)
    doubt = np.maximum(-np.expm1(-log_sum), 1e-38)  # 1 - p can underflow
    value = log_sum + EMPHASIS * np.where(right, log_sum, -np.log(doubt))
    return value, 1 + EMPHASIS * (right - confidence) / doubt, EMPHASIS * confidence / doubt


def slopes_of(basis: Matrix, increments: Vector) -> tuple[Vector, Matrix]:
    """Return the slopes, and the derivatives of their logs by the increments: 0 at the limit."""
    logs = basis @ increments
    inside = np.abs(logs) < MAX_LOG_SLOPE
    return np.exp(np.clip(logs, -MAX_LOG_SLOPE, MAX_LOG_SLOPE)), basis * inside[:, None]


def slope_weights(rows: LogitRows, weights: Vector | None, reference: float) -> tuple[Vector]:
    """Return the rows' information about a common factor of the slopes, by segment, as sums over rows."""
    share = np.ones(rows.n_rows) if weights is None else weights

    def use(at: slice, m: _RowMoments) -> tuple[Vector]:
        return (m.sum_of_covariances(share[at]).sum(axis=1),)

    return (_sum_moments(rows, reference, np.ones(MAP_SEGMENTS), 1.0, use)[0],)


def increments_basis(information: Vector) -> Matrix:
    """Return the matrix from increments to log slopes, whose mean weighted by `information` is 0.

    So the map leaves the overall temperature to T: the two are orthogonal at T0.
    """
    informative = np.maximum(information, 0.0)
    total = informative.sum()
    share = informative / total if total > 0 else np.full(len(KNOTS), 1 / len(KNOTS))
    steps = np.vstack([np.zeros(len(KNOTS) - 1), np.tril(np.ones((len(KNOTS) - 1, len(KNOTS) - 1)))])
    return steps - share @ steps
