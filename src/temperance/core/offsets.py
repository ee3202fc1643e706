"""A bias for each class, after the temperature: softmax(z / T(z) + W x), and its likelihood.

    x = [1]  or  x = [1, (z - mean z) / scale]          W: K x J, J the length of x

W's first column is a bias for each class; the others let the bias of a class depend on the logits of all.
With u = beta d + W x (d the gaps to the top, beta = 1/T), p = softmax(u), y the label's indicator:

    gradient  of a: (E_p d - d_y) beta'                     of W: (p - y) x'
    Fisher    a, a: Var_p d beta'^2      a, W: beta' p (d - E_p d) x'      W, W: (diag p - p p') x x'

Unlike a temperature, a bias may change the predicted class. Rows with masked classes are not supported here.
The value and the gradient come from one pass, in blocks that fit the cache; the Fisher matrix is formed only
on request, and its diagonal can be computed without it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.biased_rows import Inputs, exponentiate
from temperance.core.blocks import FEW_CLASSES, Scratch
from temperance.core.links import Beta, Link
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.objective import Derive, LogLikelihood, Prior
from temperance.core.predictors import ByClass

# Up to this spread of the biases, the largest bias may replace the largest u of each row.
NARROW = 20.0


class OffsetLogLikelihood(LogLikelihood):
    """The mean negative log-likelihood as a function of [theta of the predictor, columns of W].

    Rows are computed in `dtype`, and sums over rows in float64.
    """

    predictor: ByClass

    def __init__(
        self,
        rows: LogitRows,
        predictor: ByClass,
        link: Link,
        inputs: Inputs,
        weights: Vector | None = None,
        prior: Prior | None = None,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:
        super().__init__(rows, predictor, link, weights, prior)
        self.inputs, self.dtype = inputs, dtype
        self.n_parameters = predictor.n_parameters + inputs.n_offsets
        self.noise = float(np.finfo(dtype).eps)
        # Bytes, not numbers: these blocks must stay in the cache, unlike those of a Gram matrix.
        self._width = rows.n_classes * np.dtype(dtype).itemsize

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        predictor = self.predictor.take(index, rows)
        return type(self)(rows, predictor, self.link, self.inputs, weights, self.prior, self.dtype)

    def evaluate(self, theta: Vector) -> tuple[float, Derive]:
        """Return the value, and the function that gives the derivatives, both without the prior."""
        own, beta, W = self._split(theta)
        r, labels = np.empty(self.rows.n_rows), self.rows.labels
        assert labels is not None

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector, Matrix]:
            d, x, u, near_zero = self._logits(z, i, j, beta, W)
            of_label, share = (np.arange(j - i), labels[i:j]), self.share[i:j]
            at_label = u[of_label]
            sums, log_sums = exponentiate(u, near_zero=near_zero)
            r[i:j] = np.einsum("ij,ij->i", u, d) / sums - self.rows.label_gap[i:j]
            u[of_label] -= sums  # now p - y, times the sums
            gradient = (x * (share / sums)[:, None]).astype(self.dtype).T @ u
            return np.array([share @ (log_sums - at_label)]), gradient.astype(np.float64)

        value, gradient = self.rows.sum(work, self._width)

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            ga, _ = self.predictor.pull_back(own, r * beta.first * self.share, None)
            fisher = self._fisher(own, beta, W) if with_fisher else None
            return np.concatenate([ga, gradient.ravel()]), fisher

        return float(value[0]), derive

    def diagonal(self, theta: Vector) -> Vector:
        """Return the diagonal of the Fisher matrix plus the prior's, without forming the offsets' matrix."""
        own, beta, W = self._split(theta)
        v = np.empty(self.rows.n_rows)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Matrix]:
            x, p, _, v[i:j] = self._moments(z, i, j, beta, W)
            p -= p * p
            return (((x * x * self.share[i:j, None]).astype(self.dtype).T @ p).astype(np.float64),)

        (offsets,) = self.rows.sum(work, self._width)
        diagonal = np.concatenate([self._own_fisher(own, beta, v).diagonal(), offsets.ravel()])
        return diagonal if self.prior is None else diagonal + self.prior.diagonal

    def _split(self, theta: Vector) -> tuple[Vector, Beta, Matrix]:
        """Return the predictor's parameters, beta of each row, and W."""
        own, offsets = np.split(theta, [self.predictor.n_parameters])
        W = offsets.reshape(self.inputs.width, self.inputs.n_classes).T
        return own, self.link.beta(self.predictor.predict(own)), W

    def _logits(
        self, z: Floats, i: int, j: int, beta: Beta, W: Matrix
    ) -> tuple[Floats, Floats, Floats, bool]:
        """Return d, x and u of a block, u up to a constant, and whether each row's largest u is near 0."""
        # With few classes the inner loops run along the rows.
        d = np.empty(z.shape, self.dtype, "F" if z.shape[1] < FEW_CLASSES else "C")
        np.subtract(z, self.rows.peak[i:j, None], out=d, dtype=self.dtype)
        x = self.inputs.of(d)
        u = d * beta.value[i:j, None].astype(self.dtype)
        if self.inputs.width > 1:
            u += x @ W.T.astype(self.dtype)
            return d, x, u, False
        # d is at most 0, and 0 at the top: each row's largest u lies between the least and the largest bias.
        u += (W - W.max()).T.astype(self.dtype)
        return d, x, u, bool(np.ptp(W) < NARROW)

    def _moments(
        self, z: Floats, i: int, j: int, beta: Beta, W: Matrix
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return x, p, p (d - E_p d) and Var_p d of a block."""
        d, x, p, near_zero = self._logits(z, i, j, beta, W)
        sums, _ = exponentiate(p, near_zero=near_zero)
        p /= sums[:, None].astype(self.dtype)
        d -= np.einsum("ij,ij->i", p, d)[:, None]
        spread = p * d
        return x, p, spread, np.einsum("ij,ij->i", spread, d)

    def _fisher(self, own: Vector, beta: Beta, W: Matrix) -> Matrix:
        K, J = W.shape
        v = np.empty(self.rows.n_rows)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Matrix, ...]:
            x, p, spread, v[i:j] = self._moments(z, i, j, beta, W)
            share = self.share[i:j, None]
            cross = self.predictor.jacobian(i, j).T @ row_outer(spread * (beta.first[i:j, None] * share), x)
            root = row_outer(p * np.sqrt(share), x)
            return cross, root.T @ root, (p * share).T @ row_outer(x, x)

        cross, outer, diagonal = self.rows.sum(work, width=K * J)
        within = -outer
        for k in range(K):
            within[k::K, k::K] += diagonal[k].reshape(J, J)
        return np.block([[self._own_fisher(own, beta, v), cross], [cross.T, within]])

    def _own_fisher(self, own: Vector, beta: Beta, v: Vector) -> Matrix:
        _, fisher = self.predictor.pull_back(own, v, v * beta.first**2 * self.share)
        assert fisher is not None
        return fisher


def row_outer(a: Floats, x: Floats) -> Floats:
    """Return the products x_j a_k of each row, as one row of J K numbers."""
    return (x[:, :, None] * a[:, None, :]).reshape(len(a), x.shape[1] * a.shape[1])
