"""Area under the risk-coverage curve: small if confidence is larger where the classifier is right.

Answer only the rows whose confidence is at least t. Then

    coverage(t)  = fraction of rows answered
    risk(t)      = error rate among them
    aurc         = mean over rows i of risk(c_i) = area under risk against coverage
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.inputs.labels import Names
from temperance.metrics.predictions import Predictions, check_rows


def aurc(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Area under the risk-coverage curve of selective classification.

    A temperature that is the same for all rows hardly changes it; one that depends on the row may.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.

    Returns
    -------
    float
        From 0 to 1. Rows of equal confidence are answered together, so the order of rows does not matter.
        If the confidence is uninformative, it is the error rate.

    References
    ----------
    .. [1] Geifman et al. (2019). Bias-reduced uncertainty estimation for deep neural classifiers.
       arXiv:1805.08206

    Examples
    --------
    >>> round(aurc([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1]), 4)
    0.2778
    """
    return RiskCurve(check_rows(probs, labels, sample_weight, classes)).area


class RiskCurve:
    """The area under the risk-coverage curve, and what each row adds to it.

    With risk R, coverage and weights in order of decreasing confidence, groups g of tied rows, A_g the weight
    answered up to g and W the total weight, the area is sum_g (A_g - A_(g-1)) R_g / W. Its derivative by the
    weight of row i, times W, is the influence of the row:

        R_(g of i) - area + sum over groups h from that of i on of (A_h - A_(h-1)) (error_i - R_h) / A_h
    """

    def __init__(self, rows: Predictions) -> None:
        order = np.argsort(-rows.confidence, kind="stable")
        ordered, weight = rows.confidence[order], rows.weight[order]
        errors = 1 - rows.correct[order]
        ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of each tied group
        answered, wrong = weight.cumsum()[ends], (weight * errors).cumsum()[ends]
        share, risk = np.diff(answered, prepend=0.0), wrong / answered
        self.area = float(share @ risk / answered[-1])
        group = np.searchsorted(ends, np.arange(len(ordered)))
        later, later_risk = (_from_here_on(part) for part in (share / answered, share / answered * risk))
        influence = risk[group] - self.area + errors * later[group] - later_risk[group]
        self.influence: Vector = np.empty(len(order))
        self.influence[order] = influence


def _from_here_on(values: Vector) -> Vector:
    """Return the sum of each value and all later ones."""
    return values[::-1].cumsum()[::-1]
