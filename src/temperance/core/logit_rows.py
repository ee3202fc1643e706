"""N rows of logits, and every pass that a fit makes over them.

Each method is one pass. The first pass finds the top class and its logit and keeps them (two numbers per
row), so a fit reads the array only as often as it needs new moments.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core import blocks
from temperance.core.arrays import AnyArray, Floats, Matrix, Vector
from temperance.core.blocks import Scratch
from temperance.core.kernels import MapTable
from temperance.core.ops import NUMPY
from temperance.core.row_block import GapCache, RowBlock, block_type, map_rows

Index = slice | NDArray[np.intp]

# Numbers in one product of a Gram matrix: enough for the linear algebra library to run at full speed.
GRAM_SIZE = 1 << 20

SegmentWork = Callable[[slice, Matrix], tuple[Vector, ...]]
"""From rows and their sums of p, p r and p r^2 over segments to arrays that are summed over blocks."""


@dataclass(frozen=True)
class Moments:
    """The result of one pass per row, at its inverse temperature beta (the symbols of `row_block`)."""

    log_s: Vector
    mu: Vector
    v: Vector


_pass_hook: ContextVar[Callable[[], None] | None] = ContextVar("pass_hook", default=None)


def calling_at_each_pass(hook: Callable[[], None]) -> AbstractContextManager[None]:
    """Call `hook`, which shows progress, before each pass over rows or a sample within the context."""
    return blocks.setting(_pass_hook, hook)


class LogitRows:
    """Logits of N rows and K classes: an array or a memory map, read block by block.

    It has the numbers that `core.features` lists, each computed once.
    """

    ops = NUMPY

    def __init__(self, values: Floats, labels: NDArray[np.intp] | None = None) -> None:
        self.values = values
        self.labels = labels
        self.n_rows, self.n_classes = values.shape
        self.dtype = blocks.working_dtype(values)
        self.passes = 0
        self._size = self.n_rows * self.n_classes  # selects the kernels
        self._block = block_type(self._size)
        self._located: tuple[NDArray[np.intp], Floats, Vector] | None = None
        # Only fits, which have labels, make many passes. A large array would need too much memory for gaps.
        self._gap_cache: GapCache | None = None
        if labels is not None and self.n_rows * self.n_classes * self.dtype.itemsize <= blocks.MAX_KEPT_BYTES:
            self._gap_cache = {}
        self._kept: dict[Any, Any] = {}

    def take(self, index: Index) -> LogitRows:
        """Return some rows, as a view if it is a slice, read by the same kernels as the whole."""
        labels = None if self.labels is None else self.labels[index]
        some = LogitRows(self.values[index], labels)
        some._size, some._block = self._size, self._block
        if self._located is not None:
            top, peak, label_gap = self._located
            some._located = top[index], peak[index], label_gap if labels is None else label_gap[index]
        return some

    def _begin_pass(self) -> None:
        self.passes += 1
        if (hook := _pass_hook.get()) is not None:
            hook()

    def locate(self) -> tuple[NDArray[np.intp], Floats, Vector]:
        """Return the column of each row's largest logit, that logit, and its gap to the label's logit."""
        if self._located is not None:
            return self._located
        self._begin_pass()
        top, peak = np.empty(self.n_rows, np.intp), np.empty(self.n_rows, self.dtype)
        label_gap = np.empty(0 if self.labels is None else self.n_rows)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            each = np.arange(j - i)
            z.argmax(axis=1, out=top[i:j])  # a NaN counts as the largest, so the peak shows it
            peak[i:j] = z[each, top[i:j]]
            if self.labels is not None:
                label_gap[i:j] = z[each, self.labels[i:j]].astype(np.float64) - peak[i:j]

        blocks.for_each_block(self.values, work)
        self._located = top, peak, label_gap
        return self._located

    @property
    def top(self) -> NDArray[np.intp]:
        """The column of each row's largest logit."""
        return self.locate()[0]

    @property
    def peak(self) -> Floats:
        """Each row's largest logit: NaN if the row has a NaN, -inf if all its classes are masked."""
        return self.locate()[1]

    @property
    def label_gap(self) -> Vector:
        """The logit of each row's label minus the largest, at most 0."""
        return self.locate()[2]

    def map(self, function: Callable[[RowBlock], Any], *, log: bool = False) -> AnyArray:
        """Return the results of a function of rows for all rows, in one pass; outputs are logits if `log`."""
        self._begin_pass()
        known = None if self._located is None else self._located[:2]
        found = map_rows(self.values, function, log=log, block=self._block, located=known)[0]
        return np.ascontiguousarray(found)  # so that fits of rows in either order are bit-identical

    def moments(self, beta: Vector | float, *, variance: bool = True) -> Moments:
        """Return log s, mu and, with `variance`, v of each row at inverse temperature `beta`."""
        top, peak, _ = self.locate()
        b = np.empty((self.n_rows, 1), self.dtype)
        b[:, 0] = beta
        r, mu, v = np.empty((3, self.n_rows, 1), self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            block = self._block(z, scratch, located=(top[i:j], peak[i:j]))
            found = block.moments(b[i:j], variance=variance, gap_cache=self._gap_cache, start=i)
            r[i:j], mu[i:j] = found[:2]
            if variance:
                v[i:j] = found[2]

        self._begin_pass()
        blocks.for_each_block(self.values, work, self._block.enlarged)
        log_s, mu = np.log1p(r[:, 0], dtype=np.float64), mu[:, 0].astype(np.float64)
        return Moments(log_s, mu, v[:, 0].astype(np.float64) if variance else np.empty(0))

    def _map_once(self, key: Any, function: Callable[[RowBlock], Any]) -> AnyArray:
        """Return the result of `map`, computed once per key: a fit asks for its features repeatedly."""
        if key not in self._kept:
            self._kept[key] = self.map(function)
        kept: AnyArray = self._kept[key]
        return kept

    def log_entropy(self) -> Matrix:
        """Return log H, (N, 1)."""
        return self._map_once("entropy", RowBlock.log_entropy)

    def log_confidence(self) -> Matrix:
        """Return the logarithm of the largest probability, (N, 1)."""
        return self._map_once("confidence", RowBlock.log_confidence)

    def shape_at(self, beta: float) -> tuple[Matrix, Matrix, Matrix]:
        """Return the shape of beta z, three columns (N, 1); `log_sum_at` then needs no pass."""
        beta = float(beta)

        def numbers(rows: RowBlock) -> Matrix:
            return rows.ops.concat([*rows.shape_at(beta), rows.log_sum(beta)])

        columns = self._map_once(("shape", beta), numbers)
        self._kept["log sum", beta] = columns[:, 3]
        return columns[:, 0:1], columns[:, 1:2], columns[:, 2:3]

    def log_sum_at(self, beta: float) -> Vector:
        """Return log s at one inverse temperature: the negative log-probability of the top class."""
        if ("log sum", beta) not in self._kept:
            self._kept["log sum", beta] = self.moments(beta).log_s
        result: Vector = self._kept["log sum", beta]
        return result

    def topk(self, k: int) -> Matrix:
        """Return the k largest logits of each row, in descending order, minus the row's mean."""
        return self._map_once(("largest", k), lambda rows: rows.topk(k))

    def project(self, weights: Vector) -> Matrix:
        """Return (z - mean z) . weights of each row, (N, 1)."""
        return self.map(lambda rows: rows.project(weights))

    def mean(self) -> Vector:
        """Return the mean logit of each row; it is not finite where a class is masked."""
        return self.map(lambda rows: rows.mean())[:, 0]

    def softmax(self, beta: float) -> Floats:
        """Return the probabilities softmax(beta z), in the working type."""
        return self.map(lambda rows: rows.divide(1 / beta))

    def sum_segments(self, beta: float, table: MapTable, scale: Vector, use: SegmentWork) -> list[Vector]:
        """Apply `use` to the sums over segments (`kernels`) of each block; add up the results, in one pass.

        The map applies to negative log-probabilities at the inverse temperature `beta`; the row's `scale`
        multiplies it.
        """
        (top, peak, _), log_s = self.locate(), self.log_sum_at(beta)
        block = block_type(self._size, cost=8)  # relative to moments, in NumPy
        key = "segments", beta, table.knots.tobytes()
        cache = self._kept.setdefault(key, block.new_segment_cache(self.n_rows * self.n_classes))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector, ...]:
            at = slice(i, j)
            sums = np.empty((3, len(table.knots), j - i))
            block.segment_sums(z, top[at], peak[at], log_s[at], beta, table, scale[at], sums, i, cache)
            return use(at, sums)

        # Blocks of 4,096 rows: with fewer, the calls of the many operations on moments take too long.
        return self.sum(work, 256, threads=block.segments_in_threads)

    def gram(self, others: Matrix, weights: Vector | None) -> tuple[Matrix, Matrix | None]:
        """Return X' others and, for weights >= 0, X' diag(weights) X, where X = z - mean z."""
        peak = self.peak

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Matrix, ...]:
            # Sums of products are centred afterwards: (z - max z) C = (z - mean z), C the centring matrix.
            d = np.subtract(z, peak[i:j, None], dtype=np.float64, order="C")  # products depend on the layout
            cross = d.T @ others[i:j]
            if weights is None:
                return (cross,)
            d *= np.sqrt(weights[i:j, None])
            return cross, d.T @ d

        cross, *grams = self.sum(work)
        for gram in grams:
            gram -= gram.mean(axis=0)
            gram -= gram.mean(axis=1, keepdims=True)
        return cross - cross.mean(axis=0), grams[0] if grams else None

    def sum(self, work: blocks.BlockWork, width: int = 0, *, threads: bool = True) -> list[Vector]:
        """Add up the arrays of each block, whose rows need at least `width` numbers, in one pass."""
        self.locate()
        self._begin_pass()
        size = max(1, GRAM_SIZE // max(width, self.n_classes))
        return blocks.sum_blocks(self.values, work, size, threads=threads)
