"""Two methods on the same rows: the mean difference, row by row, and its standard error."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from temperance.core.arrays import Vector
from temperance.metrics import Estimate
from temperance.metrics.intervals import distances, skewness_of


@dataclass(frozen=True)
class Difference:
    """A mean difference of two methods over the same rows, and its standard error.

    Attributes
    ----------
    value : float
        The mean difference.
    error : float
        Its standard error.
    skewness : float
        Its skewness: rows with large gains or losses make one end of the interval further away.
    rows : float
        How many rows of equal weight would have this error.

    Examples
    --------
    >>> gain = Difference(0.10, 0.02).interval(0.95)
    >>> round(gain.low, 2), round(gain.high, 2)
    (0.06, 0.14)
    """

    value: float
    error: float
    skewness: float = field(default=0.0, compare=False)
    rows: float = field(default=np.inf, compare=False)

    @classmethod
    def of(cls, rows: Vector, share: Vector) -> Difference:
        """Return the mean of `rows` with weights that sum to 1; a single row has no finite error."""
        value, concentration = float(rows @ share), float(share @ share)
        if concentration >= 1 - 1e-12:
            return cls(value, np.inf)
        variance = float((rows - value) ** 2 @ share) * concentration / (1 - concentration)
        moves = share * (rows - value)
        return cls(value, float(np.sqrt(variance)), skewness_of(moves), 1 / concentration)

    def interval(self, confidence: float) -> Estimate:
        """Return the interval, with the skewness of the rows taken into account."""
        below, above = distances(self.skewness, self.rows, confidence)
        return Estimate(self.value, self.value - below * self.error, self.value + above * self.error)
