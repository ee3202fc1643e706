"""What the formulas of several calibrators share, written over `ops`: from logits z to calibrated logits.

With t the top class (of equal logits, the first) and d = z - z_t, as in `kernels`:

    r = sum_{k != t} exp(beta d_k)     log s = log1p(r)     H = log s - beta sum d exp(beta d) / s

The top is left out of r, so nothing cancels when a row is confident. A masked class (-inf) has a finite d
from the start, far below all others: to mend a NaN afterwards would leave it in the derivative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from temperance.core.features import LOG_ENTROPY_FLOOR
from temperance.core.logit_rows import IMPOSSIBLE
from temperance.core.ops import Array, Index, Mask, Ops

__all__ = [
    "Gaps",
    "centred",
    "divide",
    "exp_link",
    "gaps_of",
    "log_mixture",
    "log_normalised_entropy",
    "log_softmax",
    "log_sum",
    "log_weight",
    "shape_features",
    "softplus_link",
    "sum_of_others",
]

LOWEST = -1e18  # stands for -inf: times any beta its exponential is 0, and no product of it overflows


@dataclass(frozen=True)
class Gaps:
    """The top of each row, and the gaps of all classes to it."""

    top: Index
    is_top: Mask
    d: Array
    n_classes: int


def gaps_of(z: Array, n_classes: int, ops: Ops) -> Gaps:
    """Return the gaps of logits to the largest; of masked classes, `LOWEST`."""
    top = ops.argmax(z)
    d = ops.clip(z - ops.at(z, top), LOWEST, math.inf)
    return Gaps(top, ops.one_hot(top, n_classes), d, n_classes)


def centred(z: Array, n_classes: int, ops: Ops) -> Array:
    """Return z - mean z, for methods that weigh every logit: a row with a masked class is NaN throughout."""
    d = z - ops.at(z, ops.argmax(z))  # so that a constant added to the row costs no digits
    mean = ops.sum(d) / float(n_classes)
    return d - ops.where(ops.is_finite(mean), mean, math.nan)


def _others(scaled: Array, is_top: Mask, ops: Ops) -> Array:
    """Return exp of the scaled gaps, with 0 for the top."""
    return ops.where(is_top, 0.0, ops.exp(scaled))


def sum_of_others(scaled: Array, is_top: Mask, ops: Ops) -> Array:
    """Return r of scaled gaps."""
    return ops.sum(_others(scaled, is_top, ops))


def log_sum(scaled: Array, is_top: Mask, ops: Ops) -> Array:
    """Return log sum exp of scaled gaps."""
    return ops.log1p(sum_of_others(scaled, is_top, ops))


def log_softmax(u: Array, n_classes: int, ops: Ops) -> Array:
    """Return log softmax(u) of finite u."""
    gaps = gaps_of(u, n_classes, ops)
    return gaps.d - log_sum(gaps.d, gaps.is_top, ops)


def log_normalised_entropy(gaps: Gaps, beta: Array | float, ops: Ops) -> Array:
    """Return log(H / log K) at the inverse temperature, not below the floor."""
    scaled = gaps.d * beta
    e = _others(scaled, gaps.is_top, ops)
    r = ops.sum(e)
    entropy = ops.log1p(r) - ops.sum(scaled * e) / (r + 1.0)
    # The floor comes first: the logarithm of 0 has no derivative.
    normalised = entropy / math.log(gaps.n_classes)
    return ops.log(ops.clip(normalised, math.exp(LOG_ENTROPY_FLOOR), math.inf))


def shape_features(gaps: Gaps, reference: Array, ops: Ops) -> Array:
    """Return the features of `core.features` at the reference temperature, (..., 4)."""
    beta = 1.0 / reference
    scaled = gaps.d * beta
    h = log_normalised_entropy(gaps, beta, ops)
    third = ops.log1p(_gap_to_third(scaled, gaps, ops))
    to_mean = ops.log1p(_gap_to_mean(scaled, ops))
    return ops.concat([h, h * h / 10.0, third, to_mean])


def _possible(scaled: Array, ops: Ops) -> Mask:
    return ops.greater(scaled, -IMPOSSIBLE)


def _gap_to_third(scaled: Array, gaps: Gaps, ops: Ops) -> Array:
    """Return the gap to the third logit; without a third class to the second, and without a second 0."""
    at, one_hot = gaps.top, gaps.is_top
    gap = ops.at(scaled, at)
    for _ in range(min(2, gaps.n_classes - 1)):
        scaled = ops.where(one_hot, LOWEST, scaled)
        at = ops.argmax(scaled)
        one_hot = ops.one_hot(at, gaps.n_classes)
        found = ops.at(scaled, at)
        gap = ops.where(_possible(found, ops), found, gap)
    return -gap


def _gap_to_mean(scaled: Array, ops: Ops) -> Array:
    """Return the gap to the mean of the possible classes."""
    possible = _possible(scaled, ops)
    number = ops.sum(ops.where(possible, scaled * 0.0 + 1.0, 0.0))
    return -ops.sum(ops.where(possible, scaled, 0.0)) / number


def softplus_link(a: Array, ops: Ops) -> Array:
    """Return T = log(1 + exp a), within the calibrator's limits."""
    return _limited(ops.softplus(a), ops)


def exp_link(a: Array, ops: Ops) -> Array:
    """Return T = exp a, within the calibrator's limits."""
    return _limited(ops.exp(ops.clip(a, -50.0, 50.0)), ops)


def _limited(temperature: Array, ops: Ops) -> Array:
    low, high = (ops.parameter("temperature_limits", i) for i in (0, 1))
    return ops.clip(temperature, low, high)


def divide(z: Array, temperature: Array, ops: Ops) -> Array:
    """Return z / T; a masked class stays at -inf, and out of the derivative by T."""
    possible = ops.is_finite(z)
    return ops.where(possible, ops.where(possible, z, 0.0) / temperature, z)


def log_weight(weight: Array, ops: Ops) -> Array:
    """Return log w; of 0 a number so low that its part adds nothing, since -inf less -inf is NaN."""
    return ops.clip(ops.log(weight), LOWEST, 0.0)


def log_mixture(terms: Iterable[Array], ops: Ops) -> Array:
    """Return log sum_j exp(term_j), for terms log(w_j p_j) made one by one: each is N x K numbers."""
    rest = iter(terms)
    total = next(rest)
    for term in rest:
        larger = ops.greater(term, total)
        low, high = ops.where(larger, total, term), ops.where(larger, term, total)
        total = high + ops.log1p(ops.exp(low - high))
    return total
