"""The losses of ETS, a mixture of three predictions at three inverse temperatures.

    p = w_1 q(1/T) + w_2 q(1) + w_3 q(0),      q(b) = softmax(b z),      w >= 0, w_1 + w_2 + w_3 = 1

q(0) is uniform over the row's possible classes. Both losses need row moments only:

    q_y(b)              = exp(b d_y) / s(b)                 d q_y(b) / d b  = q_y(b) (d_y - mu(b))
    sum_k q_k(b) q_k(c) = s(b + c) / (s(b) s(c))            d log of it / d b = mu(b + c) - mu(b)
    sum_k (d q_k(b) / d b)^2 = s(2b) / s(b)^2 (v(2b) + (mu(2b) - mu(b))^2)

The parameters are (log T, u, q), so that any u and q from 0 to 1 give weights:

    w_1 = 1 - u,        w_2 = u (1 - q),        w_3 = u q

The curvature is the Gauss-Newton approximation.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.features import ALMOST_ZERO
from temperance.core.logit_rows import Index, LogitRows, Moments
from temperance.core.objective import ObjectivePoint, RowObjective


def mixture_weights(theta: Vector) -> Vector:
    """Return the weights (w_1, w_2, w_3) for these parameters."""
    _, u, q = theta
    return np.array([1 - u, u * (1 - q), u * q])


class MixtureLoss(RowObjective):
    """The mean loss of the mixture."""

    def __init__(self, rows: LogitRows, weights: Vector | None = None) -> None:
        super().__init__(rows, weights)
        self.raw = rows.moments(1.0, variance=False)
        self.uniform = rows.moments(ALMOST_ZERO, variance=False)

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        return type(self)(rows, weights)

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives at (log T, u, q)."""
        _, u, q = theta
        w = mixture_weights(theta)
        beta = float(np.exp(-theta[0]))
        value, gradient, curvature = self._evaluate(beta, w, self.rows.moments(beta, variance=False))
        # d beta / d log T = -beta, and the derivatives of the weights
        jacobian = np.array([[-beta * w[0], 0, 0, 0], [0, -1, 1 - q, q], [0, 0, -u, u]])
        return ObjectivePoint(value, jacobian @ gradient, jacobian @ curvature @ jacobian.T)

    def _log_at_label(self, tempered: Moments, beta: float) -> Matrix:
        """Return log q_y of the three components, (3, N)."""
        parts = ((tempered, beta), (self.raw, 1.0), (self.uniform, 0.0))
        return np.stack([b * self.rows.label_gap - moments.log_s for moments, b in parts])

    @abstractmethod
    def _evaluate(self, beta: float, w: Vector, tempered: Moments) -> tuple[float, Vector, Matrix]:
        """Return the value, and its gradient and curvature in (d q_1 / d beta, w_1, w_2, w_3)."""


class LogMixture(MixtureLoss):
    """Mean negative log-likelihood."""

    def _evaluate(self, beta: float, w: Vector, tempered: Moments) -> tuple[float, Vector, Matrix]:
        log_q = self._log_at_label(tempered, beta)
        used = w > 0
        log_p = np.logaddexp.reduce(np.log(w[used])[:, None] + log_q[used], axis=0)
        # A component with weight 0 can be better by any factor; the square of its slope must stay finite.
        ratio = np.exp(np.minimum(log_q - log_p, 300.0))
        slopes = np.vstack([ratio[0] * (self.rows.label_gap - tempered.mu), ratio])
        return float(-log_p @ self.share), -slopes @ self.share, (slopes * self.share) @ slopes.T


class BrierMixture(MixtureLoss):
    """Mean Brier score."""

    def __init__(self, rows: LogitRows, weights: Vector | None = None) -> None:
        super().__init__(rows, weights)
        self.raw_raw = np.exp(rows.moments(2.0, variance=False).log_s - 2 * self.raw.log_s)

    def _evaluate(self, beta: float, w: Vector, tempered: Moments) -> tuple[float, Vector, Matrix]:
        q = np.exp(self._log_at_label(tempered, beta))
        twice, shifted = self.rows.moments(2 * beta), self.rows.moments(beta + 1, variance=False)
        own = np.exp(twice.log_s - 2 * tempered.log_s)
        mixed = np.exp(shifted.log_s - tempered.log_s - self.raw.log_s)
        flat = np.exp(-self.uniform.log_s)
        step = twice.mu - tempered.mu
        zero = np.zeros_like(own)
        # Sums over classes of the products of (d q_1 / d beta, q_1, q_2, q_3).
        slope_slope = own * (twice.v + step**2)
        slope_raw = mixed * (shifted.mu - tempered.mu)
        products = np.array(
            [
                [slope_slope, own * step, slope_raw, zero],
                [own * step, own, mixed, flat],
                [slope_raw, mixed, self.raw_raw, flat],
                [zero, flat, flat, flat],
            ]
        )
        gram = products @ self.share
        at_label = np.vstack([q[0] * (self.rows.label_gap - tempered.mu), q]) @ self.share
        full = np.concatenate([[0.0], w])
        gradient = 2 * (gram @ full - at_label)
        return float(full @ gram @ full - 2 * at_label @ full + 1), gradient, 2 * gram
