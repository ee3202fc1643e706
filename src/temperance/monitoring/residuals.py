"""What labels add to predictions: how wrong each row was, and in which direction.

The residuals of a row with probabilities p, predicted class t and label y:

    gap        1[y = t] - p_t
    class k    1[y = k] - p_k

All lie in [-1, 1] and have mean 0 if the probabilities are right. Monitoring computes everything about
labelled rows from sums over rows, so checks of any size can be added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.monitoring.bets import log_growth
from temperance.monitoring.limits import Limits
from temperance.monitoring.sums import Sums

MOST_GROUPS = 32
"""Largest number of groups of classes whose joint change is estimated; rarer classes form the last group."""

LEAST_PROBABILITY = 1e-8  # whose logarithm enters the score of the temperature


@dataclass(frozen=True, eq=False)
class LabelledSums(Sums):
    """Sums over labelled rows.

    Attributes
    ----------
    rows : int
        Number of rows.
    confidence : float
        Sum of the largest probabilities.
    probabilities, labels : (K,) arrays
        Sums of the probabilities and of the label indicators, by class.
    residuals, squares : (1 + K,) arrays
        Sums of the residuals and their squares: the gap first, then the classes.
    capitals : (2, bets, F) array
        Logarithms of the capitals of bets against the first F residuals, see `bets.log_growth`.
    score, information : (1 + G,) and (1 + G, 1 + G) arrays
        Derivative of the log-likelihood of softmax(beta log p + b) at log beta = 0, b = 0, and its Fisher
        information: log beta first, then one b for each group of classes.
    """

    rows: int
    confidence: float
    probabilities: Vector
    labels: Vector
    residuals: Vector
    squares: Vector
    capitals: NDArray[np.float64]
    score: Vector
    information: Matrix

    @property
    def accuracy(self) -> float:
        """The share of rows whose predicted class is right."""
        return float(self.residuals[0] + self.confidence) / self.rows


def class_groups(class_counts: Vector) -> Indices:
    """Return the group of each class: one for each of the most frequent at the fit, one for all others."""
    order = np.argsort(-class_counts, kind="stable")
    group = np.empty(len(order), np.intp)
    group[order] = np.minimum(np.arange(len(order)), MOST_GROUPS - 1)
    return group


def residuals(probs: Floats, labels: Indices) -> Matrix:
    """Return the residuals of each row, (N, 1 + K)."""
    at = np.arange(len(labels))
    top = probs.argmax(axis=1)
    result = np.empty((len(labels), 1 + probs.shape[1]))
    np.negative(probs, out=result[:, 1:])
    result[at, 1 + labels] += 1.0
    result[:, 0] = (top == labels) - np.minimum(probs[at, top], 1.0)
    return result


def sum_labelled(probs: Floats, labels: Indices, groups: Indices, limits: Limits) -> LabelledSums:
    """Return the sums of a block of rows."""
    each = residuals(probs, labels)
    score, information = _score(probs, labels, groups)
    return LabelledSums(
        rows=len(labels),
        confidence=float(np.minimum(probs.max(axis=1), 1.0).sum(dtype=np.float64)),
        probabilities=probs.sum(axis=0, dtype=np.float64),
        labels=np.bincount(labels, minlength=probs.shape[1]).astype(np.float64),
        residuals=each.sum(axis=0),
        squares=np.einsum("ij,ij->j", each, each),
        capitals=log_growth(each, limits.low, limits.high),
        score=score,
        information=information,
    )


def _score(probs: Floats, labels: Indices, groups: Indices) -> tuple[Vector, Matrix]:
    """Return the score and the information of (log beta, b).

    Smaller probabilities count as `LEAST_PROBABILITY` in the logarithm: the score keeps mean 0, and one label
    of an impossible class does not dominate.
    """
    at, one_hot = np.arange(len(labels)), np.eye(groups.max() + 1)[groups]
    p = probs.astype(np.float64)
    log_p = np.log(np.maximum(p, LEAST_PROBABILITY))
    mean = np.einsum("ij,ij->i", p, log_p)
    spread = p * (log_p - mean[:, None])
    in_groups = p @ one_hot
    score = np.concatenate(
        [[np.sum(log_p[at, labels] - mean)], one_hot[labels].sum(axis=0) - in_groups.sum(axis=0)]
    )
    own = np.sum(spread * log_p)
    cross = spread.sum(axis=0) @ one_hot
    within = np.diag(in_groups.sum(axis=0)) - in_groups.T @ in_groups
    return score, np.block([[np.array([[own]]), cross[None, :]], [cross[:, None], within]])
