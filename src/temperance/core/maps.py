"""Increasing maps of log-probabilities: the likelihood of labels as a function of the slopes of the map.

With e = -log softmax(z / T0) of each class, knots 0 = k_1 < ... < k_J and positive slopes w_j:

    u = sum_j w_j length_j(e)        length_j(e): how much of [0, e] lies between k_j and k_j+1
    p = softmax(-u)

One increasing function for all classes keeps their order. It can change small probabilities differently from
large ones, which no temperature can. With q = length - length of the top class, all moments of a row
come from sums over the classes of each segment (`kernels`), since q_i q_j = q_j times a constant for i < j:

    gradient of w:  q_label - E_p q            Hessian: Cov_p q, positive semi-definite: convex in w

`RowMapLikelihood` lets the slopes of a row be w / (T(z) / T0), with log w and log T linear in parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Matrix, Vector
from temperance.core.kernels import KNOTS, MapTable
from temperance.core.links import Link
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.objective import Derive, Prior, RowObjective
from temperance.core.predictors import ByClass
from temperance.core.quantiles import quantiles
from temperance.core.top_label import EMPHASIS, LEAST

STEEPEST = 12.0  # of the absolute log of a slope: beyond, a class is practically certain or impossible
MAP_SEGMENTS = len(KNOTS)
_WIDTHS = np.append(np.diff(KNOTS), np.inf)
_CLOSED = np.append(np.diff(KNOTS), 0.0)  # the last segment has no end, and nothing lies beyond it
_ABOVE = np.triu(np.ones((MAP_SEGMENTS, MAP_SEGMENTS), bool), 1)


def lengths(e: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of [0, e] lies in each segment, on a new last axis."""
    return np.clip(e[..., None] - KNOTS, 0.0, _WIDTHS)


@dataclass(frozen=True)
class _RowMoments:
    """What some rows tell of their slopes: log-probabilities, E q, Cov q, and q of the label."""

    log_sum: Vector  # of p over p of the top class
    mean: Matrix
    covariance: NDArray[np.float64]
    label: Matrix


def _moments(e_top: Vector, e_label: Vector, sums: Matrix) -> _RowMoments:
    """Turn the sums over segments of all classes but the top into moments of q."""
    P, Q, R = sums
    top = lengths(e_top)
    beyond = np.zeros(P.shape)
    beyond[:, :-1] = np.cumsum(P[:, :0:-1], axis=1)[:, ::-1]
    rest = np.where(_CLOSED > 0, _CLOSED - top, 0.0)  # q of a class beyond the segment
    total = 1 + P.sum(axis=1, keepdims=True)
    mean = (Q - top * P + rest * beyond) / total
    squares = (R - 2 * top * Q + top**2 * P + rest**2 * beyond) / total
    # E q_i q_j = rest_i E q_j for i < j
    upper = (rest[:, :, None] - mean[:, :, None]) * mean[:, None, :]
    second = np.where(_ABOVE, upper, upper.transpose(0, 2, 1))
    each = np.arange(P.shape[1])
    second[:, each, each] = np.maximum(squares - mean**2, 0.0)
    return _RowMoments(np.log1p(P.sum(axis=1)), mean, second, lengths(e_label) - top)


class _MapObjective(RowObjective):
    """Rows with labels at a reference temperature T0."""

    def __init__(
        self, rows: LogitRows, reference: float, weights: Vector | None = None, prior: Prior | None = None
    ) -> None:
        super().__init__(rows, weights, prior)
        self.reference = reference

    def _e_label(self, at: slice) -> Vector:
        e: Vector = self._e_top(at) - self.rows.label_gap[at] / self.reference
        return e

    def _e_top(self, at: slice) -> Vector:
        return self.rows.log_sum_at(1 / self.reference)[at]

    def _row_moments(self, at: slice, sums: Matrix) -> _RowMoments:
        return _moments(self._e_top(at), self._e_label(at), sums)


class MapLikelihood(_MapObjective):
    """The mean negative log-likelihood as a function of the slopes of one map for all rows: convex."""

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        return type(self)(rows, self.reference, weights, self.prior)

    def evaluate(self, theta: Vector) -> tuple[float, Derive]:
        """Return the value, and the function that gives the derivatives, both without the prior."""

        def use(at: slice, sums: Matrix) -> tuple[Vector, ...]:
            m, share = self._row_moments(at, sums), self.share[at]
            value = share @ (m.log_sum + m.label @ theta)
            return np.array([value]), share @ (m.label - m.mean), np.tensordot(share, m.covariance, 1)

        ones = np.ones(self.rows.n_rows)
        value, gradient, hessian = self.rows.sum_segments(
            1 / self.reference, MapTable.of(KNOTS, theta), ones, use
        )
        return float(value[0]), lambda with_fisher: (gradient, hessian if with_fisher else None)


