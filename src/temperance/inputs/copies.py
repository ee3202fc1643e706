"""Rows that are copies of one row, such as after oversampling, and not independent.

Rows of equal scores can be different rows: votes, stated confidences and rounded scores have few values.
Copies have equal labels too, and this tells them apart. Let a set be the rows of equal scores, n_t of
them. If they are independent, two of them are both correct, or both wrong, with probability
pi_t^2 + (1 - pi_t)^2, where pi_t is the accuracy of rows with such scores. So of n_t / 2 pairs from each set

    expected   mu = sum_t n_t / 2 (2 pi_t (1 - pi_t))
    found       D = sum_t n_t / 2 (share of the pairs of the set whose labels differ)

differ. Rows are copies if P(Poisson(mu) <= D) < 0.001 and D <= mu / 2. The number of disjoint pairs that
differ is less spread than a Poisson variable, and D, a mean over ways to form pairs, even less. The second
condition is about pi_t, which is not exactly known.

pi_t must not be the confidence: of a forest, rows with 70% of the votes can be 95% correct, and their labels
would agree too often. Nor is it the accuracy of the set alone, which is 0 or 1 for copies. It is the isotonic
regression of being correct on the confidence, per predicted class (classes with few sets share one). So
scores can be off by any increasing function, and a value of a score with many rows keeps its own accuracy,
but a copy has its neighbours' accuracy. `benchmarks/copies_and_weights.py` simulates all of this.

Rows that are nearly all correct cannot show it: of 100 rows twice it shows if about one in seven is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.blocks import read_blocks
from temperance.errors import InputWarning, Remedy, warn_user

MAX_P_VALUE = 1e-3
MAX_RATIO = 0.5  # of the pairs that differ to those expected
MIN_SETS = 20  # of a predicted class with an accuracy of its own
EXAMINED_ROWS, EXAMINED_SCORES = (1 << 12, 1 << 17), 1 << 20  # at least, at most; and so many scores
_FIRST_COLUMNS = 4  # that rule out most ties
_EXACT = 64  # bits


def find_copies(
    values: NDArray[Any], labels: Indices, confidence: Callable[[Floats], Vector]
) -> NDArray[np.intp] | None:
    """Return the number of each row's set of copies, and warn of them; None if rows are not copies.

    `confidence` gives the largest probability of each row of `values`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> y = (rng.uniform(size=200) < p).astype(int)
    >>> scores = np.stack([1 - p, p], axis=1)
    >>> largest = lambda probs: probs.max(axis=1)
    >>> find_copies(scores.round(1), y, largest) is None
    True
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = find_copies(np.repeat(scores, 2, axis=0), np.repeat(y, 2), largest)
    >>> found[:6].tolist()
    [0, 0, 1, 1, 2, 2]
    """
    n_rows, n_classes = values.shape
    columns = np.unique(np.linspace(0, n_classes - 1, _FIRST_COLUMNS).astype(np.intp))
    first = row_prints(values[:, columns])
    # Copies have equal prints, so all rows of a set are examined, or none.
    step = -(-n_rows // int(np.clip(EXAMINED_SCORES // n_classes, *EXAMINED_ROWS)))
    some = np.flatnonzero(first % np.uint64(step) == 0)
    if not len(some) or not _has_ties(first[some]):
        return None
    examined = values[some]
    found = np.unique(row_prints(examined), return_inverse=True)[1]
    with np.errstate(all="ignore"):  # whether scores are finite is checked elsewhere
        sure = np.nan_to_num(confidence(examined))
    if not are_copies(found, labels[some], examined.argmax(axis=1), sure):
        return None
    _, begin, number = np.unique(row_prints(values), return_index=True, return_inverse=True)
    fact = (
        f"rows must be different ones, or have groups; found {len(begin):,} different rows among {n_rows:,}. "
        "They are copies, since labels of equal rows agree more often than chance allows: a fit counts each "
        "of them, intervals, tests and folds count one."
    )
    advice = "Drop the copies. If they are different rows, pass groups, one id per row."
    warn_user(InputWarning(fact, advice, Remedy("groups", (None,))))
    place = np.empty(len(begin), np.intp)
    place[np.argsort(begin)] = np.arange(len(begin))
    numbered: NDArray[np.intp] = place[number]
    return numbered


def are_copies(found: Indices, labels: Indices, top: Indices, confidence: Vector) -> bool:
    """Say whether rows of a set have equal labels more often than their accuracy allows.

    `found` has the set of each row, numbered from 0, `top` its predicted class.
    """
    from scipy.special import pdtr

    size = np.bincount(found)
    if size.max() < 2:
        return False
    correct = np.bincount(found, top == labels)
    _, first = np.unique(found, return_index=True)
    accuracy = _isotonic(correct / size, size, top[first], confidence[first])
    _, (of_set, _), alike = _counts(found, labels)
    pairs = size * (size - 1)
    equal = np.bincount(of_set, alike * (alike - 1), len(size))
    drawn = np.where(size > 1, size / 2, 0.0)
    expected = float(drawn @ (2 * accuracy * (1 - accuracy)))
    differ = float(drawn @ (1 - np.divide(equal, pairs, out=np.ones(len(size)), where=pairs > 0)))
    return differ <= MAX_RATIO * expected and float(pdtr(differ, expected)) < MAX_P_VALUE


def _counts(found: Indices, labels: Indices) -> tuple[Indices, tuple[Indices, Indices], Indices]:
    """Return the different pairs of set and label, and how many rows have each."""
    n_labels = int(labels.max()) + 1
    pairs, alike = np.unique(found * n_labels + labels, return_counts=True)
    return pairs, np.divmod(pairs, n_labels), alike


def _isotonic(correct: Vector, size: Indices, top: Indices, confidence: Vector) -> Vector:
    """Return the accuracy of each set: the isotonic regression on the confidence, by predicted class.

    It rises or falls, whichever is closer, since the columns can be mixed up.
    """
    from sklearn.isotonic import isotonic_regression

    accuracy = np.empty(len(size))
    own = np.bincount(top)[top] >= MIN_SETS
    by = np.where(own, top, -1)
    for one in np.unique(by):
        here = np.flatnonzero(by == one)
        _, level = np.unique(confidence[here], return_inverse=True)
        weight = np.bincount(level, size[here])
        mean = np.bincount(level, size[here] * correct[here]) / weight
        rising, falling = (
            isotonic_regression(mean, sample_weight=weight, increasing=up) for up in (True, False)
        )
        is_rising = weight @ (mean - rising) ** 2 <= weight @ (mean - falling) ** 2
        accuracy[here] = (rising if is_rising else falling)[level]
    return accuracy


def _has_ties(prints: NDArray[np.uint64]) -> bool:
    ordered = np.sort(prints)
    return bool((ordered[1:] == ordered[:-1]).any())


def row_prints(values: NDArray[Any], n_bits: int = _EXACT) -> NDArray[np.uint64]:
    """Return one number per row, which depends only on its values, perhaps rounded to so many bits.

    Equal numbers by chance are rare.
    """
    factors = np.random.default_rng(0).integers(1 << 63, size=values.shape[1], dtype=np.uint64) * 2 + 1
    prints = np.empty(len(values), np.uint64)
    for block, start, end, _ in read_blocks(values):
        wide = block.astype(np.float64)
        if n_bits < _EXACT:
            mantissa, exponent = np.frexp(wide)
            wide = np.ldexp(np.rint(np.ldexp(mantissa, n_bits)), exponent - n_bits)
        bits = (wide + 0.0).view(np.uint64)  # -0.0 + 0.0 = 0.0
        bits ^= bits >> np.uint64(29)
        prints[start:end] = bits @ factors
    return prints
