"""The e-process: exact, independent of how rows are split into checks, and below its bound."""

import numpy as np
import pytest

from temperance.monitoring.evidence import (
    BETS,
    CheckSums,
    evidence_of,
    log_bound,
    log_growth,
    total,
    window_evidence,
    window_starts,
)


def sums_of(each, sizes, low, high):
    parts = np.split(each, np.cumsum(sizes)[:-1])
    return CheckSums(
        np.array(sizes, float),
        np.array([log_growth(part, low, high) for part in parts]),
        np.array([part.sum(axis=0) for part in parts]),
        np.array([(part**2).sum(axis=0) for part in parts]),
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
        nothing = CheckSums(
            np.zeros(checks), np.zeros((checks, 2, len(BETS), 3)), *(np.zeros((checks, 3)) for _ in range(2))
        )
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
    assert few.capitals.shape[-1] == 1
    bounded, _ = evidence_of(few, low, high)
    assert exact - 20 < bounded <= exact + 1e-9


def test_histories_simulated_together_equal_separate_ones():
    rng = np.random.default_rng(4)
    both = [sums_of(drawn(rng, 90), [30, 30, 30], LOW, HIGH) for _ in range(2)]
    stacked = CheckSums(
        both[0].rows,
        *(np.stack([getattr(one, name) for one in both], axis=1)
          for name in ("capitals", "residuals", "squares")),
    )  # fmt: skip
    found = total(window_evidence(stacked.cumulated(), LOW, HIGH))
    np.testing.assert_allclose(found, [evidence_of(one, LOW, HIGH)[0] for one in both], rtol=1e-12)


def test_false_alarms_stay_below_alpha_at_the_limit_itself():
    """The worst case of an unchanged calibrator: a gap exactly at the limit, looked at after every check."""
    rng, histories, checks, rows = np.random.default_rng(5), 400, 40, 10
    low, high = np.array([-0.02, -1.0, -1.0]), np.array([0.02, 1.0, 1.0])
    each = np.zeros((checks, histories, rows, 3))
    each[..., 0] = (rng.random((checks, histories, rows)) < 0.72) - 0.7
    cumulated = CheckSums(
        np.full(checks, float(rows)), log_growth(each, low, high), each.sum(axis=2), (each**2).sum(axis=2)
    ).cumulated()
    logs = [total(window_evidence(cumulated.first(t), low, high)) for t in range(1, checks + 1)]
    alarms = np.max(logs, axis=0) >= np.log(20)
    assert alarms.mean() <= 0.05


def test_a_gap_beyond_the_limit_is_found_and_dated():
    rng = np.random.default_rng(6)
    right = np.concatenate([rng.random(2000) < 0.8, rng.random(2000) < 0.6])
    each = np.zeros((4000, 3))
    each[:, 0] = right - 0.8
    log_e, start = evidence_of(sums_of(each, [100] * 40, LOW, HIGH), LOW, HIGH)
    assert np.log(20) < log_e < np.inf
    assert 16 <= start <= 24