class RowMapLikelihood(_MapObjective):
    """The likelihood as a function of [theta of log T, increments of log w], with extra top-label weight.

    Row i has the slopes w T0 / T_i. The logs of the slopes are `basis` @ increments. The fit gives extra
    weight to whether the predicted class is right (`top_label`): one map serves all probabilities at once.
    """

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
        super().__init__(rows, reference, weights, prior)
        self.predictor, self.link, self.basis = predictor, link, basis
        self.n_parameters = predictor.n_parameters + basis.shape[1]

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        predictor = self.predictor.take(index, rows)
        return type(self)(rows, self.reference, predictor, self.link, self.basis, weights, self.prior)

    def temperatures(self, theta: Vector) -> Vector:
        """Return T of each row."""
        return self.link.temperature(self.predictor.predict(theta[: self.predictor.n_parameters]))

    def temperature_quantiles(self, theta: Vector, shares: Vector) -> Vector:
        """Return quantiles of T over the rows."""
        return quantiles(self.temperatures(theta), self.weights, shares).values

    def evaluate(self, theta: Vector) -> tuple[float, Derive]:
        """Return the value, and the function that gives the derivatives, both without the prior."""
        own, increments = np.split(theta, [self.predictor.n_parameters])
        beta = self.link.beta(self.predictor.predict(own))
        w, basis = slopes_of(self.basis, increments)
        scale = beta.value * self.reference
        relative = beta.first / beta.value  # derivative of the log slopes of a row by its predictor
        da, curvature = np.empty((2, self.rows.n_rows))
        right = self.rows.top == self.rows.labels

        def use(at: slice, sums: Matrix) -> tuple[Vector, ...]:
            m, share = self._row_moments(at, sums), self.share[at]
            value, gradient, fisher = _with_top_label(m, right[at], scale[at, None] * w)
            by_scale = gradient.sum(axis=1)
            row_cross = fisher.sum(axis=2)
            da[at] = by_scale * relative[at] * share
            curvature[at] = row_cross.sum(axis=1) * relative[at] ** 2 * share
            mixed = self.predictor.gather(row_cross @ basis * (relative[at] * share)[:, None], at)
            total = np.tensordot(share, fisher, 1)
            return np.array([share @ value]), share @ gradient @ basis, basis.T @ total @ basis, mixed

        value, of_map, map_fisher, mixed = self.rows.sum_segments(
            1 / self.reference, MapTable.of(KNOTS, w), scale, use
        )

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            of_own, fisher = self.predictor.pull_back(own, da, curvature if with_fisher else None)
            gradient = np.concatenate([of_own, of_map])
            if fisher is None:
                return gradient, None
            return gradient, np.block([[fisher, mixed], [mixed.T, map_fisher]])

        return float(value[0]), derive


def _with_top_label(
    m: _RowMoments, right: NDArray[np.bool_], slopes: Matrix
) -> tuple[Vector, Matrix, NDArray[np.float64]]:
    """Return value, gradient and Fisher matrix of each row by the logs of its slopes."""
    confidence = np.exp(-m.log_sum)
    doubt = np.maximum(-np.expm1(-m.log_sum), LEAST)
    value = m.log_sum + np.sum(m.label * slopes, axis=1)
    value += EMPHASIS * np.where(right, m.log_sum, -np.log(doubt))
    mean = m.mean * slopes  # the derivative of the log confidence
    gradient = m.label * slopes - (1 + EMPHASIS * (right - confidence) / doubt)[:, None] * mean
    fisher = m.covariance * slopes[:, :, None] * slopes[:, None, :]
    fisher += (EMPHASIS * confidence / doubt)[:, None, None] * mean[:, :, None] * mean[:, None, :]
    return value, gradient, fisher


def slopes_of(basis: Matrix, increments: Vector) -> tuple[Vector, Matrix]:
    """Return the slopes, and the derivatives of their logs by the increments: 0 at the limit."""
    logs = basis @ increments
    inside = np.abs(logs) < STEEPEST
    return np.exp(np.clip(logs, -STEEPEST, STEEPEST)), basis * inside[:, None]


def slope_weights(rows: LogitRows, reference: float, weights: Vector | None) -> tuple[Vector]:
    """Return the rows' information about a common factor of the slopes, by segment, as sums over rows."""
    share = np.ones(rows.n_rows) if weights is None else weights

    def use(at: slice, sums: Matrix) -> tuple[Vector]:
        log_s = rows.log_sum_at(1 / reference)[at]
        return (share[at] @ _moments(log_s, log_s, sums).covariance.sum(axis=2),)

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
