"""Bootstrap intervals of norms.

A resample of the wild bootstrap multiplies each row's residual by one of two numbers, drawn with mean 0,
variance 1 and third moment 1 (Mammen, 1993). The factors depend only on the number of rows and the seed, so
they are the same for all methods of a comparison. Rows of a group have the same factor.

Every calibration error here is a norm |g| of mean residuals (in bins, or smoothed). With weights w and W
their sum, a resample multiplies each row's contribution to g by a random s_i:

    e* = sum_i s_i w_i (r_i - g) / W

The sum has one more row: the pseudo-error of `metrics.intervals`, at a different row in each resample. In
bins with a single row, or with few events, this noise is too small on average, though less so than the noise
of rows drawn with replacement. The mean absolute deviation of binomial counts is known, and e* is scaled to
it.

Noise makes |g| too large, and resamples add noise again: all percentiles of |g + e*| can be above the truth.
So the interval contains every t that a test does not reject. The test assumes true residuals h of norm t, and
rejects if the observed |g| is among the most extreme of the |h + e*|:

    keep t  if  P(|h + e*| >= |g|) >= alpha - a(t)  and  P(|h + e*| <= |g|) >= a(t)
    a(t) = min(alpha / 2, P(|h + e*| < t))

Where noise is small, both tails have alpha / 2. Where it dominates, |h + e*| is never below t. Since the
interval contains its estimate, it cannot lie below t either, and the other tail has all of alpha. At t = 0
the test is one-sided.

The norm does not determine h, and noise adds more to a few large residuals than to many small ones. The rows
show which h are plausible. With v the variance of e*, and e' the noise of another resample, h is, scaled to
norm t,

    e'                                             if |g|_2^2 is below q, the 90% quantile of |e*|_2^2
    (1 - v_b / g_b^2)+ g_b                         otherwise, for the lower end: few large residuals
    c g + sqrt(c) e',    c = 1 - q / |g|_2^2       otherwise, for the upper end: many small ones

as in draws from the posterior if residuals have a normal prior whose covariance is proportional to the
covariance of e*. No interval of a norm has the same coverage for every h (Cai and Low, 2011).

With a handful of errors, e* takes too few values for the upper end. But no norm is smaller than the absolute
mean residual, whose interval takes the skewness of few errors into account. So the upper end is at least the
end of that interval farthest from 0.

References
----------
.. [1] Cai and Low (2011). Testing composite hypotheses, Hermite polynomials and optimal estimation of a
   nonsmooth functional. doi:10.1214/10-AOS849
.. [2] Mammen (1993). Bootstrap and wild bootstrap for high dimensional linear models.
   doi:10.1214/aos/1176349025
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.metrics.intervals import Estimate
from temperance.metrics.predictions import Predictions

Single = NDArray[np.float32]

DRAWS = 1000  # default number of resamples
_BLOCK_SIZE = 1 << 22  # factors in a block
_MAX_WIDTH = 256  # draws in a block
_TINY = np.float32(1e-30)
_NOISE_LEVEL = 0.9  # quantile of the noise above which the rest of a fit counts


def random_factors(n_units: int, draws: int, seed: int) -> Iterator[Single]:
    """Yield blocks of factors of rows or groups, one column per resample."""
    generator = np.random.default_rng(seed)
    # Mammen's two points, and the probability of the larger one.
    small, large, share = np.float32((1 - 5**0.5) / 2), np.float32((1 + 5**0.5) / 2), (1 - 5**-0.5) / 2
    width = max(1, min(_MAX_WIDTH, _BLOCK_SIZE // n_units))
    for start in range(0, draws, width):
        # Drawn resample by resample: the same for any width.
        is_large = generator.random((min(width, draws - start), n_units), np.float32) < share
        yield np.where(np.ascontiguousarray(is_large.T), large, small)


def expected_noise(
    count: Vector, total: Vector, chance: Vector, weight: Vector, effect: float = 1.0
) -> Vector:
    """Return the mean absolute noise of the mean residual in each bin.

    Bins have the sum of weights `count`, the sum of probabilities `total`, and the `chance` to hold the
    pseudo-error. Events vary like binomial counts of rows over their design effect.
    """
    filled = count > 0
    per_weight = float(weight.sum() / (weight @ weight)) / effect  # observations: 1 if unweighted
    stated, error = (
        np.divide(sums, count * scale, out=np.zeros_like(total), where=filled)
        for sums, scale in ((total, 1.0), (chance, per_weight))
    )
    deviation = binomial_deviation(np.maximum(count, 0) * per_weight, np.clip(stated - error, 0, 1))
    noise: Vector = deviation / (weight.sum() * per_weight)
    return noise


def binomial_deviation(count: Vector, probability: Vector) -> Vector:
    """Return E|X - n p| of binomial counts X (De Moivre), even if n is not an integer."""
    from scipy.special import gammaln

    p = np.clip(probability, 1e-300, 1 - 1e-16)
    k = np.minimum(np.floor(count * p) + 1, count)
    logs = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    return np.asarray(2 * k * np.exp(logs + k * np.log(p) + (count - k + 1) * np.log1p(-p)))


def scaled(noise: Single, expected: Vector) -> Single:
    """Return the noise, scaled up to the expected mean absolute noise if it is too small."""
    drawn = np.abs(noise).mean(axis=1, dtype=np.float64)[expected > 0].sum()
    total = float(expected.sum())
    return noise * np.float32(total / drawn) if total > drawn > 0 else noise


def bootstrap(
    rows: Predictions,
    places: Sequence[Any],
    draws: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> list[Single]:
    """Return the noise of mean residuals in D places, one array (D, draws) per matrix.

    The sparse matrices (D, N) of `places` add up rows in bins or on a grid.
    """
    narrow = [place.astype(np.float32) for place in places]
    means = [place @ (rows.weight * rows.residual) / rows.total for place in places]
    noise: list[list[Single]] = [[] for _ in places]
    done, weight, wrong = 0, rows.weight.astype(np.float32), rows.pseudo_error
    moved_by = (rows.weight * rows.residual).astype(np.float32)
    one_row = np.float32(rows.weight @ rows.weight / rows.total * rows.units.effect)
    picked = np.random.default_rng(seed).choice(len(weight), draws, p=wrong.weight)
    n_units = len(weight) if rows.groups is None else int(rows.groups.max()) + 1
    for factors in random_factors(n_units + 1, draws, seed):
        *_, of_error = factors
        of_rows = factors[:-1] if rows.groups is None else factors[:-1][rows.groups]
        drawn, columns = moved_by[:, None] * of_rows, np.arange(len(of_error))
        at = picked[done : done + len(columns)]
        drawn[at, columns] += of_error * one_row * wrong.residual[at].astype(np.float32)
        extra = weight @ of_rows + one_row * of_error
        for parts, matrix, mean in zip(noise, narrow, means, strict=True):
            part = matrix @ drawn - np.multiply.outer(mean, extra).astype(np.float32)
            parts.append(part / np.float32(rows.total))
        done += len(columns)
        if progress is not None:
            progress(done / draws)
    return [np.hstack(parts) for parts in noise]


def plausible_shapes(mean: Vector, noise: Single) -> tuple[Single, Single]:
    """Return residuals h of norm 1 for both ends, either common to all resamples or one per resample."""
    residual = mean[:, None]
    of_another = np.roll(noise, 1, axis=1)  # pairs each resample with the noise of another
    size = float(np.sum(residual**2))
    by_chance = float(np.quantile(np.einsum("ij,ij->j", noise, noise, dtype=np.float64), _NOISE_LEVEL))
    sparse = dense = of_another
    if size > by_chance:
        kept, variance = 1 - by_chance / size, noise.var(axis=1, dtype=np.float64)[:, None]
        sparse = (residual * np.maximum(1 - variance / np.maximum(residual**2, _TINY), 0)).astype(np.float32)
        dense = (kept * residual).astype(np.float32) + np.float32(np.sqrt(kept)) * of_another
    sparse, dense = (shapes / np.maximum(norms(shapes), _TINY) for shapes in (sparse, dense))
    return sparse, dense


def kept_scales(
    mean: Vector, shapes: tuple[Single, Single], noise: Single, confidence: float
) -> tuple[float, float]:
    """Return the smallest and the largest t that the test at the top of this module keeps, in units of |g|.

    `shapes` are the residuals of norm 1 for the lower and for the upper end.
    """
    length, alpha = float(np.abs(mean).sum()), 1 - confidence
    spread = float(np.std(norms(mean.astype(np.float32)[:, None] + noise)))
    if length == 0 or spread == 0:
        return 1.0, 1.0

    sparse, dense = shapes

    def drawn_and_tail(t: float, shape: Single) -> tuple[Any, float]:
        drawn = norms(np.float32(t * length) * shape + noise)
        return drawn, min(alpha / 2, float(np.mean(drawn < t * length)))

    def is_not_too_small(t: float) -> bool:
        drawn, tail = drawn_and_tail(t, sparse)
        return float(np.mean(drawn >= length)) >= alpha - tail

    def is_not_too_large(t: float) -> bool:
        drawn, tail = drawn_and_tail(t, dense)
        return float(np.mean(drawn <= length)) >= tail

    low = 0.0 if is_not_too_small(0.0) else _boundary(is_not_too_small, inside=1.0, outside=0.0)
    return low, _boundary(is_not_too_large, inside=0.0, outside=1 + 6 * spread / length)


def _boundary(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where a condition that holds at `inside` stops holding, by bisection."""
    for _ in range(10):  # to a thousandth of the distance
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def norm_interval(
    value: float, mean: Vector, noise: Single, confidence: float, least_high: float
) -> Estimate:
    """Return the interval of an error that is the sum of absolute mean residuals, within [0, 1].

    The upper end is at least `least_high`.
    """
    shapes = plausible_shapes(mean, noise)
    low, high = kept_scales(mean, shapes, noise, confidence)
    return Estimate(value, low * value, min(max(high * value, value, least_high), 1.0))


def norms(residuals: Any) -> Any:
    """Return the sum of absolute values of each column."""
    return np.abs(residuals).sum(axis=0)
