"""What changes one block of rows class by class: maps of negative log-probabilities, a bias, new frequencies.

The maps (`maps`) are piecewise linear. With the symbols of `row_block`, e = log s - beta d, c and w the value
of the map at the lower end of e's segment and its slope there, r the excess of e over that end:

    u = c + w r      p = exp(scale (u_t - u))      sums of p, p r and p r^2 over each segment, without t

`compiled` has these sums as loops; both agree to 1e-6.

`biased` adds a bias to log-probabilities l, softmax(l / T + W x), and `mix` averages the outcomes. With
r_k = log(frequency of class k at use / frequency at fit), `shift_outputs` applies Bayes' rule:

    p_k exp(r_k) / sum_j p_j exp(r_j)

The last two replace the outputs of a block of rows. This module needs NumPy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import row_products, row_slices
from temperance.core.features import IMPOSSIBLE, LOG_PROB_FLOOR

LOWEST = {4: -1e18, 8: -1e150}  # stands for -inf, by item size; its square is finite
SEGMENT_NUMBERS = 1 << 14  # logits whose segments are found at a time, so that the results stay in the cache
FARTHEST = 1e15  # stands for the negative log-probability of a masked class

# Where the slope can change, in units of log-probability at T0: probabilities of 0.9, 0.5, 0.22, 0.08, ...
KNOTS = np.array([0.0, 0.1, 0.7, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0])


class MapTable(NamedTuple):
    """A map of negative log-probabilities: its knots, its values there, and its slopes above them."""

    knots: Vector
    values: Vector
    slopes: Vector

    @classmethod
    def of(cls, knots: Vector, slopes: Vector, dtype: DTypeLike = np.float64) -> MapTable:
        """Return the map with these slopes that is 0 at 0, in a type."""
        values = np.zeros(len(knots))
        np.add.accumulate(slopes[:-1] * (knots[1:] - knots[:-1]), out=values[1:])
        return cls(*(numbers.astype(dtype, copy=False) for numbers in (knots, values, slopes)))


def _segments(e: Floats, knots: Floats) -> Indices:
    """Return how many knots after the first each number has reached, by vector loops, unlike a search."""
    if len(knots) > 64 or e.size < 256:  # few numbers, or many knots: a search takes less time
        return knots[1:].searchsorted(e, side="right")
    count, reached = np.zeros_like(e, np.uint8), np.empty_like(e, np.bool_)
    for knot in knots[1:]:
        np.greater_equal(e, knot, out=reached)
        count += reached.view(np.uint8)
    return count.astype(np.intp)


SegmentCache = dict[int, tuple[Indices, Matrix]]
"""By the first of some rows, where their classes lie: the number of their segment and row, and the excess.

