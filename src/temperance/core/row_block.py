"""Some rows of logits as formulas see them: one block of many, the few of a request, or a single one.

For a row z with inverse temperature beta = 1/T, its top class t, m = max z and d = z - m:

    r  = sum_{k != t} exp(beta d_k)        s = 1 + r        log s = log1p(r)
    mu = sum d exp(beta d) / s             v = sum d^2 exp(beta d) / s - mu^2

The top entry is left out of r, so nothing cancels when a row is confident. A masked class (-inf) gets a
finite d whose square does not overflow and whose exponential is 0: it adds nothing to any sum.

At beta = 1 the entropy is H = log s - mu, a sum of two nonnegative terms. Where r underflows,

    log H = logsumexp_{k != t} (d_k + log1p(-d_k)),       with relative error r

since there log1p(r) = r and mu = sum d exp(d), both to first order in r.

A row's results do not depend on the other rows, bit for bit: every number is computed by the same operations
in the same order. One number of each row is a column (n, 1); of a single row, it is a float. `compiled` has
the sums as loops; both agree to 1e-6.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

import numpy as np

from temperance.core import blocks, kernels
from temperance.core.arrays import AnyArray, Floats, Indices, Matrix, Vector
from temperance.core.blocks import (
    FEW_CLASSES,
    Scratch,
    new_buffer,
    row_products,
    setting,
    several,
)
from temperance.core.features import ALMOST_CERTAIN, IMPOSSIBLE, LOG_PROB_FLOOR, ON_LOGITS_FROM
from temperance.core.kernels import (
    LOWEST,
    MapTable,
    Offsets,
    biased,
    mapped_gaps,
    mix,
    shift_outputs,
)
from temperance.core.ops import NUMPY, ONE_ROW

# From this size on, the compiled loops save more in a single fit than the second or two that it takes to load
# them. The choice depends on the size alone, so the same input gives bit-identical results in any process.
COMPILED_FROM = 1 << 28
# Below this, by item size, r can have lost digits or terms to underflow.
TINY = {4: 1e-30, 8: 1e-290}

GapCache = dict[int, Floats]
"""Gaps of blocks by their first row, for fits, which make many passes over the same rows."""

_size: ContextVar[int | None] = ContextVar("size", default=None)


class RowBlock:
    """The features of `core.features`; outputs are probabilities, or calibrated logits if `log`.

    `out` is where an output is written, else a new array. Rows are `bounded` if the caller knows that no
    logit is masked, or so large that a product might overflow. `located` are the column of each row's largest
    logit and that logit, if known.
    """

    segment_sums = staticmethod(kernels.segment_sums)
    new_segment_cache = staticmethod(kernels.new_segment_cache)
    segments_in_threads = False  # sorting numbers into segments holds Python's lock
    enlarged = 1  # factor of the rows in a block

    def __init__(
        self,
        z: Floats,
        scratch: Scratch | None = None,
        *,
        log: bool = False,
        out: Floats | None = None,
        bounded: bool = False,
        located: tuple[Indices, Floats] | None = None,
    ) -> None:
        self.z, self.log, self.bounded, self.out = z, log, bounded, out
        self.n_rows, self.n_classes = z.shape
        self.is_single = self.n_rows == 1
        self._d: Floats | None = None
        self._log_sums: dict[float, Any] = {}
        if self.is_single:
            self.ops = ONE_ROW
            self.top: Any = z.argmax()
            self.peak: Any = z.item(self.top)
            self._room_d: Floats | None = None
            self._room_e: Floats | None = None
        else:
            self.ops = NUMPY
            scratch = scratch or Scratch(self.n_rows, self.n_classes, z.dtype)
            self._room_d, self._room_e = scratch.d[: self.n_rows], scratch.e[: self.n_rows]
            # A NaN counts as the largest, so the peak shows it.
            if located is not None:
                self.top, self.peak = located[0], located[1][:, None]
            elif self.n_classes < FEW_CLASSES:
                self.peak = np.maximum.reduce(np.add(z, 0, out=self._room_d), axis=1)[:, None]
                self.top = first_equal(self.d, 0)
            else:
                self.top = z.argmax(axis=1)
                self.peak = z[self._at_top][:, None]

    @property
    def _at_top(self) -> tuple[Any, Any]:
        """The index of each row's largest logit."""
        return (0, self.top) if self.is_single else (np.arange(self.n_rows), self.top)

    @property
    def tops(self) -> Indices:
        """The column of each row's largest logit, (n,)."""
        return np.array([self.top]) if self.is_single else self.top

    @property
    def d(self) -> Floats:
        """The gaps to the top of each row."""
        if self._d is None:
            self._d = np.subtract(self.z, self.peak, out=self._room_d)
            if not self.bounded:  # np.maximum takes three times as long as np.clip
                np.clip(self._d, LOWEST[self.z.itemsize], 0.0, out=self._d)
        return self._d

    def _working(self, x: Any) -> Any:
        """Return a float, or a column, so that its products with the logits are of their type."""
        if isinstance(x, float):
            return float(x)  # not a number of NumPy, which would change the type
        return x.item() if x.size == 1 else x.astype(self.z.dtype, copy=False)

    def _widened(self, x: Any) -> Any:
        return float(x) if self.is_single else x.astype(np.float64)

    def _sum(self, x: Floats) -> Any:
        """Return the row sums of a buffer, or a new array for a single row, in its own type.

        The linear algebra library would be slightly faster, but its bits depend on the other rows, and its
        threads belong to the whole process.
        """
        if self.n_classes >= FEW_CLASSES:
            sums = np.einsum("ij->i", several(x))[: len(x), None]
        elif len(x) == 1:  # in the same order: a plain sum of adjacent numbers would add them in pairs
            sums = np.add.accumulate(x, axis=1)[:, -1:]
        else:
            sums = np.add.reduce(x, axis=1)[:, None]  # class by class, for all rows at once
        return sums[0, 0] if self.is_single else sums

    def _dot(self, e: Floats, d: Floats) -> Any:
        """Return the row sums of e d; of few classes, e is overwritten by the products."""
        if self.n_classes < FEW_CLASSES:
            e *= d
            return self._sum(e)
        products = np.einsum("ij,ij->i", several(e), several(d))
        return products[0] if self.is_single else products[:, None]

    def _exponentials(self, gaps: Floats, beta: Any) -> Floats:
        e: Floats = np.multiply(gaps, self._working(beta), out=self._room_e)
        return np.exp(e, out=e)

    def _sums(self, beta: Any) -> tuple[Any, Any]:
        """Return r and mu, in float64."""
        d = self.d
        e = self._exponentials(d, beta)
        e[self._at_top] = 0
        r = self._sum(e)
        mu = self._dot(e, d) / (self.z.dtype.type(1) + r)
        return self._widened(r), self._widened(mu)

    def moments(
        self, beta: Any, *, variance: bool, gap_cache: GapCache | None = None, start: int = 0
    ) -> tuple[Any, Any, Any]:
        """Return r, mu and, with `variance`, v, in the working type; gaps are kept under the row `start`."""
        gaps = None if gap_cache is None else gap_cache.get(start)
        if gaps is None:
            keeps = gap_cache is not None
            room = new_buffer(self.n_rows, self.n_classes, self.z.dtype) if keeps else self._room_d
            gaps = np.subtract(self.z, self.peak, out=room)
            np.maximum(gaps, LOWEST[self.z.itemsize], out=gaps)
            # The top is treated like a masked class, so that its exponential is 0 too.
            gaps[self._at_top] = LOWEST[self.z.itemsize]
            if gap_cache is not None:
                gap_cache[start] = gaps
        e = self._exponentials(gaps, beta)
        r = self._sum(e)
        s = self.z.dtype.type(1) + r
        mu = self._dot(e, gaps) / s
        if not variance:
            return r, mu, None
        if self.n_classes >= FEW_CLASSES:
            e *= gaps
        return r, mu, np.maximum(self._dot(e, gaps) / s - mu * mu, 0)

    def log_sum(self, beta: float) -> Any:
        """Return log s, the negative log-probability of the top class."""
        if beta not in self._log_sums:
            self._log_sums[beta] = self.ops.log1p(self._sums(beta)[0])
        return self._log_sums[beta]

    def log_entropy(self) -> Any:
        """Return log H; -inf if only one class is possible."""
        r, mu = self._sums(1.0)
        confident = r < TINY[self.z.itemsize]
        entropy = self.ops.log(np.log1p(r) - mu)
        if not (confident if self.is_single else confident.any()):
            return entropy
        at = np.flatnonzero(confident)
        gaps = self.z[at].astype(np.float64) - (self.peak if self.is_single else self.peak[at])
        gaps[np.arange(len(at)), self.tops[at]] = -np.inf
        with np.errstate(invalid="ignore"):
            terms = gaps + np.log1p(-gaps)  # -inf + inf for the top and for masked classes
        np.nan_to_num(terms, copy=False, nan=-np.inf, neginf=-np.inf)
        exact = np.logaddexp.reduce(terms, axis=1)
        if self.is_single:
            return float(exact[0])
        entropy[at, 0] = exact
        return entropy

    def log_confidence(self) -> Any:
        """Return the logarithm of the largest probability."""
        return -np.log1p(self._sums(1.0)[0])

    def shape_at(self, beta: float) -> tuple[Any, Any, Any]:
        """Return the shape of beta z."""
        beta = float(beta)
        r, mu = self._sums(beta)
        log_s = self._log_sums[beta] = self.ops.log1p(r)
        third, mean = self._gaps_to_third_and_mean(IMPOSSIBLE / beta)
        return self.ops.log(log_s - beta * mu), beta * third, beta * mean

    def _gaps_to_third_and_mean(self, limit: float) -> tuple[Any, Any]:
        """Return the gaps from each row's largest logit to the third and to the mean of the possible classes.

        Without a third class, use the second; without a second, use 0.
        """
        d = self.d
        total = self._sum(d)
        mean = self._widened(total / self.z.dtype.type(self.n_classes))
        within = total >= -limit  # then so is every gap: none is larger than the sum of all
        all_possible = bool(within if self.is_single else within.all())
        if not all_possible:
            some = np.flatnonzero(~within)
            possible = d[some] >= -limit
            sums = np.ascontiguousarray(np.where(possible, d[some], 0)).sum(axis=1, keepdims=True)
            means = (sums / np.maximum(possible.sum(axis=1, keepdims=True), 1)).astype(self.z.dtype)
            if self.is_single:
                mean = means.item()
            else:
                mean[some] = means
        gaps = np.add(d, 0, out=self._room_e)  # a copy
        third: Any = np.zeros((self.n_rows, 1))
        at = self._at_top
        for _ in range(min(2, self.n_classes - 1)):
            gaps[at] = -np.inf
            if self.is_single:
                at = (0, gaps.argmax())
                gap = -gaps.item(at)
            elif self.n_classes < FEW_CLASSES:
                found = np.maximum.reduce(gaps, axis=1)[:, None]
                at, gap = (at[0], first_equal(gaps, found)), -found.astype(np.float64)
            else:
                at = (at[0], gaps.argmax(axis=1))
                gap = -gaps[at].astype(np.float64)[:, None]
            third = gap if all_possible else np.where(gap <= limit, gap, third)
        return third.item() if self.is_single and not all_possible else third, -mean

    def _unlimited_gaps(self) -> Floats:
        """Return the gaps to the top of each row, with -inf for a masked class."""
        return self.d if self.bounded else np.subtract(self.z, self.peak, out=self._room_e)

    def mean(self) -> Any:
        """Return the mean logit; it is not finite where a class is masked."""
        # Relative to the top, so that a constant added to the row loses no digits.
        gaps = self._unlimited_gaps()
        return self._widened(self._sum(gaps) / self.z.dtype.type(self.n_classes)) + self.peak

    def topk(self, k: int) -> Matrix:
        """Return the k largest logits minus the row's mean, in descending order; NaN if a class is masked."""
        gaps = self._unlimited_gaps()
        mean = self._sum(gaps) / self.z.dtype.type(self.n_classes)
        part = gaps.copy(order="K")
        part.partition(self.n_classes - k, axis=1)
        part = part[:, self.n_classes - k :]
        part.sort(axis=1)
        largest = (part[:, ::-1] - mean).astype(np.float64)
        if not self.bounded:
            largest[~np.isfinite(largest).all(axis=1)] = np.nan
        return largest

    def project(self, weights: Vector) -> Any:
        """Return (z - mean z) . weights; NaN if a class is masked."""
        # (z - mean z) . w = (z - max z) . (w - mean w): no mean is needed, and an offset loses no digits.
        centred = (weights - np.add.reduce(weights) / weights.size).astype(self.z.dtype)
        gaps = self._unlimited_gaps()
        projected = row_products(gaps, centred).astype(np.float64)
        if not self.bounded:
            projected[~np.isfinite(projected)] = np.nan
        return projected.item() if self.is_single else projected[:, None]

    def _softmax(self, beta: Any, out: Floats | None) -> Floats:
        # The exponential of a masked class is 0 without the finite gap that other sums need.
        gaps = np.subtract(self.z, self.peak, out=self._room_e) if self._d is None else self._d
        e = self._exponentials(gaps, beta)
        # Without an order, an array in class-major order is written in place without going across it.
        return np.multiply(e, self.z.dtype.type(1) / self._sum(e), out=out, order="C" if out is None else "K")

    def divide(self, temperature: Matrix | float) -> Floats:
        """Return softmax(z / T), or z / T."""
        beta = 1 / temperature
        if self.log:
            return np.multiply(self.z, self._working(beta), out=self.out)
        return self._softmax(beta, self.out)

    def mixture(self, betas: Sequence[Matrix | float], weights: Vector) -> Floats:
        """Return sum_j w_j softmax(beta_j z), or its logarithm."""
        result, number = np.empty_like(self.z) if self.out is None else self.out, self.z.dtype.type
        result[:] = -np.inf if self.log else 0
        if self.log:  # accurate even where the probabilities underflow
            gaps = self.d if self.bounded else self.z - self.peak
            for beta, weight in zip(betas, weights, strict=True):
                if weight > 0:
                    shift = np.log(weight) - np.log1p(self._sums(beta)[0])
                    np.logaddexp(result, gaps * self._working(beta) + self._working(shift), out=result)
            return result
        part = np.empty_like(result)
        for beta, weight in zip(betas, weights, strict=True):
            if weight > 0:
                self._softmax(beta, part)
                part *= number(weight)
                result += part
        return np.minimum(result, 1, out=result)  # rounded weights can sum to more than 1

    def mapped_mixture(
        self,
        reference: float,
        knots: Vector,
        slopes: Vector,
        scales: Sequence[Matrix | float],
        weights: Sequence[float],
        uniform: float | None = None,
    ) -> Floats:
        """Return sum_j w_j softmax(-scale_j map(-log softmax(z / T0))) + uniform, or its logarithm."""
        beta, table = 1 / float(reference), MapTable.of(knots, slopes, self.z.dtype)
        log_s, d = self._working(self.log_sum(beta)), self.d
        room = np.empty_like(d) if self._room_e is None else self._room_e
        gaps = mapped_gaps(d, self._at_top, log_s, beta, table, room)
        columns = [self._working(scale) for scale in scales]
        # A NaN is not above -inf either, and its row raises an error later.
        masked = None if self.bounded or self.z.min(initial=np.inf) > -np.inf else self.z == -np.inf
        if not uniform:
            mix = self._log_mixed if self.log else self._mixed
            mixture = mix(gaps, columns, weights, room)
            if masked is not None and self.log:
                mixture[masked] = -np.inf
            # Rounded weights can sum to more than 1.
            mixture[self._at_top] = np.minimum(mixture[self._at_top], 0 if self.log else 1)
        else:
            possible = self.n_classes if masked is None else np.sum(~masked, axis=1, keepdims=True)
            mixture = self._mixed(gaps, columns, weights, room)
            mixture += np.divide(uniform, possible).astype(self.z.dtype)
            if masked is not None:
                mixture[masked] = 0
            mixture = self._log_of(mixture) if self.log else mixture
        if self.out is None:
            return np.ascontiguousarray(mixture)
        self.out[:] = mixture
        return self.out

    def _mixed(
        self, gaps: Floats, scales: Sequence[Floats | float], weights: Sequence[float], room: Floats
    ) -> Floats:
        """Return sum_j w_j softmax(scale_j gaps)."""
        number, total = self.z.dtype.type, np.zeros_like(gaps)
        for scale, weight in zip(scales, weights, strict=True):
            part = np.multiply(gaps, scale, out=room)
            np.exp(part, out=part)
            part *= number(weight) / self._sum(part)
            total += part
        return total

    def _log_mixed(
        self, gaps: Floats, scales: Sequence[Floats | float], weights: Sequence[float], room: Floats
    ) -> Floats:
        """Return the logarithm of sum_j w_j softmax(scale_j gaps), accurate where probabilities underflow."""
        number, total = self.z.dtype.type, np.full_like(gaps, -np.inf)
        for scale, weight in zip(scales, weights, strict=True):
            part = gaps * scale
            part += np.log(number(weight) / self._sum(np.exp(part, out=room)))
            np.logaddexp(total, part, out=total)
        return total

    def _log_of(self, probs: Floats) -> Floats:
        """Return the logarithm; nothing cancels, even for a top class that is almost certain."""
        top = probs[self._at_top]
        probs[self._at_top] = 0
        others = self._sum(probs)
        rest = np.log1p(-np.minimum(others if self.is_single else others[:, 0], 1))
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(probs, out=probs)
            logs[self._at_top] = np.where(top > ALMOST_CERTAIN, rest, np.log(top))
        return logs

    def shift_classes(self, output: Floats, log_ratio: Vector) -> Floats:
        """Return probabilities, or log-probabilities, under new class frequencies, in place."""
        shift_outputs(output, log_ratio, log=self.log)
        return output

    def class_biases(
        self,
        output: Floats,
        reference: float,
        weights: Vector,
        betas: Vector,
        biases: Matrix,
        interactions: AnyArray | None,
    ) -> Floats:
        """Return (1 - sum_j w_j) p + sum_j w_j softmax(beta_j l_j + b_j + M_j x_j), or its log, in place."""
        with np.errstate(all="ignore"):
            inputs = [output.copy() if self.log else np.log(output)]
            if weights[ON_LOGITS_FROM:].any():
                inputs.append(self.floored_log_probs(1 / float(reference)))
            parts = []
            for j in np.flatnonzero(weights):
                matrix = None if interactions is None or j == 0 else interactions[j - 1]
                log_probs = inputs[int(j >= ON_LOGITS_FROM)]
                offsets = Offsets(float(betas[j]), biases[j], matrix)
                parts.append((float(weights[j]), biased(log_probs, offsets)))
            mix(output, parts, log=self.log)
        return output

    def floored_log_probs(self, beta: float) -> Floats:
        """Return log softmax(beta z), not below the floor; -inf where a class is impossible."""
        scaled = np.multiply(self.d, self._working(beta), order="C")  # sums depend on the layout
        floored = np.maximum(scaled - self._working(self.log_sum(beta)), self.z.dtype.type(LOG_PROB_FLOOR))
        return np.where(scaled > -IMPOSSIBLE, floored, self.z.dtype.type(-np.inf))


