"""Quantiles of weighted numbers: by their definition, and the same from parts as from all at once."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temperance.core import quantiles as module
from temperance.core.quantiles import Sketch, make_brackets, quantiles, resolve, values_in_brackets

SHARES = np.array([0.05, 0.25, 1 / 3, 0.5, 0.8, 0.95])


def by_definition(values, weights, share):
    """Return the smallest number with at least the share of the weight up to it, and the next larger."""
    counted = np.unique(values[weights > 0])
    enough = [v for v in counted if weights[values <= v].sum() >= share * weights.sum() * (1 - 1e-12)]
    return enough[0], next((v for v in counted if v > enough[0]), np.nan)


def from_parts(values, weights, cuts, shares=SHARES):
    """Return the quantiles as parts of the numbers give them, and how many numbers were looked at twice."""
    parts = np.split(np.arange(len(values)), cuts)
    some = [(values[part], None if weights is None else weights[part]) for part in parts]
    brackets = make_brackets([Sketch.of(*part) for part in some], shares)
    if brackets.found is not None:
        return brackets.found, 0
    inside = [values_in_brackets(*part, brackets) for part in some]
    return resolve(inside, brackets), sum(len(values) for values, *_ in inside)


numbers = st.lists(
    st.tuples(st.integers(-20, 20), st.sampled_from([0.0, 0.25, 1.0, 3.0])), min_size=1, max_size=60
)


@given(numbers, st.lists(st.integers(0, 60), max_size=4), st.sampled_from([2, 3, 7, 4096]))
@settings(deadline=None)
def test_quantiles_are_by_definition_and_parts_give_the_same(drawn, cuts, points):
    values, weights = np.array(drawn, float).T
    weights[0] = 1.0  # at least one weight must be positive
    want = np.array([by_definition(values, weights, share) for share in SHARES]).T
    whole = quantiles(values, weights, SHARES)
    np.testing.assert_array_equal([whole.values, whole.following], want)
    ones, none = (quantiles(values, equal, SHARES).values for equal in (np.ones(len(values)), None))
    np.testing.assert_array_equal(ones, none)
    before, module.POINTS = module.POINTS, points
    try:
        found, _ = from_parts(values, weights, sorted(cuts))
    finally:
        module.POINTS = before
    np.testing.assert_array_equal([found.values, found.following], want)


@pytest.mark.parametrize("points", [2, 3, 5, 4096])
def test_the_order_in_which_weights_are_added_decides_nothing(points, monkeypatch):
    # Tenths are no binary numbers: their sums differ in the last digit, and many quantiles end at a sum.
    monkeypatch.setattr(module, "POINTS", points)
    rng = np.random.default_rng(2)
    for _ in range(300):
        size = int(rng.integers(5, 30))
        values, tenths = rng.integers(0, 15, size).astype(float), rng.integers(1, 4, size)
        tenths[0] += -tenths.sum() % 10  # the shares below are then sums of tenths
        total = int(tenths.sum())
        want = []
        for share in range(1, 10):
            enough = [
                v for v in np.unique(values) if int(tenths[values <= v].sum()) >= Fraction(share, 10) * total
            ]
            want.append((enough[0], min(values[values > enough[0]], default=np.nan)))
        cuts = np.sort(rng.integers(0, size, 3))
        found, _ = from_parts(values, tenths / 10, cuts, np.arange(1, 10) / 10)
        np.testing.assert_array_equal(np.column_stack([found.values, found.following]), want)


def test_few_of_many_numbers_are_looked_at_twice(monkeypatch):
    monkeypatch.setattr(module, "POINTS", 500)
    values = np.random.default_rng(0).lognormal(size=100_000)
    found, looked_at = from_parts(values, None, [10_000, 10_007, 60_000])
    whole = quantiles(values, None, SHARES)
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.following, whole.following)
    assert 0 < looked_at < 5000


def test_without_any_weight_there_is_no_quantile():
    for found in (quantiles(np.ones(3), np.zeros(3), SHARES), from_parts(np.ones(3), np.zeros(3), [1])[0]):
        assert np.isnan(found.values).all()
        assert np.isnan(found.following).all()


def test_many_parts_take_memory_for_their_sketches_and_little_more():
    rng = np.random.default_rng(1)
    sketches = [Sketch.of(rng.normal(size=5000), None) for _ in range(100)]
    tracemalloc.start()
    make_brackets(sketches, SHARES)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15 * sum(sketch.values.nbytes for sketch in sketches)
