"""The temperature with the lowest NLL, to about 15 digits: bracketed Newton steps in extended precision.

The mean NLL of softmax(z / T) is convex in beta = 1 / T. Its derivative is the mean of E[z] - z[label], where
E is the expectation under softmax(beta z), and its second derivative the mean variance of z. Nothing of
temperance is used.
"""

from __future__ import annotations

import numpy as np

ENTRIES_AT_ONCE = 2**20
DIGITS = 1e-15


def derivatives(
    logits: np.ndarray, labels: np.ndarray, beta: np.longdouble
) -> tuple[np.longdouble, np.longdouble]:
    """Return the first and second derivative in beta of the summed NLL."""
    first = second = np.longdouble(0)
    step = max(1, ENTRIES_AT_ONCE // logits.shape[1])
    for start in range(0, len(logits), step):
        z = logits[start : start + step].astype(np.longdouble)
        z -= z.max(axis=1, keepdims=True)
        weights = np.exp(beta * z)
        weights /= weights.sum(axis=1, keepdims=True)
        z[np.isneginf(z)] = 0  # an impossible class has weight 0
        mean = (weights * z).sum(axis=1)
        own = z[np.arange(len(z)), labels[start : start + step]]
        first += (mean - own).sum()
        second += (weights * (z - mean[:, None]) ** 2).sum()
    return first, second


def first_guess(logits: np.ndarray) -> float:
    """Return a temperature at which the logits differ by no more than 1."""
    finite = np.where(np.isfinite(logits), logits, logits.max(axis=1, keepdims=True))
    return float(np.ptp(finite, axis=1).max())


def best_temperature(logits: np.ndarray, labels: np.ndarray, guess: float | None = None) -> float:
    """Return the T at which the derivative is zero; a good guess saves passes.

    Raises
    ------
    ArithmeticError
        If the NLL has no minimum: all rows are correct, or classified worse than by chance.
    """
    low, high = np.longdouble(0), np.longdouble(np.inf)
    beta = 1 / np.longdouble(guess or first_guess(logits))
    for _ in range(200):
        slope, curvature = derivatives(logits, labels, beta)
        low, high = (low, beta) if slope > 0 else (beta, high)
        newton = beta - slope / curvature if curvature > 0 else low
        inside = low < newton < high
        following = newton if inside else (2 * beta if np.isinf(high) else (low + high) / 2)
        if abs(following - beta) <= DIGITS * beta:
            return float(1 / following)
        beta = following
    raise ArithmeticError("the NLL has no minimum at a finite temperature above zero")
