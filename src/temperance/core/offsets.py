"""A bias for each class, after the temperature: softmax(z / T(z) + W x), and its likelihood.

    x = [1]  or  x = [1, (z - mean z) / scale]          W: K x J, J the length of x

W's first column is a bias for each class; the others let the bias of a class depend on the logits of all.
With u = beta d + W x (d the gaps to the top, beta = 1/T), p = softmax(u), y the label's indicator:

    gradient  of a: (E_p d - d_y) beta'                     of W: (p - y) x'
    Fisher    a, a: Var_p d beta'^2      a, W: beta' p (d - E_p d) x'      W, W: (diag p - p p') x x'

Unlike a temperature, a bias may change the predicted class. Rows with masked classes are not meant here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.blocks import Scratch
from temperance.core.links import Link
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.objective import Derive, LogLikelihood, Prior
from temperance.core.predictors import ByClass

__all__ = ["Inputs", "OffsetLogLikelihood", "offset_mixture"]


@dataclass(frozen=True)
class Inputs:
    """What the offsets depend on: a constant, and with a `scale` the logits less their mean over it."""

    n_classes: int
    scale: float | None

    @property
    def width(self) -> int:
        """How many numbers x has."""
        return 1 if self.scale is None else 1 + self.n_classes

    @property
    def n_offsets(self) -> int:
        """How many numbers the offsets are made from."""
        return self.n_classes * self.width

    def of(self, d: Matrix) -> Matrix:
        """Return x of rows with the gaps `d`."""
        one = np.ones((len(d), 1))
        if self.scale is None:
            return one
        return np.hstack([one, (d - d.mean(axis=1, keepdims=True)) / self.scale])


class OffsetLogLikelihood(LogLikelihood):
    """The mean negative log-likelihood as a function of [theta of the predictor, columns of W]."""

    predictor: ByClass

    def __init__(
        self,
        rows: LogitRows,
        predictor: ByClass,
        link: Link,
        inputs: Inputs,
        weights: Vector | None = None,
        prior: Prior | None = None,
    ) -> None:
        super().__init__(rows, predictor, link, weights, prior)
        self.inputs = inputs
        self.n_parameters = predictor.n_parameters + inputs.n_offsets
        self.noise = float(np.finfo(np.float64).eps)

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        predictor = self.predictor.take(index, rows)
        return type(self)(rows, predictor, self.link, self.inputs, weights, self.prior)

    def evaluate(self, theta: Vector) -> tuple[float, Derive]:
        """Return the value, and the function that gives the derivatives, both without the prior."""
        split = self.predictor.n_parameters
        beta = self.link.beta(self.predictor.predict(theta[:split]))
        W = theta[split:].reshape(self.inputs.width, self.inputs.n_classes).T
        share = self.share

        def value_of(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector]:
            _, _, u = self._logits(z, i, j, beta.value, W)
            at_label = u[np.arange(j - i), self._labels(i, j)]
            return (np.array([share[i:j] @ (_log_sum(u)[:, 0] - at_label)]),)

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            return self._derive(theta[:split], W, beta.value, beta.first, share, with_fisher)

        return float(self.rows.sum(value_of)[0][0]), derive

    def _labels(self, i: int, j: int) -> NDArray[np.intp]:
        assert self.rows.labels is not None
        return self.rows.labels[i:j]

    def _logits(self, z: Floats, i: int, j: int, beta: Vector, W: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        d = z.astype(np.float64) - self.rows.peak[i:j, None]
        x = self.inputs.of(d)
        return d, x, beta[i:j, None] * d + x @ W.T

    def _derive(
        self, theta: Vector, W: Matrix, beta: Vector, slope: Vector, share: Vector, with_fisher: bool
    ) -> tuple[Vector, Matrix | None]:
        n_rows, (K, J) = self.rows.n_rows, W.shape
        r, v = np.empty((2, n_rows))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Matrix, ...]:
            d, x, u = self._logits(z, i, j, beta, W)
            p = np.exp(u - _log_sum(u))
            label, each, s = self._labels(i, j), np.arange(j - i), share[i:j, None]
            mean = np.sum(p * d, axis=1)
            r[i:j] = mean - d[each, label]
            v[i:j] = np.sum(p * (d - mean[:, None]) ** 2, axis=1)
            residual = p.copy()
            residual[each, label] -= 1
            gradient = x.T @ (residual * s)
            if not with_fisher:
                return (gradient,)
            spread = _outer(p * (d - mean[:, None]) * (slope[i:j, None] * s), x)
            cross = self.predictor.jacobian(i, j).T @ spread
            root = _outer(p * np.sqrt(s), x)
            return gradient, cross, root.T @ root, (p * s).T @ _outer(x, x)

        sums = self.rows.sum(work, width=K * J)
        ga, fa = self.predictor.pull_back(theta, r * slope * share, v * slope**2 * share)
        gradient = np.concatenate([ga, sums[0].ravel()])
        if not with_fisher:
            return gradient, None
        assert fa is not None
        _, cross, outer, own = sums
        within = -outer
        for k in range(K):
            within[k::K, k::K] += own[k].reshape(J, J)
        return gradient, np.block([[fa, cross], [cross.T, within]])


def _log_sum(u: Matrix) -> Matrix:
    """Return log sum exp of each row, as a column."""
    top = u.max(axis=1, keepdims=True)
    return np.log(np.exp(u - top).sum(axis=1, keepdims=True)) + top


def _outer(a: Matrix, x: Matrix) -> Matrix:
    """Return the products x_j a_k of each row, as one row of J K numbers."""
    return (x[:, :, None] * a[:, None, :]).reshape(len(a), -1)


def offset_mixture(
    rows: LogitRows, betas: Matrix, weights: Vector, inputs: Inputs, W: Matrix, *, log: bool
) -> Floats:
    """Return sum_q weights[q] softmax(betas[i, q] z_i + W x_i) of each row i, or its logarithm.

    The logarithm is right also where the probability underflows.
    """
    result = np.empty((rows.n_rows, rows.n_classes), rows.dtype)
    add, nothing = (np.logaddexp, -np.inf) if log else (np.add, 0.0)

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector]:
        d = z.astype(np.float64) - rows.peak[i:j, None]
        offset = inputs.of(d) @ W.T
        total = np.full(d.shape, nothing)
        for beta, weight in zip(betas[i:j].T, weights, strict=True):
            u = beta[:, None] * d + offset
            u -= _log_sum(u)
            u += np.log(weight)
            add(total, u if log else np.exp(u), out=total)
        result[i:j] = np.minimum(total, 0.0 if log else 1.0)  # rounded weights may add up to more
        return (np.zeros(0),)

    rows.sum(work)
    return result
