"""Every state of a finding, from rows that have it, and what no finding may say."""

import numpy as np
import pytest

from temperance.metrics.finding import Finding, State, excludes, p_in_words, rates
from temperance.metrics.predictions import check_rows

YES_NO, ANIMALS = ["no", "yes"], ["ant", "bee", "cat"]


def softmax(logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def labels_of(p, seed=0):
    """Return labels that have the probabilities: about as many of each class as are predicted."""
    rng = np.random.default_rng(seed)
    uniform = (rng.permutation(len(p)) + 0.5) / len(p)
    return np.minimum((uniform[:, None] > p.cumsum(axis=1)).sum(axis=1), p.shape[1] - 1)


def two_classes(n_rows, said, true=lambda x: x, mean=-1.5, scale=1.3, seed=0):
    """Return the finding of rows whose log-odds are said(x), and have labels of log-odds true(x)."""
    x = np.random.default_rng(seed).normal(mean, scale, n_rows)
    p, truth = (softmax(np.column_stack([np.zeros(n_rows), odds])) for odds in (said(x), true(x)))
    return Finding.of(check_rows(p, labels_of(truth, seed), classes=YES_NO))


def three_classes(n_rows, said, true=lambda z: z, seed=0):
    z = np.random.default_rng(seed).normal(0, 1.5, (n_rows, 3))
    return Finding.of(check_rows(softmax(said(z)), labels_of(softmax(true(z)), seed), classes=ANIMALS))


def test_level():
    finding = two_classes(4_000, lambda x: x - 0.4)
    assert finding.state is State.LEVEL
    assert finding.direction == "too low"
    assert str(finding).startswith("P(yes) is too low: ")
    assert " on average, " in str(finding)
    assert finding.frequencies in str(finding)


def test_level_and_spread():
    finding = two_classes(6_000, lambda x: 1.6 * x + 0.9)
    assert finding.state is State.LEVEL_AND_SPREAD
    assert str(finding).startswith("P(yes) is too high: ")
    assert f"It is also too extreme (slope {finding.slope.value:.2f}, " in str(finding)
    assert finding.slope.high < 1


def test_spread():
    finding = two_classes(3_000, lambda x: 1.6 * x, mean=0.0)
    assert finding.state is State.SPREAD
    assert str(finding).startswith(f"P(yes) is too extreme: slope {finding.slope.value:.2f} (")
    assert "On average it fits: " in str(finding)
    timid = two_classes(3_000, lambda x: 0.6 * x, mean=0.0)
    assert timid.state is State.SPREAD
    assert str(timid).startswith("P(yes) is not extreme enough: slope 1.")


def test_none():
    finding = two_classes(4_000, lambda x: x)
    assert finding.state is State.NONE
    assert str(finding).startswith("No miscalibration is detectable: P(yes) ")
    assert str(finding).endswith(f"; {p_in_words(finding.p_value)}).")


def test_too_few():
    finding = two_classes(40, lambda x: x, mean=-3.0)
    assert finding.state is State.TOO_FEW
    assert str(finding).startswith("Too few rows to tell: P(yes) ")
    assert f"{finding.events} of 40 observed (O/E " in str(finding)


def test_reversed():
    finding = two_classes(500, lambda x: -x, mean=0.0)
    assert finding.state is State.REVERSED
    assert str(finding) == (
        "Higher P(yes) goes with fewer yes. Check the columns and labels before you calibrate."
    )
    of_three = three_classes(500, lambda z: -z)
    assert of_three.state is State.REVERSED
    assert "below chance" in str(of_three)


def test_impossible():
    p = np.array([[0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])
    one = Finding.of(check_rows(p, [0, 1, 1], classes=YES_NO))
    assert (one.state, str(one)) == (State.IMPOSSIBLE, "1 row has a label of probability 0.")


def test_answers_that_are_sure_and_wrong_say_first_how_far_off_all_are():
    """Stated confidences of 100% are common."""
    stated = np.repeat([0.6, 0.9, 1.0], 70)
    right = np.arange(210) % 10 < np.repeat([5, 6, 8], 70)
    found = Finding.of(check_rows(stated, right, classes=["wrong", "right"]))
    assert found.state is State.IMPOSSIBLE
    assert str(found) == (
        "P(right) is too high: 83.3% on average, 63.3% observed (O/E 0.76, 0.68 to 0.84). "
        "14 rows have a label of probability 0."
    )
    of_three = check_rows(np.tile([[1.0, 0.0, 0.0], [0.8, 0.1, 0.1]], (60, 1)), np.arange(120) % 3)
    assert str(Finding.of(of_three)).startswith("Overconfident by ")
    assert str(Finding.of(of_three)).endswith(" have a label of probability 0.")


@pytest.mark.parametrize("state", [State.UNCLEAR, State.MAY_BE])
def test_test_and_intervals_that_disagree_are_said_to(state):
    """Neither can be made to order; among many tables of a rare class there are some of each."""
    findings = (two_classes(300, lambda x: x - 0.5, mean=-3.0, seed=seed) for seed in range(400))
    finding = next(found for found in findings if found.state is state)
    if state is State.UNCLEAR:
        assert finding.p_value < 0.05
        assert "does not fit these rows" in str(finding)
    else:
        assert finding.p_value >= 0.05
        assert excludes(finding.ratio, 1.0) or excludes(finding.slope, 1.0)
        assert "Average and spread together do not confirm it" in str(finding)


def test_the_confidence_of_several_classes():
    finding = three_classes(3_000, lambda z: 1.5 * z)
    assert finding.state is State.GAP
    assert str(finding).startswith(f"Overconfident by {100 * finding.gap.value:.1f} points (")
    assert str(three_classes(3_000, lambda z: 0.6 * z)).startswith("Underconfident by ")


def test_one_class_of_several():
    def rarer(z):
        return z - np.array([0.0, 0.0, 0.7])

    finding = three_classes(3_000, rarer)
    assert finding.name == "cat"
    assert "at is predicted too rarely: " in str(finding)
    both = three_classes(3_000, lambda z: 1.5 * rarer(z))
    assert both.state is State.GAP_AND_CLASS
    assert str(both).startswith("Overconfident by ")
    assert "Cat is predicted too rarely: " in str(both)


def test_only_the_spread_of_several_classes():
    """A mixture: half of the rows too sure, half not sure enough, so that the average fits."""
    rng = np.random.default_rng(4)
    z = rng.normal(0, 1.5, (12_000, 3))
    p = softmax(np.where(np.arange(12_000)[:, None] % 2, 2.2 * z, 0.5 * z))
    finding = Finding.of(check_rows(p, labels_of(softmax(z)), classes=ANIMALS))
    assert finding.p_value < 0.05
    assert finding.state in (State.SPREAD, State.GAP)


def test_class_frequencies_that_are_off_together():
    move = np.resize([0.15, -0.15], 20)
    z = np.random.default_rng(7).normal(0, 2, (2_000, 20))
    labels = labels_of(softmax(z + move), 7)
    finding = Finding.of(check_rows(softmax(z), labels))
    assert finding.state is State.FREQUENCIES
    assert str(finding).startswith("Class frequencies are off together (p ")


def test_a_calibrated_classifier_of_several_classes():
    finding = three_classes(4_000, lambda z: z)
    assert finding.state is State.NONE
    assert str(finding).startswith("No miscalibration is detectable: confidence ")
    assert three_classes(30, lambda z: z).state is State.TOO_FEW


WORLDS = {
    "calibrated": lambda x: x,
    "too low": lambda x: x - 0.4,
    "too high": lambda x: x + 0.4,
    "too extreme": lambda x: 1.5 * x,
    "timid": lambda x: 0.6 * x,
    "reversed": lambda x: -x,
    "all": lambda x: 1.7 * x + 0.5,
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_sentence_contradicts_its_numbers(world, n_classes):
    rng = np.random.default_rng(len(world))
    for n_rows in (15, 60, 300, 1_500):
        for mean in (-3.0, 0.0):
            z = rng.normal(0, 1.5, (n_rows, n_classes))
            z[:, 1] += mean
            p, truth = softmax(WORLDS[world](z)), softmax(z)
            labels = (rng.uniform(size=(n_rows, 1)) > truth.cumsum(axis=1)).sum(axis=1)
            found = Finding.of(check_rows(p, np.minimum(labels, n_classes - 1)))
            words = str(found)
            assert found.state.miscalibrated == (found.p_value < 0.05)
            ideal = (found.ratio, 1.0) if n_classes == 2 else (found.gap, 0.0)
            if excludes(*ideal):
                assert found.state not in (State.NONE, State.TOO_FEW)
            if "too low" in words:
                assert found.ratio.value > 1
            if "too high" in words:
                assert found.ratio.value < 1
            if "verconfident" in words:
                assert found.gap.value > 0
            if n_classes == 2:
                assert "confident" not in words
            assert found.to_dict()["words"] == words


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 200), (3, 200), (10, 200)])
def test_the_first_sentence_is_wrong_in_at_most_5_percent_of_calibrated_rows(n_classes, n_rows):
    rng = np.random.default_rng(n_classes)
    wrong = 0
    for _ in range(300):
        p = softmax(rng.normal(0, 1.5, (n_rows, n_classes)))
        labels = (rng.uniform(size=(n_rows, 1)) > p.cumsum(axis=1)).sum(axis=1)
        wrong += Finding.of(check_rows(p, np.minimum(labels, n_classes - 1))).state.miscalibrated
    assert wrong <= 300 * 0.085  # 3 standard errors


def test_the_positive_class_of_several_is_judged_by_its_probability():
    z = np.random.default_rng(0).normal(0, 1.5, (3_000, 3))
    labels = labels_of(softmax(z))
    p = softmax(z - [0.0, 0.7, 0.0])
    finding = Finding.of(check_rows(p, labels, classes=ANIMALS, positive="bee"))
    assert finding.of_event
    assert str(finding).startswith("P(bee) is too low: ")


def test_numbers_that_round_alike_get_more_decimals():
    assert rates(0.0195, 0.0253) == ["1.95%", "2.53%"]
    assert rates(0.0) == ["0.0%"]


def test_a_ratio_whose_interval_excludes_1_never_looks_as_if_it_held_1():
    found = two_classes(60_000, lambda x: 0.4 + x, mean=4.5, scale=1.0)
    assert found.state is State.LEVEL
    low, high = str(found).split("(O/E ")[1].rstrip(").").split(", ")[1].split(" to ")
    assert (float(low) > 1) or (float(high) < 1)
