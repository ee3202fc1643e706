"""The sums of `row_block` and `kernels` as compiled loops over one block of rows, for large arrays.

Numba's own exp is a call per number. Here it is a polynomial, so that the compiler can use vector
instructions: exp(x) = 2^n exp(f) with n = round(x / ln 2) and |f| <= ln(2) / 2, for x <= 0. Adding and
subtracting 1.5 * 2^p, for a fraction of p bits, rounds to a whole number, whose bit pattern gives 2^n.

The compiler can reorder the sums (`reassoc`), but not the exponential, whose range reduction depends on the
order. Compiled code is cached on disk between processes.
"""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from temperance.core.kernels import FARTHEST
from temperance.core.row_block import RowBlock

PIECE = 1024  # number of classes that fit into the L1 cache


class _Format(NamedTuple):
    """A floating-point type, the polynomial degree it needs, and the x below which exp is set to 0."""

    real: Any
    integer: Any
    fraction_bits: int
    bias: int
    degree: int
    lowest: float  # below it the result would be subnormal


_FORMATS = {
    types.float32: _Format(np.float32, np.int32, fraction_bits=23, bias=127, degree=7, lowest=-87.0),
    types.float64: _Format(np.float64, np.int64, fraction_bits=52, bias=1023, degree=13, lowest=-708.0),
}


def exp(x: float) -> float:
    """Compute exp(x) for x <= 0, by plain arithmetic; 0 where the result would be subnormal."""
    raise NotImplementedError  # pragma: no cover  stands for the overload below, in compiled code


@overload(exp, jit_options={"fastmath": {"contract"}})
def _exp(x: Any) -> Any:
    real, integer, fraction_bits, bias, degree, lowest = _FORMATS[x]
    low, round_off, zero = real(lowest), real(1.5 * 2.0**fraction_bits), real(0)
    # ln 2 in two parts. The first has 17 bits, so its product with every possible n is exact.
    ln2_high, ln2_low = real(0.693145751953125), real(1.4286068203094172e-06)
    log2_e = real(1.4426950408889634)
    round_off_bits, shift, offset = round_off.view(integer), integer(fraction_bits), integer(bias)
    # Taylor coefficients: on |f| <= 0.35 the first omitted term is below the rounding error.
    coefficients = tuple(real(1 / factorial(i)) for i in range(degree, -1, -1))

    def polynomial(x: Any) -> Any:  # pragma: no cover  compiled
        y = max(x, low)
        rounded = y * log2_e + round_off
        n = rounded - round_off
        f = (y - n * ln2_high) - n * ln2_low
        value = coefficients[0]
        for c in coefficients[1:]:
            value = value * f + c
        exponent = (real(rounded).view(integer) - round_off_bits + offset) << shift
        return value * integer(exponent).view(real) if x >= low else zero

    return polynomial


