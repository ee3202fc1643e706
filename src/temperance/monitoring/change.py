"""What checks show: gaps, what has changed, what to do about it, and with how many labels.

An alarm stays valid however often one looks, and that takes rows. Until then there is a reason to watch the
calibrator: a mean residual of the last check, or of the last three together, is outside its allowed range,
and differs from the fit's by more than three standard errors, of these rows and of the fit together.

What has changed is estimated from sums over labelled rows.

The model is softmax(beta log p + b), p the calibrated probabilities. Its maximum-likelihood estimate is one
step of Fisher scoring from beta = 1 and the remaining b of the fit itself, so sums over rows are enough. The
fit also used a finite sample: with n rows now and m rows then, variances grow by a factor of 1 + n / m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil, floor, log10
from operator import add

import numpy as np
from scipy.stats import chi2, norm

from temperance.core.arrays import Vector
from temperance.monitoring.evidence import cumulate, evidence_of
from temperance.monitoring.history import Record
from temperance.monitoring.sums import CONFIDENCE, QUANTILE, LabelledSums, Limits, PredictionSums

KEEP, WATCH, ADAPT, REFIT, INSPECT, LABEL = "keep", "watch", "adapt", "refit", "inspect", "label"
"""Actions: do nothing, check more labels, adapt to other class frequencies, fit again, inspect the rows
(their columns or labels have probably changed), or label rows first."""

LAST = 3  # checks that are evaluated together
DIFFERS = 3.0  # standard errors from the mean residual at the fit
MAX_CLASSES_TOLD = 5
REMAINING = 3  # a new fit is allowed an uncertainty of a third of the change
MIN_LABELS = 20
MAX_LABELS = 1_000_000  # more would settle nothing in practice
SINGULAR = 1e-10  # a smaller eigenvalue, relative to the largest, counts as 0
STEP = 1.25  # ratio of the numbers of labels that are tried: the answer is "about"
LOST = 0.4
"""Share of the accuracy above chance whose loss points to other columns, labels or classifiers: more than
if a third of the labels were random."""


@dataclass(frozen=True)
class Gap:
    """What was predicted, minus what was observed, in one check or in several together.

    Attributes
    ----------
    checks : int
        Number of labelled checks, the first of them on `date`.
    name, date : str
        Name of the rows of the first check, and its date.
    rows : float
        Number of rows; weighted ones count as their share.
    column : int or None
        The class whose probability it is; None for the confidence in the predicted class. It is what is
        evaluated, unless that is within its allowed range and another one is not.
    predicted, observed : float
        The mean probability, and the share of the labels; or the mean confidence, and the accuracy.
    gap, low, high : float
        `predicted - observed`, with a 95% interval: above 0, predictions are too high.
    allowed : tuple of two floats
        The range of gaps that count as no change.
    outside : bool
        Whether one of all gaps is outside its allowed range and differs from the fit's beyond chance.
    within : bool
        Whether all gaps are within their allowed ranges.

    Examples
    --------
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> (last,) = monitoring.check(cal, task.logits[1000:], task.labels[1000:], name="week 42").gaps
    >>> last.name, f"{last.gap:+.3f} ({last.low:+.3f} to {last.high:+.3f})", last.within
    ('week 42', '+0.002 (-0.013 to +0.018)', True)
    """

    checks: int
    name: str
    date: str
    rows: float
    column: int | None
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    allowed: tuple[float, float]
    outside: bool
    within: bool


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
        `found / predicted`, with a 95% interval.

    Examples
    --------
    In these rows, class 0 is rarer than at the fit:

    >>> import numpy as np
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> logits, labels = task.logits[1000:], task.labels[1000:]
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
    gap : Gap
        What has changed most.
    confidence, accuracy : float
        Mean confidence, and share of rows whose predicted class is correct.
    log_temperature, log_temperature_error : float
        Logarithm of the additional temperature that fits these rows, with its standard error, adjusted for
        class frequencies. Above 0: overconfident.
    classes : tuple of ClassChange
        Classes whose frequency differs significantly from the predicted one, the most significant first.

    Examples
    --------
    In these rows, class 0 is rarer than at the fit:

    >>> import numpy as np
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> logits, labels = task.logits[1000:], task.labels[1000:]
    >>> kept = (labels != 0) | (np.arange(2000) % 4 == 0)
    >>> change = monitoring.check(cal, logits[kept], labels[kept]).change
    >>> change.gap.column, [found.column for found in change.classes]
    (0, [0, 1])
    >>> f"confidence {change.confidence:.1%}, accuracy {change.accuracy:.1%}"
    'confidence 79.7%, accuracy 78.8%'
    """

    gap: Gap
    confidence: float
    accuracy: float
    log_temperature: float
    log_temperature_error: float
    classes: tuple[ClassChange, ...]


