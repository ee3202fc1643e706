"""The gap of the last checks, with intervals, which may be outside the allowed range before an alarm.

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
LAST = 3  # checks that are judged together
MAX_LISTED = 5  # checks since the last good one that are told one by one


@dataclass(frozen=True)
class Gap:
    """Accuracy minus mean confidence of one check, or of several together.

    Attributes
    ----------
    checks : int
        Number of labelled checks, the first of them on `date`.
    name, date : str
        Name of the rows, if it is one check, and its date.
    rows : float
        Number of rows; weighted ones count as their share.
    said, right : float
        Mean confidence, and share of rows whose predicted class is right.
    gap, low, high : float
        `right - said`, with a 95% interval.
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
    ('week 42', '-0.002 (-0.018 to +0.014)', False)
    """

    checks: int
    name: str
    date: str
    rows: float
    said: float
    right: float
    gap: float
    low: float
    high: float
    outside: bool


def gap_interval(rows: float, total: float, squares: float) -> tuple[float, float]:
    """Return an interval of the mean residual; an added row with residual 1 keeps it wide for few rows."""
    mean = total / rows
    variance = (max(squares - rows * mean**2, 0.0) + 1) / (rows + 1)
    half = QUANTILE * np.sqrt(variance / rows)
    return max(-1.0, float(mean - half)), min(1.0, float(mean + half))


def recent_gaps(checks: Sequence[Record], start: int, limits: Limits) -> tuple[Gap, ...]:
    """Return the gaps of labelled checks: the last, each back to the last good one, several together.

    Checks together are told if they are outside the allowed range, and all checks always. `start` is the
    first of the checks that differ most.
    """
    number, low, high = len(checks), limits.low[0], limits.high[0]
    sums = np.array([_sums_of_gap(check.labelled) for check in checks if check.labelled is not None])

    def gap_of(first: int, end: int = number) -> Gap:
        rows, confidence, residuals, squares = sums[first:end].sum(axis=0).tolist()
        ends = gap_interval(rows, residuals, squares)
        said, gap = confidence / rows, residuals / rows
        name = checks[first].name if end - first == 1 else ""
        outside = bool(ends[1] < low or ends[0] > high)
        return Gap(end - first, name, checks[first].date, rows, said, said + gap, gap, *ends, outside)

    means: Vector = sums[:, 2] / sums[:, 0]
    good = np.flatnonzero((low <= means) & (means <= high))
    begin = min(int(good[-1]) + 1 if good.size else 0, number - 1)
    each = [gap_of(i, i + 1) for i in reversed(range(max(begin, number - MAX_LISTED), number))]
    together = [gap_of(first) for first in sorted({begin, start, max(number - LAST, 0)} - {0, number - 1})]
    every = [gap_of(0)] if number > 1 else []
    return (*each, *(gap for gap in together if gap.outside), *every)


def _sums_of_gap(sums: LabelledSums) -> tuple[float, float, float, float]:
    return sums.rows, sums.confidence, float(sums.residuals[0]), float(sums.squares[0])


def expected_accuracy(sums: PredictionSums, limits: Limits) -> tuple[float, float, float]:
    """Return the mean confidence of rows, and an interval of their accuracy, if the calibrator still holds.

    The gap at the fit is uncertain, too. An added row of variance 1 keeps the interval wide for few rows.
    """
    mean, variance = sums.said / sums.rows, (sums.variance + 1) / (sums.rows + 1)
    half = QUANTILE * float(np.sqrt(variance * (1 / sums.rows + 1 / limits.fit_rows)))
    return mean, max(0.0, mean - half), min(1.0, mean + half)