@njit(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _sums(row: Any, peak: Any, beta: Any) -> Any:  # pragma: no cover  compiled
    zero = row.dtype.type(0)
    s0, s1, s2 = zero, zero, zero
    for k in range(len(row)):
        d = row[k] - peak
        e = exp(beta * d)
        # A masked class has d = -inf and e = 0, whose product is NaN.
        de = d * e if e > zero else zero
        dde = d * de if e > zero else zero
        s0 += e
        s1 += de
        s2 += dde
    return s0, s1, s2


@njit(nogil=True, cache=True)
def _moments(z: Any, top: Any, peak: Any, beta: Any, r: Any, mu: Any, v: Any) -> None:  # pragma: no cover
    for i in range(len(z)):
        left = _sums(z[i, : top[i]], peak[i], beta[i])
        right = _sums(z[i, top[i] + 1 :], peak[i], beta[i])
        r[i] = left[0] + right[0]
        s = z.dtype.type(1) + r[i]
        mu[i] = (left[1] + right[1]) / s
        v[i] = max((left[2] + right[2]) / s - mu[i] * mu[i], z.dtype.type(0))


@njit(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _softmax_row(row: Any, peak: Any, beta: Any, out: Any) -> None:  # pragma: no cover  compiled
    s = row.dtype.type(0)
    for k in range(len(row)):
        e = exp(beta * (row[k] - peak))
        out[k] = e
        s += e
    scale = row.dtype.type(1) / s
    for k in range(len(row)):
        out[k] *= scale


@njit(nogil=True, cache=True)
def _softmax(z: Any, peak: Any, beta: Any, out: Any) -> None:  # pragma: no cover  compiled
    for i in range(len(z)):
        _softmax_row(z[i], peak[i], beta[i], out[i])


@njit(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add_beyond(
    row: Any, peak: Any, log_s: Any, beta: Any, table: Any, scale: Any, at_top: Any, e: Any, p: Any, sums: Any
) -> None:  # pragma: no cover  compiled
    """Add up p, p x and p x^2 over the classes beyond each knot, where x is the excess of e over that knot.

    Classes are not sorted into segments: each loop does the same arithmetic for all of them.
    """
    knots, widths, slopes = table
    zero, farthest = row.dtype.type(0), row.dtype.type(FARTHEST)
    for k in range(len(row)):
        e[k] = min(log_s - beta * (row[k] - peak), farthest)
        p[k] = -at_top
    for j in range(len(knots)):
        knot, width, slope = knots[j], widths[j], slopes[j]
        for k in range(len(row)):
            p[k] += slope * min(max(e[k] - knot, zero), width)
    for k in range(len(row)):
        p[k] = exp(min(-scale * p[k], zero))
    for j in range(len(knots)):
        knot, s0, s1, s2 = knots[j], zero, zero, zero
        for k in range(len(row)):
            x = max(e[k] - knot, zero)
            px = p[k] * x
            s0 += p[k] if x > zero else zero
            s1 += px
            s2 += px * x
        sums[0, j] += s0
        sums[1, j] += s1
        sums[2, j] += s2


@njit(nogil=True, cache=True)
def _sums_beyond_knots(
    z: Any, top: Any, peak: Any, log_s: Any, beta: Any, table: Any, scale: Any, at_top: Any, sums: Any
) -> None:  # pragma: no cover
    e, p = np.empty(PIECE, z.dtype), np.empty(PIECE, z.dtype)
    for i in range(len(z)):
        sums[:, :, i] = 0
        for part in (z[i, : top[i]], z[i, top[i] + 1 :]):
            for k in range(0, len(part), PIECE):
                piece = part[k : k + PIECE]
                _add_beyond(piece, peak[i], log_s[i], beta, table, scale[i], at_top[i], e, p, sums[:, :, i])


def segment_sums(
    z: Any,
    top: Any,
    peak: Any,
    log_s: Any,
    beta: Any,
    table: Any,
    scale: Any,
    sums: Any,
    start: int,
    cache: None,
) -> None:
    """Write the sums of p, p r and p r^2 over each segment, (3, segments, rows)."""
    real = z.dtype.type
    widths = np.append(np.diff(table.knots), np.inf)
    segment = np.searchsorted(table.knots[1:], log_s, side="right")
    at_top = table.values[segment] + table.slopes[segment] * (log_s - table.knots[segment])
    parts = tuple(np.asarray(part, real) for part in (table.knots, widths, table.slopes))
    row = top, peak, log_s.astype(real), real(beta), parts, scale.astype(real), at_top.astype(real)
    _sums_beyond_knots(np.ascontiguousarray(z), *row, sums)
    # Beyond a segment, the excess over its upper knot is the excess over its lower knot minus the width.
    (p, q, r), closed = sums, widths[:-1, None]
    r[:-1] -= r[1:] + closed * (2 * q[1:] + closed * p[1:])
    q[:-1] -= q[1:] + closed * p[1:]
    p[:-1] -= p[1:]


class CompiledBlock(RowBlock):
    """Rows whose sums over classes are compiled loops."""

    segment_sums = staticmethod(segment_sums)  # type: ignore[assignment]
    new_segment_cache = staticmethod(lambda size: None)  # these loops sort no classes into segments
    segments_in_threads = True
    enlarged = 2  # these loops need no buffers, so more rows fit into the cache

    def __init__(self, z: Any, *given: Any, **named: Any) -> None:
        super().__init__(np.ascontiguousarray(z), *given, **named)  # the loops run along rows

    def _each(self, x: Any) -> Any:
        """Return a number of each row, (n,), in the working type."""
        column = np.empty((self.n_rows, 1), self.z.dtype)
        column[:] = x
        return column[:, 0]

    def moments(self, beta: Any, *, variance: bool, gap_cache: Any = None, start: int = 0) -> Any:
        """Return r, mu and v as columns."""
        r, mu, v = np.empty((3, self.n_rows), self.z.dtype)
        _moments(self.z, self.tops, self._each(self.peak), self._each(beta), r, mu, v)
        return r[:, None], mu[:, None], v[:, None]

    def _sums(self, beta: Any) -> tuple[Any, Any]:
        r, mu, _ = self.moments(beta, variance=False)
        return (r.item(), mu.item()) if self.is_single else (r.astype(np.float64), mu.astype(np.float64))

    def _softmax(self, beta: Any, out: Any) -> Any:
        out = np.empty_like(self.z) if out is None else out
        _softmax(self.z, self._each(self.peak), self._each(beta), out)
        return out
