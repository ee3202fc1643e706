"""Increasing maps of log-probabilities: the likelihood of labels as a function of the slopes of the map.

With e = -log softmax(z / T0) of each class, knots 0 = k_1 < ... < k_J and positive slopes w_j:

    u = sum_j w_j length_j(e)        length_j(e): how much of [0, e] lies between k_j and k_j+1
    p = softmax(-u)

One increasing function for all classes keeps their order. It can change small probabilities differently from
large ones, which no temperature can. With q = length - length of the top class, all moments of a row
come from sums over the classes of each segment (`kernels`), since q_i q_j = q_j times a constant for i < j:

    gradient of w:  q_label - E_p q            Hessian: Cov_p q, positive semi-definite: convex in w
    Cov(q_i, q_j) = (rest_i - E q_i) E q_j     for i < j; rest_i: q_i of a class beyond segment i

So no covariance matrix is formed for a row: sums over rows of such products are matrix products, and sums
along a row of the matrix are running sums. Arrays are (segments, rows), so that both run along the rows.

`RowMapLikelihood` lets the slopes of a row be w / (T(z) / T0), with log w and log T linear in parameters. It
gives extra weight to what users act on: whether the predicted class is right. With p the confidence and c
whether the predicted class is right, each row adds to its negative log-likelihood EMPHASIS times

    b = -c log p - (1 - c) log(1 - p)

One map has to serve the top probability and all the others. Where they disagree, the many small ones
dominate the likelihood, and the top probability is less well calibrated. With g the derivative of log p by
the logs of the slopes, that of b is -(c - p) / (1 - p) g, and its Fisher matrix p / (1 - p) g g'.
"""

from __future__ import annotations

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
_CLOSED = np.diff(KNOTS)[:, None]  # the last segment is unbounded, and nothing lies beyond it


@dataclass(frozen=True)
class _RowMoments:
    """Moments of some rows for the slopes: log-probabilities, q of the label, E q, rest - E q, Var q."""

    log_sum: Vector  # log of the sum of p / p of the top class
    label: Matrix
    mean: Matrix
    ahead: Matrix
    variance: Matrix

    def times(self, slopes: Matrix) -> _RowMoments:
        """Return the moments of q times the slopes."""
        label, mean, ahead = self.label * slopes, self.mean * slopes, self.ahead * slopes
        return _RowMoments(self.log_sum, label, mean, ahead, self.variance * slopes**2)

    def sum_of_covariances(self, share: Vector) -> Matrix:
        """Return the sum over rows of share times Cov q."""
        upper = np.triu((self.ahead * share) @ self.mean.T, 1)
        return upper + upper.T + np.diag(self.variance @ share)

    def row_sums_of_covariances(self) -> Matrix:
        """Return the row sums of Cov q for each data row, (segments, rows)."""
        result = self.variance.copy()
        result[:-1] += self.ahead[:-1] * np.cumsum(self.mean[:0:-1], axis=0)[::-1]
        result[1:] += self.mean[1:] * np.cumsum(self.ahead[:-1], axis=0)
        return result


def _lengths(e: Vector) -> Matrix:
    """Return how much of [0, e] lies in each segment, (segments, rows)."""
    return np.minimum(np.maximum(e - KNOTS[:, None], 0.0), _WIDTHS[:, None])


def _moments(e_top: Vector, e_label: Vector, sums: Matrix) -> _RowMoments:
    """Turn the sums over segments of all classes but the top into moments of q."""
    P, Q, R = sums
    top = _lengths(e_top)
    mean = Q - top * P
    squares = R - top * (Q + mean)
    ahead = np.zeros_like(top)
    rest = np.subtract(_CLOSED, top[:-1], out=ahead[:-1])
    of_others = rest * np.cumsum(P[:0:-1], axis=0)[::-1]
    mean[:-1] += of_others
    squares[:-1] += rest * of_others
    total = P.sum(axis=0)
    mean /= 1 + total
    squares /= 1 + total
    squares -= mean**2
    ahead -= mean
    label = _lengths(e_label) - top
    return _RowMoments(np.log1p(total), label, mean, ahead, np.maximum(squares, 0.0, out=squares))


