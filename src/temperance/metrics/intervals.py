"""An estimate with its interval; intervals of proportions and means.

The interval of a proportion is that of Wilson (1927). That of a mean comes from the variance and the skewness
of its rows.

Row i moves an estimate by u_i: with shares v of the weights, a mean m of x by u_i = v_i (x_i - m). Then

    s^2 = sum_i u_i^2 / (1 - sum_i v_i^2)      A = sum_i u_i^3 / (sum_i u_i^2)^(3/2)

are the variance and the skewness of the estimate. Losses have a long right tail. An estimate that comes out
too small then has too small a standard error as well, so that m +- z s misses large truths too often. Hall's
transformation of t = (m - truth) / s removes this: up to terms of order 1/N,

    g(t) = t + A t^2 / 3 + A^2 t^3 / 27 + A / 6

is normal. It is monotone, with the inverse 3 ((1 + A (x - A / 6))^(1/3) - 1) / A. No rows are resampled.

Where a handful of rows make the mean, as two errors in 200 rows do, the transformation leaves the range in
which it holds, and the far end would be several times too far. A count of k rare events has A = k^(-1/2), and
its exact interval is known (Garwood, 1936): the far end is at most that of a count of 1 / A^2 events.

References
----------
.. [1] Hall (1992). On the removal of skewness by transformation.
   doi:10.1111/j.2517-6161.1992.tb01876.x
.. [2] Garwood (1936). Fiducial limits for the Poisson distribution. doi:10.1093/biomet/28.3-4.437
.. [3] Wilson (1927). Probable inference, the law of succession, and statistical inference.
   doi:10.1080/01621459.1927.10502953
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from temperance.core.arrays import Vector

_SYMMETRIC = 1e-6  # a skewness below this changes no end by a millionth of its distance
_SLIGHT = 0.1  # below this the transformation is nearer than the exact interval of a count


@dataclass(frozen=True)
class Estimate:
    """A metric's value on the rows given, with the ends of its interval.

    Attributes
    ----------
    value : float
        Value on all rows.
    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> nll = evaluate([[0.9, 0.1], [0.2, 0.8]] * 20, [0, 1] * 20, draws=20)["nll"]
    >>> nll.low <= nll.value <= nll.high
    True
    """

    value: float
    low: float
    high: float


def influence_interval(
    value: float, moves: Vector, share: Vector, confidence: float, low: float, high: float
) -> Estimate:
    """Return the interval of an estimate that row i moves by `moves[i]`, kept within [low, high].

    `share` are the weights of the rows, which sum to 1. The ends are nan for a single row.
    """
    concentration = float(share @ share)
    if concentration >= 1 - 1e-12:
        return Estimate(value, np.nan, np.nan)
    error = float(np.sqrt(float(moves @ moves) / (1 - concentration)))
    below, above = distances(skewness_of(moves), 1 / concentration, confidence)
    ends = np.clip([value - below * error, value + above * error], low, high)
    return Estimate(value, float(ends[0]), float(ends[1]))


def skewness_of(moves: Vector) -> float:
    """Return the skewness of an estimate; 0 where it does not vary."""
    squares = float(moves @ moves)
    return float((moves**2) @ moves) / squares**1.5 if squares > 0 else 0.0


def distances(skewness: float, rows: float, confidence: float) -> tuple[float, float]:
    """Return how many standard errors the ends of the interval are below and above the estimate.

    The quantiles are those of Student's t: with few rows the standard error is uncertain too.
    """
    from scipy.special import gammaincinv, ndtri, stdtrit

    z = float(stdtrit(max(rows - 1, 1.0), (1 + confidence) / 2))
    if abs(skewness) < _SYMMETRIC:
        return z, z
    below, above = (3 / skewness * (np.cbrt(1 + skewness * (side - skewness / 6)) - 1) for side in (z, -z))
    # At a low level the median of a skewed estimate may lie outside; the estimate stays inside.
    ends = [max(float(below), 0.0), max(float(-above), 0.0)]
    far = 1 if skewness > 0 else 0
    if abs(skewness) > _SLIGHT:
        # How far the upper end of a Poisson count is from it, relative to a normal variable.
        events, level = skewness**-2.0, (1 + confidence) / 2
        of_count = float((gammaincinv(events + 1, level) - events) / np.sqrt(events) / ndtri(level))
        ends[far] = min(ends[far], z * of_count)
    return ends[0], ends[1]


def mean_interval(
    values: Vector, weight: Vector, confidence: float, low: float = 0.0, high: float = np.inf
) -> Estimate:
    """Return the weighted mean of one number for each row, and its interval, kept within [low, high].

    An infinite row makes the mean and the upper end infinite. The lower end then is that of the finite part.
    """
    total, finite = float(weight.sum()), np.isfinite(values)
    bounded = values if finite.all() else np.where(finite, values, 0.0)
    mean, share = float(weight @ bounded) / total, weight / total
    found = influence_interval(mean, share * (bounded - mean), share, confidence, low, high)
    return found if finite.all() else Estimate(np.inf, found.low, np.inf)


def wilson_interval(rate: Vector, count: Vector, level: float) -> tuple[Vector, Vector]:
    """Return the ends of the Wilson score interval of a proportion."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = z**2 / np.where(count > 0, count, np.nan)
    centre = rate + share / 2
    # With fractional weights, a rate of 1 may be rounded to 1 + 1e-16.
    spread = z * np.sqrt((np.maximum(rate * (1 - rate), 0) + share / 4) * share / z**2)
    return np.maximum((centre - spread) / (1 + share), 0), np.minimum((centre + spread) / (1 + share), 1)


def proportion_interval(values: Vector, weight: Vector, confidence: float) -> Estimate:
    """Return the weighted mean of zeros and ones with its Wilson interval, which has a width also at 0 and 1.

    The number of rows is that of equal weights with the same variance.
    """
    total = float(weight.sum())
    mean, share = float(weight @ values) / total, weight / total
    moves = share * (values - mean)
    squares = float(moves @ moves)
    rows = mean * (1 - mean) / squares if squares > 0 else 1 / float(share @ share)
    low, high = wilson_interval(np.array([mean]), np.array([rows]), confidence)
    return Estimate(mean, float(low[0]), float(high[0]))
