"""Scores by groups: rows of one each change nothing, copies of rows count once, and intervals cover."""

import numpy as np
import pytest
from scipy import stats

from temperance import InputError, metrics
from temperance.errors import InputWarning
from temperance.metrics import METRICS
from temperance.metrics.evaluation import Scorer
from temperance.metrics.intervals import Units, mean_interval, proportion_interval, spread
from temperance.metrics.predictions import check_rows, random_folds

ENDS = ("value", "low", "high")


def numbers(result, name):
    return [getattr(result[name], end) for end in ENDS]


@pytest.fixture(scope="module")
def drawn():
    """Return rows in 60 groups of 20: with probability 0.7 a row has the random number of its group."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        confidence, groups = rng.uniform(0.5, 1, 1200), np.repeat(np.arange(60), 20)
        chance = np.where(rng.uniform(size=1200) < 0.7, rng.uniform(size=60)[groups], rng.uniform(size=1200))
        return confidence, (chance < confidence).astype(int), groups

    return draw


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_of_one_row_give_the_same_bits_as_rows(n_classes, weighted, simulate):
    probs, labels, _ = simulate(200, n_classes, sharpen=1.5)
    weight = np.random.default_rng(1).uniform(0.5, 2, 200) if weighted else None
    options = {"draws": 100, "sample_weight": weight}
    rows = metrics.evaluate(probs, labels, **options)
    groups = metrics.evaluate(probs, labels, groups=np.arange(200), **options)
    for name in METRICS:
        np.testing.assert_allclose(numbers(groups, name), numbers(rows, name), rtol=1e-12, err_msg=name)
    for name, test in rows.tests.items():
        assert groups.tests[name].p_value == pytest.approx(test.p_value, rel=1e-9), name
    assert (rows.n_groups, groups.n_groups) == (None, 200)


@pytest.mark.parametrize("copies", [2, 7])
def test_copies_of_rows_in_one_group_count_once(copies, simulate):
    probs, labels, _ = simulate(150, 2, sharpen=1.5)  # of two classes, a wrong label is the other one
    once = metrics.evaluate(probs, labels, draws=100)
    groups = np.repeat(np.arange(150), copies)
    often = metrics.evaluate(np.repeat(probs, copies, 0), np.repeat(labels, copies), groups=groups, draws=100)
    alone = np.arange(150 * copies)
    ignored = metrics.evaluate(
        np.repeat(probs, copies, 0), np.repeat(labels, copies), groups=alone, draws=100
    )
    with pytest.warns(InputWarning, match=f"found 150 different rows among {150 * copies:,}"):
        found = metrics.evaluate(np.repeat(probs, copies, 0), np.repeat(labels, copies), draws=100)
    assert found.n_groups == 150
    assert dict(found) == dict(often)
    for name, metric in METRICS.items():
        np.testing.assert_allclose(
            numbers(often, name), numbers(once, name), rtol=1e-6, atol=1e-8, err_msg=name
        )
        if metric.interval != "none":
            assert ignored[name].high - ignored[name].low < often[name].high - often[name].low
    for name, test in once.tests.items():
        assert often.tests[name].p_value == pytest.approx(test.p_value, rel=1e-6), name
        assert ignored.tests[name].p_value < test.p_value
    assert often.tests["cox"].slope.low == pytest.approx(once.tests["cox"].slope.low, rel=1e-6)


def test_equal_groups_have_the_interval_of_student_of_their_means():
    half = np.random.default_rng(0).normal(size=4)
    means = 3 + np.concatenate([half, -half])  # without skewness
    values = np.repeat(means, 5) + np.tile([-0.2, 0.1, 0.1, 0.3, -0.3], 8)
    found = mean_interval(values, np.ones(40), 0.95, groups=np.repeat(np.arange(8), 5))
    expected = stats.t.interval(0.95, 7, means.mean(), stats.sem(means))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)
    error, _, n_groups = spread(
        values - values.mean(), np.full(40, 1 / 40), groups=np.repeat(np.arange(8), 5)
    )
    assert (error, n_groups) == pytest.approx((stats.sem(means), 8))


def test_two_groups_of_different_means_tell_next_to_nothing():
    values = np.repeat([0.1, 0.9], 500)
    found = mean_interval(values, np.ones(1000), 0.95, -10, 10, groups=np.repeat([0, 1], 500))
    assert found.high - found.low == pytest.approx(2 * 12.706 * 0.4, rel=1e-3)


def test_the_design_effect_is_that_of_the_correlation_within_groups():
    rng = np.random.default_rng(2)
    effects = []
    for _ in range(200):
        values = np.repeat(rng.normal(size=100), 10) * np.sqrt(0.3) + rng.normal(size=1000) * np.sqrt(0.7)
        moves = (values - values.mean()) / 1000
        effects.append(Units.of(moves, np.full(1000, 1e-3), np.repeat(np.arange(100), 10)).effect)
    assert np.mean(effects) == pytest.approx(1 + 9 * 0.3, rel=0.03)


def test_predictions_that_are_all_right_in_few_groups_leave_room_for_a_group_of_errors():
    groups = np.repeat(np.arange(10), 100)
    found = proportion_interval(np.ones(1000), np.ones(1000), 0.95, groups)
    assert found.low == pytest.approx(proportion_interval(np.ones(10), np.ones(10), 0.95).low)


TRUTHS = {"accuracy": 0.75, "overconfidence": 0.0, "brier": 2 * (0.75 - 7 / 12), "ece": 0.0}


def coverage(drawn, names, n):
    """Return how often intervals contain the truth, by groups and by rows."""
    covered = {kind: dict.fromkeys(names, 0.0) for kind in ("groups", "rows")}
    scorers = {kind: Scorer(10, 0.95, 200, 0) for kind in covered}
    for seed in range(n):
        confidence, right, groups = drawn(seed)
        probs = np.column_stack([1 - confidence, confidence])
        for kind, scorer in scorers.items():
            rows = check_rows(probs, right, groups=groups if kind == "groups" else None)
            found = scorer.evaluate(rows) if "ece" in names else None
            for name in names:
                one = METRICS[name].estimate(rows, None, 0.95) if found is None else found[name]
                covered[kind][name] += (one.low - 1e-9 <= TRUTHS[name] <= one.high) / n
    return covered


def test_intervals_by_groups_cover_and_those_of_rows_do_not(drawn):
    covered = coverage(drawn, ("accuracy", "overconfidence", "brier"), 200)
    assert min(covered["groups"].values()) > 0.9, covered
    assert max(covered["rows"].values()) < 0.8, covered


@pytest.mark.slow
def test_all_intervals_by_groups_cover(drawn):
    covered = coverage(drawn, tuple(TRUTHS), 300)
    assert min(covered["groups"].values()) > 0.92, covered
    assert max(covered["rows"].values()) < 0.8, covered


def test_tests_by_groups_have_their_size_and_those_of_rows_do_not(drawn):
    rejected = {kind: dict.fromkeys(("spiegelhalter", "cox", "kuiper", "ks"), 0) for kind in "gr"}
    for seed in range(100):
        confidence, right, groups = drawn(seed)
        for kind in "gr":
            options = {"class_": 1, "groups": groups if kind == "g" else None}
            p_values = {
                "spiegelhalter": metrics.spiegelhalter(confidence, right, **options).p_value,
                "cox": metrics.cox(confidence, right, **options).p_value,
                "kuiper": metrics.cumulative_differences(confidence, right, **options).p_value,
                "ks": metrics.cumulative_differences(confidence, right, statistic="ks", **options).p_value,
            }
            for name, p_value in p_values.items():
                rejected[kind][name] += p_value < 0.05
    assert max(rejected["g"].values()) <= 10, rejected
    assert min(rejected["r"].values()) >= 30, rejected


def test_a_metric_of_your_own_has_percentiles_of_drawn_groups(simulate):
    probs, labels, _ = simulate(60, 3)

    def error_rate(p, y):
        return float(np.mean(p.argmax(axis=1) != y))

    scorer = Scorer(5, 0.9, 50, 0, {"error": error_rate}, metric_intervals=True)
    once = scorer.evaluate(check_rows(probs, labels))["error"]
    twice = check_rows(np.repeat(probs, 2, 0), np.repeat(labels, 2), groups=np.repeat(np.arange(60), 2))
    assert scorer.evaluate(twice)["error"] == once


def test_rows_of_a_group_share_a_fold():
    groups = np.repeat(np.arange(30), 4)
    fold = random_folds(120, 5, np.random.default_rng(0), groups)
    assert [len({*fold[groups == g]}) for g in range(30)] == [1] * 30
    assert np.bincount(fold).tolist() == [24] * 5


PIXELS = (4, 3, 5, 6)


@pytest.fixture(scope="module")
def pixels(simulate):
    """Return probabilities and labels of four images, the same as rows, and the rows that are not ignored."""
    probs, labels, _ = simulate(120, 3)
    labels[::7] = 255
    images = np.moveaxis(probs.reshape(4, 5, 6, 3), -1, 1)
    return images, labels.reshape(4, 5, 6), probs, labels, labels != 255


@pytest.mark.parametrize("name", [name for name in METRICS if hasattr(metrics, name)])
def test_a_metric_of_pixels_is_that_of_their_rows(name, pixels):
    images, of_images, probs, labels, kept = pixels
    found = getattr(metrics, name)(images, of_images, dim=1, ignore_index=255)
    expected = getattr(metrics, name)(probs[kept], labels[kept])
    if name == "debiased_ece":  # noise is that of the images
        groups = np.repeat(np.arange(4), 30)[kept]
        expected = metrics.evaluate(probs[kept], labels[kept], groups=groups, draws=2)[name].value
    assert found == pytest.approx(expected, rel=1e-12)


def test_images_are_groups_unless_others_are_given(pixels):
    images, of_images, probs, labels, kept = pixels
    options = {"dim": 1, "ignore_index": 255, "draws": 30}
    found = metrics.evaluate(images, of_images, **options)
    image = np.repeat(np.arange(4), 30)
    expected = metrics.evaluate(probs[kept], labels[kept], groups=image[kept], draws=30)
    assert found.to_dict() == expected.to_dict()
    assert "4 groups, the entries of the first axis." in str(found)
    assert "4 groups." in str(expected)
    # Groups of pixels have the shape of the labels; those of images are repeated for their pixels.
    for groups, n_groups in ((np.arange(120).reshape(4, 5, 6), 102), (["a", "b", "a", "b"], 2)):
        assert metrics.evaluate(images, of_images, groups=groups, **options).n_groups == n_groups
    for function in (metrics.spiegelhalter, metrics.cox, metrics.cumulative_differences):
        test = function(images, of_images, dim=1, ignore_index=255)
        assert test == function(probs[kept], labels[kept], groups=image[kept])
    diagram = metrics.reliability(images, of_images, dim=1, ignore_index=255)
    assert diagram.count.sum() == kept.sum()


def test_bins_of_groups_have_wider_intervals(drawn):
    confidence, right, groups = drawn(0)
    rows, by_groups = (metrics.reliability(confidence, right, groups=one) for one in (None, groups))
    np.testing.assert_array_equal(rows.accuracy, by_groups.accuracy)
    assert by_groups.effect > 1.2
    filled = rows.count > 0
    assert (by_groups.high - by_groups.low > rows.high - rows.low)[filled].all()


def test_rows_of_weight_0_do_not_make_a_group():
    probs, labels, groups = [[0.9, 0.1]] * 4, [0, 1, 0, 0], ["a", "b", "b", "c"]
    assert metrics.evaluate(probs, labels, groups=groups, sample_weight=[1, 1, 1, 0], draws=5).n_groups == 2
    with pytest.raises(InputError, match="at least 2 different ids; found 1"):
        metrics.evaluate(probs, labels, groups=groups, sample_weight=[0, 1, 1, 0], draws=5)