They depend on the knots alone, so that they are the same in every pass of a fit. Numbers count the rows of
the first segment, then of the second, and so on.
"""


def new_segment_cache(size: int) -> SegmentCache | None:
    """Return a cache for the segments of so many classes, or None if they are too many to keep."""
    return {} if size <= 1 << 21 else None  # 32 MB


def segment_sums(
    z: Floats,
    top: Indices,
    peak: Floats,
    log_s: Vector,
    beta: float,
    table: MapTable,
    scale: Vector,
    sums: Matrix,
    start: int,
    cache: SegmentCache | None,
) -> None:
    """Write the sums of p, p r and p r^2 over each segment, (3, segments, rows).

    r is the excess, and `start` is the number of the first row.
    """
    for at in row_slices(len(z), max(1, SEGMENT_NUMBERS // z.shape[1])):
        each, columns = np.arange(at.stop - at.start), top[at]
        index = None if cache is None else cache.get(start + at.start)
        if index is None:
            e: Matrix = z[at].astype(np.float64, order="C")
            e -= peak[at, None]
            e *= -beta
            e += log_s[at, None]
            np.minimum(e, FARTHEST, out=e)
            number = _segments(e, table.knots)
            e -= table.knots.take(number)
            number *= len(each)
            number += each[:, None]
            index = number, e
            if cache is not None:
                cache[start + at.start] = index
        number, excess = index
        at_top = number[each, columns] // len(each)
        u_top = table.values[at_top] + table.slopes[at_top] * excess[each, columns]
        # -scale (u - u_top) is linear in the excess, with coefficients of the segment and the row.
        p = (-table.slopes[:, None] * scale[at]).take(number)
        p *= excess
        p += ((u_top - table.values[:, None]) * scale[at]).take(number)
        np.exp(p, out=p)
        p[each, columns] = 0
        for power, out in enumerate(sums[:, :, at]):
            if power:
                p *= excess
            out[:] = np.bincount(number.reshape(-1), p.reshape(-1), out.size).reshape(out.shape)


def mapped_gaps(
    d: Floats, at_top: tuple[Any, Any], log_s: Floats | float, beta: float, table: MapTable, room: Floats
) -> Floats:
    """Return u_t - u of each class: at most 0, and 0 for the top class, whose row and column are `at_top`.

    `log_s` is a column, or a number of a single row; `room` for the gaps d is overwritten.
    """
    e = np.multiply(d, -beta, out=room)
    e += log_s
    segment = _segments(e, table.knots)
    # In the order of the numbers in memory. The index is within the table: "wrap" only avoids the check.
    at, by_class = (segment.T, e.T) if e.flags.f_contiguous else (segment, e)
    by_class -= table.knots.take(at, mode="wrap")
    by_class *= table.slopes.take(at, mode="wrap")
    u = table.values.take(at, mode="wrap")
    u += by_class
    u = u.T if e.flags.f_contiguous else u
    np.subtract(u[at_top] if len(u) == 1 else u[at_top][:, None], u, out=u)
    return np.minimum(u, 0, out=u)  # rounding at a knot must not put another class above the top


@dataclass(frozen=True)
class Offsets:
    """What turns l into u: an inverse temperature that multiplies it, a bias, perhaps interactions."""

    beta: float
    bias: Vector
    interactions: Matrix | None

    @classmethod
    def of(cls, theta: Vector, n_classes: int) -> Offsets:
        """Unpack [log T, bias, columns of the interactions]."""
        columns = theta[1:].reshape(-1, n_classes)
        log_beta = -np.clip(theta[0], -50.0, 50.0)  # a trial step of a fit can go anywhere
        return cls(float(np.exp(log_beta)), columns[0], columns[1:].T if len(columns) > 1 else None)


def exponentiate(u: Floats) -> tuple[Vector, Vector]:
    """Replace `u` by exp(u - top), top the largest of the row; return the row sums and log sum exp."""
    top = np.max(u, axis=1)
    u -= top[:, None]
    np.exp(u, out=u)
    sums = u.sum(axis=1).astype(np.float64)
    return sums, np.log(sums) + top


def centred(log_probs: Floats) -> Floats:
    """Return floored log-probabilities minus their mean over the possible classes; 0 for the others.

    Of two classes, return log(2 p): the mean would leave one number of the two.
    """
    possible = log_probs > -IMPOSSIBLE
    x = np.where(possible, np.maximum(log_probs, LOG_PROB_FLOOR), 0)
    if x.shape[1] == 2:
        x[possible] += x.dtype.type(np.log(2))
        return x
    number = np.maximum(possible.sum(axis=1, keepdims=True), 1).astype(x.dtype)
    x -= x.sum(axis=1, keepdims=True) / number
    x[~possible] = 0
    return x


def biased(log_probs: Floats, offsets: Offsets) -> Floats:
    """Return the logarithm of softmax(u)."""
    dtype = log_probs.dtype
    u = dtype.type(offsets.beta) * log_probs + offsets.bias.astype(dtype)
    if offsets.interactions is not None:
        u += row_products(centred(log_probs), offsets.interactions.T.astype(dtype))
    u -= u.max(axis=1, keepdims=True)  # next to a large number, log sum exp has no digits left
    u -= exponentiate(u.copy())[1][:, None].astype(dtype)
    return u


def mix(base: Floats, parts: Sequence[tuple[float, Floats]], *, log: bool) -> None:
    """Replace probabilities p by (1 - sum w) p + sum w exp(u), or log p by the logarithm of that."""
    rest = max(1.0 - sum(weight for weight, _ in parts), 0.0)
    if log:
        base += base.dtype.type(np.log(rest))
        for weight, u in parts:
            np.logaddexp(base, u + base.dtype.type(np.log(weight)), out=base)
        return
    base *= base.dtype.type(rest)
    for weight, u in parts:
        base += base.dtype.type(weight) * np.exp(u)
    np.minimum(base, 1, out=base)  # rounded weights can sum to more than 1


def shift_outputs(outputs: Floats, log_ratio: Vector, *, log: bool) -> None:
    """Replace probabilities, or calibrated logits if `log`, by those under the new class frequencies.

    An impossible class stays at probability 0, or at -inf; logits become log-probabilities.
    """
    if not log:
        ratio = np.exp(log_ratio - log_ratio.max())
        shifted = outputs * np.maximum(ratio, 1e-300)  # times the largest probability, still above 0
        outputs[:] = shifted / shifted.sum(axis=1, keepdims=True)
        return
    shifted = outputs + log_ratio
    top = shifted.argmax(axis=1)[:, None]
    shifted -= np.take_along_axis(shifted, top, axis=1)
    others = np.exp(shifted)
    np.put_along_axis(others, top, 0.0, axis=1)  # nothing cancels when a row is confident
    outputs[:] = shifted - np.log1p(others.sum(axis=1, keepdims=True))
