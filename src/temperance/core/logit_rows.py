"""N rows of logits, and every pass over them: the only code that touches all N x K numbers.

Each method is one pass. The top class and its logit are found on the first pass and kept (two numbers a
row), so that a fit reads the array as often as it needs new moments and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core import backend, blocks
from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.blocks import BFloat16, Scratch, row_products
from temperance.core.entropy import log_entropy
from temperance.core.features import RowShape
from temperance.core.kernels import MapTable, mixed

Index = slice | NDArray[np.intp]

# A class this far below the top, at the inverse temperature of a row shape, counts as impossible, like one
# at -inf: masks are often written as -1e9 or as the lowest finite number, and must not enter a mean.
IMPOSSIBLE = 2e4
# Numbers in one product of a Gram matrix: enough for the linear algebra library to run at full speed.
GRAM_SIZE = 1 << 20
SEGMENT_COST = 8  # cost of sums over segments, relative to moments, in NumPy
MIXED_NUMBERS = 1 << 17  # held at a time by a mixture, nodes x rows x K: within the cache, in few calls
MAP_ARRAYS = 6  # that a map needs for the rows it is applied to
ROW_SCRATCH = 1024  # numbers that the moments of a row's segments need

SegmentWork = Callable[[slice, Matrix], tuple[Vector, ...]]
"""From rows and their sums of p, p r and p r^2 over segments to arrays that are summed over blocks."""


@dataclass(frozen=True)
class Moments:
    """The result of one pass for each row, at its inverse temperature beta (the symbols of `kernels`)."""

    log_s: Vector
    mu: Vector
    v: Vector


@dataclass(frozen=True)
class Uncertainty:
    """The uncertainty of each row at temperature 1."""

    log_entropy: Vector
    log_confidence: Vector


class LogitRows:
    """Logits of N rows and K classes: an array, a memory map or `BFloat16`, read block by block.

    `inspect` is called once the first pass has found the largest logits, and may raise.
    """

    def __init__(
        self,
        values: Floats | BFloat16,
        labels: NDArray[np.intp] | None = None,
        *,
        inspect: Callable[[LogitRows], None] | None = None,
        kernels_for_size: int | None = None,
    ) -> None:
        self.values = values
        self._inspect = inspect
        self.labels = labels
        self.n_rows, self.n_classes = values.shape
        self.dtype = blocks.working_dtype(values)
        self.passes = 0
        self._size = kernels_for_size or self.n_rows * self.n_classes
        self._kernels = backend.kernels_for(self._size)
        self._located = False
        # Only fits make many passes.
        self._kept_gaps = None if labels is None else blocks.room_for_gaps(values)
        self._top = np.empty(self.n_rows, np.intp)
        self._peak = np.empty(self.n_rows, self.dtype)
        self._label_gap = np.empty(self.n_rows if labels is not None else 0)
        self._kept: dict[Any, Any] = {}

    def every(self, step: int) -> LogitRows:
        """Return every `step`-th row, as a view, read by the same kernels as the whole."""
        return self.take(slice(None, None, step))

    def take(self, index: Index) -> LogitRows:
        """Return some rows, as a view if it is a slice, read by the same kernels as the whole."""
        labels = None if self.labels is None else self.labels[index]
        return LogitRows(self.values[index], labels, inspect=self._inspect, kernels_for_size=self._size)

    @property
    def top(self) -> NDArray[np.intp]:
        """The column of each row's largest logit."""
        self._locate()
        return self._top

    @property
    def peak(self) -> Floats:
        """Each row's largest logit: NaN if the row has a NaN, -inf if all its classes are masked."""
        self._locate()
        return self._peak

    @property
    def label_gap(self) -> Vector:
        """The logit of each row's label minus the largest, at most 0."""
        self._locate()
        return self._label_gap

    def check(self) -> None:
        """Read the rows if no pass has read them yet, so that `inspect` is called."""
        self._locate()

    def _locate(self) -> None:
        if not self._located:
            self.visit(lambda z, start, stop, scratch: None)

    def visit(self, work: blocks.BlockWork) -> None:
        """Run `work` over all blocks; the first pass also finds the top of each row."""
        self.passes += 1
        if self._located:
            blocks.for_each_block(self.values, work, self._kept_gaps)
            return

        def locate_then_work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            self._kernels.locate(z, self._top[i:j], self._peak[i:j])
            if self.labels is not None:
                at_label = z[np.arange(j - i), self.labels[i:j]].astype(np.float64)
                self._label_gap[i:j] = at_label - self._peak[i:j]
            work(z, i, j, scratch)

        blocks.for_each_block(self.values, locate_then_work, self._kept_gaps)
        self._located = True
        if self._inspect is not None:
            self._inspect(self)

    def _column(self, beta: Vector | float) -> Floats:
        column = np.empty(self.n_rows, self.dtype)
        column[:] = beta
        return column

    def moments(self, beta: Vector | float, *, variance: bool = True) -> Moments:
        """Return log s, mu and, with `variance`, v of each row at inverse temperature `beta`."""
        b = self._column(beta)
        r, mu, v = np.empty((3, self.n_rows), self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            row = self._top[i:j], self._peak[i:j], b[i:j]
            self._kernels.moments(z, *row, r[i:j], mu[i:j], v[i:j] if variance else None, scratch)

        self.visit(work)
        log_s, mu = np.log1p(r, dtype=np.float64), mu.astype(np.float64)
        return Moments(log_s, mu, v.astype(np.float64) if variance else np.empty(0))

    def _keep(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Compute once for each key: a fit asks for the features of its rows repeatedly."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def uncertainty(self) -> Uncertainty:
        """Return log entropy and log confidence of each row at temperature 1."""
        result: Uncertainty = self._keep("uncertainty", self._uncertainty)
        return result

    def _uncertainty(self) -> Uncertainty:
        one = self._column(1.0)
        r, mu = np.empty((2, self.n_rows), self.dtype)
        entropy = np.empty(self.n_rows)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            top, peak = self._top[i:j], self._peak[i:j]
            self._kernels.moments(z, top, peak, one[i:j], r[i:j], mu[i:j], None, scratch)
            entropy[i:j] = log_entropy(z, top, peak, r[i:j], mu[i:j])

        self.visit(work)
        return Uncertainty(entropy, -np.log1p(r, dtype=np.float64))

    def shape_at(self, beta: float) -> RowShape:
        """Return the shape of beta z: its entropy, and the gaps from the top to other logits."""
        result: RowShape = self._keep(("shape", beta), lambda: self._shape_at(beta))
        return result

    def _shape_at(self, beta: float) -> RowShape:
        b = self._column(beta)
        r, mu = np.empty((2, self.n_rows), self.dtype)
        gaps = np.empty((2, self.n_rows))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            top, peak = self._top[i:j], self._peak[i:j]
            self._kernels.moments(z, top, peak, b[i:j], r[i:j], mu[i:j], None, scratch)
            gaps[:, i:j] = _gaps(z, top, peak, scratch, IMPOSSIBLE / beta)

        self.visit(work)
        log_s = self._kept["log sum", beta] = np.log1p(r, dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_entropy = np.log(log_s - beta * mu.astype(np.float64))
        return RowShape(log_entropy, *(beta * gaps))

    def log_sum_at(self, beta: float) -> Vector:
        """Return log s at one inverse temperature: the negative log-probability of the top class."""
        result: Vector = self._keep(("log sum", beta), lambda: self.moments(beta).log_s)
        return result

    def sum_segments(self, beta: float, table: MapTable, scale: Vector, use: SegmentWork) -> list[Vector]:
        """Apply `use` to the sums over segments (`kernels`) of each block; add up the results, in one pass.

        The map applies to negative log-probabilities at the inverse temperature `beta`; the row's `scale`
        multiplies it.
        """
        log_s = self.log_sum_at(beta)
        kernels = backend.kernels_for(self._size, SEGMENT_COST)
        key = "places", beta, table.knots.tobytes()
        kept = self._keep(key, lambda: kernels.room_for_places(self.n_rows * self.n_classes))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector, ...]:
            at = slice(i, j)
            sums = np.empty((3, len(table.knots), j - i))
            row = self._top[at], self._peak[at], log_s[at]
            kernels.segment_sums(z, *row, beta, table, scale[at], sums, i, kept)
            return use(at, sums)

        return self.sum(work, ROW_SCRATCH, threads=kernels.SEGMENTS_IN_THREADS)

    def mapped_mixture(
        self, beta: float, table: MapTable, scales: Matrix, weights: Vector, *, log: bool
    ) -> Floats:
        """Return sum_q weights[q] softmax(-scales[q] map(-log softmax(beta z))), or its logarithm.

        The scales are (nodes, N).
        """
        log_s = self.log_sum_at(beta)
        result = np.empty((self.n_rows, self.n_classes), self.dtype)
        size = max(1, MIXED_NUMBERS // (max(len(weights), MAP_ARRAYS) * self.n_classes))

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            u = np.empty((min(size, j - i), self.n_classes))
            room = np.empty(len(weights) * u.size)
            for part in blocks.row_slices(j - i, size):
                at, d = slice(i + part.start, i + part.stop), u[: part.stop - part.start]
                self._kernels.map_logits(z[part], self._top[at], self._peak[at], log_s[at], beta, table, d)
                result[at] = mixed(d, scales[:, at], weights, room, log=log)

        self.visit(work)
        return result

    def mean(self) -> Vector:
        """Return the mean logit of each row; it is not finite where a class is masked."""
        result = np.empty(self.n_rows)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            # Relative to the top, so that a constant added to the row loses no digits.
            np.subtract(z, self._peak[i:j, None], out=scratch.d[: j - i])
            result[i:j] = scratch.row_sums(scratch.d, j - i) / self.n_classes

        self.visit(work)
        return result + self._peak

    def largest(self, count: int) -> Floats:
        """Return the `count` largest logits of each row, in descending order, minus the row's mean."""
        result: Floats = self._keep(("largest", count), lambda: self._largest(count))
        return result

    def _largest(self, count: int) -> Floats:
        result = np.empty((self.n_rows, count), self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            d = scratch.d[: j - i]
            np.subtract(z, self._peak[i:j, None], out=d)
            mean = scratch.row_sums(scratch.d, j - i) / self.n_classes
            part = np.partition(d, self.n_classes - count, axis=1)[:, self.n_classes - count :]
            result[i:j] = np.sort(part, axis=1)[:, ::-1] - mean[:, None]

        self.visit(work)
        return result

    def project(self, weights: Vector) -> Vector:
        """Return (z - mean z) . weights of each row."""
        # (z - mean z) . w = (z - max z) . (w - mean w): no mean is needed, and an offset loses no digits.
        centred = (weights - weights.mean()).astype(self.dtype)
        result = np.empty(self.n_rows)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            result[i:j] = row_products(z - self._peak[i:j, None], centred)

        self.visit(work)
        return result

    def gram(self, weights: Vector, others: NDArray[np.float64]) -> tuple[Vector, Vector]:
        """Return X' diag(weights) X and X' others, for X = z - mean z and weights >= 0."""
        root = np.sqrt(weights)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector, Vector]:
            d = self._gaps_to_top(z, i, j)
            cross = d.T @ others[i:j]
            d *= root[i:j, None]
            return d.T @ d, cross

        gram, cross = self.sum(work)
        gram -= gram.mean(axis=0)
        return gram - gram.mean(axis=1, keepdims=True), cross - cross.mean(axis=0)

    def cross(self, others: NDArray[np.float64]) -> Vector:
        """Return X' others, for X = z - mean z."""
        (cross,) = self.sum(lambda z, i, j, scratch: (self._gaps_to_top(z, i, j).T @ others[i:j],))
        return cross - cross.mean(axis=0)

    def _gaps_to_top(self, z: Floats, i: int, j: int) -> Matrix:
        # Sums of products are centred afterwards: (z - max z) C = (z - mean z), C the centring matrix.
        return np.subtract(z, self._peak[i:j, None], dtype=np.float64)

    def sum(self, work: blocks.BlockWork, width: int = 0, *, threads: bool = True) -> list[Vector]:
        """Add up the arrays of each block, whose rows need at least `width` numbers, in one pass."""
        self._locate()
        self.passes += 1
        size = max(1, GRAM_SIZE // max(width, self.n_classes))
        return blocks.sum_blocks(self.values, work, size, threads=threads)

    def softmax(self, beta: Vector | float) -> Floats:
        """Return the probabilities softmax(beta z), in the working type."""
        b = self._column(beta)
        result = np.empty((self.n_rows, self.n_classes), self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            self._kernels.softmax(z, self._top[i:j], self._peak[i:j], b[i:j], result[i:j], scratch)

        self.visit(work)
        return result

    def mixture(self, betas: Vector, weights: Vector) -> Floats:
        """Return sum_j weights[j] softmax(betas[i, j] z_i) of each row i."""
        b = betas.astype(self.dtype).T.copy()
        result = np.zeros((self.n_rows, self.n_classes), self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            part = np.empty((j - i, self.n_classes), self.dtype)
            for beta, weight in zip(b, weights.astype(self.dtype), strict=True):
                if weight > 0:
                    self._kernels.softmax(z, self._top[i:j], self._peak[i:j], beta[i:j], part, scratch)
                    part *= weight
                    result[i:j] += part
            np.minimum(result[i:j], 1, out=result[i:j])  # rounded weights may sum to more than 1

        self.visit(work)
        return result

    def log_mixture(self, betas: Vector, weights: Vector) -> Floats:
        """Return the logarithm of `mixture`, accurate even where the probabilities underflow."""
        used = np.flatnonzero(weights)
        log_s = np.stack([self.moments(betas[:, j]).log_s for j in used])
        shift = (np.log(weights[used])[:, None] - log_s).astype(self.dtype)
        b = betas[:, used].T.astype(self.dtype)
        result = np.full((self.n_rows, self.n_classes), -np.inf, self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            d = z - self._peak[i:j, None]
            for beta, add in zip(b[:, i:j], shift[:, i:j], strict=True):
                np.logaddexp(result[i:j], d * beta[:, None] + add[:, None], out=result[i:j])

        self.visit(work)
        return result

    def scaled(self, beta: Vector | float) -> Floats:
        """Return beta z, in the working type."""
        b = self._column(beta)
        result = np.empty((self.n_rows, self.n_classes), self.dtype)

        def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
            np.multiply(z, b[i:j, None], out=result[i:j])

        self.visit(work)
        return result


def _gaps(z: Floats, top: NDArray[np.intp], peak: Floats, scratch: Scratch, limit: float) -> Vector:
    """Return the gaps from each row's largest logit to the third and to the mean of the possible classes.

    Without a third class, use the second; without a second, use 0.
    """
    d, each = scratch.d[: len(z)], np.arange(len(z))
    np.subtract(z, peak[:, None], out=d)
    mean = scratch.row_sums(scratch.d, len(z)) / d.shape[1]
    some_masked = np.flatnonzero(~(mean * d.shape[1] >= -limit))  # no gap is larger than the sum of all
    if some_masked.size:
        possible = d[some_masked] >= -limit
        total = np.where(possible, d[some_masked], 0).sum(axis=1)
        mean[some_masked] = total / np.maximum(possible.sum(axis=1), 1)
    third, at = np.zeros(len(z)), top
    for _ in range(min(2, z.shape[1] - 1)):
        d[each, at] = -np.inf
        at = np.argmax(d, axis=1)
        gap = -d[each, at].astype(np.float64)
        third = np.where(gap <= limit, gap, third)
    return np.stack([third, -mean])
