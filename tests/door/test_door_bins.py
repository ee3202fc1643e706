"""Bins of equal mass are what their definition says, on cases small enough to count by hand."""

from fractions import Fraction

import numpy as np
import pytest

from temperance.core.ece_loss import assign_bins
from temperance.metrics.bins import equal_mass_edges


def bins_of(confidence, bins, weight=None):
    confidence = np.asarray(confidence, float)
    weight = np.ones(len(confidence)) if weight is None else np.asarray(weight, float)
    return assign_bins(confidence, equal_mass_edges(confidence, weight, bins)).tolist()


@pytest.mark.parametrize(
    ("confidence", "bins", "wanted"),
    [
        ([0.2, 0.4, 0.6, 0.8], 2, [0, 0, 1, 1]),
        ([0.2, 0.4, 0.6], 2, [0, 0, 1]),  # the middle of the second is at 1/2 itself: it goes below
        ([0.2, 0.4, 0.6, 0.8, 0.9], 3, [0, 0, 1, 2, 2]),
        ([0.5, 0.5, 0.5], 2, [0, 0, 0]),  # one group, whose middle is at 1/2
        ([0.2, 0.5, 0.5, 0.5], 2, [0, 1, 1, 1]),  # the middle of the group is at 5/8
        ([0.5, 0.5, 0.5, 0.9], 2, [0, 0, 0, 1]),  # and at 3/8
        ([0.7], 4, [1]),
        ([0.6, 0.9], 4, [0, 2]),
    ],
)
def test_small_cases(confidence, bins, wanted):
    assert bins_of(confidence, bins) == wanted


def by_definition(confidence, weight, bins):
    """Return the bin of each confidence from the definition, in exact fractions."""
    total, middles, below = sum(weight), {}, 0
    for value in sorted(set(confidence)):
        mass = sum(w for c, w in zip(confidence, weight, strict=True) if c == value)
        middles[value] = Fraction(2 * below + mass, 2 * total)
        below += mass
    edges = [
        max((c for c, middle in middles.items() if middle <= Fraction(i, bins)), default=0)
        for i in range(1, bins)
    ]
    return [next((i for i, edge in enumerate(edges) if c <= edge), bins - 1) for c in confidence]


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 6, 10, 15])
def test_the_code_is_the_definition(bins):
    rng = np.random.default_rng(bins)
    for _ in range(60):
        confidence = (rng.integers(1, 8, rng.integers(1, 25)) / 8).tolist()
        weight = rng.integers(1, 4, len(confidence)).tolist()
        wanted = by_definition(confidence, weight, bins)
        assert bins_of(confidence, bins, weight) == wanted
        repeated = np.repeat(confidence, weight)
        assert bins_of(repeated, bins) == np.repeat(wanted, weight).tolist()
