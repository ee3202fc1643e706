"""Two methods on the same rows: the mean difference, row by row, and its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from temperance.core.arrays import Vector
from temperance.metrics import Estimate


@dataclass(frozen=True)
class Difference:
    """A mean difference of two methods over the same rows, and its standard error.

    Attributes
    ----------
    value : float
        The mean difference.
    error : float
        Its standard error.

    Examples
    --------
    >>> gain = Difference(0.10, 0.02).interval(0.95)
    >>> round(gain.low, 2), round(gain.high, 2)
    (0.06, 0.14)
    """

    value: float
    error: float

    @classmethod
    def of(cls, rows: Vector, share: Vector) -> Difference:
        """Return the mean of `rows` with weights that sum to 1; a single row has no finite error."""
        value, concentration = float(rows @ share), float(share @ share)
        if concentration >= 1 - 1e-12:
            return cls(value, np.inf)
        variance = float((rows - value) ** 2 @ share) * concentration / (1 - concentration)
        return cls(value, float(np.sqrt(variance)))

    def interval(self, confidence: float) -> Estimate:
        """Return the normal interval."""
        half = NormalDist().inv_cdf((1 + confidence) / 2) * self.error
        return Estimate(self.value, self.value - half, self.value + half)
