"""Cox's calibration slope and intercept: a logistic regression of outcomes on the logit of probabilities.

This module has its own Newton loop: the solver of `core` fits temperatures, which are positive, and a slope
may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Matrix, Vector
from temperance.inputs.labels import Names
from temperance.metrics.calibration_tests import Event, check_event, verdict
from temperance.metrics.estimates import CalibrationTest, Estimate
from temperance.metrics.predictions import check_fraction

_STEPS = 50
_ROUNDING = 2.0**-53  # smallest distance of a probability from 0 and 1


@dataclass(frozen=True)
class CoxTest(CalibrationTest):
    """Calibration slope and intercept, and the likelihood ratio test of slope 1 and intercept 0.

    The standard errors are those of maximum likelihood, and the intervals are normal. A coefficient that the
    rows do not determine is nan, and `words` say why.

    Attributes
    ----------
    statistic : float
        The likelihood ratio.
    p_value : float
        P-value of the null hypothesis: slope 1 and intercept 0.
    words : str
        The result in words.
    slope, intercept : Estimate
        The coefficients, with their intervals. A slope below 1 means overconfident.
    slope_error, intercept_error : float
        Their standard errors.

    Examples
    --------
    Of the rows with probability 0.9, 8 of 10 are of class 1; of those with 0.4, 4 of 10 are:

    >>> test = cox([0.9] * 10 + [0.4] * 10, [1] * 8 + [0] * 2 + [1] * 4 + [0] * 6, class_=1)
    >>> round(test.slope.value, 2), round(test.slope_error, 2)
    (0.69, 0.39)
    """

    slope: Estimate
    intercept: Estimate
    slope_error: float
    intercept_error: float


def cox(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    class_: int | str | None = None,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> CoxTest:
    """Estimate calibration slope and intercept, and test whether they are 1 and 0.

    Parameters
    ----------
    probs, labels, class_, classes
        As for `spiegelhalter`.
    confidence : float
        Level of the intervals of slope and intercept.
    sample_weight : array of shape (N,), optional
        How much a row counts. The weights are scaled to sum to the effective number of rows,
        (sum w)^2 / sum w^2.

    Returns
    -------
    CoxTest
        `statistic` is the likelihood ratio, chi-squared with two degrees of freedom under the null. A slope
        below 1 means overconfident; an intercept below 0, at slope 1, probabilities that are too high.
        Probabilities of exactly 0 or 1 are moved by 1.1e-16. If all outcomes are equal, or separated by the
        probability, slope and intercept have no finite estimate, and the ratio is that of the limit: a
        perfect fit, except to a probability that both outcomes share. If all probabilities are equal, only
        the intercept is estimated, at slope 1, with one degree of freedom.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression.
       doi:10.1093/biomet/45.3-4.562

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1000, 2))
    >>> honest = 1 / (1 + np.exp(-z[:, 0]))
    >>> test = cox(1 / (1 + np.exp(-2 * z[:, 0])), rng.uniform(size=1000) < honest, class_=1)
    >>> round(test.slope.value, 1), test.p_value < 0.001
    (0.6, True)
    """
    check_fraction("confidence", confidence)
    return cox_of(check_event(probs, labels, sample_weight, classes, class_), confidence)


def cox_of(event: Event, confidence: float = 0.95) -> CoxTest:
    """Return the test for an event."""
    from scipy.special import chdtrc

    c = np.clip(event.probability, _ROUNDING, 1 - _ROUNDING)
    logit = np.log(c) - np.log1p(-c)
    weight = event.weight * event.weight.sum() / (event.weight @ event.weight)
    has_slope = bool(np.ptp(logit) > 0)
    design = np.column_stack([np.ones(len(c)), logit][: 1 + has_slope])
    offset = np.zeros(len(c)) if has_slope else logit
    null = _log_likelihood(logit, event.outcome, weight)
    # Start where every rate is 1/2: at the null, certain rows would have no information.
    start = np.zeros(2) if has_slope else -logit[:1]
    if _separated(logit, event.outcome):
        best, theta, errors = _limit(logit, event.outcome, weight), *np.full((2, len(start)), np.nan)
    else:
        best, theta, errors = _maximise(design, offset, event.outcome, weight, start)
    ratio = max(0.0, 2 * (best - null))
    p = float(chdtrc(len(start), ratio))
    half = NormalDist().inv_cdf((1 + confidence) / 2)
    ends = [
        Estimate(*map(float, (a, a - half * e, a + half * e))) for a, e in zip(theta, errors, strict=True)
    ]
    missing = Estimate(np.nan, np.nan, np.nan)
    intercept, slope = (ends[0], ends[1] if has_slope else missing)
    slope_error = float(errors[1]) if has_slope else float("nan")
    words = _words(slope, intercept, p)
    return CoxTest(ratio, p, words, slope, intercept, slope_error, float(errors[0]))


def _words(slope: Estimate, intercept: Estimate, p_value: float) -> str:
    if np.isnan(intercept.value):
        return f"slope and intercept not identified (outcomes are separated), {verdict(p_value)}"
    if np.isnan(slope.value):
        return f"one probability, so no slope; intercept {intercept.value:z.2f}, {verdict(p_value)}"
    return (
        f"slope {slope.value:z.2f} ({slope.low:z.2f} to {slope.high:z.2f}), intercept {intercept.value:z.2f} "
        f"({intercept.low:z.2f} to {intercept.high:z.2f}), {verdict(p_value)}"
    )


def _log_likelihood(odds: Vector, outcome: Vector, weight: Vector) -> float:
    return float(weight @ (outcome * odds - np.logaddexp(0, odds)))


def _separated(logit: Vector, outcome: Vector) -> bool:
    """Say whether the likelihood has its supremum at infinity only."""
    of_0, of_1 = logit[outcome == 0], logit[outcome == 1]
    if not len(of_0) or not len(of_1):
        return True
    touching = of_0.max() <= of_1.min() or of_1.max() <= of_0.min()
    return bool(touching and np.ptp(logit) > 0)


def _limit(logit: Vector, outcome: Vector, weight: Vector) -> float:
    """Return the supremum for separated outcomes: only rows at a value of both outcomes have a loss."""
    from scipy.special import entr

    shared = np.isin(logit, np.intersect1d(logit[outcome == 0], logit[outcome == 1]))
    counts = np.array([weight[shared & (outcome == h)].sum() for h in (0, 1)])
    total = counts.sum()
    return -float(total * entr(counts / total).sum()) if total else 0.0


def _maximise(
    design: Matrix, offset: Vector, outcome: Vector, weight: Vector, start: Vector
) -> tuple[float, Vector, Vector]:
    """Return the maximum log-likelihood, its position and standard errors; nan where rounding hides it."""
    theta, nowhere = start, np.full(len(start), np.nan)
    value = _log_likelihood(design @ theta + offset, outcome, weight)
    for _ in range(_STEPS):
        rate = 0.5 * (1 + np.tanh((design @ theta + offset) / 2))
        gradient = design.T @ (weight * (outcome - rate))
        fisher = (design * (weight * rate * (1 - rate))[:, None]).T @ design
        if not np.linalg.cond(fisher) < 1e14:
            return value, nowhere, nowhere
        covariance = np.linalg.inv(fisher)
        errors, step, fraction = np.sqrt(covariance.diagonal()), covariance @ gradient, 1.0
        if float(gradient @ step) < 1e-12 * max(1.0, abs(value)):  # the last step squares this
            return value, theta + step, errors
        while (
            moved := _log_likelihood(design @ (theta + fraction * step) + offset, outcome, weight)
        ) < value:
            fraction /= 2
            if fraction < 1e-18:  # rounding: nothing left to gain
                return value, theta, errors
        theta, value = theta + fraction * step, moved
    return value, nowhere, nowhere
