"""Cox's slope and intercept against a slow Newton iteration in long arithmetic, on small cases."""

import metrics_by_definition as definition
import mpmath
import pytest
from metrics_by_definition import real
from small_cases import arguments, draw_cases, exact_rows

from temperance import metrics

SMALLEST = mpmath.mpf(2) ** -53  # distance of a probability from 0 and 1
TINY = mpmath.mpf(10) ** -25


def scaled(events):
    """Return (log odds, outcome, weight), with weights that sum to the effective number of rows."""
    factor = sum(w for _, _, w in events) / sum(w**2 for _, _, w in events)
    return [(log_odds(real(c)), int(h), real(w * factor)) for c, h, w in events]


def log_odds(c):
    c = min(max(c, SMALLEST), 1 - SMALLEST)
    return mpmath.log(c) - mpmath.log(1 - c)


def log_likelihood(events, a, b):
    odds = ((a + b * x if h else -a - b * x, w) for x, h, w in events)
    return -mpmath.fsum(w * mpmath.log(1 + mpmath.exp(-o)) for o, w in odds)


def maximum(events, has_slope):
    """Return intercept, slope and their variances; without a slope it is 1, and has the variance 0."""
    a, b = (mpmath.mpf(0), mpmath.mpf(0)) if has_slope else (-events[0][0], mpmath.mpf(1))
    for _ in range(100):
        rates = [1 / (1 + mpmath.exp(-a - b * x)) for x, _, _ in events]
        ga = mpmath.fsum(w * (h - p) for (_, h, w), p in zip(events, rates, strict=True))
        gb = mpmath.fsum(w * (h - p) * x for (x, h, w), p in zip(events, rates, strict=True))
        faa, fab, fbb = (
            mpmath.fsum(w * p * (1 - p) * x**power for (x, _, w), p in zip(events, rates, strict=True))
            for power in (0, 1, 2)
        )
        if not has_slope:
            gb, fab, fbb = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(1)
        determinant = faa * fbb - fab**2
        da, db = (fbb * ga - fab * gb) / determinant, (faa * gb - fab * ga) / determinant
        if max(abs(da), abs(db)) < TINY:
            return a, b, fbb / determinant, (faa / determinant if has_slope else mpmath.mpf(0))
        while log_likelihood(events, a + da, b + db) < log_likelihood(events, a, b) - TINY:
            da, db = da / 2, db / 2
        a, b = a + da, b + db
    raise AssertionError("the reference must converge")


def exists(events):
    """Say whether the likelihood has a maximum: the odds of the two outcomes overlap, or all are equal."""
    zeros, ones = [x for x, h, _ in events if not h], [x for x, h, _ in events if h]
    if not zeros or not ones:
        return False
    everywhere_equal = len(set(zeros + ones)) == 1
    return everywhere_equal or (max(zeros) > min(ones) and max(ones) > min(zeros))


def supremum(events):
    """Return the limit of the log-likelihood where outcomes are separated: only touching rows are lost."""
    zeros, ones = {x for x, h, _ in events if not h}, {x for x, h, _ in events if h}
    total = mpmath.mpf(0)
    for x in zeros & ones:  # at most one, since the others are separated
        right = mpmath.fsum(w for z, h, w in events if z == x and h)
        wrong = mpmath.fsum(w for z, h, w in events if z == x and not h)
        total += right * mpmath.log(right / (right + wrong)) + wrong * mpmath.log(wrong / (right + wrong))
    return total


def check(found, events):
    null, has_slope = log_likelihood(events, 0, 1), len({x for x, _, _ in events}) > 1
    if not exists(events):
        assert "not identified" in found.words
        assert mpmath.isnan(found.slope.value)
        assert mpmath.isnan(found.intercept.value)
        assert found.statistic == pytest.approx(float(2 * (supremum(events) - null)), rel=1e-6, abs=1e-5)
        return
    a, b, variance_a, variance_b = maximum(events, has_slope)
    ratio = 2 * (log_likelihood(events, a, b) - null)
    assert found.statistic == pytest.approx(float(ratio), rel=1e-9, abs=1e-11)
    assert found.p_value == pytest.approx(
        float(mpmath.gammainc(1 if has_slope else 0.5, max(ratio, 0) / 2, regularized=True)), rel=1e-7
    )
    assert found.intercept.value == pytest.approx(float(a), rel=1e-11, abs=1e-12)
    assert found.intercept_error == pytest.approx(float(mpmath.sqrt(variance_a)), rel=1e-8)
    assert mpmath.isnan(found.slope.value) == (not has_slope)
    if has_slope:
        assert found.slope.value == pytest.approx(float(b), rel=1e-11, abs=1e-12)
        assert found.slope_error == pytest.approx(float(mpmath.sqrt(variance_b)), rel=1e-8)
    quantile = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf("0.95"))
    half = quantile * mpmath.sqrt(variance_a)
    assert found.intercept.low == pytest.approx(float(a - half), rel=1e-8, abs=1e-9)
    width = float(2 * quantile * mpmath.sqrt(variance_b)) if has_slope else mpmath.nan
    assert found.slope.high - found.slope.low == pytest.approx(width, rel=1e-8, abs=1e-9, nan_ok=True)


def run(seed, number):
    """Check many cases; return how many had a maximum."""
    n_with_maximum = 0
    for case in draw_cases(seed, number):
        rows = exact_rows(*case)
        given, weights = arguments(*case)
        for column in (None, 0):
            events = definition.top_events(rows) if column is None else definition.class_events(rows, column)
            check(metrics.cox(*given, class_=column, **weights), scaled(events))
            n_with_maximum += exists(scaled(events))
    return n_with_maximum


def test_cox_on_small_cases():
    assert run(seed=1, number=120) > 50


@pytest.mark.slow
def test_cox_on_many_small_cases():
    assert run(seed=2, number=2000) > 500
