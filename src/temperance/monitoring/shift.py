"""Whether predictions without labels look as they did at the fit: three tests, corrected for repeated looks.

Confidence and entropy: the two-sample Kolmogorov-Smirnov test of the rows against the baseline, evaluated
only at the quantiles in the calibrator file, which makes it conservative. Predicted classes: Fisher's exact
test for each class. The rows of this check are tested, and those of the last 2, 4, 8, ... checks.
Bonferroni's correction covers the tests. Look number s uses a share 1 / (s (s + 1)) of the level, so the
probability of a false alarm over all looks is at most the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.stats import hypergeom, kstwobign

from temperance.core.arrays import Vector
from temperance.formulas.fit_record import Baseline
from temperance.monitoring.limits import RARE
from temperance.monitoring.predictions import PredictionSums

LEAST_SHIFT = 0.05
"""A smaller difference of the distributions is no reason to act, however significant."""

TESTS = 3


@dataclass(frozen=True)
class ShiftTest:
    """One test of the predictions against the baseline.

    Attributes
    ----------
    what : {"confidence", "entropy", "predicted classes"}
        What is compared.
    difference : float
        The largest difference between the distribution functions, or between the shares of a class. Above 0:
        higher than at the fit, or more frequent.
    p_value : float
        Corrected for the tests and windows of this check, not for repeated looks.
    column : int or None
        The class, for predicted classes.
    checks : int
        Number of checks, up to this one, whose rows differ most.

    Examples
    --------
    The logits of a classifier are three times as large as at the fit:

    >>> from temperance import monitoring
    >>> from temperance.monitoring.example import example_rows
    >>> cal, logits, labels = example_rows()
    >>> confidence, entropy, classes = monitoring.check(cal, 3 * logits).shift.tests
    >>> round(confidence.difference, 2), round(entropy.difference, 2), entropy.p_value < 0.001
    (0.54, -0.54, True)
    >>> classes.what, classes.column, classes.p_value
    ('predicted classes', 2, 1.0)
    """

    what: str
    difference: float
    p_value: float
    column: int | None
    checks: int


@dataclass(frozen=True)
class Shift:
    """The tests of one look, and whether one of them is an alarm.

    Attributes
    ----------
    tests : tuple of ShiftTest
        Tests of confidence, entropy and predicted classes.
    level : float
        The largest p-value that can be an alarm at this look.
    alarm : bool
        Whether a difference is significant at this level and large enough to matter.

    Examples
    --------
    >>> from temperance import monitoring
    >>> from temperance.monitoring.example import example_rows
    >>> cal, logits, labels = example_rows()
    >>> shift = monitoring.check(cal, logits).shift
    >>> shift.alarm, shift.level
    (False, 0.025)
    >>> [test.what for test in shift.tests]
    ['confidence', 'entropy', 'predicted classes']
    """

    tests: tuple[ShiftTest, ...]
    level: float
    alarm: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"tests": [vars(test) for test in self.tests], "level": self.level, "alarm": self.alarm}


def compare_with_baseline(checks: Sequence[PredictionSums], baseline: Baseline, alpha: float) -> Shift:
    """Compare the rows of the last checks with the baseline."""
    windows = [reduce(add, checks[-size:]) for size in _window_sizes(len(checks))]
    level = alpha / (len(checks) * (len(checks) + 1))
    found = [_tests(rows, baseline, size, TESTS * len(windows))
             for rows, size in zip(windows, _window_sizes(len(checks)), strict=True)]  # fmt: skip
    tests = tuple(min(same, key=lambda test: test.p_value) for same in zip(*found, strict=True))
    alarm = any(test.p_value <= level and _is_large(test, baseline) for each in found for test in each)
    return Shift(tests, level, alarm)


def _window_sizes(checks: int) -> list[int]:
    return [2**i for i in range(checks.bit_length())]


def _is_large(test: ShiftTest, baseline: Baseline) -> bool:
    least = LEAST_SHIFT
    if test.column is not None:
        share = baseline.predicted_counts[test.column] / baseline.predicted_counts.sum()
        least *= min(1.0, max(share, share + test.difference) / RARE)
    return bool(abs(test.difference) >= least)


def _tests(rows: PredictionSums, baseline: Baseline, checks: int, tests: int) -> tuple[ShiftTest, ...]:
    quantiles = {
        "confidence": (rows.confidence, baseline.confidence_shares),
        "entropy": (rows.entropy, baseline.entropy_shares),
    }
    found = []
    for what, (counts, shares) in quantiles.items():
        difference = counts / rows.rows - shares
        largest = float(difference[np.argmax(np.abs(difference))])
        size = rows.rows * baseline.effective_rows / (rows.rows + baseline.effective_rows)
        p_value = float(kstwobign.sf(abs(largest) * np.sqrt(size)))
        found.append(ShiftTest(what, -largest, min(1.0, tests * p_value), None, checks))
    return *found, _class_test(rows, baseline, checks, tests)


def _class_test(rows: PredictionSums, baseline: Baseline, checks: int, tests: int) -> ShiftTest:
    total = baseline.predicted_counts.sum()
    before = np.round(baseline.predicted_counts * (baseline.effective_rows / total))
    p_values = _fisher(rows.predicted, rows.rows, before, before.sum())
    k = int(np.argmin(p_values))
    difference = float(rows.predicted[k] / rows.rows - baseline.predicted_counts[k] / total)
    corrected = min(1.0, tests * len(p_values) * float(p_values[k]))
    return ShiftTest("predicted classes", difference, corrected, k, checks)


def _fisher(now: Vector, rows: int, before: Vector, rows_before: float) -> Vector:
    """Return twice the smaller tail of Fisher's exact test of each class."""
    both, everything = now + before, rows + rows_before
    more = hypergeom.sf(now - 1, everything, both, rows)
    fewer = hypergeom.cdf(now, everything, both, rows)
    p_values: Vector = np.minimum(1.0, 2 * np.minimum(more, fewer))
    return p_values
