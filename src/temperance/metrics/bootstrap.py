"""Bootstrap intervals of means and of norms.

Rows are drawn with replacement; a draw is N counts, and a metric of the draw is the metric with weights
count_i w_i. Counts come in blocks, an (N, B) array at a time, so that memory does not grow with the draws.

Means. The ends are the percentiles of the draws.

Norms. Every calibration error here is a norm |g| of a vector g of mean residuals (in bins, or smoothed).
Noise e in g makes it too large, and the draws add noise again: percentiles may lie wholly above the estimate.
But whatever the true g,

    |g| <= E|g + e| <= |g| + E|e|     (Jensen; triangle inequality)

so that the bias lies between 0 and E|e|, its value for a calibrated classifier. With draws g*, mean m and
quantiles q of |g*|, and E|e| estimated by the mean of the recentred |g* - g|, the interval is

    [|g| - E|e| - (q_high - m),  |g| + (m - q_low)],     truncated at 0 (and at 1).

It contains the estimate, covers at least at its level whether the truth is 0 or far from 0 (but for the
maximum of `mce`, see `evaluate`), and is wider than need be downwards when the truth is far from 0. The fixed
point of the smooth error is not a norm but obeys the triangle inequality: the lower end rests on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Vector
from temperance.metrics.estimates import Estimate

_NUMBERS = 1 << 22  # in a block of weights: 32 MB
_WIDEST = 256  # draws in a block: the vectors of residuals may be longer than N


@dataclass(frozen=True, eq=False)
class Norm:
    """A metric that is a norm of mean residuals.

    `vector` maps (N, B) weights to (D, B) mean residuals, `length` maps those to B numbers: by default, to
    the sums of their absolute values.
    """

    vector: Callable[[Vector], Vector]
    length: Callable[[Vector], Vector] = lambda residuals: np.abs(residuals).sum(axis=0)

    def value(self, weight: Vector) -> float:
        """Return the metric for one set of weights."""
        return float(self.length(self.vector(weight[:, None]))[0])


def bootstrap(
    weight: Vector,
    means: Mapping[str, Callable[[Vector], Vector]],
    norms: Mapping[str, Norm],
    draws: int,
    generator: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Vector]:
    """Return the draws of each metric: (draws,) for a mean, (2, draws) for a norm and its noise."""
    centres = {name: norm.vector(weight[:, None]) for name, norm in norms.items()}
    parts: dict[str, list[Vector]] = {name: [] for name in (*means, *norms)}
    done = 0
    for weights in _resamples(weight, draws, generator):
        for name, mean in means.items():
            parts[name].append(mean(weights))
        for name, norm in norms.items():
            drawn = norm.vector(weights)
            parts[name].append(np.stack([norm.length(drawn), norm.length(drawn - centres[name])]))
        done += weights.shape[1]
        if progress is not None:
            progress(done / draws)
    return {name: np.concatenate(part, axis=-1) for name, part in parts.items()}


def _resamples(weight: Vector, draws: int, generator: np.random.Generator) -> Iterator[Vector]:
    """Yield (N, B) blocks of weights, one column for each resample."""
    n_rows = len(weight)
    size = max(1, min(_WIDEST, _NUMBERS // n_rows))
    for start in range(0, draws, size):
        width = min(size, draws - start)
        counts = np.empty((n_rows, width))
        for column in range(width):
            chosen = generator.integers(n_rows, size=n_rows)
            counts[:, column] = np.bincount(chosen, minlength=n_rows)
        counts *= weight[:, None]
        yield counts


def mean_interval(value: float, drawn: Vector, confidence: float, low: float, high: float) -> Estimate:
    """Return the percentile interval, with all numbers kept within [low, high]."""
    numbers = np.clip([value, *_quantiles(drawn, confidence)], low, high)
    return Estimate(*map(float, numbers))


def norm_interval(value: float, drawn: Vector, confidence: float) -> Estimate:
    """Return the interval for a norm, within [0, 1], as derived at the top of this module."""
    lengths, noise = drawn
    lower, upper = _quantiles(lengths, confidence)
    centre = float(lengths.mean())
    low = value - float(noise.mean()) - max(upper - centre, 0)
    return Estimate(value, max(low, 0.0), min(value + max(centre - lower, 0), 1.0))


def _quantiles(drawn: Vector, confidence: float) -> tuple[float, float]:
    """Return the central quantiles; order statistics, since draws may be infinite."""
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    lower, upper = np.quantile(drawn, tails, method="inverted_cdf")
    return float(lower), float(upper)
