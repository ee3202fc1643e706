"""Which predictions need no person: the promise holds, the limits are exact, and too few rows are told so."""

import json

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import temperance
from temperance.errors import InputError


def world(n_rows, rng):
    """Return P(class 1), the top of two classes, of calibrated rows, and their labels."""
    confidence = 1 / (1 + np.exp(-np.abs(6 * rng.standard_normal(n_rows))))
    return confidence, (rng.random(n_rows) < confidence).astype(int)


POPULATION = np.sort(world(400_000, np.random.default_rng(99))[0])[::-1]
ERRORS = np.cumsum(1 - POPULATION) / np.arange(1, 400_001)
"""Error rates of the most confident rows."""


def true_error(threshold):
    """Return the error rate of rows above a threshold."""
    return ERRORS[max(np.searchsorted(-POPULATION, -threshold), 1) - 1]


def grouped(n_groups, size, rng):
    """Return rows in groups that are all correct or all wrong, the more often right the more confident."""
    confidence = np.repeat(0.5 + rng.random(n_groups) / 2, size)
    correct = np.repeat(rng.random(n_groups), size) < confidence
    return confidence, correct.astype(int), np.repeat(np.arange(n_groups), size)


@pytest.mark.parametrize(("n_rows", "max_error"), [(100, 0.1), (500, 0.02), (2000, 0.02)])
def test_the_promise_is_broken_in_at_most_delta_of_the_cases(n_rows, max_error):
    rng, broken, found = np.random.default_rng(1), 0, 0
    for _ in range(200):
        rule = temperance.automate(*world(n_rows, rng), max_error, 0.1)
        if rule.threshold is not None:
            found += 1
            broken += true_error(rule.threshold) > max_error
    assert broken <= binom.ppf(0.999, 200, 0.1)
    assert found >= 50


def test_rows_that_depend_on_each_other_need_their_groups():
    """A group is right or wrong as a whole; P(error | c > t) = (1 - t) / 2 for c uniform from 1/2 to 1."""
    rng, broken, alone = np.random.default_rng(2), 0, 0
    for _ in range(60):
        confidence, labels, groups = grouped(150, 30, rng)
        rule = temperance.automate(confidence, labels, 0.1, 0.1, groups=groups)
        broken += rule.threshold is not None and (1 - rule.threshold) / 2 > 0.1
        rule = temperance.automate(confidence, labels, 0.1, 0.1, groups=np.arange(len(groups)))
        alone += rule.threshold is not None and (1 - rule.threshold) / 2 > 0.1
    assert broken <= binom.ppf(0.999, 60, 0.1) < alone


def test_groups_that_are_large_enough_give_a_threshold():
    confidence, labels, groups = grouped(2000, 5, np.random.default_rng(3))
    rule = temperance.automate(confidence, labels, 0.1, groups=groups)
    assert rule.groups == 2000
    assert 0.8 < rule.threshold < 0.9  # from 0.8 on, at most a tenth is wrong
    assert rule.error <= rule.bound <= 0.1
    assert "10,000 rows in 2,000 groups" in rule.words


def test_the_share_is_close_to_that_of_all_knowledge():
    """R(t) = 0.02 at the share that knowing the truth allows; 5000 rows promise at least 85% of it."""
    best = (ERRORS <= 0.02).mean()
    rng = np.random.default_rng(4)
    shares = [temperance.automate(*world(5000, rng)).share for _ in range(20)]
    assert np.mean(shares) >= 0.85 * best


