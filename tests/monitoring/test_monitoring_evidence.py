"""The e-process: exact, independent of how rows are split into checks, and below its bound."""

from types import SimpleNamespace

import numpy as np
import pytest

from temperance.monitoring.evidence import (
    BETS,
    cumulate,
    evidence_of,
    log_bound,
    log_growth,
    window_starts,
)


def sums_of(each, sizes, low, high):
    """Return the cumulated sums over checks of these sizes."""
    return cumulate(
        [
            SimpleNamespace(
                rows=len(part),
                capitals=log_growth(part, low, high),
                residuals=part.sum(axis=0),
                squares=(part**2).sum(axis=0),
            )
            for part in np.split(each, np.cumsum(sizes)[:-1])
        ]
    )


def drawn(rng, rows, classes=2):
    p = rng.dirichlet(np.ones(classes), rows)
    labels = (p.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    each = np.eye(classes)[labels] - p
    top = p.argmax(axis=1)
    return np.column_stack([(top == labels) - p.max(axis=1), each])


LOW, HIGH = np.array([-0.03, -0.02, -0.05]), np.array([0.02, 0.04, 0.03])


def test_the_e_value_is_the_average_written_out_in_full():
    each = drawn(np.random.default_rng(0), 60)
    sizes = [10, 1, 20, 29]
    log_e, _ = evidence_of(sums_of(each, sizes, LOW, HIGH), LOW, HIGH)
    ends = np.cumsum([0, *sizes])
    value = 1 / (len(sizes) + 1)  # of windows that have not begun
    for i, begin in enumerate(ends[:-1], 1):
        for weight, r, low, high in zip((0.5, 0.25, 0.25), each[begin:].T, LOW, HIGH, strict=True):
            for bet in BETS:
                above = np.prod(1 + bet * (r - high) / (1 + high))
                below = np.prod(1 + bet * (low - r) / (1 - low))
                value += weight * (above + below) / (2 * len(BETS)) / (i * (i + 1))
    assert log_e == pytest.approx(np.log(value), rel=1e-10)


def test_weights_of_windows_sum_to_one_at_every_look():
    for checks in (1, 2, 17, 200):
        nothing = sums_of(np.zeros((0, 3)), [0] * checks, LOW, HIGH)
        assert evidence_of(nothing, LOW, HIGH)[0] == pytest.approx(0.0, abs=1e-12)


def test_starts_stay_starts_as_checks_are_added():
    for checks in range(1, 300):
        assert set(window_starts(checks)) <= set(window_starts(checks + 1))
    assert len(window_starts(1000)) < 70


def test_the_order_of_rows_within_a_check_does_not_matter():
    rng = np.random.default_rng(1)
    each = drawn(rng, 50)
    mixed = np.concatenate([rng.permutation(each[:20]), rng.permutation(each[20:])])
    first, second = (evidence_of(sums_of(rows, [20, 30], LOW, HIGH), LOW, HIGH) for rows in (each, mixed))
    assert first[0] == pytest.approx(second[0], rel=1e-12)


def test_no_row_multiplies_the_expected_capital_at_a_limit_by_more_than_one():
    """At the mean that is just allowed, the expectation over two outcomes is 1 for every bet."""
    for p in (0.01, 0.3, 0.9):
        for mean in (0.02, 0.05):
            right = p + mean
            outcomes = np.array([[1 - p], [-p]])
            growth = [
                np.exp(log_growth(row[None, :], np.array([-mean]), np.array([mean]))) for row in outcomes
            ]
            expected = right * growth[0] + (1 - right) * growth[1]
            np.testing.assert_allclose(expected[0], 1.0, rtol=1e-12)  # above
            assert (expected[1] < 1).all()  # below


def test_the_bound_is_below_the_capital_and_close_for_small_bets():
    each = drawn(np.random.default_rng(2), 500)
    exact = log_growth(each, LOW, HIGH)
    bound = log_bound(np.array([500.0]), each.sum(axis=0), (each**2).sum(axis=0), LOW, HIGH)
    assert bound.shape == exact.shape
    assert (bound <= exact + 1e-9).all()
    np.testing.assert_allclose(bound[:, 0], exact[:, 0], atol=0.01)


def test_with_many_classes_the_bound_is_used_and_never_exceeds_the_exact_value(monkeypatch):
    rng = np.random.default_rng(3)
    each = drawn(rng, 400, 6)
    low, high = np.full(7, -0.03), np.full(7, 0.03)
    exact, _ = evidence_of(sums_of(each + 0.1, [200, 200], low, high), low, high)
    monkeypatch.setattr("temperance.monitoring.evidence.MAX_EXACT", 3)
    few = sums_of(each + 0.1, [200, 200], low, high)
    assert few[1].shape[-1] == 1  # capitals of the gap alone
    bounded, _ = evidence_of(few, low, high)
    assert exact - 20 < bounded <= exact + 1e-9


def test_false_alarms_stay_below_alpha_at_the_limit_itself():
    """The worst case of an unchanged calibrator: a gap exactly at the limit, looked at after every check."""
    rng, histories, checks, rows = np.random.default_rng(5), 400, 40, 10
    low, high = np.array([-0.02, -1.0, -1.0]), np.array([0.02, 1.0, 1.0])
    alarms = 0
    for _ in range(histories):
        each = np.zeros((checks * rows, 3))
        each[:, 0] = (rng.random(len(each)) < 0.72) - 0.7
        sums = sums_of(each, [rows] * checks, low, high)
        logs = [evidence_of([column[: t + 1] for column in sums], low, high)[0] for t in range(1, checks + 1)]
        alarms += max(logs) >= np.log(20)
    assert alarms / histories <= 0.05


def test_a_gap_beyond_the_limit_is_found_and_dated():
    rng = np.random.default_rng(6)
    right = np.concatenate([rng.random(2000) < 0.8, rng.random(2000) < 0.6])
    each = np.zeros((4000, 3))
    each[:, 0] = right - 0.8
    log_e, start = evidence_of(sums_of(each, [100] * 40, LOW, HIGH), LOW, HIGH)
    assert np.log(20) < log_e < np.inf
    assert 16 <= start <= 24
