"""What changes the outputs of rows class by class: a bias for each class, and new class frequencies.

`add_class_bias` adds a bias to calibrated log-probabilities, softmax(l / T + W x), and mixes the two. With
r_k = log(frequency of class k at use / frequency at fit), `shift_outputs` applies Bayes' rule:

    p_k exp(r_k) / sum_j p_j exp(r_j)

Both replace the outputs of a block of rows. This module needs NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.blocks import row_products
from temperance.core.features import IMPOSSIBLE, LOG_PROB_FLOOR

LARGE = 1e6
MIN_RATIO = 1e-300  # of class frequencies: times the largest probability of a row, this is still above 0
MAX_LOG = 50.0  # of a temperature: no fit comes near it


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
        log_beta = -np.clip(theta[0], -MAX_LOG, MAX_LOG)  # a trial step of a fit may go anywhere
        return cls(float(np.exp(log_beta)), columns[0], columns[1:].T if len(columns) > 1 else None)


def exponentiate(u: Floats) -> tuple[Vector, Vector]:
    """Replace `u` by exp(u - top), top the largest of the row; return the row sums and log sum exp."""
    top = np.max(u, axis=1)
    u -= top[:, None]
    np.exp(u, out=u)
    sums = u.sum(axis=1).astype(np.float64)
    return sums, np.log(sums) + top


def centred(log_probs: Floats, possible: NDArray[np.bool_]) -> Floats:
    """Return floored log-probabilities minus their mean over the possible classes; 0 for the others."""
    x = np.where(possible, np.maximum(log_probs, LOG_PROB_FLOOR), 0)
    number = np.maximum(possible.sum(axis=1, keepdims=True), 1).astype(x.dtype)
    x -= x.sum(axis=1, keepdims=True) / number
    x[~possible] = 0
    return x


def add_class_bias(base: Floats, gaps: Floats, offsets: Offsets, weight: float, *, log: bool) -> None:
    """Replace probabilities p by (1 - weight) p + weight softmax(u), or log p by the logarithm of that.

    `base` holds the calibrated probabilities of some rows, or their logarithms if `log`; the `gaps` of their
    logits to the top show the possible classes, and are read only for interactions.
    """
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


def shift_outputs(outputs: Floats, log_ratio: Vector, *, log: bool) -> None:
    """Replace probabilities, or calibrated logits if `log`, by those under the new class frequencies.

    An impossible class stays at probability 0, or at -inf; logits become log-probabilities.
    """
    if not log:
        shifted = outputs * np.maximum(np.exp(log_ratio - log_ratio.max()), MIN_RATIO)
        outputs[:] = shifted / shifted.sum(axis=1, keepdims=True)
        return
    shifted = outputs + log_ratio
    top = shifted.argmax(axis=1)[:, None]
    shifted -= np.take_along_axis(shifted, top, axis=1)
    others = np.exp(shifted)
    np.put_along_axis(others, top, 0.0, axis=1)  # nothing cancels when a row is confident
    outputs[:] = shifted - np.log1p(others.sum(axis=1, keepdims=True))