def test_limits_are_those_of_clopper_and_pearson():
    curve = temperance.automate(*world(500, np.random.default_rng(0)), delta=0.05).curve
    for share, error, low, high in zip(curve.share, curve.error, curve.low, curve.high, strict=True):
        n_rows, wrong = round(500 * share), round(500 * share * error)
        exact = binomtest(wrong, n_rows).proportion_ci(0.9, method="exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-8)


@pytest.mark.parametrize(("n_rows", "threshold", "needed"), [(149, 0.0, None), (148, None, 149)])
def test_the_smallest_number_of_rows_is_known(n_rows, threshold, needed):
    """0.98^149 < 0.05 < 0.98^148."""
    rule = temperance.automate(np.full((n_rows, 2), [0.1, 0.9]), np.ones(n_rows, int))
    assert (rule.threshold, rule.rows_needed) == (threshold, needed)
    assert rule.words.startswith("No threshold" if threshold is None else "At any confidence: 100% of the")


def test_rows_that_are_wrong_too_often_do_not_suggest_more():
    rule = temperance.automate(np.full(1000, 0.9), np.arange(1000) % 2)
    assert (rule.threshold, rule.share, rule.rows_needed) == (None, 0.0, None)
    assert rule.words.endswith("Nor do they suggest that more rows would.")


def test_a_few_wrong_labels_among_the_most_confident_rows_do_not_end_it():
    labels = np.ones(5000, int)
    labels[:20] = 0
    rule = temperance.automate(np.linspace(0.999, 0.6, 5000), labels, 0.02)
    assert rule.threshold == 0.0
    labels[:80] = 0  # too many for half of the rows too, at 2 %: 80 of 2000
    labels[3000:] = 0
    assert temperance.automate(np.linspace(0.999, 0.6, 5000), labels, 0.02).threshold is None


def test_rows_at_the_threshold_are_not_covered():
    confidence = np.repeat([0.99, 0.9, 0.8], 400)
    labels = np.ones(1200, int)
    labels[800::2] = 0
    rule = temperance.automate(confidence, labels)
    assert (rule.threshold, rule.share, rule.error) == (0.8, pytest.approx(2 / 3), 0.0)
    assert rule.words == (
        "Above 80.0% confidence: 66.7% of the rows, at most 2% of them wrong (95% confidence)."
    )


def test_a_positive_class_has_its_own_threshold():
    rng = np.random.default_rng(0)
    positive = rng.beta(0.05, 0.9, 20_000)
    labels = (rng.random(20_000) < positive).astype(int)
    rule = temperance.automate(
        positive, np.array(["no", "yes"])[labels], 0.2, positive="yes", classes=["no", "yes"]
    )
    above = positive > rule.threshold
    assert rule.share == above.mean() < 0.1
    assert (1 - positive)[above].mean() < 0.2
    assert rule.positive == 1
    assert rule.words.startswith("Where P(yes) is above")
    assert "at most 20% of them not yes" in rule.words


def test_order_equal_weights_and_groups_of_one_row_change_nothing():
    confidence, labels = world(2000, np.random.default_rng(7))
    plain = temperance.automate(confidence, labels)
    order = np.random.default_rng(8).permutation(2000)
    for rule in (
        temperance.automate(confidence[order], labels[order]),
        temperance.automate(np.column_stack([1 - confidence, confidence]), labels),
        temperance.automate(confidence, labels, sample_weight=np.full(2000, 3.0)),
        temperance.automate(confidence, labels, groups=order),
    ):
        assert (rule.threshold, rule.share, rule.bound) == (plain.threshold, plain.share, plain.bound)


def test_rows_of_weight_0_are_left_out_with_their_groups():
    confidence, labels, groups = grouped(1000, 5, np.random.default_rng(9))
    weight = np.ones(5000)
    weight[:1000] = 0
    with_weights = temperance.automate(confidence, labels, 0.1, groups=groups, sample_weight=weight)
    without = temperance.automate(confidence[1000:], labels[1000:], 0.1, groups=groups[1000:])
    assert with_weights.to_dict() == without.to_dict()
    assert without.groups == 800


def test_weighted_rows_keep_the_promise_with_a_wider_limit():
    confidence, labels = world(3000, np.random.default_rng(10))
    plain = temperance.automate(confidence, labels, 0.05)
    weighted = temperance.automate(
        confidence, labels, 0.05, sample_weight=np.random.default_rng(0).uniform(0.5, 1.5, 3000)
    )
    assert plain.threshold <= weighted.threshold < 1


def test_pixels_are_rows_in_groups_by_image_without_those_to_ignore():
    rng = np.random.default_rng(12)
    logits = 3 * rng.standard_normal((60, 3, 8, 5))
    labels = logits.argmax(axis=1)
    labels[rng.random(labels.shape) < 0.01] = 0
    ignored = labels.copy()
    ignored[rng.random(labels.shape) < 0.2] = 255
    kept = ignored.reshape(-1) != 255
    groups = np.repeat(np.arange(60), 40)[kept]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = temperance.automate(probs, ignored, 0.3, dim=1, ignore_index=255)
    in_rows = np.moveaxis(probs, 1, -1).reshape(-1, 3)[kept]
    expected = temperance.automate(in_rows, ignored.reshape(-1)[kept], 0.3, groups=groups)
    assert found.groups == 60
    assert found.threshold is not None
    assert found.to_dict() == expected.to_dict()


def test_a_single_image_promises_nothing():
    probs, labels = np.full((1, 500, 2), [0.1, 0.9]), np.ones((1, 500), int)
    rule = temperance.automate(probs, labels, 0.1)
    assert (rule.threshold, rule.groups) == (None, 1)


def test_groups_are_counted_in_words():
    rule = temperance.automate(np.full(400, 0.9), np.ones(400, int), 0.1, groups=np.arange(400) // 20)
    assert rule.words.startswith("No threshold: 400 rows in 20 groups do not show")
    needed = -(-rule.rows_needed * 20 // 400)
    assert rule.words.endswith(f"About {needed:,} such groups could.")
    rule = temperance.automate(np.full(400, 0.9), np.arange(400) % 2, groups=np.arange(400) // 20)
    assert rule.words.endswith("Nor do they suggest that more groups would.")


def test_the_result_is_plain_json():
    rule = temperance.automate(*world(500, np.random.default_rng(0)), 0.05)
    told = json.loads(json.dumps(rule.to_dict(), allow_nan=False))
    assert told["threshold"] == rule.threshold
    assert told["curve"]["share"][-1] == 1.0
    assert told["words"] == rule.words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 0.0}, "max_error must be a number between 0 and 1"),
        ({"delta": 1}, "delta must be a number between 0 and 1"),
        ({"positive": 2}, "positive must be a whole number from 0 to 1; found 2"),
        ({"positive": "cat"}, "positive must be a column from 0 to 1 where columns have no names"),
        ({"groups": [1, 2]}, r"groups must have one id per row.*; found shape \(2,\)"),
        ({"groups": [1, 2, np.nan]}, "found rows without one"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        temperance.automate([0.9, 0.8, 0.7], [1, 1, 0], **options)
