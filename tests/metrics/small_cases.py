"""Random cases of few rows, with ties, zeros and weights, as floats and as exact fractions."""

from fractions import Fraction

import numpy as np


def draw_cases(seed, number):
    """Return cases of few rows whose probabilities are sixteenths, with weights of quarters, 0 among them."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        n_rows, n_classes = rng.integers(1, 9), rng.integers(2, 5)
        sixteenths = rng.multinomial(16, rng.dirichlet(np.full(n_classes, 0.5)), size=n_rows)
        if rng.random() < 0.5:
            sixteenths = sixteenths[rng.integers(0, max(1, n_rows // 2), n_rows)]  # rows that are the same
        labels, quarters = rng.integers(0, n_classes, n_rows), rng.integers(0, 8, n_rows)
        quarters[rng.integers(n_rows)] = 4
        yield sixteenths, labels, quarters


def exact_rows(sixteenths, labels, quarters):
    """Return (probabilities, label, weight) of each row with weight, as fractions."""
    rows = zip(sixteenths.tolist(), labels.tolist(), quarters.tolist(), strict=True)
    return [([Fraction(q, 16) for q in p], y, Fraction(w, 4)) for p, y, w in rows if w]


def arguments(sixteenths, labels, quarters, dtype=np.float64):
    """Return the arguments of a metric."""
    return ((sixteenths / 16).astype(dtype), labels), {"sample_weight": quarters / 4}
