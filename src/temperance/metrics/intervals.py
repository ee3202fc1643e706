"""An estimate with its interval; intervals of proportions and means.

The interval of a proportion is Wilson's (1927). The interval of a mean comes from the variance and the
skewness of its rows.

Row i moves an estimate by u_i: with shares v of the weights, it moves a mean m of x by u_i = v_i (x_i - m).
Then

    s^2 = sum_i u_i^2 / (1 - 2 v_i + sum_j v_j^2)      A = sum_i u_i^3 / (sum_i u_i^2)^(3/2)

are the variance and the skewness of the estimate. Losses have a long right tail. An estimate that is too
small then has a standard error that is too small as well, so m +- z s misses large truths too often. Hall's
transformation of t = (m - truth) / s removes this: up to terms of order 1/N,

    g(t) = t + A t^2 / 3 + A^2 t^3 / 27 + A / 6

is normal. It is monotone, with the inverse 3 ((1 + A (x - A / 6))^(1/3) - 1) / A. Nothing is resampled.

Rows without an error do not show how much an error would move the mean, and an accurate classifier makes few
errors. So one row is added to the moments, but not to the mean: a pseudo-error, spread over all rows i and
classes k other than the predicted one in proportion to sqrt(p_ik), with the loss that this label would have.
The square root is a compromise between the probabilities themselves, which are too small for an overconfident
classifier, and equal weights. `metrics.predictions` draws its labels. With c = sum_i v_i^2, in effect the
share of one row, x_i' the loss at the pseudo-label of row i and q its chance, sum_i q_i (c (x_i' - m))^2 is
added to sum_i u_i^2, and likewise to the third moment. The noise of calibration errors and of parts of losses
includes the same row. It plays the role of a pseudo-count for a proportion: it dominates where there are only
a handful of errors, and is one row of many elsewhere. Of many classes it is correct predictions that can be
few: a mean of confidence minus correctness has a pseudo-success as well, spread in proportion to sqrt(p_ij).

Where a handful of rows determine the mean, such as two errors in 200 rows, the transformation leaves its
range of validity, and the far end would be several times too far. A count of k rare events has A = k^(-1/2),
and its exact interval is known (Garwood, 1936): the far end is at most the end for a count of 1 / A^2 events.

Rows of a group are not independent, but groups are. A group moves an estimate by U_g, the sum of its rows'
moves, and has the sum of their shares, V_g. Everything above then holds for groups in place of rows: for G
groups of equal size, s^2 = G / (G - 1) sum_g U_g^2, with G - 1 degrees of freedom. The design effect

    d = sum_g U_g^2 / sum_i u_i^2,    at least 1, and at most sum_g V_g^2 / sum_i v_i^2 (one row a group)

is the number of rows that are worth one independent row. Where nothing varies it is unknown, and we use the
largest possible value. The pseudo-error is one independent row. A variance from a model, such as for a
proportion or a test, is multiplied by d (Korn and Graubard, 1998). With n the number of independent rows that
N rows are worth, d is on average (1 - 1/G) / (1 - 1/n) of its true value. Its degrees of freedom are about
1 / (1 / (G - 1) - 1 / (n - 1)).

References
----------
.. [1] Hall (1992). On the removal of skewness by transformation.
   doi:10.1111/j.2517-6161.1992.tb01876.x
.. [2] Garwood (1936). Fiducial limits for the Poisson distribution. doi:10.1093/biomet/28.3-4.437
.. [3] Brown et al. (2001). Interval estimation for a binomial proportion.
   doi:10.1214/ss/1009213286
.. [4] Wilson (1927). Probable inference, the law of succession, and statistical inference.
   doi:10.1080/01621459.1927.10502953
.. [5] Korn and Graubard (1998). Confidence intervals for proportions with small expected number of positive
   counts estimated from survey data.
.. [6] Fay and Feuer (1997). Confidence intervals for directly standardized rates: A method based on the gamma
   distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from temperance.core.arrays import Indices, Vector

_SYMMETRIC = 1e-6  # a smaller skewness changes no end by a millionth of its distance
_SLIGHT = 0.1  # for a smaller skewness, the transformation is closer than the exact interval of a count


@dataclass(frozen=True)
class Estimate:
    """A metric's value on the given rows, with the ends of its interval.

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


def without_nan(value: Any) -> Any:
    """Return None for nan, which JSON does not have."""
    if isinstance(value, dict):
        return {name: without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_nan(one) for one in value]
    return None if value != value else value


PseudoRow = tuple[Vector, Vector]
"""Values at a pseudo-error, such as at the pseudo-label of each row, and the chance of each."""


