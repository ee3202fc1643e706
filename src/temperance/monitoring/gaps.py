"""The gap of the last checks, with intervals, which can be outside the allowed range before an alarm.

An alarm stays valid however often one looks, and that takes rows. Until then, an interval of the gap that
lies outside the allowed range is a reason to watch the calibrator: of the last checks each by itself, of the
last three together, of all since the last good one, of those that differ most, and of all checks. A check is
good if its gap lies within the allowed range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from temperance.core.arrays import Vector
from temperance.monitoring.history import Record
from temperance.monitoring.sums import LabelledSums, Limits, PredictionSums

CONFIDENCE = 0.95  # of all intervals
QUANTILE = float(norm.ppf((1 + CONFIDENCE) / 2))
LAST = 3  # checks that are tested together
MAX_LISTED = 5  # checks since the last good one that are told one by one


@dataclass(frozen=True)
class Gap:
    """Mean confidence minus accuracy of one check, or of several together.

    Attributes
    ----------
    checks : int
        Number of labelled checks, the first of them on `date`.
    name, date : str
        Name of the rows, if it is one check, and its date.
    rows : float
        Number of rows; weighted ones count as their share.
    confidence, accuracy : float
        Mean confidence, and share of rows whose predicted class is correct.
    gap, low, high : float
        `confidence - accuracy`, with a 95% interval: above 0 is overconfident.
    outside : bool
        Whether the whole interval is outside the allowed range.

    Examples
    --------
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> (last,) = monitoring.check(cal, task.logits[1000:], task.labels[1000:], name="week 42").gaps
    >>> last.name, f"{last.gap:+.3f} ({last.low:+.3f} to {last.high:+.3f})", last.outside
    ('week 42', '+0.002 (-0.014 to +0.018)', False)
    """

    checks: int
    name: str
    date: str
    rows: float
    confidence: float
    accuracy: float
    gap: float
    low: float
    high: float
    outside: bool


def gap_of(rows: float, residuals: float, squares: float) -> tuple[float, float, float]:
    """Return the gap and its interval, from sums of 1[y = t] - p_t, which is the gap of a row negated.

    An added row with residual 1 keeps the interval wide for few rows.
    """
    gap = -residuals / rows
    variance = (max(squares - rows * gap**2, 0.0) + 1) / (rows + 1)
    half = QUANTILE * np.sqrt(variance / rows)
    return float(gap), max(-1.0, float(gap - half)), min(1.0, float(gap + half))


def recent_gaps(checks: Sequence[Record], start: int, limits: Limits) -> tuple[Gap, ...]:
    """Return the gaps of labelled checks: the last, each back to the last good one, several together.

    Checks together are told if they are outside the allowed range, and all checks always. `start` is the
    first of the checks that differ most.
    """
    number, (lowest, highest) = len(checks), limits.gap
    sums = np.array([_sums_of_gap(check.labelled) for check in checks if check.labelled is not None])

    def from_check(first: int, end: int = number) -> Gap:
        rows, total, residuals, squares = sums[first:end].sum(axis=0).tolist()
        gap, low, high = gap_of(rows, residuals, squares)
        confidence, name = total / rows, checks[first].name if end - first == 1 else ""
        seen = confidence, confidence - gap, gap, low, high
        return Gap(end - first, name, checks[first].date, rows, *seen, bool(high < lowest or low > highest))

    each_gap: Vector = -sums[:, 2] / sums[:, 0]
    good = np.flatnonzero((lowest <= each_gap) & (each_gap <= highest))
    begin = min(int(good[-1]) + 1 if good.size else 0, number - 1)
    each = [from_check(i, i + 1) for i in reversed(range(max(begin, number - MAX_LISTED), number))]
    together = [
        from_check(first) for first in sorted({begin, start, max(number - LAST, 0)} - {0, number - 1})
    ]
    every = [from_check(0)] if number > 1 else []
    return (*each, *(gap for gap in together if gap.outside), *every)


def _sums_of_gap(sums: LabelledSums) -> tuple[float, float, float, float]:
    return sums.rows, sums.confidence, float(sums.residuals[0]), float(sums.squares[0])


def expected_accuracy(sums: PredictionSums, limits: Limits) -> tuple[float, float, float]:
    """Return the mean confidence of rows, and an interval of their accuracy, if the calibrator still holds.

    The gap at the fit is also uncertain. An added row of variance 1 keeps the interval wide for few rows.
    """
    mean, variance = sums.said / sums.rows, (sums.variance + 1) / (sums.rows + 1)
    half = QUANTILE * float(np.sqrt(variance * (1 / sums.rows + 1 / limits.fit_rows)))
    return mean, max(0.0, mean - half), min(1.0, mean + half)
