"""Bootstrap intervals of norms.

A resample of the wild bootstrap multiplies each row's residual by one of two numbers, drawn with mean 0,
variance 1 and third moment 1 (Mammen, 1993). The factors depend only on the number of rows and the seed, so a
comparison draws them once for all its methods. Rows of a group have the same factor.

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
show which h are plausible. With f the residuals that a fitted temperature with class biases removes, the rest
r = g - f, and v the variance of e*, h is, scaled to norm t,

    f                                                  if |r|_2^2 is below q, the 90% quantile of |e*|_2^2
    f_b + (1 - v_b / r_b^2)+ r_b                       otherwise, for the lower end: few large residuals
    f + c r + sqrt(c) e',    c = 1 - q / |r|_2^2       otherwise, for the upper end: many small ones

where e' is the noise of another resample, as in draws from the posterior if r has a normal prior whose
covariance is proportional to the covariance of e*. So where the rows show that the recalibrator misses an
error, both ends are cautious. Where it misses a part that noise hides, the lower end can be too high, as in
the scenario `subgroup` of docs/benchmarks/coverage.md. No interval of a norm has the same coverage for every
h (Cai and Low, 2011).

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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Indices, Vector
from temperance.metrics.intervals import Estimate
from temperance.metrics.predictions import Predictions

Single = NDArray[np.float32]

DRAWS = 1000  # default number of resamples
_BLOCK_SIZE = 1 << 22  # factors in a block
_MAX_WIDTH = 256  # draws in a block
_MAX_KEPT = 1 << 24  # factors kept for the next evaluation
_TINY = np.float32(1e-30)
_NOISE_LEVEL = 0.9  # quantile of the noise above which the rest of a fit counts


@dataclass(frozen=True)
class Resamples:
    """The factors of `draws` resamples of `n_rows` rows, or of their groups, and of one more."""

    n_rows: int
    draws: int
    seed: int
    n_groups: int | None = None

    @property
    def n_units(self) -> int:
        """How many factors a resample has, besides the factor of the pseudo-error."""
        return self.n_rows if self.n_groups is None else self.n_groups

    def blocks(self) -> Iterator[Single]:
        """Yield blocks of factors, one column per resample, always the same."""
        return iter(self._kept) if self.n_units * self.draws <= _MAX_KEPT else self._drawn()

    @cached_property
    def _kept(self) -> list[Single]:
        return list(self._drawn())

    def _drawn(self) -> Iterator[Single]:
        generator, n = np.random.default_rng(self.seed), self.n_units + 1
        # Mammen's two points, and the probability of the larger one.
        small, large, share = np.float32((1 - 5**0.5) / 2), np.float32((1 + 5**0.5) / 2), (1 - 5**-0.5) / 2
        size = max(1, min(_MAX_WIDTH, _BLOCK_SIZE // (self.n_rows + 1)))
        for start in range(0, self.draws, size):
            factors = np.empty((n, min(size, self.draws - start)), np.float32)
            for column in range(factors.shape[1]):  # one by one: the same for any block size
                factors[:, column] = generator.random(n, np.float32) < share
            factors *= large - small
            factors += small
            yield factors


def group_sums(
    values: Vector,
    group: Indices,
    row: Indices,
    shape: tuple[int, int],
) -> Callable[[Any], Any]:
    """Return the linear map from (N, B) numbers to (groups, B) sums of the entries of each group.

    Entry e has a row i_e, a group and a value v_e, and adds v_e numbers[i_e] to its group: the product of a
    sparse and a dense matrix. It reads the numbers row by row, in their precision.
    """
    from scipy.sparse import csr_array

    matrix: Any = csr_array((values, (group, row)), shape=shape)
    narrow: Any = matrix.astype(np.float32)
    return lambda numbers: (narrow if numbers.dtype == np.float32 else matrix) @ numbers


def expected_noise(
    count: Vector, total: Vector, change: Vector, chance: Vector, weight: Vector, effect: float = 1.0
) -> Vector:
    """Return the mean absolute noise of the mean residual in each bin.

    Bins have the sum of weights `count`, the sum of probabilities `total`, which is too small by `change`,
    and the `chance` to hold the pseudo-error. Events vary like binomial counts of rows over their design
    effect. Where probabilities are wrong, the varying number of rows in a bin adds noise.
    """
    filled = count > 0
    per_weight = float(weight.sum() / (weight @ weight)) / effect  # observations: 1 if unweighted
    stated, true = (
        np.clip(np.divide(sums, count, out=np.zeros_like(total), where=filled), 0, 1)
        for sums in (total, total + change)
    )
    n_rows = np.maximum(count, 0) * per_weight
    of_rows = np.sqrt(2 / np.pi * n_rows) * np.abs(true - stated)
    true = np.maximum(true - np.divide(chance, n_rows, out=np.zeros_like(true), where=filled), 0)
    noise: Vector = np.hypot(binomial_deviation(n_rows, true), of_rows) / (weight.sum() * per_weight)
    return noise


def binomial_deviation(count: Vector, probability: Vector) -> Vector:
    """Return E|X - n p| of binomial counts X (De Moivre), even if n is not an integer."""
    from scipy.special import gammaln

    p = np.clip(probability, 1e-300, 1 - 1e-16)
    k = np.minimum(np.floor(count * p) + 1, count)
    logs = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    return np.asarray(2 * k * np.exp(logs + k * np.log(p) + (count - k + 1) * np.log1p(-p)))


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals for a norm: their mean, and a linear map from rows to their sums.

    `fitted` is the part of the mean that recalibration would remove. `expected` is the mean absolute noise,
    if it is known.
    """

    mean: Vector
    sums: Callable[[Any], Any]
    fitted: Vector
    expected: Vector | None = None

    def scaled(self, noise: Single) -> Single:
        """Return the noise, scaled up to the expected mean absolute noise if it is too small."""
        if self.expected is None:
            return noise
        drawn = np.abs(noise).mean(axis=1, dtype=np.float64)[self.expected > 0].sum()
        expected = float(self.expected.sum())
        return noise * np.float32(expected / drawn) if expected > drawn > 0 else noise