@dataclass(frozen=True, eq=False)
class Units:
    """The independent units, rows or groups of rows, and how much each moves an estimate.

    Attributes
    ----------
    moves, share : arrays
        How far each unit moves the estimate, and its share of the weights.
    rows_share : float
        The sum of the squared shares of the rows: in effect the share of one row.
    effect : float
        The design effect: how many rows are worth one independent row.

    Examples
    --------
    Repeating each row adds no information:

    >>> moves = np.array([0.1, 0.1, -0.2, -0.2, 0.1, 0.1])
    >>> units = Units.of(moves, np.full(6, 1 / 6), np.array([0, 0, 1, 1, 2, 2]))
    >>> round(units.effect, 6), round(1 / units.one_row, 6)
    (2.0, 3.0)
    """

    moves: Vector
    share: Vector
    rows_share: float
    effect: float = 1.0

    @classmethod
    def of(cls, moves: Vector, share: Vector, groups: Indices | None = None) -> Self:
        """Return the rows themselves, or their groups."""
        of_rows = float(share @ share)
        if groups is None:
            return cls(moves, share, of_rows)
        together, shares = (np.bincount(groups, of).astype(np.float64) for of in (moves, share))
        squares, most = float(moves @ moves), max(float(shares @ shares) / of_rows, 1.0)
        effect = min(max(float(together @ together) / squares, 1.0), most) if squares > 0 else most
        return cls(together, shares, of_rows, effect)

    @property
    def one_row(self) -> float:
        """The share of one independent row: at least a row's share, at most a group's."""
        return self.rows_share * self.effect

    @property
    def scale(self) -> float:
        """The factor by which `effect` is too small on average, with few groups; infinite for one group."""
        rows, groups = 1 / self.one_row, 1 / float(self.share @ self.share)
        if rows <= groups * (1 + 1e-9):
            return 1.0
        return groups / (groups - 1) * (rows - 1) / rows if groups > 1 + 1e-9 else np.inf

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance that is `effect` times a known one: at least G - 1.

        Infinite if each row is a group, or each group in effect one row: then the effect is known.
        """
        rows, groups = 1 / self.one_row, 1 / float(self.share @ self.share)
        if rows <= groups * (1 + 1e-9):
            return np.inf
        return 1 / (1 / max(groups - 1, 1e-9) - 1 / (rows - 1))

    def widening(self, confidence: float) -> float:
        """Return the factor that widens an interval whose variance comes from few groups; 1 for rows."""
        from scipy.special import stdtrit

        if np.isinf(self.freedom) or np.isinf(self.scale):
            return float(self.scale)
        level = (1 + confidence) / 2
        return float(stdtrit(self.freedom, level) / NormalDist().inv_cdf(level) * np.sqrt(self.scale))


def influence_interval(
    value: float,
    influence: Vector,
    share: Vector,
    confidence: float,
    low: float,
    high: float,
    pseudo: PseudoRow | None = None,
    groups: Indices | None = None,
    whole_groups: bool = False,
) -> Estimate:
    """Return the interval of an estimate that row i moves by share_i influence_i, kept within [low, high].

    `share` are the weights of the rows, which sum to 1. `pseudo` has the influence of a pseudo-error. The
    ends are nan for a single row or group.
    """
    error, skewness, rows = spread(influence, share, pseudo, groups, whole_groups)
    if not np.isfinite(error):
        return Estimate(value, np.nan, np.nan)
    below, above = distances(skewness, rows, confidence)
    ends = np.clip([value - below * error, value + above * error], low, high)
    return Estimate(value, float(ends[0]), float(ends[1]))


def spread(
    influence: Vector,
    share: Vector,
    pseudo: PseudoRow | None = None,
    groups: Indices | None = None,
    whole_groups: bool = False,
) -> tuple[float, float, float]:
    """Return the standard error of an estimate, its skewness, and its effective number of rows.

    With groups, this is the effective number of groups. The error of a single row or group is infinite. An
    estimate that does not vary has no skewness. With `whole_groups`, the pseudo-error is a whole group.
    """
    units = Units.of(share * influence, share, groups)
    concentration = float(units.share @ units.share)
    if concentration >= 1 - 1e-12:
        return np.inf, 0.0, 1.0
    # With equal variances, the squared distance of row i from a mean that includes it is this share of one
    # variance.
    left = np.maximum(1 - 2 * units.share + concentration, 1e-12)
    moves = units.moves / np.sqrt(left)
    squares, cubes = float(moves @ moves), float((moves**2) @ moves)
    if pseudo is not None:
        of_error, chance = pseudo
        one_row = concentration if whole_groups else units.one_row
        moves = one_row * np.where(np.isfinite(of_error), of_error, 0.0) / np.sqrt(1 - one_row)
        squares, cubes = squares + float(chance @ moves**2), cubes + float(chance @ moves**3)
    skewness = cubes / squares**1.5 if squares > 0 else 0.0
    return float(np.sqrt(squares)), skewness, 1 / concentration


def distances(skewness: float, rows: float, confidence: float) -> tuple[float, float]:
    """Return how many standard errors the ends of the interval are below and above the estimate.

    The quantiles are Student's t, since with few rows the standard error is also uncertain.
    """
    from scipy.special import gammaincinv, ndtri, stdtrit

    z = float(stdtrit(max(rows - 1, 1.0), (1 + confidence) / 2))
    if abs(skewness) < _SYMMETRIC:
        return z, z
    below, above = (3 / skewness * (np.cbrt(1 + skewness * (side - skewness / 6)) - 1) for side in (z, -z))
    # At a low level the median of a skewed estimate can lie outside; the estimate stays inside.
    ends = [max(float(below), 0.0), max(float(-above), 0.0)]
    far = 1 if skewness > 0 else 0
    if abs(skewness) > _SLIGHT:
        # The distance of a Poisson count from its upper end, relative to a normal variable.
        events, level = skewness**-2.0, (1 + confidence) / 2
        of_count = float((gammaincinv(events + 1, level) - events) / np.sqrt(events) / ndtri(level))
        ends[far] = min(ends[far], z * of_count)
    return ends[0], ends[1]


def mean_interval(
    values: Vector,
    weight: Vector,
    confidence: float,
    low: float = 0.0,
    high: float = np.inf,
    pseudo: PseudoRow | None = None,
    groups: Indices | None = None,
    whole_groups: bool = False,
) -> Estimate:
    """Return the weighted mean of one number per row, and its interval, kept within [low, high].

    `pseudo` has the numbers of a pseudo-error. An infinite row makes the mean and the upper end infinite. The
    lower end then comes from the finite rows.
    """
    total, finite = float(weight.sum()), np.isfinite(values)
    bounded = values if finite.all() else np.where(finite, values, 0.0)
    mean, share = float(weight @ bounded) / total, weight / total
    centred = None if pseudo is None else (pseudo[0] - mean, pseudo[1])
    found = influence_interval(
        mean, bounded - mean, share, confidence, low, high, centred, groups, whole_groups
    )
    return found if finite.all() else Estimate(np.inf, found.low, np.inf)


def wilson_interval(rate: Vector, count: Vector, level: float) -> tuple[Vector, Vector]:
    """Return the ends of the Wilson score interval of a proportion."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = z**2 / np.where(count > 0, count, np.nan)
    centre = rate + share / 2
    # With fractional weights, a rate of 1 can be rounded to 1 + 1e-16.
    spread = z * np.sqrt((np.maximum(rate * (1 - rate), 0) + share / 4) * share / z**2)
    return np.maximum((centre - spread) / (1 + share), 0), np.minimum((centre + spread) / (1 + share), 1)


