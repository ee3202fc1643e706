"""Tests of calibration: whether the outcomes are compatible with the probabilities.

With probabilities c of an event, outcomes h of 0 or 1 and weights w, the null hypothesis is that h is 1 with
probability c, independently for each row. The event is that the top label is right or, with `class_`, that
the label is a given class.

    Spiegelhalter  z = sum w (h - c) (1 - 2c) / sqrt(sum w^2 (1 - 2c)^2 c (1 - c))
    Cox            P(h = 1) = sigmoid(a + b logit c); the null is a = 0, b = 1
    cumulative     C_k = sum of w (h - c) over the k rows of lowest c, / sqrt(sum w^2 c (1 - c)):
                   under the null a Brownian motion; its largest |C|, or its range

Weights say how much a row counts. They are not repetitions: k rows are k observations, but a row of weight k
is one observation. A common factor of all weights changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.errors import InputError, listed
from temperance.inputs.containers import names_of
from temperance.inputs.labels import Names
from temperance.inputs.validation import check_choice, check_number
from temperance.metrics.estimates import CalibrationTest
from temperance.metrics.predictions import Predictions, check_rows

LEVEL = 0.05  # significance level in `words`


@dataclass(frozen=True, eq=False)
class Event:
    """Probabilities of an event, outcomes of 0 or 1, and weights."""

    probability: Vector
    outcome: Vector
    weight: Vector

    @classmethod
    def of(cls, rows: Predictions, column: int | None = None) -> Event:
        """Return the event that the top label is right, or that the label is the class of a column."""
        if column is None:
            return cls(rows.confidence.astype(np.float64), rows.correct, rows.weight)
        outcome = (rows.labels == column).astype(np.float64)
        probability = rows.probs[:, column].astype(np.float64)
        return cls(probability, outcome, rows.weight)


def check_event(
    probs: Any,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: Names | None,
    class_: int | str | None,
) -> Event:
    """Check the input of a test and return its event."""
    rows = check_rows(probs, labels, sample_weight, classes)
    if class_ is None:
        return Event.of(rows)
    n_classes = rows.probs.shape[1]
    names = names_of(probs, classes, n_classes)
    if names is not None and class_ in list(names):
        return Event.of(rows, list(names).index(class_))
    if isinstance(class_, str):
        if names is None:
            fact = f"class_ must be a column from 0 to {n_classes - 1} where columns have no names"
            raise InputError(f"{fact}; found {class_!r}.", advice="Pass the names of the columns as classes.")
        raise InputError(f"class_ must be one of {listed(list(names))}; found {class_!r}.")
    check_number("class_", class_, f"from 0 to {n_classes - 1}", lambda k: 0 <= k < n_classes, whole=True)
    return Event.of(rows, int(class_))


def spiegelhalter(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    class_: int | str | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> CalibrationTest:
    """Test calibration by Spiegelhalter's z: whether the Brier score is what the probabilities predict.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    class_ : int or str, optional
        Column or name of the class whose probability is tested; by default the top label's confidence. With
        two classes all three choices give the same z.
    sample_weight : array of shape (N,), optional
        How much a row counts. A row of weight k is one observation, not k.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.

    Returns
    -------
    CalibrationTest
        `statistic` is z, standard normal under the null; the p-value is two-sided. It detects errors that
        grow with the distance from 1/2: z is above 0 if probabilities are too extreme.

    References
    ----------
    .. [1] Spiegelhalter (1986). Probabilistic prediction in patient management and clinical trials.
       doi:10.1002/sim.4780050506

    Examples
    --------
    >>> test = spiegelhalter([[0.9, 0.1]] * 20, [0] * 15 + [1] * 5)
    >>> round(test.statistic, 2), round(test.p_value, 3)
    (2.24, 0.025)
    """
    return spiegelhalter_of(check_event(probs, labels, sample_weight, classes, class_))


def cumulative_differences(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    statistic: str = "kuiper",
    class_: int | str | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> CalibrationTest:
    """Test calibration without bins: cumulated residuals in the order of the probabilities.

    Parameters
    ----------
    probs, labels, class_, sample_weight, classes
        As for `spiegelhalter`.
    statistic : {"kuiper", "ks"}
        The range of the cumulated residuals, or the largest of their absolute values (Kolmogorov and
        Smirnov), in units of the standard deviation of their sum.

    Returns
    -------
    CalibrationTest
        The p-value is that of the range, or of the largest absolute value, of Brownian motion on [0, 1].
        With few rows the steps are coarse, and the test is conservative. Rows of equal probability are added
        together, so the order of rows does not matter.

    References
    ----------
    .. [1] Arrieta-Ibarra et al. (2022). Metrics of calibration for probabilistic predictions.
       arXiv:2205.09680
    .. [2] Feller (1951). The asymptotic distribution of the range of sums of independent random variables.

    Examples
    --------
    >>> test = cumulative_differences([[0.9, 0.1]] * 20, [0] * 15 + [1] * 5)
    >>> round(test.statistic, 2), round(test.p_value, 3)
    (2.24, 0.101)
    """
    check_choice("statistic", statistic, ("kuiper", "ks"))
    return cumulative_of(check_event(probs, labels, sample_weight, classes, class_), statistic)


def spiegelhalter_of(event: Event) -> CalibrationTest:
    """Return Spiegelhalter's test for an event."""
    from scipy.special import erfc

    c, w = event.probability, event.weight
    z = _over(float(w @ ((event.outcome - c) * (1 - 2 * c))), float(w**2 @ ((1 - 2 * c) ** 2 * c * (1 - c))))
    p = float(erfc(abs(z) / np.sqrt(2)))
    if not (c != 0.5).any():
        return CalibrationTest(z, p, "It says nothing: every probability is 1/2.")
    return CalibrationTest(z, p, f"z = {z:.2f}, {verdict(p)}")


