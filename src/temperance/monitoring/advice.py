"""What to do about a calibrator, and with how many labels."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from temperance.monitoring.change import Change
from temperance.monitoring.limits import Limits
from temperance.monitoring.residuals import LabelledSums

KEEP, ADAPT, REFIT, LABEL = "keep", "adapt", "refit", "label"
"""Actions: do nothing; adapt to other class frequencies; fit again; label rows first."""

REMAINING = 3  # a new fit may leave an uncertainty of a third of the change
FEWEST_LABELS = 20


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

    >>> from temperance import monitoring
    >>> from temperance.monitoring.example import example_rows
    >>> cal, logits, labels = example_rows()
    >>> found = monitoring.check(cal, 3 * logits)
    >>> found.action, found.labels.number, round(found.labels.leaves, 3)
    ('label', 320, 0.04)
    """

    number: int
    leaves: float
    of: str


def labels_to_refit(sums: LabelledSums, limits: Limits) -> Labels:
    """Return how many labels a new fit needs.

    Two standard errors of the gap, and of the frequency of the class that changed most, must be at most the
    tolerance, or a third of the change if that is larger. More labels would make no visible difference.
    """
    mean = sums.residuals / sums.rows
    variance = np.maximum(sums.squares / sums.rows - mean**2, 1 / (4 * sums.rows))
    excess = np.maximum(limits.low - mean, mean - limits.high)
    k = 1 + int(np.argmax(excess[1:]))
    candidates = [_labels("gap", variance[0], mean[0], limits.tolerance)]
    if excess[k] > 0:
        candidates.append(_labels("class", variance[k], mean[k] - limits.at_fit[k], limits.tolerance))
    return max(candidates, key=lambda labels: labels.number)


def labels_to_know(confidence_variance: float, tolerance: float) -> Labels:
    """Return how many labels would show a gap of twice the tolerance."""
    return _labels("gap", confidence_variance, 2 * REMAINING * tolerance, tolerance)


def _labels(of: str, variance: float, change: float, tolerance: float) -> Labels:
    target = max(abs(float(change)) / REMAINING, tolerance, 0.001)
    number = max(FEWEST_LABELS, _rounded_up(4 * float(variance) / target**2))
    return Labels(number, 2 * float(np.sqrt(variance / number)), of)


def _rounded_up(number: float) -> int:
    """Round up to two significant digits: more would suggest a false precision."""
    unit = 10 ** max(0, floor(log10(max(number, 1.0))) - 1)
    return ceil(number / unit) * unit


def action_of(alarm: bool, change: Change) -> str:
    """Return what to do after a check with labels."""
    if not alarm:
        return KEEP
    return ADAPT if change.explanation == "class frequencies" else REFIT
