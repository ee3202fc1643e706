"""Rows whose true probabilities are known, and what is wrong with the stated ones.

A classifier states probabilities, and nature draws labels with others. `draw("2%", "log-odds +0.4", n, rng)`
returns rows of two classes of which 2% are positive, and whose true log-odds are 0.4 higher than stated;
`draw(10, ...)` those of a classifier of 10 classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr, softmax

from temperance.metrics.predictions import check_rows

SCALES = {3: 1.8, 10: 2.5, 30: 3.0, 100: 3.5}  # standard deviation of the logits, by the number of classes
TWO = {
    "balanced": lambda n, rng: rng.normal(0, 1.8, n),
    "24%": lambda n, rng: rng.normal(-1.9, 1.9, n),
    "2%": lambda n, rng: rng.normal(-5.0, 1.5, n),
    "99.8% accurate": lambda n, rng: rng.choice([-1, 1], n) * np.abs(rng.normal(8, 2, n)),
    # Many of the votes of 20 trees are unanimous, and their probabilities 0 or 1.
    "votes of 20 trees": lambda n, rng: logit(np.round(20 * rng.beta(0.25, 0.6, n)) / 20),
    "weak": lambda n, rng: rng.normal(0, 0.3, n),
}

# From log-odds or logits x to those that are stated and those that are true.
CHANGES = {
    "calibrated": lambda x, rng: (x, x),
    "logits x 1.5": lambda x, rng: (1.5 * x, x),
    "logits x 0.67": lambda x, rng: (x / 1.5, x),
    "labels by chance": lambda x, rng: (x, np.zeros_like(x)),
}
CHANGES_OF_TWO = CHANGES | {
    "log-odds +0.4": lambda x, rng: (x, x + 0.4),
    "x 1.5 about the median": lambda x, rng: (np.median(x) + 1.5 * (x - np.median(x)), x),
    "mixture, +-0.8": lambda x, rng: (x, x + rng.choice([-0.8, 0.8], len(x))),
    "swapped columns": lambda x, rng: (-x, x),
}
CHANGES_OF_SEVERAL = CHANGES | {
    "99.5% accurate": lambda z, rng: 2 * (_accurate(z, rng),),
    "one class +0.7": lambda z, rng: (z, z + 0.7 * _first(z)),
    "all classes, +-0.5": lambda z, rng: (z, z + np.linspace(-0.5, 0.5, z.shape[1])),
    "mixture, +-1.2": lambda z, rng: (z, z + rng.choice([-1.2, 1.2], (len(z), 1)) * _first(z)),
    "columns moved by one": lambda z, rng: (np.roll(z, 1, axis=1), z),
    "two columns swapped": lambda z, rng: (z[:, [1, 0, *range(2, z.shape[1])]], z),
}


@dataclass(frozen=True, eq=False)
class World:
    """Rows: the probabilities that are stated, those that are true, and labels."""

    stated: np.ndarray
    truth: np.ndarray
    labels: np.ndarray

    def rows(self, **given):
        """Return the rows as the metrics take them."""
        return check_rows(self.stated, self.labels, **given)


def draw(kind, change, n, rng, groups=None):
    """Draw rows of a kind; rows of a group have similar labels, and with two classes similar log-odds."""
    if kind in TWO:
        x = TWO[kind](n, rng)
        if groups is not None:
            x = x + 0.8 * rng.normal(size=groups.max() + 1)[groups]
        stated, true = (two_columns(odds) for odds in CHANGES_OF_TWO[change](x, rng))
    else:
        z = rng.normal(0, SCALES[kind], (n, kind))
        stated, true = (softmax(logits, axis=1) for logits in CHANGES_OF_SEVERAL[change](z, rng))
    return World(stated, true, draw_labels(true, rng, groups))


def two_columns(log_odds):
    """Return the probabilities of both classes from the log-odds of the second."""
    return np.column_stack([expit(-log_odds), expit(log_odds)])


def draw_labels(probs, rng, groups=None, correlation=0.3):
    """Draw labels; those of a group are alike by a Gaussian copula."""
    uniform = rng.random(len(probs))
    if groups is not None:
        common, own = rng.normal(size=groups.max() + 1)[groups], rng.normal(size=len(probs))
        uniform = ndtr(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own)
    return (probs.cumsum(axis=1) < uniform[:, None]).sum(axis=1).clip(0, probs.shape[1] - 1)


def _first(z):
    return np.arange(z.shape[1]) == 0


def _accurate(z, rng):
    """Return logits of which one stands out."""
    z = z / SCALES[z.shape[1]]
    z[np.arange(len(z)), rng.integers(0, z.shape[1], len(z))] += rng.normal(9.5, 1.5, len(z))
    return z