def _labelled_moments(rows: LogitRows, reference: float, at: slice, sums: Matrix) -> _RowMoments:
    """Return the moments of some rows with labels, at a reference temperature T0."""
    e_top = rows.log_sum_at(1 / reference)[at]
    return _moments(e_top, e_top - rows.label_gap[at] / reference, sums)


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

    def evaluate(self, theta: Vector) -> ObjectivePoint:
        """Return the value and the derivatives, without the prior."""

        def use(at: slice, sums: Matrix) -> tuple[Vector, ...]:
            m, share = _labelled_moments(self.rows, self.reference, at, sums), self.share[at]
            value = share @ (m.log_sum + theta @ m.label)
            return np.array([value]), (m.label - m.mean) @ share, m.sum_of_covariances(share)

        ones = np.ones(self.rows.n_rows)
        value, gradient, hessian = self.rows.sum_segments(
            1 / self.reference, MapTable.of(KNOTS, theta), ones, use
        )
        return ObjectivePoint(float(value[0]), lambda with_fisher: (gradient, hessian))

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        result = np.empty((self.rows.n_rows, len(theta)))

        def use(at: slice, sums: Matrix) -> tuple[Vector, ...]:
            m = _labelled_moments(self.rows, self.reference, at, sums)
            result[at] = (m.label - m.mean).T
            return ()

        ones = np.ones(self.rows.n_rows)
        self.rows.sum_segments(1 / self.reference, MapTable.of(KNOTS, theta), ones, use)
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

    def evaluate(self, theta: Vector) -> ObjectivePoint:
        """Return the value and the derivatives, without the prior."""
        own, increments = np.split(theta, [self.predictor.n_parameters])
        beta = self.link.beta(self.predictor.predict(own))
        w, basis = slopes_of(self.basis, increments)
        scale = beta.value * self.reference
        relative = beta.first / beta.value  # derivative of the log slopes of a row by its predictor
        da, curvature = np.empty((2, self.rows.n_rows))
        crossed = np.empty((self.rows.n_rows, basis.shape[1]))
        right = self.rows.top == self.rows.labels

        def use(at: slice, sums: Matrix) -> tuple[Vector, ...]:
            share, by_row = self.share[at], relative[at] * self.share[at]
            m = _labelled_moments(self.rows, self.reference, at, sums).times(w[:, None] * scale[at])
            value, gradient, along_rows, total = _with_top_label(m, right[at], share)
            da[at] = gradient.sum(axis=0) * by_row
            curvature[at] = along_rows.sum(axis=0) * relative[at] * by_row
            crossed[at] = ((along_rows * by_row).T) @ basis
            return np.array([share @ value]), gradient @ share @ basis, basis.T @ total @ basis

        value, of_map, map_fisher = self.rows.sum_segments(
            1 / self.reference, MapTable.of(KNOTS, w), scale, use
        )

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            of_own, fisher = self.predictor.pull_back(own, da, curvature if with_fisher else None)
            gradient = np.concatenate([of_own, of_map])
            if fisher is None:
                return gradient, None
            mixed = self.predictor.gather(crossed)
            return gradient, np.block([[fisher, mixed], [mixed.T, map_fisher]])

        return ObjectivePoint(float(value[0]), derive)

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        own, increments = np.split(theta, [self.predictor.n_parameters])
        beta = self.link.beta(self.predictor.predict(own))
        w, basis = slopes_of(self.basis, increments)
        scale, right = beta.value * self.reference, self.rows.top == self.rows.labels
        da, of_map = np.empty(self.rows.n_rows), np.empty((self.rows.n_rows, basis.shape[1]))

        def use(at: slice, sums: Matrix) -> tuple[Vector, ...]:
            m = _labelled_moments(self.rows, self.reference, at, sums).times(w[:, None] * scale[at])
            gradient = _with_top_label(m, right[at], self.share[at])[1]
            da[at], of_map[at] = gradient.sum(axis=0), gradient.T @ basis
            return ()

        self.rows.sum_segments(1 / self.reference, MapTable.of(KNOTS, w), scale, use)
        da *= beta.first / beta.value
        return np.hstack([da[:, None] * self.predictor.jacobian(own), of_map])


def _with_top_label(
    m: _RowMoments, right: NDArray[np.bool_], share: Vector
) -> tuple[Vector, Matrix, Matrix, Matrix]:
    """Return value and derivatives by the logs of the slopes, from the moments of q times the slopes.

    For each data row: its value, its gradient, and the row sums of its Fisher matrix; then the
    sum over all data rows of share times that matrix. `mean` is the derivative of the log confidence.
    """
    confidence = np.exp(-m.log_sum)
    doubt = np.maximum(-np.expm1(-m.log_sum), 1e-38)  # 1 - p may underflow
    value = m.log_sum + m.label.sum(axis=0)
    value += EMPHASIS * np.where(right, m.log_sum, -np.log(doubt))
    gradient = m.label - (1 + EMPHASIS * (right - confidence) / doubt) * m.mean
    emphasis = EMPHASIS * confidence / doubt
    along_rows = m.row_sums_of_covariances() + emphasis * m.mean.sum(axis=0) * m.mean
    total = m.sum_of_covariances(share) + (m.mean * (emphasis * share)) @ m.mean.T
    return value, gradient, along_rows, total


def slopes_of(basis: Matrix, increments: Vector) -> tuple[Vector, Matrix]:
    """Return the slopes, and the derivatives of their logs by the increments: 0 at the limit."""
    logs = basis @ increments
    inside = np.abs(logs) < MAX_LOG_SLOPE
    return np.exp(np.clip(logs, -MAX_LOG_SLOPE, MAX_LOG_SLOPE)), basis * inside[:, None]


def slope_weights(rows: LogitRows, weights: Vector | None, reference: float) -> tuple[Vector]:
    """Return the rows' information about a common factor of the slopes, by segment, as sums over rows."""
    share = np.ones(rows.n_rows) if weights is None else weights

    def use(at: slice, sums: Matrix) -> tuple[Vector]:
        log_s = rows.log_sum_at(1 / reference)[at]
        return (_moments(log_s, log_s, sums).sum_of_covariances(share[at]).sum(axis=1),)

    straight = MapTable.of(KNOTS, np.ones(len(KNOTS)))
    return (rows.sum_segments(1 / reference, straight, np.ones(rows.n_rows), use)[0],)


def increments_basis(information: Vector) -> Matrix:
    """Return the matrix from increments to log slopes, whose mean weighted by `information` is 0.

    So the map leaves the overall temperature to T: the two are orthogonal at T0.
    """
    informative = np.maximum(information, 0.0)
    total = informative.sum()
    share = informative / total if total > 0 else np.full(len(KNOTS), 1 / len(KNOTS))
    steps = np.vstack([np.zeros(len(KNOTS) - 1), np.tril(np.ones((len(KNOTS) - 1, len(KNOTS) - 1)))])
    return steps - share @ steps
