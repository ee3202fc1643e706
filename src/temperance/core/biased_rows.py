"""A bias for each class, applied to rows: shared by predictions and by the likelihood of a bias.

`offset_mixture` adds it to tempered logits, softmax(z / T + W x); `add_class_bias` to calibrated
log-probabilities, softmax(l / T + W x), and mixes the two. This module needs NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.blocks import Scratch, row_products
from temperance.core.features import LOG_PROB_FLOOR
from temperance.core.logit_rows import IMPOSSIBLE, LogitRows

LARGE = 1e6
LARGEST_LOG = 50.0  # of a temperature: no fit comes near it


@dataclass(frozen=True)
class Inputs:
    """What the offsets depend on: a constant and, given a `scale`, (logits - their mean) / scale."""

    n_classes: int
    scale: float | None

    @property
    def width(self) -> int:
        """The length of x."""
        return 1 if self.scale is None else 1 + self.n_classes

    @property
    def n_offsets(self) -> int:
        """The number of parameters of the offsets."""
        return self.n_classes * self.width

    def of(self, d: Floats) -> Floats:
        """Return x for rows with the gaps `d`."""
        one = np.ones((len(d), 1), d.dtype)
        if self.scale is None:
            return one
        return np.hstack([one, (d - d.mean(axis=1, keepdims=True)) / self.scale])


@dataclass(frozen=True)
class Offsets:
    """What turns l into u: an inverse temperature that multiplies it, a bias, perhaps interactions."""

    beta: float
    bias: Vector
    interactions: Matrix | None

    @classmethod
    def of(cls, theta: Vector, n_classes: int) -> Offsets:
        """Unpack [log T, bias, columns of the interactions]."""
        columns = theta[1:].reshape(-1, n_classes)
        log_beta = -np.clip(theta[0], -LARGEST_LOG, LARGEST_LOG)  # a trial step of a fit may go anywhere
        return cls(float(np.exp(log_beta)), columns[0], columns[1:].T if len(columns) > 1 else None)


def exponentiate(u: Floats) -> tuple[Vector, Vector]:
    """Replace `u` by exp(u - top), top the largest of the row; return the row sums and log sum exp."""
    top = np.max(u, axis=1)
    u -= top[:, None]
    np.exp(u, out=u)
    sums = u.sum(axis=1).astype(np.float64)
    return sums, np.log(sums) + top


def offset_mixture(
    rows: LogitRows, betas: Matrix, weights: Vector, inputs: Inputs, W: Matrix, *, log: bool
) -> Floats:
    """Return sum_q weights[q] softmax(betas[i, q] z_i + W x_i) for each row i, or its logarithm.

    The logarithm is accurate even where the probability underflows.
    """
    result = np.empty((rows.n_rows, rows.n_classes), rows.dtype)
    add, nothing = (np.logaddexp, -np.inf) if log else (np.add, 0.0)

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector]:
        d = z.astype(np.float64) - rows.peak[i:j, None]
        offset = inputs.of(d) @ W.T
        total = np.full(d.shape, nothing)
        for beta, weight in zip(betas[i:j].T, weights, strict=True):
            u = beta[:, None] * d + offset
            u -= exponentiate(u.copy())[1][:, None]
            u += np.log(weight)
            add(total, u if log else np.exp(u), out=total)
        result[i:j] = np.minimum(total, 0.0 if log else 1.0)  # rounded weights may sum to more than 1
        return (np.zeros(0),)

    rows.sum(work)
    return result


def centred(log_probs: Floats, possible: NDArray[np.bool_]) -> Floats:
    """Return floored log-probabilities minus their mean over the possible classes; 0 for the others."""
    x = np.where(possible, np.maximum(log_probs, LOG_PROB_FLOOR), 0)
    number = np.maximum(possible.sum(axis=1, keepdims=True), 1).astype(x.dtype)
    x -= x.sum(axis=1, keepdims=True) / number
    x[~possible] = 0
    return x


def add_class_bias(output: Floats, rows: LogitRows, offsets: Offsets, weight: float, *, log: bool) -> Floats:
    """Replace probabilities p by (1 - weight) p + weight softmax(u), or log p by the logarithm of that.

    `output` holds the calibrated probabilities of the rows, or their logarithms if `log`; `rows` holds the
    logits, which show the possible classes.
    """

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
        gaps = z if offsets.interactions is None else z - rows.peak[i:j, None]
        bias_rows(output[i:j], gaps, offsets, weight, log=log)

    if weight > 0:
        rows.visit(work)
    return output


def bias_rows(base: Floats, gaps: Floats, offsets: Offsets, weight: float, *, log: bool) -> None:
    """Do the same in place for some rows; the gaps to the top logit are read only for interactions."""
    log_probs = base if log else np.log(base)
    u = base.dtype.type(offsets.beta) * log_probs + offsets.bias.astype(base.dtype)
    if offsets.interactions is not None:
        interactions = offsets.interactions.T.astype(base.dtype)
        u += row_products(centred(log_probs, gaps > -IMPOSSIBLE), interactions)
    top = u.max(axis=1, keepdims=True)
    u -= np.where(np.abs(top) > LARGE, top, 0)  # next to so large a number, log sum exp has no digits left
    u -= exponentiate(u.copy())[1][:, None].astype(u.dtype)
    if log:
        base[:] = np.logaddexp(base + np.log1p(-weight), u + np.log(weight)) if weight < 1 else u
    else:
        base *= 1 - weight
        base += weight * np.exp(u)
