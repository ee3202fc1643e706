"""Which predictions need no person: the promise holds, the limits are exact, and too few rows are told so."""

import json
import re

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import temperance
from temperance.errors import InputError, InputWarning


def in_turn(confidence, correct):
    """Return P(class 1) and labels of rows that are predicted as either class in turn."""
    second = np.arange(len(confidence)) % 2 == 1
    return np.where(second, confidence, 1 - confidence), np.where(second, correct, 1 - correct)


def world(n_rows, rng):
    """Return P(class 1) of calibrated rows, and their labels."""
    confidence = 1 / (1 + np.exp(-np.abs(6 * rng.standard_normal(n_rows))))
    return in_turn(confidence, (rng.random(n_rows) < confidence).astype(int))


POPULATION = np.sort(np.abs(world(400_000, np.random.default_rng(99))[0] - 0.5))[::-1] + 0.5
ERRORS = np.cumsum(1 - POPULATION) / np.arange(1, 400_001)
"""Error rates of the most confident rows."""


def true_error(threshold):
    """Return the error rate of rows above a threshold."""
    return ERRORS[max(np.searchsorted(-POPULATION, -threshold), 1) - 1]


def grouped(n_groups, size, rng):
    """Return rows in groups that are all correct or all wrong, the more often right the more confident."""
    confidence = np.repeat(0.5 + rng.random(n_groups) / 2, size)
    correct = np.repeat(rng.random(n_groups), size) < confidence
    return *in_turn(confidence, correct.astype(int)), np.repeat(np.arange(n_groups), size)


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
    rule = temperance.automate(*in_turn(np.full(n_rows, 0.9), np.ones(n_rows, int)))
    assert (rule.threshold, rule.rows_needed) == (threshold, needed)
    assert rule.words.startswith("No threshold" if threshold is None else "At any confidence: 100% of the")


def test_rows_that_are_wrong_too_often_do_not_suggest_more():
    rule = temperance.automate(np.full(1000, 0.9), np.arange(1000) % 2)
    assert (rule.threshold, rule.share, rule.rows_needed) == (None, 0.0, None)
    assert rule.words.endswith("Nor do they suggest that more rows would.")


def test_a_few_wrong_labels_among_the_most_confident_rows_do_not_end_it():
    confidence, correct = np.linspace(0.999, 0.6, 5000), np.ones(5000, int)
    correct[:20] = 0
    assert temperance.automate(*in_turn(confidence, correct), 0.02).threshold == 0.0
    correct[:80] = 0  # too many for half of the rows too, at 2 %: 80 of 2000
    correct[3000:] = 0
    assert temperance.automate(*in_turn(confidence, correct), 0.02).threshold is None


def test_the_threshold_is_half_way_in_log_odds_to_the_rows_that_are_not_covered():
    correct = np.ones(1200, int)
    correct[800:] = np.arange(400) % 4 < 2
    rule = temperance.automate(*in_turn(np.repeat([0.99, 0.9, 0.8], 400), correct))
    assert (rule.threshold, rule.share, rule.error) == (pytest.approx(6 / 7), pytest.approx(2 / 3), 0.0)
    assert rule.words == (
        "Above 85.7% confidence: 66.7% of the rows, at most 2% of them wrong (95% confidence)."
    )


def rounded(probs):
    """Return the ways in which rows reach a rule: as float32, with six digits in a file, in both."""
    told = np.array([[float(f"{p:.6g}") for p in row] for row in probs])
    return {"float32": probs.astype(np.float32), "six digits": told, "both": told.astype(np.float32)}