def bootstrap(
    rows: Predictions,
    residuals: Mapping[str, Residuals],
    resamples: Resamples,
    progress: Callable[[float], None] | None = None,
    widening: float = 1.0,
) -> dict[str, Single]:
    """Return the noise of each norm: (D, draws) differences of residuals, times `widening`."""
    noise: dict[str, list[Single]] = {name: [] for name in residuals}
    done, weight, wrong = 0, rows.weight.astype(np.float32), rows.pseudo_error
    moved_by = (rows.weight * rows.residual).astype(np.float32)
    one_row = np.float32(rows.weight @ rows.weight / rows.total * rows.units.effect)
    picked = np.random.default_rng(resamples.seed).choice(len(weight), resamples.draws, p=wrong.weight)
    for factors in resamples.blocks():
        *_, of_error = factors
        of_rows = factors[:-1] if rows.groups is None else factors[:-1][rows.groups]
        drawn, columns = moved_by[:, None] * of_rows, np.arange(len(of_error))
        at = picked[done : done + len(columns)]
        drawn[at, columns] += of_error * one_row * wrong.residual[at].astype(np.float32)
        extra = weight @ of_rows + one_row * of_error
        for name, residual in residuals.items():
            part = np.asarray(residual.sums(drawn), np.float32)
            part -= np.multiply.outer(residual.mean, extra).astype(np.float32)
            part /= rows.total
            noise[name].append(part)
        done += len(columns)
        if progress is not None:
            progress(done / resamples.draws)
    factor = np.float32(widening)
    return {name: residuals[name].scaled(np.hstack(parts)) * factor for name, parts in noise.items()}


def plausible_shapes(mean: Vector, fitted: Vector, noise: Single) -> tuple[Single, Single]:
    """Return residuals h of norm 1 for both ends, either common to all resamples or one per resample."""
    rest = (mean - fitted)[:, None]
    size = float(np.sum(rest**2))
    by_chance = float(np.quantile(np.einsum("ij,ij->j", noise, noise, dtype=np.float64), _NOISE_LEVEL))
    sparse = dense = fitted[:, None].astype(np.float32)
    of_another = np.roll(noise, 1, axis=1)  # pairs each resample with the noise of another
    if size > by_chance:
        kept, variance = 1 - by_chance / size, noise.var(axis=1, dtype=np.float64)[:, None]
        sparse = sparse + (rest * np.maximum(1 - variance / np.maximum(rest**2, _TINY), 0)).astype(np.float32)
        dense = dense + (kept * rest).astype(np.float32) + np.float32(np.sqrt(kept)) * of_another
    elif not fitted.any():
        sparse = dense = of_another
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
    value: float, residuals: Residuals, noise: Single, confidence: float, least_high: float = 0.0
) -> Estimate:
    """Return the interval of an error that is the sum of absolute residuals, within [0, 1].

    Its upper end is at least `least_high`.
    """
    mean = residuals.mean
    shapes = plausible_shapes(mean, residuals.fitted, noise)
    low, high = kept_scales(mean, shapes, noise, confidence)
    return Estimate(value, low * value, min(max(high * value, value, least_high), 1.0))


def norms(residuals: Any) -> Any:
    """Return the sum of absolute values of each column."""
    return np.abs(residuals).sum(axis=0)