@dataclass(frozen=True)
class Labels:
    """How many labels are needed, and the uncertainty that remains.

    Attributes
    ----------
    number : int
        Labelled rows.
    leaves : float
        Two standard errors of a mean residual with this number of rows.
    of : str
        What determines the number: "gap" or "class".

    Examples
    --------
    The logits of a classifier are three times as large as at the fit:

    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> found = monitoring.check(cal, 3 * task.logits[1000:])
    >>> found.action, found.labels.number, round(found.labels.leaves, 3)
    ('label', 320, 0.04)
    """

    number: int
    leaves: float
    of: str


def recent_gaps(checks: Sequence[Record], limits: Limits) -> tuple[Gap, ...]:
    """Return the gaps of labelled checks: of the last one, of the last three together, and of all."""
    sizes = sorted({1, min(LAST, len(checks)), len(checks)})
    return tuple(gap_of(checks[-size:], limits) for size in sizes)


def gap_of(checks: Sequence[Record], limits: Limits) -> Gap:
    """Return the gap of labelled checks together."""
    sums = reduce(add, [check.labelled for check in checks if check.labelled is not None])
    outside = (sums.means < limits.low) | (sums.means > limits.high)
    difference = np.abs(sums.means - limits.center) / np.hypot(sums.errors, limits.errors)
    difference /= limits.margins(DIFFERS)
    beyond_chance, i = outside & (difference > 1), limits.judged
    for told in (outside, beyond_chance):
        if told.any() and not told[i]:
            i = int(np.argmax(np.where(told, difference, -1.0)))
    column, gap = int(limits.columns[i]), sums.gap_of(i)
    predicted, observed = sums.rates_of(column)
    return Gap(
        checks=len(checks),
        name=checks[0].name,
        date=checks[0].date,
        rows=sums.rows,
        column=None if column < 0 else column,
        predicted=predicted,
        observed=observed,
        gap=gap.value,
        low=gap.low,
        high=gap.high,
        allowed=limits.gap_of(i),
        outside=bool(beyond_chance.any()),
        within=not outside.any(),
    )


def expected_accuracy(sums: PredictionSums, limits: Limits) -> tuple[float, float, float]:
    """Return the mean confidence of rows, and an interval of their accuracy, if the calibrator still holds.

    The gap at the fit is also uncertain. An added row of variance 1 keeps the interval wide for few rows.
    """
    mean, variance = sums.said / sums.rows, (sums.variance + 1) / (sums.rows + 1)
    half = QUANTILE * float(np.sqrt(variance * (1 / sums.rows + 1 / limits.fit_rows)))
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def estimate_change(checks: Sequence[Record], limits: Limits) -> Change:
    """Estimate what has changed since the fit."""
    sums = reduce(add, [check.labelled for check in checks if check.labelled is not None])
    score = sums.score.copy()
    score[1:] -= sums.rows * np.bincount(limits.class_groups, limits.at_fit[1:])
    log_beta, error = _log_beta(score, sums.information)
    return Change(
        gap=gap_of(checks, limits),
        confidence=sums.confidence / sums.rows,
        accuracy=sums.accuracy,
        log_temperature=-log_beta,
        log_temperature_error=error * np.sqrt(1 + sums.rows / limits.fit_rows),
        classes=_class_changes(sums, limits),
    )


def _log_beta(score: Vector, information: Vector) -> tuple[float, float]:
    """Return the estimate of log beta and its standard error, with all b estimated as well."""
    within = _inverse(information[1:, 1:])
    own = information[0, 0] - information[0, 1:] @ within @ information[1:, 0]
    if own <= 1e-9 * information[0, 0] or own <= 0:
        return 0.0, np.inf  # all rows are alike: not identified
    return float((score[0] - information[0, 1:] @ within @ score[1:]) / own), float(1 / np.sqrt(own))


def _inverse(information: Vector) -> Vector:
    """Return the pseudo-inverse. Adding a number to all b changes nothing: its information is rounding."""
    return np.asarray(np.linalg.pinv(information, rcond=SINGULAR, hermitian=True), np.float64)