@pytest.mark.parametrize("votes", [20, 100, None])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_moves_no_row_across_the_threshold(votes, seed):
    """Votes of trees are tied, and a threshold that is one of them would let half of the ties pass."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 3, 3000)
    share = 1 / (1 + np.exp(-odds)) if votes is None else rng.binomial(votes, 1 / (1 + np.exp(-odds))) / votes
    logits = np.column_stack([np.zeros(3000), 1.3 * np.log((share + 0.01) / (1.01 - share))])
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.random(3000) < probs[:, 1]).astype(int)
    rule = temperance.automate(probs, labels, 0.05)
    wanted = rule.decide(probs)
    assert (wanted >= 0).mean() == pytest.approx(rule.share)
    assert 0.1 < rule.share < 1
    for name, given in rounded(probs).items():
        np.testing.assert_array_equal(rule.decide(given), wanted, err_msg=name)
        found = temperance.automate(given, labels, 0.05)
        np.testing.assert_array_equal(found.decide(probs), wanted, err_msg=name)


def test_scores_that_differ_by_rounding_are_tied():
    rng = np.random.default_rng(0)
    confidence, correct = np.repeat([0.99, 0.9, 0.8], 400), np.ones(1200, int)
    correct[800:] = np.arange(400) % 4 < 2
    exact = temperance.automate(*in_turn(confidence, correct))
    near = temperance.automate(*in_turn(confidence + 1e-9 * rng.normal(size=1200), correct))
    assert near.threshold == pytest.approx(exact.threshold, abs=1e-8)
    assert (near.share, near.error) == (exact.share, exact.error)


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


def rare(n_rows, separation, seed):
    """Return P(yes) and labels of calibrated rows of which 2% are positive."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n_rows) < 0.02).astype(int)
    odds = separation * (rng.normal(size=n_rows) + separation * labels - separation / 2) + np.log(0.02 / 0.98)
    return 1 / (1 + np.exp(-odds)), np.array(["no", "yes"])[labels]


NAMED = {"classes": ["no", "yes"]}


@pytest.mark.parametrize(
    ("max_error", "separation", "why"),
    [
        (0.05, 2.0, r"answering no to every row has [12]\.\d%"),
        (0.02, 1.5, r"it would decide [5-9]\d\.\d% of the yes rows against yes"),
    ],
)
def test_a_rule_that_is_worth_nothing_is_refused_and_the_remedies_work(max_error, separation, why):
    probs, labels = rare(40_000, separation, 0)
    wanted = f"a rule with at most {100 * max_error:g}% errors is no rule here: {why}"
    with pytest.raises(InputError, match=wanted) as refused:
        temperance.automate(probs, labels, max_error, **NAMED)
    stricter = re.search(r"Pass max_error=(\S+) or positive='yes'\.$", str(refused.value)).group(1)
    rule = temperance.automate(probs, labels, float(stricter), **NAMED)
    assert rule.threshold > 0.5
    assert rule.missed.max() < 0.5
    named = temperance.automate(probs, labels, max_error, positive="yes", **NAMED)
    assert named.max_error == max_error
    assert set(named.decide(np.column_stack([1 - probs, probs])).tolist()) <= {-1, 1}


