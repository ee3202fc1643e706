"""Which method to take, why, and what it gains.

The judge is the NLL: a proper score, so it rewards true probabilities and nothing else. The simplest method
is taken whose NLL is within one standard error of the lowest; the error is that of the mean difference
between the two methods, row by row, which is far smaller than that of either. Simpler means fewer
parameters; a method with a prior counts those that its rows have determined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.comparison.result import MethodResult
from temperance.core.arrays import Vector
from temperance.metrics import Estimate

NEGLIGIBLE = 1e-6  # of the NLL: two solvers of one problem differ by more than their rows' error


@dataclass(frozen=True)
class Difference:
    """A mean difference of two methods over the same rows, and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, rows: Vector, share: Vector) -> Difference:
        """Return the mean of `rows` with weights that sum to 1."""
        value = float(rows @ share)
        return cls(value, float(np.sqrt(((rows - value) ** 2 @ share) * (share @ share))))

    def interval(self, confidence: float) -> Estimate:
        """Return the normal interval."""
        half = NormalDist().inv_cdf((1 + confidence) / 2) * self.error
        return Estimate(self.value, self.value - half, self.value + half)


@dataclass(frozen=True)
class Recommendation:
    """The method to take, the reason in a sentence, and how much NLL it takes off the classifier's own."""

    method: str
    reason: str
    gain: Difference


def recommend(results: Mapping[str, MethodResult], weights: Vector | None) -> Recommendation:
    """Choose the simplest method that is within one standard error of the lowest NLL."""
    share = np.ones(len(results[UNCALIBRATED].row_nll)) if weights is None else weights
    share = share / share.sum()
    means = {name: float(result.row_nll @ share) for name, result in results.items()}
    best = min(means, key=lambda name: means[name])
    behind = {
        name: Difference.of(result.row_nll - results[best].row_nll, share) for name, result in results.items()
    }
    slack = NEGLIGIBLE * means[best]
    within = [name for name, difference in behind.items() if difference.value <= difference.error + slack]
    chosen = min(within, key=lambda name: (results[name].n_parameters, means[name]))
    gain = Difference.of(results[UNCALIBRATED].row_nll - results[chosen].row_nll, share)
    if chosen == best:
        reason = f"Its NLL, {means[best]:.4f}, is the lowest; no simpler method is within one standard error."
    else:
        reason = (
            f"It is the simplest method whose NLL, {means[chosen]:.4f}, is within one standard error "
            f"({behind[chosen].error:.4f}) of the lowest, {means[best]:.4f} ({best})."
        )
    return Recommendation(chosen, reason, gain)
