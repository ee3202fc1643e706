"""What has changed, estimated from sums over labelled rows: confidence, class frequencies, or both.

The model is softmax(beta log p + b), p the calibrated probabilities. Its maximum-likelihood estimate is one
step of Fisher scoring from beta = 1 and the remaining b of the fit itself, so sums over rows are enough. The
fit used a finite sample, too: with n rows now and m rows then, variances grow by a factor of 1 + n / m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from temperance.core.arrays import Indices, Vector
from temperance.monitoring.limits import Limits
from temperance.monitoring.residuals import LabelledSums

ADEQUATE = 0.01  # level at which a simpler explanation is rejected
CONFIDENCE = 0.95  # normal quantile of the 95 % intervals
MOST_CLASSES_TOLD = 5


@dataclass(frozen=True)
class ClassChange:
    """A class that is more or less frequent than predicted, with an interval of the ratio.

    Attributes
    ----------
    column : int
        The class.
    predicted : float
        The frequency that the calibrator predicts, corrected for the residual at the fit.
    found : float
        The frequency in the labels.
    ratio, low, high : float
        `found / predicted`, with a 95 % interval.

    Examples
    --------
    In these rows, class 0 is rarer than at the fit:

    >>> import numpy as np
    >>> from temperance import monitoring
    >>> from temperance.monitoring.example import example_rows
    >>> cal, logits, labels = example_rows()
    >>> kept = (labels != 0) | (np.arange(2000) % 4 == 0)
    >>> rarer = monitoring.check(cal, logits[kept], labels[kept]).change.classes[0]
    >>> rarer.column, round(rarer.ratio, 2), round(rarer.high, 2)
    (0, 0.56, 0.65)
    """

    column: int
    predicted: float
    found: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """What labelled rows show about a calibrator.

    Attributes
    ----------
    rows : int
        Number of rows.
    said, right : float
        Mean confidence, and share of rows whose predicted class is right.
    gap, gap_low, gap_high : float
        `right - said`, with a 95 % interval.
    log_temperature, log_temperature_error : float
        Logarithm of the additional temperature that fits these rows, with its standard error, adjusted for
        class frequencies. Above 0: overconfident.
    classes : tuple of ClassChange
        Classes whose frequency differs significantly from the predicted one, the most significant first.
    explanation : {"confidence", "class frequencies", "both", "unclear"}
        The simplest change that explains the rows; unclear if either change alone could.

    Examples
    --------
    In these rows, class 0 is rarer than at the fit:

    >>> import numpy as np
    >>> from temperance import monitoring
    >>> from temperance.monitoring.example import example_rows
    >>> cal, logits, labels = example_rows()
    >>> kept = (labels != 0) | (np.arange(2000) % 4 == 0)
    >>> change = monitoring.check(cal, logits[kept], labels[kept]).change
    >>> change.explanation, [found.column for found in change.classes]
    ('class frequencies', [0, 1])
    >>> f"said {change.said:.1%}, right {change.right:.1%}"
    'said 79.7%, right 78.8%'
    """

    rows: int
    said: float
    right: float
    gap: float
    gap_low: float
    gap_high: float
    log_temperature: float
    log_temperature_error: float
    classes: tuple[ClassChange, ...]
    explanation: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return vars(self) | {"classes": [vars(change) for change in self.classes]}


def estimate_change(sums: LabelledSums, limits: Limits, groups: Indices) -> Change:
    """Estimate what has changed since the fit."""
    low, high = gap_interval(sums.rows, sums.residuals[0], sums.squares[0])
    score, inflation = _score_since_fit(sums, limits, groups), 1 + sums.rows / limits.fit_rows
    log_beta, error = _log_beta(score, sums.information)
    said = sums.confidence / sums.rows
    return Change(
        rows=sums.rows,
        said=said,
        right=sums.accuracy,
        gap=sums.accuracy - said,
        gap_low=low,
        gap_high=high,
        log_temperature=-log_beta,
        log_temperature_error=error * np.sqrt(inflation),
        classes=_class_changes(sums, limits),
        explanation=_explain(
            score,
            sums.information,
            inflation * _dispersion(sums),
            gap_is_allowed=_gap_is_allowed(low, high, limits),
            frequencies_are_allowed=_frequencies_are_allowed(score, sums, limits, groups),
        ),
    )


def gap_interval(rows: float, total: float, squares: float) -> tuple[float, float]:
    """Return an interval of the mean residual; an added row with residual 1 keeps it wide for few rows."""
    mean = total / rows
    variance = (max(squares - rows * mean**2, 0.0) + 1) / (rows + 1)
    half = float(norm.ppf((1 + CONFIDENCE) / 2)) * np.sqrt(variance / rows)
    return max(-1.0, float(mean - half)), min(1.0, float(mean + half))


def _score_since_fit(sums: LabelledSums, limits: Limits, groups: Indices) -> Vector:
    score = sums.score.copy()
    score[1:] -= sums.rows * np.bincount(groups, limits.at_fit[1:])
    return score


def _log_beta(score: Vector, information: Vector) -> tuple[float, float]:
    """Return the estimate of log beta and its standard error, with all b estimated as well."""
    within = np.linalg.pinv(information[1:, 1:], hermitian=True)
    own = information[0, 0] - information[0, 1:] @ within @ information[1:, 0]
    if own <= 1e-9 * information[0, 0] or own <= 0:
        return 0.0, np.inf  # all rows are alike: not identified
    return float((score[0] - information[0, 1:] @ within @ score[1:]) / own), float(1 / np.sqrt(own))


def _gap_is_allowed(low: float, high: float, limits: Limits) -> bool:
    return bool(limits.low[0] <= low and high <= limits.high[0])


def _dispersion(sums: LabelledSums) -> float:
    """Return the variance of the residuals of the classes over the predicted one, at least 1.

    Overconfident predictions are wrong more often than they say, so their residuals vary more.
    """
    predicted = sums.information.diagonal()[1:].sum()
    return max(1.0, float(sums.squares[1:].sum() / predicted)) if predicted > 0 else 1.0


def _frequencies_are_allowed(score: Vector, sums: LabelledSums, limits: Limits, groups: Indices) -> bool:
    """Say whether a change of confidence alone leaves the class frequencies within their limits."""
    if sums.information[0, 0] <= 0:
        return False
    left = score[1:] - sums.information[1:, 0] * score[0] / sums.information[0, 0]
    low, high = (np.bincount(groups, end[1:]) for end in (limits.low, limits.high))
    return bool(((sums.rows * low <= left) & (left <= sums.rows * high)).all())


def _explain(
    score: Vector,
    information: Vector,
    inflation: float,
    *,
    gap_is_allowed: bool,
    frequencies_are_allowed: bool,
) -> str:
    """Return the simplest change whose likelihood is not significantly below that of both.

    While the gap is within its limits, class frequencies suffice, and while the frequencies are, confidence
    does: one step of Fisher scoring mistakes a part of a large change of the one for a change of the other.
    """
    both = _gain(score, information)
    without_confidence = (both - _gain(score[1:], information[1:, 1:])) / inflation
    without_classes = (both - _gain(score[:1], information[:1, :1])) / inflation
    free = np.linalg.matrix_rank(information[1:, 1:], hermitian=True)
    classes_suffice = gap_is_allowed or without_confidence <= chi2.ppf(1 - ADEQUATE, 1)
    most_by_chance = chi2.ppf(1 - ADEQUATE, max(int(free), 1))
    confidence_suffices = frequencies_are_allowed or without_classes <= most_by_chance
    if classes_suffice and confidence_suffices:
        return "unclear"
    if classes_suffice:
        return "class frequencies"
    return "confidence" if confidence_suffices else "both"


def _gain(score: Vector, information: Vector) -> float:
    """Return twice the gain in log-likelihood."""
    return float(score @ np.linalg.pinv(information, hermitian=True) @ score)


def _class_changes(sums: LabelledSums, limits: Limits) -> tuple[ClassChange, ...]:
    n, found = sums.rows, sums.labels
    expected = np.maximum(sums.probabilities + n * limits.at_fit[1:], 1e-9 * n)
    variance = np.maximum(sums.squares[1:], expected / max(n, 1)) * (1 + n / limits.fit_rows)
    z = (found - expected) / np.sqrt(np.maximum(variance, 1e-12))
    order = np.argsort(-np.abs(z), kind="stable")
    bound = norm.ppf(1 - (1 - CONFIDENCE) / (2 * len(z)))
    told = [int(k) for k in order[:MOST_CLASSES_TOLD] if abs(z[k]) > bound]
    return tuple(_class_change(k, float(expected[k]), float(found[k]), n) for k in told)


def _class_change(column: int, expected: float, found: float, rows: int) -> ClassChange:
    """Return a class with the interval of its ratio, that of a Poisson count."""
    tail = (1 - CONFIDENCE) / 2
    low = chi2.ppf(tail, 2 * found) / 2 if found else 0.0
    high = chi2.ppf(1 - tail, 2 * found + 2) / 2
    ratios = (float(count / expected) for count in (found, low, high))
    return ClassChange(column, expected / rows, found / rows, *ratios)
