"""A plain, slow and independent implementation of what the core computes, from the definitions.

Nothing here is shared with the package. Sums run row by row in the widest type that NumPy has, a masked
class is dropped before anything is computed, and the entropy is that of mpmath with 60 digits.
"""

from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np

DIGITS = 60


class ReferenceMoments(NamedTuple):
    """r, mu and v of each row, and the scale of v: the mean of d^2, of which v is a difference."""

    r: np.ndarray
    mu: np.ndarray
    v: np.ndarray
    square: np.ndarray


def moments(z: np.ndarray, beta: np.ndarray | float) -> ReferenceMoments:
    """Return the moments of each row, one row at a time, masked classes dropped."""
    betas = np.broadcast_to(np.asarray(beta, np.longdouble), len(z))
    result = []
    for row, b in zip(np.asarray(z).astype(np.longdouble), betas, strict=True):
        d = np.sort(row[np.isfinite(row)] - row.max())
        e = np.exp(b * d)
        p = e / e.sum()
        mu = (p * d).sum()
        result.append((e[:-1].sum(), mu, (p * (d - mu) ** 2).sum(), (p * d * d).sum()))
    return ReferenceMoments(*np.array(result, np.float64).T)


def log_softmax(z: np.ndarray, beta: np.ndarray | float) -> np.ndarray:
    """Return log softmax(beta z) of each row, in float64."""
    x = np.asarray(z).astype(np.float64) * np.broadcast_to(beta, len(z))[:, None]
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def softmax(z: np.ndarray, beta: np.ndarray | float) -> np.ndarray:
    """Return softmax(beta z) of each row, in float64."""
    return np.exp(log_softmax(z, beta))


def log_entropy(row: np.ndarray) -> float:
    """Return log(-sum p log p) of a row with 60 digits and any exponent."""
    with mpmath.workdps(DIGITS):
        gaps = [mpmath.mpf(float(x)) - mpmath.mpf(float(row.max())) for x in row if np.isfinite(x)]
        gaps.remove(0)
        e = [mpmath.exp(d) for d in gaps]
        log_s = mpmath.log1p(mpmath.fsum(e))
        # p_k = exp(d_k) / s and -log p_k = log s - d_k; the top class has d = 0.
        terms = [w * (log_s - d) for w, d in zip(e, gaps, strict=True)]
        entropy = (log_s + mpmath.fsum(terms)) / mpmath.exp(log_s)
        return float(mpmath.log(entropy)) if entropy else -np.inf


def log_confidence(row: np.ndarray) -> float:
    """Return log max_k p_k of a row."""
    with mpmath.workdps(DIGITS):
        gaps = [mpmath.mpf(float(x)) - mpmath.mpf(float(row.max())) for x in row if np.isfinite(x)]
        gaps.remove(0)
        return float(-mpmath.log1p(mpmath.fsum([mpmath.exp(d) for d in gaps])))


def jacobian(f: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Return df/dtheta by central differences of order 4; the parameter is the last axis."""
    columns = []
    for j in range(len(theta)):
        h = np.zeros(len(theta))
        h[j] = step
        near = np.asarray(f(theta + h)) - np.asarray(f(theta - h))
        far = np.asarray(f(theta + 2 * h)) - np.asarray(f(theta - 2 * h))
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, axis=-1)


def draw_labels(log_probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a label for each row: the class that wins after Gumbel noise."""
    return np.argmax(log_probabilities + rng.gumbel(size=log_probabilities.shape), axis=1)


def draw(
    n_rows: int, n_classes: int, *, spread: float = 2.0, scale: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return logits and labels: the labels follow softmax(logits / scale)."""
    rng = np.random.default_rng(seed)
    z = spread * rng.normal(size=(n_rows, n_classes))
    return scale * z, draw_labels(z, rng)
