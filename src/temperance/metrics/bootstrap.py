"""Bootstrap intervals of norms.

Rows are drawn with replacement; a draw is N counts. With weights w, deviations u = (count - 1) w, their sum
v, and W the sum of the weights, a vector g of mean residuals moves by

    e* = g* - g = (sum_i u_i r_i - v g) / (W + v)

Every calibration error here is a norm |g| (in bins, or smoothed). Noise makes it too large, and the draws add
noise again: all percentiles of |g*| may be above the truth. The interval contains every t = |h| that a test
does not reject. The test assumes that h are the true residuals, and rejects if the observed |g| is among the
most extreme of the |h + e*|:

    keep t  if  P(|h + e*| >= |g|) >= alpha - a(t)  and  P(|h + e*| <= |g|) >= a(t)
    a(t) = alpha / 2 min(1, t / 2 sd),      sd the standard deviation of |g + e*|

Far from 0 both tails have alpha / 2. At 0 the test is one-sided, since no error is below 0, so the coverage
for a calibrated classifier is the level itself.

The norm does not determine h, and noise adds less to some h than to others: E|h_b + e_b| - |h_b| is convex in
h_b and falls to 0 within two standard deviations of e_b. So each end uses an h that makes it cautious.

    upper end   the h to which noise adds the least: by Jensen's inequality, |h_b| proportional to the
                standard deviation of e_b. Signs are those of g, or all equal, whichever varies more.
    lower end   h proportional to g (1 - v / g^2)+, v the variance of e: few residuals, and noise elsewhere.

The interval is widened to contain the estimate, which may be above it if the residuals are only noise. No
interval of a norm has the same coverage for every h (Cai and Low, 2011): if there are many noisy residuals,
this one covers more often than its level.

References
----------
.. [1] Cai and Low (2011). Testing composite hypotheses, Hermite polynomials and optimal estimation of a
   nonsmooth functional. doi:10.1214/10-AOS849
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.metrics.estimates import Estimate
from temperance.metrics.resamples import Resamples

Single = NDArray[np.float32]

_MOST_NOISE = 1 << 24  # numbers in the noise of a norm: with more residuals, fewer draws
_FEWEST = 200
_FEW_EVENTS = 5.0  # rows in a bin at which its draws and theory have equal weight
_TINY = np.float32(1e-30)
_HALVINGS = 10  # of an interval of t: the ends are exact to a thousandth of their distance


@dataclass(frozen=True, eq=False)
class CalibratedNoise:
    """The noise of the residual in each bin that a calibrated classifier would have.

    In a bin with few rows, or few events, resampling underestimates the noise: a single row does not change
    in a third of the resamples. There the mean absolute deviation of a binomial count is used instead.
    """

    count: Vector
    probability: Vector
    unit: float

    def corrected(self, noise: Single) -> Single:
        """Return the noise, in each bin scaled to a size between that of the draws and the binomial one."""
        drawn = np.abs(noise).mean(axis=1, dtype=np.float64)
        expected = binomial_deviation(self.count, self.probability) * self.unit
        ratio = np.maximum(np.divide(expected, drawn, out=np.ones_like(drawn), where=drawn > 0), 1.0)
        events = self.count * self.probability * (1 - self.probability)
        factor = (events + _FEW_EVENTS * ratio) / (events + _FEW_EVENTS)
        return noise * factor.astype(np.float32)[:, None]


def binomial_deviation(count: Vector, probability: Vector) -> Vector:
    """Return E|X - n p| of binomial counts X (De Moivre), also for n that are not integers."""
    from scipy.special import gammaln

    p = np.clip(probability, 1e-300, 1 - 1e-16)
    k = np.minimum(np.floor(count * p) + 1, count)
    logs = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    return np.asarray(2 * k * np.exp(logs + k * np.log(p) + (count - k + 1) * np.log1p(-p)))


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of which a norm is taken: their mean, and a linear map from deviations to their sums.

    `shift` is the constant per unit of weight that `sums` leaves out of each mean. `null` is known if the
    residuals are those of bins.
    """

    mean: Vector
    sums: Callable[[Any], Any]
    shift: Vector | float = 0.0
    null: CalibratedNoise | None = None

    def most_draws(self, draws: int) -> int:
        """Return how many draws to use: fewer for many residuals, whose norm hardly varies."""
        return min(draws, max(_FEWEST, _MOST_NOISE // max(1, len(self.mean))))

    def noise(self, deviations: Single, extra: Single, total: float) -> Single:
        """Return (D, B) differences between the means of resamples and those of the rows."""
        noise = np.asarray(self.sums(deviations), np.float32)
        if extra.any():  # weights differ, and their sum with them
            noise -= np.multiply.outer(self.mean + self.shift, extra).astype(np.float32)
        noise /= total + extra
        return noise


def bootstrap(
    weight: Vector,
    residuals: Mapping[str, Residuals],
    resamples: Resamples,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Single]:
    """Return the noise of each norm: (D, draws) differences of residuals."""
    noise: dict[str, list[Single]] = {name: [] for name in residuals}
    done, total = 0, float(weight.sum())
    for deviations, extra in _deviations(weight, resamples):
        for name, residual in residuals.items():
            if done < residual.most_draws(resamples.draws):
                noise[name].append(residual.noise(deviations, extra, total))
        done += deviations.shape[1]
        if progress is not None:
            progress(done / resamples.draws)
    whole = {name: np.hstack(parts) for name, parts in noise.items()}
    for name, residual in residuals.items():
        if residual.null is not None:
            whole[name] = residual.null.corrected(whole[name])
    return whole


def _deviations(weight: Vector, resamples: Resamples) -> Iterator[tuple[Single, Single]]:
    """Yield the (N, B) deviations (count - 1) w of each block, and their sums over rows."""
    equal = bool((weight == 1).all())
    for counts in resamples.blocks():
        deviations = counts.astype(np.float32)
        deviations -= 1
        if equal:
            yield deviations, np.zeros(counts.shape[1], np.float32)
        else:
            deviations *= weight[:, None].astype(np.float32)
            yield deviations, deviations.sum(axis=0, dtype=np.float64).astype(np.float32)


def kept_scales(
    observed: float,
    mean: Vector,
    noise: Single,
    confidence: float,
    statistic: Callable[[Any], Any] | None = None,
) -> tuple[float, float]:
    """Return the smallest and the largest t that the test at the top of this module keeps, in units of |g|.

    `statistic` maps (D, B) residuals to B numbers, by default to their norms, as it mapped the mean to the
    `observed` number.
    """
    statistic, column = statistic or norms, mean.astype(np.float32)[:, None]
    length, alpha = float(np.abs(mean).sum()), 1 - confidence
    spread = float(np.std(statistic(column + noise)))
    if length == 0 or spread == 0:
        return 1.0, 1.0

    def lower_tail(t: float) -> float:
        return alpha / 2 * min(1.0, t * length / (2 * spread))

    sparse, dense = (_of_length(length, h, column) for h in (_shrunk(column, noise), _even(column, noise)))

    def is_not_too_small(t: float) -> bool:
        drawn = statistic(np.float32(t) * sparse + noise)
        return float(np.mean(drawn >= observed)) >= alpha - lower_tail(t)

    def is_not_too_large(t: float) -> bool:
        return float(np.mean(statistic(np.float32(t) * dense + noise) <= observed)) >= lower_tail(t)

    low = 0.0 if is_not_too_small(0.0) else _boundary(is_not_too_small, inside=1.0, outside=0.0)
    return low, _boundary(is_not_too_large, inside=0.0, outside=1 + 6 * spread / length)


def _shrunk(column: Single, noise: Single) -> Single:
    """Return the residuals less what noise explains."""
    kept = 1 - noise.var(axis=1)[:, None] / np.maximum(column**2, _TINY)
    shrunk: Single = column * np.maximum(kept, 0)
    return shrunk


def _even(column: Single, noise: Single) -> Single:
    """Return residuals of the size of their noise, with the signs for which their sum varies most."""
    signs, one = np.sign(column), np.ones_like(column)
    own, equal = (float(np.std(np.einsum("ij,ik->jk", noise, s))) for s in (signs, one))
    even: Single = noise.std(axis=1)[:, None] * (one if equal > own else signs)
    return even


def _of_length(length: float, direction: Single, otherwise: Single) -> Single:
    """Return the direction with this norm; the other one if it has none."""
    scaled: Single = (
        direction * np.float32(length / np.abs(direction).sum()) if direction.any() else otherwise
    )
    return scaled


def _boundary(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where a condition that holds at `inside` stops holding, by bisection."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def norm_interval(value: float, mean: Vector, noise: Single, confidence: float) -> Estimate:
    """Return the interval of an error that the sum of absolute residuals measures, within [0, 1]."""
    low, high = kept_scales(float(np.abs(mean).sum()), mean, noise, confidence)
    return Estimate(value, low * value, min(max(high, 1.0) * value, 1.0))


def norms(residuals: Any) -> Any:
    """Return the sum of absolute values of each column."""
    return np.abs(residuals).sum(axis=0)
