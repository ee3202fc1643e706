"""Quantiles of weighted numbers, exact even if the numbers are in many parts.

The quantile of a share q is the smallest number such that it and all smaller numbers have at least q of the
weight. `tie` keeps numbers together that differ only by rounding: among the gaps that begin at the quantile
or at most `tie` above it, take the widest; the number before it is the quantile.

Each part is read twice. First, a sketch of it brackets every quantile: a few thousand of its numbers, with
the weight up to each. Then all numbers within the brackets are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Vector

POINTS = 4096  # numbers in a sketch
SLACK = 1e-12  # relative to a weight: the order in which weights were added must not matter


@dataclass(frozen=True)
class Quantiles:
    """The quantiles, and the next larger number after each: nan if there is none."""

    values: Vector
    following: Vector


def quantiles(values: Vector, weights: Vector | None, shares: Vector, tie: float = 0.0) -> Quantiles:
    """Return the quantiles of numbers that are all in memory; nan if none has weight."""
    distinct, weight = _distinct(values, weights)
    if not distinct.size:
        return Quantiles(np.full(len(shares), np.nan), np.full(len(shares), np.nan))
    cumulated = np.cumsum(weight)
    return _look_up(distinct, cumulated, shares * cumulated[-1], tie)


def _distinct(values: Vector, weights: Vector | None) -> tuple[Vector, Vector]:
    """Return the distinct numbers that have weight, in order, and the weight of each."""
    if weights is not None:
        values, weights = values[weights > 0], weights[weights > 0]
    if weights is None:
        distinct, count = np.unique(values, return_counts=True)
        return distinct, count.astype(np.float64)
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, np.bincount(index, weights, len(distinct)).astype(np.float64)


def _look_up(distinct: Vector, cumulated: Vector, wanted: Vector, tie: float) -> Quantiles:
    at = np.minimum(np.searchsorted(cumulated, wanted * (1 - SLACK)), len(distinct) - 1)
    if tie:
        gaps = np.diff(distinct, append=np.inf)
        stops = np.searchsorted(distinct, distinct[at] + tie, side="right")
        widest = [int(gaps[start:stop].argmax()) for start, stop in zip(at, stops, strict=True)]
        at = at + np.array(widest, np.intp)
    return Quantiles(distinct[at], np.append(distinct, np.nan)[at + 1])


@dataclass(frozen=True)
class Sketch:
    """Some of the numbers of a part in order, including the first and the last.

    `below` is the weight of all smaller numbers, `up_to` the same plus the weight of the number itself.
    """

    values: Vector
    below: Vector
    up_to: Vector
    complete: bool

    @classmethod
    def of(cls, values: Vector, weights: Vector | None) -> Sketch:
        """Draw the sketch of a part."""
        distinct, weight = _distinct(values, weights)
        up_to = np.cumsum(weight)
        kept = np.arange(len(distinct))
        if len(distinct) > POINTS:
            kept = np.unique(np.linspace(0, len(distinct) - 1, POINTS).astype(np.intp))
        complete = len(kept) == len(distinct)
        return cls(distinct[kept], (up_to - weight)[kept], up_to[kept], complete)

    def steps(self) -> tuple[Vector, Vector]:
        """Return the increments, at each value, of the bounds on the weight up to a number: lower, upper."""
        return np.diff(self.up_to, prepend=0.0), np.diff(np.append(self.below, self.up_to[-1:]))


@dataclass(frozen=True)
class Brackets:
    """Per quantile, its target weight, and the range low < number <= high that holds it and the next number.

    `found` has the quantiles themselves, if the sketches held all numbers.
    """

    wanted: Vector
    low: Vector
    high: Vector
    found: Quantiles | None
    tie: float = 0.0


def make_brackets(sketches: Sequence[Sketch], shares: Vector, tie: float = 0.0) -> Brackets:
    """Return the ranges that contain the quantiles; nan if nothing has weight."""
    points, place = np.unique(np.concatenate([sketch.values for sketch in sketches]), return_inverse=True)
    least, most = (
        np.cumsum(np.bincount(place, np.concatenate(steps), len(points)).astype(np.float64, copy=False))
        for steps in zip(*(sketch.steps() for sketch in sketches), strict=True)
    )
    if not points.size:
        nothing = np.full(len(shares), np.nan)
        return Brackets(nothing, nothing, nothing, Quantiles(nothing, nothing))
    wanted = shares * least[-1]
    if all(sketch.complete for sketch in sketches):
        return Brackets(wanted, wanted, wanted, _look_up(points, least, wanted, tie))
    above = np.searchsorted(least, wanted * (1 - SLACK))
    under = np.searchsorted(most, wanted * (1 - 2 * SLACK))
    low = np.concatenate([[-np.inf], points])[under]
    highest = np.append(points, np.inf)
    high = highest[np.searchsorted(points, highest[above] + tie, side="right")]
    return Brackets(wanted, low, high, None, tie)


def values_in_brackets(
    values: Vector, weights: Vector | None, brackets: Brackets
) -> tuple[Vector, Vector, Vector]:
    """Return the numbers of a part within the brackets, their weights, and the weight below each bracket."""
    distinct, weight = _distinct(values, weights)
    starts = np.searchsorted(distinct, brackets.low, side="right")
    stops = np.searchsorted(distinct, brackets.high, side="right")
    # +1 where a bracket begins, -1 where it ends: the sum is above 0 inside at least one bracket.
    edges = np.bincount(starts, minlength=len(distinct) + 1) - np.bincount(stops, minlength=len(distinct) + 1)
    inside = np.cumsum(edges)[: len(distinct)] > 0
    below = np.append(0.0, np.cumsum(weight))[starts]
    return distinct[inside], weight[inside], below


def resolve(parts: Sequence[tuple[Vector, Vector, Vector]], brackets: Brackets) -> Quantiles:
    """Return the quantiles from the values in brackets of all parts."""
    values, weights, weights_below = zip(*parts, strict=True)
    distinct, weight = _distinct(np.concatenate(values), np.concatenate(weights))
    below = np.sum(weights_below, axis=0)
    found = []
    for wanted, low, high, base in zip(brackets.wanted, brackets.low, brackets.high, below, strict=True):
        own = slice(*np.searchsorted(distinct, [low, high], side="right"))
        one = _look_up(distinct[own], base + np.cumsum(weight[own]), np.array([wanted]), brackets.tie)
        found.append((one.values[0], one.following[0]))
    return Quantiles(*np.array(found).T)