def test_a_constant_answer_is_judged_by_its_limit_and_by_groups():
    """By 9 errors in 1,000 rows, at most 2% are wrong; a group that is wrong as a whole shows much less."""
    rng = np.random.default_rng(0)
    labels = np.zeros(1000, int)
    labels[::112] = 1
    probs = np.where(labels == 1, 0.4, 0.01) * rng.uniform(0.5, 1, 1000)
    with pytest.raises(InputError, match=r"answering class 0 to every row has 0\.9%"):
        temperance.automate(probs, labels)
    assert temperance.automate(probs, labels, groups=np.arange(1000) // 50).threshold is None
    assert temperance.automate(probs, labels, 0.001).threshold is None


def test_labels_of_one_class_support_no_rule():
    with pytest.raises(InputError, match=r"has 0%\. Pass rows with labels of both classes"):
        temperance.automate(np.full(500, 0.1), np.zeros(500, int))


def test_what_is_missed_is_told_by_class_and_weight():
    probs, labels = world(3000, np.random.default_rng(11))
    weight = np.random.default_rng(0).integers(1, 4, 3000)
    rule = temperance.automate(probs, labels, 0.05, sample_weight=weight)
    decided = rule.decide(np.column_stack([1 - probs, probs]))
    for k in (0, 1):
        against = (decided == 1 - k) & (labels == k)
        assert rule.missed[k] == pytest.approx((weight @ against) / (weight @ (labels == k)))
    assert rule.missed.min() > 0
    most, least = sorted((0, 1), key=lambda k: -rule.missed[k])
    assert rule.missed_in_words == (
        f"Of the held-out rows, decided against their class: {100 * rule.missed[most]:.1f}% of class {most}, "
        f"{100 * rule.missed[least]:.1f}% of class {least}."
    )
    named = temperance.automate(probs, labels, 0.1, positive=1)
    assert named.missed[1] == 0 < named.missed[0]


def test_with_more_classes_the_class_that_is_lost_is_named():
    rng = np.random.default_rng(5)
    labels = rng.choice(3, 8000, p=[0.6, 0.39, 0.01])
    logits = 6 * np.eye(3)[np.where(labels == 2, 0, labels)] + rng.normal(size=(8000, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = ["ant", "bee", "cat"]
    lost = (
        r"a rule with at most 5% errors is no rule for cat: it would decide 100% of the cat rows against "
        r"cat\. Pass max_error=0\.00\d or positive='cat'\."
    )
    with pytest.warns(InputWarning, match=lost):
        rule = temperance.automate(probs, np.array(names)[labels], 0.05, classes=names)
    assert rule.missed[2] > 0.5 > rule.missed[:2].max()
    assert temperance.automate(probs, labels, 0.05, positions=True).threshold is not None  # no class is lost
    temperance.automate(probs, labels, 0.05, positive=2)


def made_table(share, seed):
    """Return P(positive) of a classifier after bayes-bias, and labels; `share` of the rows is positive."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    x, y = make_classification(
        12_000, 15, n_informative=6, weights=[1 - share], flip_y=0.01, class_sep=0.9, random_state=100 + seed
    )
    model = LogisticRegression(max_iter=500).fit(x[:4000], y[:4000])
    odds = model.decision_function(x[4000:])
    cal = temperance.BayesianTemperatureScaling(class_bias=True).fit(odds[:4000], y[4000:8000])
    return cal.predict_proba(odds[4000:])[:, 1], y[8000:]


def test_of_made_tables_those_with_rare_positives_have_no_rule():
    """A promise of 5% is refused of all tables with 2% positives, of 2% of many, and of others never."""

    def refused(share, max_error):
        count = 0
        for seed in range(4):
            try:
                temperance.automate(*made_table(share, seed), max_error)
            except InputError as error:
                count += "is no rule here" in str(error)
        return count

    assert (refused(0.02, 0.01), refused(0.02, 0.05)) == (0, 4)
    assert 1 <= refused(0.02, 0.02) <= 3
    assert [refused(*one) for one in [(0.1, 0.02), (0.1, 0.05), (0.5, 0.02), (0.5, 0.05)]] == [0, 0, 0, 0]


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


def test_a_rule_for_the_frequent_class_has_to_beat_a_constant_answer_too():
    rng = np.random.default_rng(0)
    risk = 1 / (1 + np.exp(-rng.normal(-4.5, 1.2, 6000)))
    labels = np.where(rng.uniform(size=6000) < risk, "died", "alive")
    given = {"classes": ["alive", "died"], "positive": "alive"}
    with pytest.raises(InputError, match=r"no rule here: answering alive to every row has 2\.1%"):
        temperance.automate(risk, labels, 0.05, **given)
    with pytest.raises(InputError, match=r"it would decide \d\d\.\d% of the died rows against died"):
        temperance.automate(risk, labels, 0.02, **given)
    assert temperance.automate(risk, labels, 0.01, **given).missed[1] < 0.5
