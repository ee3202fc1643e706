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
from temperance.labels import Names
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
        The names of the columns, in their order, where labels are names. A DataFrame brings its own.

    Returns
    -------
    float
        From 0 to 1. Rows of equal confidence are answered together, so the order of rows does not matter.
        With a confidence that says nothing it is the error rate.

    References
    ----------
    .. [1] Geifman et al. (2019). Bias-reduced uncertainty estimation for deep neural classifiers.
       arXiv:1805.08206

    Examples
    --------
    >>> round(aurc([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1]), 4)
    0.2778
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    return float(RiskCurve(rows).area(rows.weight[:, None])[0])


class RiskCurve:
    """The order in which rows are answered, and the area for any weights."""

    def __init__(self, rows: Predictions) -> None:
        self.order = np.argsort(-rows.confidence, kind="stable")
        self.errors = 1 - rows.correct[self.order, None]
        ordered = rows.confidence[self.order]
        self.last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of each tied group

    def area(self, weights: Vector) -> Vector:
        """Return one area for each column of (N, B) weights."""
        ordered = weights[self.order]
        answered = ordered.cumsum(axis=0)[self.last]
        wrong = (ordered * self.errors).cumsum(axis=0)[self.last]
        share = np.diff(answered, axis=0, prepend=0.0)
        # A resample may leave out the most confident rows: nothing answered yet, and no share either.
        risk = np.divide(wrong, answered, out=np.zeros_like(wrong), where=answered > 0)
        area: Vector = (share * risk).sum(axis=0) / answered[-1]
        return area
