"""The one test against exact distributions, long arithmetic and its own definition."""

import itertools

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import chdtrc, ndtr
from scipy.stats import t as student

from temperance.metrics.one_test import Design, _class_sum, _Spread, count_p, one_test, together
from temperance.metrics.predictions import check_rows


def exact_count_p(p, n_events, number=float):
    """Return the two-sided mid-p value of a sum of independent events, by convolution."""
    mass = [number(1)]
    for chance in p:
        chance, rest = number(chance), number(1) - number(chance)
        mass = [
            (mass[k] * rest if k < len(mass) else 0) + (mass[k - 1] * chance if k else 0)
            for k in range(len(mass) + 1)
        ]
    upper = sum(mass[n_events:]) - mass[n_events] / 2
    lower = sum(mass[: n_events + 1]) - mass[n_events] / 2
    return 2 * min(upper, lower)


def draw(rng, logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    labels = (rng.uniform(size=(len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    return p, np.minimum(labels, p.shape[1] - 1)


@pytest.mark.parametrize("mean", [-4.0, -1.0, 0.0, 3.0])
@pytest.mark.parametrize("n_rows", [20, 60, 200])
def test_the_level_is_the_mid_p_value_of_the_number_of_events(mean, n_rows):
    rng = np.random.default_rng(n_rows)
    p = 1 / (1 + np.exp(-rng.normal(mean, 1.5, n_rows)))
    for n_events in {0, 1, *np.clip(np.rint(p.sum() + np.arange(-3, 4) * p.std() * 3), 0, n_rows)}:
        labels = np.arange(n_rows) < n_events
        exact = exact_count_p(p, int(n_events))
        assert one_test(check_rows(p, labels)).level_p == pytest.approx(exact, rel=0.06, abs=2e-3)


@pytest.mark.parametrize("n_events", [60, 90, 140])
def test_far_tails_agree_with_long_arithmetic(n_events):
    p = np.geomspace(1e-5, 0.05, 400)
    with mpmath.workdps(80):
        exact = exact_count_p(p, n_events, mpmath.mpf)
        found = one_test(check_rows(p, np.arange(400) >= 400 - n_events)).level_p
        assert exact < 1e-40
        assert found == pytest.approx(float(exact), rel=0.02)


def test_all_events_have_the_product_of_their_probabilities():
    p = np.linspace(0.02, 0.2, 12)
    assert one_test(check_rows(p, np.ones(12, int))).level_p == pytest.approx(np.prod(p), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_spread_has_the_tail_of_all_possible_labels(seed):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-rng.normal(0.3, 1.3, 13)))
    x = np.log(p / (1 - p))
    x -= (p * (1 - p)) @ x / (p @ (1 - p))
    outcomes = np.array(list(itertools.product([0, 1], repeat=13)))
    chance = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    sums = (outcomes - p) @ x
    for labels in outcomes[rng.choice(len(outcomes), 10, p=chance)]:
        found = (labels - p) @ x
        exact = 2 * min(chance[sums >= found - 1e-12].sum(), chance[sums <= found + 1e-12].sum())
        # About the mean the normal tail stands in, and a skewed sum has a median beside it.
        near = 0.3 if exact > 0.5 else 0.02
        assert one_test(check_rows(p, labels)).spread_p == pytest.approx(min(exact, 1), rel=0.15, abs=near)


def test_two_classes_by_definition():
    rng = np.random.default_rng(3)
    logits = np.column_stack([np.zeros(20_000), rng.normal(0, 1.2, 20_000)])
    p, labels = draw(rng, logits)
    x = logits[:, 1]
    information = p[:, 0] * p[:, 1]
    x = x - information @ x / information.sum()
    residual = labels - p[:, 1]
    level = 2 * ndtr(-abs(residual.sum()) / np.sqrt(information.sum()))
    spread = 2 * ndtr(-abs(residual @ x) / np.sqrt(information @ x**2))
    found = one_test(check_rows(p, labels))
    assert_allclose([found.level_p, found.spread_p], [level, spread], rtol=0.01)
    assert found.p_value == pytest.approx(1 - (1 - min(found.level_p, found.spread_p)) ** 2)


def test_several_classes_by_definition():
    rng = np.random.default_rng(5)
    p, labels = draw(rng, rng.normal(0, 1.5, (6_000, 4)))
    one_hot, logs = np.eye(4)[labels], np.log(p)
    residual = one_hot - p
    covariance = np.diag(p.sum(axis=0)) - p.T @ p
    inverse = np.linalg.pinv(covariance)
    centred = logs - (p * logs).sum(axis=1, keepdims=True)
    g = inverse @ (p * centred).sum(axis=0)
    values = centred - (g - p @ g[:, None])
    variance = (p * values**2).sum() - ((p * values).sum(axis=1) ** 2).sum()
    spread = 2 * ndtr(-abs(values[np.arange(6_000), labels].sum()) / np.sqrt(variance))
    joint = chdtrc(3, residual.sum(axis=0) @ inverse @ residual.sum(axis=0))
    z = np.abs(residual.sum(axis=0)) / np.sqrt((p * (1 - p)).sum(axis=0))
    largest = 1 - (1 - 2 * ndtr(-z.max())) ** 4
    found = one_test(check_rows(p, labels))
    assert found.column == z.argmax()
    assert_allclose([found.spread_p, found.largest_p], [spread, largest], rtol=0.05)  # skewness
    assert found.level_p == pytest.approx(min(1, 2 * min(joint, largest)), rel=0.01)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_cumulants_have_their_derivatives(n_classes):
    rng = np.random.default_rng(n_classes)
    p, labels = draw(rng, rng.normal(0, 2, (50, n_classes)))
    found, _ = _class_sum(check_rows(p, labels), 1, rng.uniform(0.5, 2, 50))
    for sign, s, step in itertools.product([-1.0, 1.0], [-0.7, 0.0, 1.3], [1e-4]):
        before, at, after = (found._cumulants(sign, s + move) for move in (-step, 0, step))
        assert at[1] == pytest.approx((after[0] - before[0]) / (2 * step), rel=1e-6, abs=1e-6)
        assert at[2] == pytest.approx((after[1] - before[1]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("n_classes", [3, 40])
def test_level_and_spread_are_uncorrelated(n_classes):
    rng = np.random.default_rng(n_classes)
    p, labels = draw(rng, rng.normal(0, 2, (300, n_classes)))
    rows, weight = check_rows(p, labels), rng.uniform(0.5, 2, 300)
    spread = _Spread.of(rows, weight, weight**2 @ (p * (1 - p)))
    own = spread.slope[spread.column]
    logs = np.log(p)
    values = logs - (p * logs).sum(axis=1, keepdims=True) - (own - (p @ own)[:, None])
    in_columns = np.eye(spread.column.max() + 1)[spread.column]
    covariance = (weight**2 * (p * values).T) @ np.ones(300) @ in_columns
    size = np.sqrt((weight**2)[:, None] * p * values**2).sum()
    assert np.abs(covariance).max() < 1e-9 * size


def test_it_does_not_depend_on_the_order_of_classes_or_rows_or_on_the_scale_of_weights():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 7):
        p, labels = draw(rng, rng.normal(0, 2, (80, n_classes)))
        weight, order, rows = rng.lognormal(size=80), rng.permutation(n_classes), rng.permutation(80)
        found = one_test(check_rows(p, labels, weight))
        by_class = one_test(check_rows(p[:, order], np.argsort(order)[labels], weight))
        by_row = one_test(check_rows(p[rows], labels[rows], 7 * weight[rows]))
        for other in (by_class, by_row):
            assert_allclose(other.p_value, found.p_value, rtol=1e-6)
            assert_allclose([other.level_p, other.spread_p], [found.level_p, found.spread_p], rtol=1e-6)


def test_which_of_two_classes_is_positive_does_not_matter():
    rng = np.random.default_rng(1)
    p, labels = draw(rng, np.column_stack([np.zeros(90), rng.normal(-3, 2, 90)]))
    either = [one_test(check_rows(p, labels, positive=positive)) for positive in (0, 1)]
    assert either[0].p_value == pytest.approx(either[1].p_value, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_groups_of_copies_count_once(n_classes):
    rng = np.random.default_rng(8)
    p, labels = draw(rng, rng.normal(0, 1, (400, n_classes)))
    labels = np.where(rng.uniform(size=400) < 0.1, 0, labels)
    once = one_test(check_rows(p, labels))
    copies = check_rows(np.repeat(p, 3, axis=0), np.repeat(labels, 3), groups=np.repeat(np.arange(400), 3))
    assert one_test(copies).p_value == pytest.approx(once.p_value, rel=0.3)
    assert one_test(check_rows(copies.probs, copies.labels)).p_value < once.p_value / 5


def test_a_design_effect_divides_the_square_of_z():
    assert Design(4.0, 9.0).widened(2 * ndtr(-3.0)) == pytest.approx(2 * student.sf(1.5, 9))
    assert Design().widened(0.02) == 0.02
    assert np.isnan(Design.of(np.ones(3), np.zeros(3, int)).widened(0.02))


def test_a_label_of_probability_0_is_impossible():
    found = one_test(check_rows([[0.0, 1.0], [0.4, 0.6], [1.0, 0.0]], [0, 1, 1]))
    assert (found.p_value, found.impossible) == (0.0, 2)


def test_equal_probabilities_have_a_level_alone():
    p = np.full(300, 0.1)
    found = one_test(check_rows(p, np.arange(300) < 45))
    assert np.isnan(found.spread_p)
    assert found.p_value == found.level_p == pytest.approx(exact_count_p(p, 45), rel=0.05)


def test_p_values_together():
    assert together(0.5, 0.5, 0.02) == pytest.approx(1 - 0.98**3)
    assert together(np.nan, 0.03) == pytest.approx(0.03)
    assert together(np.nan, np.nan) == 1.0
    assert together(0.0, 0.9) == 0.0


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "scale", "level"),
    [(2, 20, 1.0, 0.0), (2, 300, 2.0, -4.0), (2, 50, 5.0, 0.0), (3, 40, 2.0, 0.0), (10, 40, 2.0, 0.0)],
)
def test_calibrated_rows_are_rejected_in_at_most_5_percent(n_classes, n_rows, scale, level):
    rng = np.random.default_rng(n_classes * n_rows)
    p_values = []
    for _ in range(400):
        logits = rng.normal(0, scale, (n_rows, n_classes))
        logits[:, 1] += level
        p_values.append(one_test(check_rows(*draw(rng, logits))).p_value)
    assert 0.005 <= np.mean(np.array(p_values) < 0.05) <= 0.075


def test_a_class_that_is_too_rare_is_named():
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 1.5, (3_000, 6))
    labels = draw(rng, logits + 0.7 * np.eye(6)[4])[1]
    p = draw(rng, logits)[0]
    found = one_test(check_rows(p, labels))
    assert found.column == 4
    assert max(found.p_value, found.largest_p, count_p(check_rows(p, labels), 4, np.ones(3_000))) < 1e-6