def proportion_interval(
    values: Vector, weight: Vector, confidence: float, groups: Indices | None = None
) -> Estimate:
    """Return the weighted mean of zeros and ones with its Wilson interval, whose width is never 0.

    For one to four events, or as few failures, Wilson's interval is too short at the near end, which is then
    the exact one-sided limit (Brown, Cai and DasGupta, 2001). Each end has its number of rows: how many
    independent rows of equal weight would have the same variance if there were one failure more, for the
    lower end, or one event more. So an event of a small weight does not hide that others could have a large
    one (Fay and Feuer, 1997). There are at most 1 / sum_i v_i^2 of them; few groups count as fewer.
    """
    from scipy.special import betaincinv

    share = weight / weight.sum()
    one_row = float(share @ share)
    # All rows equal: the mean must not be 1 - 1e-16.
    mean = float(values[0]) if np.ptp(values) == 0 else min(float(weight @ values) / float(weight.sum()), 1.0)
    units = Units.of(share * (values - mean), share, groups)
    with_one = (mean + one_row * np.array([0.0, 1.0])) / (1 + one_row)
    of_one = (one_row * np.array([with_one[0], 1 - with_one[1]])) ** 2
    squares = share**2 @ (values[:, None] - with_one) ** 2 + of_one
    of_equal = with_one * (1 - with_one) * (1 + one_row)
    rows = 1 / np.maximum(np.divide(squares, of_equal, out=np.zeros(2), where=of_equal > 0), one_row)
    rows /= units.effect * units.widening(confidence) ** 2
    low, high = wilson_interval(np.array([mean, mean]), rows, confidence)
    events = np.maximum(rows * np.array([mean, 1 - mean]), np.finfo(np.float64).tiny)
    fewest = betaincinv(events, rows - events + 1, 1 - confidence)
    return Estimate(mean, min(float(low[0]), float(fewest[0])), max(float(high[1]), 1 - float(fewest[1])))