def _class_changes(sums: LabelledSums, limits: Limits) -> tuple[ClassChange, ...]:
    """Return the classes that changed most, with Poisson intervals of their ratios."""
    n, columns = sums.rows, limits.columns[1:]
    found = sums.labels[columns]
    expected = np.maximum(sums.probabilities[columns] + n * limits.center[1:], 1e-9 * n)
    variance = np.maximum(sums.squares[1:], expected / max(n, 1)) * (1 + n / limits.fit_rows)
    z = (found - expected) / np.sqrt(np.maximum(variance, 1e-12))
    order = np.argsort(-np.abs(z), kind="stable")
    bound = norm.ppf(1 - (1 - CONFIDENCE) / (2 * len(z)))
    changes, tail = [], (1 - CONFIDENCE) / 2
    for k in order[:MAX_CLASSES_TOLD].tolist():
        if abs(z[k]) > bound:
            count, predicted = float(found[k]), float(expected[k])
            low = chi2.ppf(tail, 2 * count) / 2 if count else 0.0
            high = chi2.ppf(1 - tail, 2 * count + 2) / 2
            ratios = (float(number / predicted) for number in (count, low, high))
            changes.append(ClassChange(int(columns[k]), predicted / n, count / n, *ratios))
    return tuple(changes)


# ---- What to do


def is_other_data(sums: LabelledSums, limits: Limits) -> bool:
    """Say whether so much accuracy is gone that columns, labels or the classifier are likely to be others.

    Where the classifier is as confident as before and much of its accuracy is gone, calibration is not what
    is wrong. The accuracy counts as the upper end of its interval.
    """
    gap, chance = sums.gap_of(0), 1 / (len(limits.at_fit) - 1)
    expected = min(sums.confidence / sums.rows, limits.baseline.accuracy)
    return bool(expected - sums.accuracy - (gap.value - gap.low) > LOST * max(expected - chance, 0.0))


def labels_to_refit(sums: LabelledSums, limits: Limits) -> Labels:
    """Return how many labels a new fit needs.

    Two standard errors of the gap, and of the frequency of the class that changed most, must be at most the
    tolerance, or a third of the change if that is larger. More labels would make no visible difference.
    """
    mean = sums.means
    variance = np.maximum(sums.squares / sums.rows - mean**2, 1 / (4 * sums.rows))
    excess = np.maximum(limits.low - mean, mean - limits.high)
    k = 1 + int(np.argmax(excess[1:]))
    changes = [("gap", variance[0], mean[0])]
    if excess[k] > 0:
        changes.append(("class", variance[k], mean[k] - limits.center[k]))
    candidates = (
        labels_needed(of, spread, max(abs(change) / REMAINING, limits.tolerance))
        for of, spread, change in changes
    )
    return max(candidates, key=lambda labels: labels.number)


def labels_needed(of: str, variance: float, uncertainty: float) -> Labels:
    """Return how many labels leave two standard errors of at most this uncertainty."""
    needed = 4 * float(variance) / max(float(uncertainty), 0.001) ** 2
    number = max(MIN_LABELS, _rounded_up(needed))
    return Labels(number, 2 * float(np.sqrt(variance / number)), of)


def labels_to_alarm(sums: Sequence[LabelledSums], checks: int, limits: Limits, alpha: float) -> Labels | None:
    """Return about how many more labels like the last checks' raise the alarm.

    None if no number up to `MAX_LABELS` does.
    """
    columns = cumulate(sums)
    rows, _, residuals, squares = (column[-1] - column[-1 - checks] for column in columns)
    labels = float(MIN_LABELS)
    while labels <= MAX_LABELS:
        ahead = [
            np.append(column, [column[-1] + labels / rows * (column[-1] - column[-1 - checks])], axis=0)
            for column in columns
        ]
        if evidence_of(ahead, limits.low, limits.high)[0] >= np.log(1 / alpha):
            variance = squares[0] / rows - (residuals[0] / rows) ** 2
            number = _rounded_up(labels)
            return Labels(number, 2 * float(np.sqrt(max(variance, 0.0) / number)), "gap")
        labels *= STEP
    return None


def _rounded_up(number: float) -> int:
    """Return the number with two significant digits: more would suggest a false precision."""
    unit = 10 ** max(0, floor(log10(max(number, 1.0))) - 1)
    return ceil(number / unit) * unit