def cumulative_of(event: Event, statistic: str) -> CalibrationTest:
    """Return the test of cumulated residuals for an event."""
    order = np.argsort(event.probability, kind="stable")
    c, w = event.probability[order], event.weight[order]
    ends = np.append(np.flatnonzero(np.diff(c)), len(c) - 1)  # of each tied group
    path = np.append(0.0, (w * (event.outcome[order] - c)).cumsum()[ends])
    size = float(np.ptp(path) if statistic == "kuiper" else np.abs(path).max())
    value = _over(size, float(w**2 @ (c * (1 - c))))
    p = range_survival(value) if statistic == "kuiper" else maximum_survival(value)
    return CalibrationTest(value, p, f"{statistic} = {value:.2f}, {verdict(p)}")


def _over(total: float, variance: float) -> float:
    """Return a sum in units of its standard deviation: infinite if that is 0 and the sum is not."""
    if variance > 0:
        return total / float(np.sqrt(variance))
    # Up to rounding, certain predictions have no variance.
    return 0.0 if abs(total) < 1e-12 else float(np.copysign(np.inf, total))


def range_survival(x: float) -> float:
    """Return the probability that the range of Brownian motion on [0, 1] exceeds x (Feller, 1951)."""
    from scipy.special import ndtr

    if x < 0.4:  # P(range < 0.4) is below 1e-12
        return 1.0
    k = np.arange(1, int(40 / x) + 2) if np.isfinite(x) else np.ones(1)
    signs = np.where(k % 2 == 1, 1.0, -1.0)
    return float(np.clip(8 * np.sum(signs * k * ndtr(-k * x)), 0.0, 1.0))


def maximum_survival(x: float) -> float:
    """Return the probability that the largest |value| of Brownian motion on [0, 1] exceeds x."""
    from scipy.special import ndtr

    if x < 0.2:  # P(maximum < 0.2) is below 1e-12
        return 1.0
    k = np.arange(int(20 / x) + 2) if np.isfinite(x) else np.zeros(1)
    signs = np.where(k % 2 == 0, 1.0, -1.0)
    return float(np.clip(4 * np.sum(signs * ndtr(-(2 * k + 1) * x)), 0.0, 1.0))


def verdict(p_value: float) -> str:
    """Say what a p-value means."""
    shown = f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"
    significant = p_value < LEVEL
    return f"{shown}: {'not calibrated' if significant else 'compatible with calibration'}."