def first_equal(x: Floats, value: Any) -> Indices:
    """Return the first of few columns where x is equal to the value, or 0: by vector loops, unlike argmax."""
    n_columns = x.shape[1]
    places = np.equal(x, value).view(np.uint8)
    places *= np.arange(n_columns, 0, -1, dtype=np.uint8)
    found: Indices = n_columns - np.maximum.reduce(places, axis=1).astype(np.intp)
    found[found == n_columns] = 0
    return found


def kernels_of_size(size: int) -> AbstractContextManager[None]:
    """Use the kernels of an array of `size` numbers inside the context, to read parts of that array."""
    return setting(_size, size)


def block_type(size: int, cost: int = 1) -> type[RowBlock]:
    """Return the blocks for an array of `size` numbers; "numpy" or "compiled" in TEMPERANCE_KERNEL overrides.

    They compute with NumPy, or with the compiled loops of the extra `fast`. `cost` is the cost of a pass,
    relative to a usual one.
    """
    chosen = os.environ.get("TEMPERANCE_KERNEL")
    if chosen is None:
        large = cost * (_size.get() or size) >= COMPILED_FROM
        chosen = "compiled" if large and find_spec("numba") else "numpy"
    if chosen != "compiled":
        return RowBlock
    from temperance.core.compiled import CompiledBlock  # which imports Numba

    return CompiledBlock


