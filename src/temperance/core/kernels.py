"""One block of rows, in NumPy: what the whole family needs from the logits.

For a row z with inverse temperature beta = 1/T, its top class t, m = max z and d = z - m:

    r  = sum_{k != t} exp(beta d_k)        s = 1 + r        log s = log1p(r)
    mu = sum d exp(beta d) / s             v = sum d^2 exp(beta d) / s - mu^2

The top entry is left out of r, so nothing cancels when a row is confident. A masked class (-inf) gets a
finite d whose square does not overflow and whose exponential is 0: it adds nothing to any sum.
`compiled` holds the same functions as loops; both agree to 1e-6.
"""

from __future__ import annotations

import numpy as np

from temperance.core.arrays import Floats, Indices
from temperance.core.blocks import Scratch

LOWEST = {4: -1e18, 8: -1e150}  # stands for -inf, by item size; its square is finite


def locate(z: Floats, top: Indices, peak: Floats) -> None:
    """Write each row's top class and its logit. A NaN wins, so the peak shows it."""
    np.argmax(z, axis=1, out=top)
    peak[:] = z[np.arange(len(z)), top]


def _exponentials(z: Floats, peak: Floats, beta: Floats, scratch: Scratch) -> tuple[Floats, Floats]:
    """Return d = z - m and e = exp(beta d), in the scratch."""
    d, e = scratch.d[: len(z)], scratch.e[: len(z)]
    np.subtract(z, peak[:, None], out=d)
    np.maximum(d, LOWEST[d.itemsize], out=d)
    np.multiply(d, beta[:, None], out=e)
    np.exp(e, out=e)
    return d, e


def moments(
    z: Floats, top: Indices, peak: Floats, beta: Floats, r: Floats, mu: Floats, v: Floats, scratch: Scratch
) -> None:
    """Write r, mu and v of each row at its inverse temperature."""
    d, e = _exponentials(z, peak, beta, scratch)
    e[np.arange(len(z)), top] = 0
    r[:] = scratch.products(scratch.e, len(z))
    np.multiply(e, d, out=e)
    mu[:] = scratch.products(scratch.e, len(z))
    np.multiply(e, d, out=e)
    v[:] = scratch.products(scratch.e, len(z))
    s = 1 + r
    mu /= s
    v /= s
    v -= mu * mu
    np.maximum(v, 0, out=v)


def softmax(z: Floats, top: Indices, peak: Floats, beta: Floats, out: Floats, scratch: Scratch) -> None:
    """Write the probabilities softmax(beta z)."""
    _, e = _exponentials(z, peak, beta, scratch)
    np.multiply(e, (1 / scratch.products(scratch.e, len(z)))[:, None], out=out)
