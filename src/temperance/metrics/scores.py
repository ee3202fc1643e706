"""Scores: means over rows of one number for each row.

    accuracy        mean 1[argmax_k p_k = y]
    nll             mean -log p_y
    brier           mean sum_k (p_k - 1[k = y])^2
    overconfidence  mean max_k p_k - accuracy

Accuracy depends only on the order of the probabilities. The negative log-likelihood and the Brier score are
strictly proper: their expectation is smallest for the true probabilities and no others.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from temperance.inputs.labels import Names
from temperance.metrics.predictions import check_rows


def accuracy(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Fraction of rows whose largest probability is that of the label.

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
        From 0 to 1. If the largest probabilities are tied, the first one counts.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    return rows.mean(rows.correct)


def nll(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Negative log-likelihood: mean of -log of the probability of the label, in nats.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `accuracy`.

    Returns
    -------
    float
        From 0 up. It is infinite if a label has probability exactly 0: the prediction excluded what happened,
        and no clipping hides it. If the 0 is an underflow, compute the softmax in float64.

    References
    ----------
    .. [1] Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
       doi:10.1198/016214506000001437

    Examples
    --------
    >>> round(nll([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.4581
    >>> nll([[1.0, 0.0]], [1])
    inf
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    return rows.mean(rows.nll)


def brier(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Brier score: mean over rows of the sum over classes of (p - onehot)^2.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `accuracy`.

    Returns
    -------
    float
        From 0 to 2. For two classes this is twice the score of the second class alone, which is what
        `sklearn.metrics.brier_score_loss` gives by default.

    References
    ----------
    .. [1] Brier (1950). Verification of forecasts expressed in terms of probability.
       doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
    .. [2] Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
       doi:10.1198/016214506000001437

    Examples
    --------
    >>> round(brier([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.29
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    return rows.mean(rows.brier)


def overconfidence(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Mean confidence minus accuracy: the direction and size of the error.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `accuracy`.

    Returns
    -------
    float
        From -1 to 1: above 0 overconfident, below 0 underconfident. Its absolute value is the ECE with one
        bin.

    Examples
    --------
    >>> round(overconfidence([[0.9, 0.1], [0.2, 0.8]], [0, 0]), 4)
    0.35
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    return -rows.mean(rows.residual)