def map_rows(
    values: Floats,
    function: Callable[[RowBlock], Any],
    *,
    log: bool = False,
    block: type[RowBlock] | None = None,
    located: tuple[Indices, Floats] | None = None,
) -> tuple[AnyArray, Floats]:
    """Apply a function of rows to each block, in one pass; it gives numbers, or an array, per row.

    Return the results, and each row's largest logit: NaN if the row has a NaN, -inf if all its classes are
    masked.
    """
    n_rows, n_classes = values.shape
    block = block or block_type(n_rows * n_classes)
    peak = np.empty(n_rows, blocks.working_dtype(values))
    # No rows show the shape and the type of the result.
    known = None if located is None else (located[0][:0], located[1][:0])
    sample = np.asarray(function(block(np.empty((0, n_classes), peak.dtype), log=log, located=known)))
    is_output = sample.shape[1:] == (n_classes,)
    by_class = is_output and blocks.is_class_major(values)
    result = np.empty((n_rows, *sample.shape[1:]), sample.dtype, order="F" if by_class else "C")

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> None:
        known = None if located is None else (located[0][i:j], located[1][i:j])
        rows = block(z, scratch, log=log, out=result[i:j] if is_output else None, located=known)
        found = function(rows)
        if found is not rows.out:
            result[i:j] = found
        peak[i:j] = rows.peak if rows.is_single else rows.peak[:, 0]

    blocks.for_each_block(values, work, block.enlarged)
    return result, peak
