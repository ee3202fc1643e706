"""The logarithm of a row's entropy, without cancellation or underflow.

At beta = 1 the entropy is H = log s - mu = log1p(r) - mu, a sum of two nonnegative terms. Where r
underflows, with d the gaps to the top logit and the top left out:

    log H = logsumexp_k (d_k + log1p(-d_k)),       with relative error r

since there log1p(r) = r and mu = sum d exp(d), both to first order in r.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats

# Below this, by item size, r may have lost digits or terms to underflow.
TINY = {4: 1e-30, 8: 1e-290}


def log_entropy(z: Floats, top: NDArray[np.intp], peak: Floats, r: Floats, mu: Floats) -> NDArray[np.float64]:
    """Return log H of each row of a block, from r and mu at beta = 1; -inf if only one class is possible."""
    entropy = np.log1p(r, dtype=np.float64) - mu
    if np.minimum.reduce(r, initial=1.0) >= TINY[z.itemsize]:
        return np.log(entropy)
    with np.errstate(divide="ignore"):
        result = np.log(entropy)
    confident = np.flatnonzero(r < TINY[z.itemsize])
    result[confident] = _of_confident_rows(z[confident], top[confident], peak[confident])
    return result


def _of_confident_rows(z: Floats, top: NDArray[np.intp], peak: Floats) -> NDArray[np.float64]:
    gaps = z.astype(np.float64) - peak[:, None]
    gaps[np.arange(len(z)), top] = -np.inf
    with np.errstate(invalid="ignore"):
        terms = gaps + np.log1p(-gaps)  # -inf + inf for the top and for masked classes
    np.nan_to_num(terms, copy=False, nan=-np.inf, neginf=-np.inf)
    return np.logaddexp.reduce(terms, axis=1)
