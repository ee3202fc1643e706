"""Whether predictions without labels look as they did at the fit: three tests, corrected for repeated looks.

Confidence and entropy: the two-sample Kolmogorov-Smirnov test of the rows against the baseline, evaluated
only at the quantiles in the calibrator file, which makes it conservative. Predicted classes: Fisher's exact
test per class. The tests cover the rows of this check, and the rows of the last 2, 4, 8, ... checks.
Bonferroni's correction covers the tests. Look number s uses a share 1 / (s (s + 1)) of the level, so the
probability of a false alarm over all looks is at most the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import hypergeom

from temperance.core.arrays import Vector
from temperance.formulas.fit_record import Baseline
from temperance.monitoring.sums import RARE, PredictionSums

MIN_SHIFT = 0.05
"""A smaller difference of the distributions is no reason to act, however significant."""


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

    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> confidence, entropy, classes = monitoring.check(cal, 3 * task.logits[1000:]).shift.tests
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
    >>> from temperance import TemperatureScaling, monitoring
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=3, random_state=0)
    >>> cal = TemperatureScaling().fit(task.logits[:1000], task.labels[:1000])
    >>> shift = monitoring.check(cal, task.logits[1000:]).shift
    >>> shift.alarm, shift.level
    (False, 0.025)
    >>> [test.what for test in shift.tests]
    ['confidence', 'entropy', 'predicted classes']
    """

    tests: tuple[ShiftTest, ...]
    level: float
    alarm: bool


def compare_with_baseline(checks: Sequence[PredictionSums], baseline: Baseline, alpha: float) -> Shift:
    """Compare the rows of the last checks with the baseline."""
    sizes = [2**i for i in range(len(checks).bit_length())]
    level = alpha / (len(checks) * (len(checks) + 1))
    found = [_tests(reduce(add, checks[-size:]), baseline, size, 3 * len(sizes)) for size in sizes]
    tests = tuple(min(same, key=lambda test: test.p_value) for same in zip(*found, strict=True))
    alarm = any(test.p_value <= level and _is_large(test, baseline) for each in found for test in each)
    return Shift(tests, level, alarm)


def _is_large(test: ShiftTest, baseline: Baseline) -> bool:
    needed = MIN_SHIFT
    if test.column is not None:
        share = baseline.predicted_counts[test.column] / baseline.predicted_counts.sum()
        needed *= min(1.0, max(share, share + test.difference) / RARE)
    return bool(abs(test.difference) >= needed)


def _tests(rows: PredictionSums, baseline: Baseline, checks: int, tests: int) -> tuple[ShiftTest, ...]:
    found = []
    size = rows.rows * baseline.effective_rows / (rows.rows + baseline.effective_rows)
    for what, counts, shares in (
        ("confidence", rows.confidence, baseline.confidence_shares),
        ("entropy", rows.entropy, baseline.entropy_shares),
    ):
        difference = counts / rows.rows - shares
        largest = float(difference[np.argmax(np.abs(difference))])
        p_value = float(kolmogorov(abs(largest) * np.sqrt(size)))
        found.append(ShiftTest(what, -largest, min(1.0, tests * p_value), None, checks))
    total = baseline.predicted_counts.sum()
    before = np.round(baseline.predicted_counts * (baseline.effective_rows / total))
    now = np.round(rows.predicted)
    p_values = _fisher(now, now.sum(), before, before.sum())
    k = int(np.argmin(p_values))
    change = float(rows.predicted[k] / rows.rows - baseline.predicted_counts[k] / total)
    p_value = min(1.0, tests * len(p_values) * float(p_values[k]))
    return *found, ShiftTest("predicted classes", change, p_value, k, checks)


def _fisher(now: Vector, rows: float, before: Vector, rows_before: float) -> Vector:
    """Return twice the smaller tail of Fisher's exact test of each class."""
    both, everything = now + before, rows + rows_before
    more = hypergeom.sf(now - 1, everything, both, rows)
    fewer = hypergeom.cdf(now, everything, both, rows)
    p_values: Vector = np.minimum(1.0, 2 * np.minimum(more, fewer))
    return p_values
