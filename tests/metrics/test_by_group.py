"""Calibration by group: the finding of each value alone, tests of their size, no word against the table."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import chi2

from temperance import InputError, metrics
from temperance.inputs.groups import MAX_VALUES, check_by
from temperance.metrics.by_group import calibration_by_group, holm, shrunk_gaps
from temperance.metrics.finding import FEW, State
from temperance.metrics.predictions import check_rows


def by_group(p, y, by, **about):
    names = {"classes": ["no", "yes"]} if np.ndim(p) == 1 else {}
    y = np.array(["no", "yes"])[np.asarray(y).astype(int)] if names else np.asarray(y)
    return calibration_by_group(check_rows(p, y, by=by, **names, **about))


def drawn(rng, p):
    """Return labels with these probabilities."""
    if p.ndim == 1:
        return rng.uniform(size=len(p)) < p
    return np.minimum((p.cumsum(axis=1) < rng.uniform(size=(len(p), 1))).sum(axis=1), p.shape[1] - 1)


def alike(rng, n_values, n_rows, size=1, shared=0.0):
    """Return rows of calibrated values in groups, of which a share has the random number of its group."""
    n = n_values * n_rows
    p, group = expit(rng.normal(0, 1.8, n)), np.arange(n) // size
    chance = np.where(rng.uniform(size=n) < shared, rng.uniform(size=n)[group], rng.uniform(size=n))
    return p, chance < p, np.repeat(np.arange(n_values), n_rows), group


def values_of(found):
    return {one.value: one for one in found.values}


def test_holm_is_what_one_computes_by_hand():
    # Sorted: 0.005 x 4 = 0.02, 0.01 x 3 = 0.03, 0.03 x 2 = 0.06, 0.04 x 1 = 0.04, but not below 0.06.
    assert holm(np.array([0.04, 0.01, 0.03, 0.005])).tolist() == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm(np.array([0.6, 0.7])).tolist() == [1, 1]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_value_has_the_finding_of_its_rows_alone(simulate, n_classes, weighted):
    """Before the correction for several values and two questions."""
    probs, labels, _ = simulate(600, n_classes, sharpen=1.4)
    by = np.arange(600) % 3
    weight = np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else None
    found = metrics.evaluate(probs, labels, by=by, sample_weight=weight, draws=20).by_group
    for one in found.values:
        part = by == int(one.value)
        own = None if weight is None else weight[part]
        alone = metrics.evaluate(probs[part], labels[part], sample_weight=own, draws=20).finding
        assert (one.alone, one.alone.words) == (alone, alone.words)
    alone = np.array([one.alone.p_value for one in found.values])
    judged = [one.finding.p_value for one in found.values]
    assert judged == pytest.approx(np.minimum(2 * holm(alone), 1).tolist())


def test_a_value_that_the_correction_spares_is_not_called_miscalibrated():
    spared = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p, by = expit(rng.normal(0, 1.8, 2000)), np.arange(2000) % 10
        found = by_group(p, drawn(rng, p), by)
        spared += [one for one in found.values if one.alone.p_value < 0.05 <= one.finding.p_value]
    assert len(spared) > 1
    for one in spared:
        assert one.alone.state.miscalibrated
        assert one.finding.state in (State.MAY_BE, State.NONE, State.TOO_FEW)


def test_west_is_named_where_errors_below_and_above_a_half_cancel(west):
    p, y, hospital = west
    found = metrics.evaluate(p, y, classes=["no", "yes"], by=hospital, draws=5).by_group
    assert found.words == (
        "P(yes) is too high in West: 49.2% on average, 38.3% observed (O/E 0.78, 0.75 to 0.81). "
        "Not detectable in East, North, South. The values differ (p < 0.001)."
    )
    head, rows = found.table()
    assert head == ["value", "rows", "yes", "mean P", "observed", "O/E, 95% interval", "p"]
    assert rows[0] == ["West", "2,183", "837", "49.2%", "38.3%", "0.78, 0.75 to 0.81", "< 0.001"]


def test_of_three_classes_the_value_with_other_frequencies_is_named():
    """Two classes are off by 10 points in opposite directions, which the confidence hardly shows."""
    rng = np.random.default_rng(0)
    z, ward = rng.normal(0, 1.8, (6000, 3)), np.repeat(["A", "B", "C", "W"], 1500)
    truth = z + np.where(ward == "W", 1, 0)[:, None] * [0.56, -0.56, 0.0]
    p = softmax(z, axis=1)
    y = drawn(rng, softmax(truth, axis=1))
    here = ward == "W"
    np.testing.assert_allclose(p[here].mean(axis=0), [0.337, 0.326, 0.338], atol=0.02)
    np.testing.assert_allclose(np.bincount(y[here]) / 1500, [0.446, 0.231, 0.323], atol=0.02)
    found = by_group(p, y, ward)
    named = [one.value for one in found.values if one.finding.state.miscalibrated]
    assert named == ["W"]
    assert found.p_value < 0.001
    assert "Not detectable in A, B, C. The values differ (p < 0.001)." in found.words
    head, rows = found.table()
    assert head == ["value", "rows", "gap, 95% interval", "worst class, O/E", "p"]
    assert re.fullmatch(r"class [01], O/E [01]\.\d\d", rows[0][3])


WORLDS = {
    "calibrated": [0.0] * 4,
    "one off": [0.0, 0.0, 0.0, -0.8],
    "all off": [0.4] * 4,
    "opposite": [-0.25, -0.15, 0.15, 0.25],
}


def made(world, rng, n=1600, middle=0.0, few=0):
    """Return a table of four values of which some are off, and `few` rows of a fifth."""
    by = np.append(np.repeat(["a", "b", "c", "d"], n // 4), ["e"] * few)
    z = rng.normal(middle, 1.8, len(by))
    shift = np.array([*WORLDS[world], 0.0])["abcde".find(by[0]) + np.searchsorted(list("abcde"), by)]
    return expit(z), drawn(rng, expit(z + shift)), by


def first(pattern, worlds, **size):
    """Return the words of the first of some made tables that match."""
    for seed in range(40):
        for world in worlds:
            found = by_group(*made(world, np.random.default_rng(seed), **size))
            if re.fullmatch(pattern, found.words):
                return found
    raise AssertionError(f"no table has the words {pattern}")


NUMBERS = r"\d+\.\d% on average, \d+\.\d% observed \(O/E \d\.\d\d, \d\.\d\d to \d\.\d\d\)"
P = r"\(p [=<] [\d.]+\)"


@pytest.mark.parametrize(
    ("pattern", "worlds", "size"),
    [
        (
            rf"P\(yes\) is too high in d: {NUMBERS}\. Not detectable in a, b, c\. The values differ {P}\.",
            ["one off"],
            {},
        ),
        (
            r"P\(yes\) is too low in [^:.]+ and .; whether values differ cannot be shown \(p = [\d.]+\)\..*",
            ["all off"],
            {},
        ),
        (
            rf"Values differ {P}, but no single one can be named\. "
            r"Furthest apart: [cd] \(O/E 1\.\d+\), [ab] \(O/E 0\.\d+\)\..*",
            ["opposite"],
            {"n": 1200},
        ),
        (
            "No miscalibration is detectable in any of the 4 values, nor a difference between them.",
            ["calibrated"],
            {},
        ),
        (
            "No miscalibration is detectable in any of the 5 values, nor a difference between them. "
            "Too few rows to tell: e.",
            ["calibrated"],
            {"few": 12},
        ),
        ("Too few rows to tell: a, b, c, d.", ["calibrated"], {"n": 80}),
    ],
    ids=["named, differ", "named", "differ", "neither", "too few of some", "too few of all"],
)
def test_there_are_five_texts(pattern, worlds, size):
    found = first(pattern, worlds, **size)
    assert (found.p_value < 0.05) == ("iffer (p" in found.words)


def test_several_that_are_off_are_named_by_what_is_wrong():
    rng = np.random.default_rng(0)
    by = np.repeat(["a", "b", "c"], 1000)
    z = rng.normal(0, 1.8, 3000)
    y = drawn(rng, expit(z + np.repeat([0.8, -0.8, 0.9], 1000)))
    words = by_group(expit(z), y, by).words
    assert words == "P(yes) is too low in c and a; P(yes) is too high in b. The values differ (p < 0.001)."


def test_an_interval_that_excludes_its_ideal_is_never_beside_no_miscalibration():
    """It is by chance in one of 20 calibrated values, so it is told, and that it is not confirmed."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, by = expit(rng.normal(0, 1.8, 3000)), np.arange(3000) % 6
        found = by_group(p, drawn(rng, p), by)
        off = [one.value for one in found.values if one.finding.state is State.MAY_BE and one.finding.is_off]
        if off and found.words.startswith("No miscalibration"):
            break
    assert found.words.startswith("No miscalibration is confirmed in any of the 6 values, nor a difference")
    assert re.search(rf"Not confirmed: P\(yes\) may be too (low|high) in {off[0]}", found.words)


def no_word_against(found):
    """Check the words against the table that is shown below them."""
    head, rows = found.table()
    cells = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    words, of_event = found.words, found.of_event
    assert ("iffer (p" in words) == (found.p_value < 0.05)
    lists = dict(re.findall(r"(Not detectable in|Too few rows to tell:|Not confirmed:) ([^.]*)\.", words))
    clear = lists.get("Not detectable in", "")
    nobody = words.startswith("No miscalibration is detectable")
    for one in found.values:
        shown = cells[one.value]
        p = 0.0 if shown["p"].startswith("<") else float(shown["p"])
        said = re.compile(rf" in ([a-e, ]*\b)?(and )?{one.value}\b")
        named = [part for part in re.split(r"[.;] ", words) if said.search(part)]
        named = [part for part in named if not part.startswith(("Not ", "No ")) and "may be" not in part]
        assert bool(named) == (p < 0.05), (words, shown)
        ends = shown["O/E, 95% interval" if of_event else "gap, 95% interval"].split(", ")[1]
        low, high = (float(end) for end in ends.split(" to "))
        ideal = 1.0 if of_event else 0.0
        excluded = low > ideal or high < ideal
        if one.value in clear.split(", ") or nobody:
            assert p >= 0.05
            assert not excluded or low == ideal or high == ideal, (words, shown)
        if of_event and named and "too high in" in named[0]:
            assert high <= 1, (words, shown)
        if of_event and named and "too low in" in named[0]:
            assert low >= 1, (words, shown)
        if one.value in lists.get("Too few rows to tell:", "").split(", "):
            assert p >= 0.05
            gap = one.finding.gap
            wide = max(gap.high - gap.value, gap.value - gap.low) > 0.1
            assert wide or (of_event and (low <= FEW[0] or high >= FEW[1])), shown
    if found.of_event and (two := re.search(r"apart: (.) \(O/E ([\d.]+)\), (.) \(O/E ([\d.]+)\)", words)):
        assert float(two[2]) > float(two[4])


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("middle", [0.0, -3.0])
def test_no_word_contradicts_the_table(world, middle):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        no_word_against(by_group(*made(world, rng, [120, 600, 2400][seed % 3], middle, few=seed % 2 * 10)))


def test_no_word_of_several_classes_contradicts_the_table():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        z, by = rng.normal(0, 1.8, (1500, 4)), np.repeat(["a", "b", "c"], [900, 500, 100])
        truth = z + (by == "b")[:, None] * [0.15 * (seed % 6), 0, 0, 0]
        no_word_against(
            by_group(softmax(z * (1 + 0.1 * (seed % 3)), axis=1), drawn(rng, softmax(truth, axis=1)), by)
        )


def test_a_common_shift_is_no_difference():
    rng = np.random.default_rng(4)
    z, by = rng.normal(0, 1.8, 4000), np.repeat(["a", "b", "c", "d"], 1000)
    found = by_group(expit(z), drawn(rng, expit(z + 0.5)), by)
    assert found.p_value > 0.05
    assert {one.finding.claim for one in found.values} == {"P(yes) is too low"}
    assert found.degrees_of_freedom == pytest.approx(3)


def test_the_test_of_a_difference_is_the_score_test_of_an_indicator():
    """Of two values: shift all log-odds so that the mean fits, then z of the residuals of each."""
    rng = np.random.default_rng(2)
    z, by = rng.normal(0, 1.8, 3000), np.repeat([0, 1], [2000, 1000])
    y = drawn(rng, expit(z + np.where(by == 1, 0.2, -0.1)))
    shift = 0.0
    for _ in range(50):
        q = expit(z + shift)
        shift += (y - q).sum() / (q * (1 - q)).sum()
    parts = [by == 0, by == 1]
    squares = [(y - q)[part].sum() ** 2 / (q * (1 - q))[part].sum() for part in parts]
    found = by_group(expit(z), y, by)
    assert found.statistic == pytest.approx(sum(squares), rel=0.02)
    assert found.p_value == pytest.approx(2 * chi2.sf(sum(squares), 1), rel=0.1)


def test_rare_classes_do_not_make_values_differ():
    """Classes without enough rows share a column, so that fewer degrees of freedom are lost than classes."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(8):
        p = softmax(rng.normal(0, 3.5, (3000, 100)) - np.linspace(0, 6, 100), axis=1)
        found.append(by_group(p, drawn(rng, p), rng.integers(0, 4, 3000)))
    assert np.mean([one.p_value < 0.1 for one in found]) < 0.4
    for one in found:
        assert one.statistic == pytest.approx(
            one.degrees_of_freedom, abs=5 * np.sqrt(2 * one.degrees_of_freedom)
        )


@pytest.mark.parametrize(
    ("n", "n_values", "n_rows", "size", "shared"),
    [
        (60, 6, 80, 1, 0.0),
        (60, 6, 80, 8, 0.6),
        pytest.param(1000, 6, 80, 1, 0.0, marks=pytest.mark.slow),
        pytest.param(1000, 6, 80, 8, 0.6, marks=pytest.mark.slow),
        pytest.param(1000, 5, 200, 20, 0.5, marks=pytest.mark.slow),
    ],
)
def test_both_questions_together_have_the_level(n, n_values, n_rows, size, shared):
    rng = np.random.default_rng(3)
    differ, named, either = 0, 0, 0
    for _ in range(n):
        p, y, by, groups = alike(rng, n_values, n_rows, size, shared)
        found = by_group(p, y, by, groups=None if size == 1 else groups)
        smallest = min(one.finding.p_value for one in found.values)
        differ, named = differ + (found.p_value < 0.1), named + (smallest < 0.1)
        either += min(found.p_value, smallest) < 0.05
    error = np.sqrt(0.05 * 0.95 / n)
    assert max(differ, named) / n < 0.06 + 2 * error  # each alone, without doubling
    assert either / n < 0.06 + 2 * error


def test_without_groups_values_that_are_equal_seem_to_differ():
    rng = np.random.default_rng(3)
    found = [by_group(*alike(rng, 5, 200, size=20, shared=0.7)[:3]).p_value for _ in range(40)]
    assert np.mean(np.array(found) < 0.05) > 0.3


def test_the_correlation_of_correct_predictions_counts_as_well():
    """Texts that are hard as a whole: the numbers of yes and no do not show it, the spread does."""
    rng = np.random.default_rng(7)
    named = np.zeros(2)
    for _ in range(25):
        p, groups = expit(rng.normal(0, 1.8, 1200)), np.arange(1200) // 20
        shared = rng.uniform(size=60)[groups]
        right = np.where(rng.uniform(size=1200) < 0.5, shared, rng.uniform(size=1200)) < np.maximum(p, 1 - p)
        y, by = np.where(right, p > 0.5, p <= 0.5), groups % 4
        for place, given in enumerate((groups, None)):
            named[place] += any(
                one.finding.state.miscalibrated for one in by_group(p, y, by, groups=given).values
            )
    assert named[1] > 8
    assert named[0] < 4


def test_few_rows_are_said_to_be_few_and_moved_towards_the_others():
    rng = np.random.default_rng(5)
    by = np.repeat(["a", "b", "c", "d", "e", "f"], [600, 600, 600, 600, 600, 8])
    p = expit(rng.normal(0, 1.5, len(by)))
    y = drawn(rng, p)
    p[-8:], y[-8:] = 0.4, np.arange(8) < 5
    found = values_of(by_group(p, y, by))
    few, many = found["f"], found["a"]
    assert few.finding.state is State.TOO_FEW
    assert abs(few.shrunk.value) < 0.6 * abs(few.alone.gap.value)
    assert few.shrunk.high - few.shrunk.low < few.alone.gap.high - few.alone.gap.low
    assert many.finding.state is not State.TOO_FEW


@pytest.mark.parametrize("n_values", [2, 3, 5])
def test_shrunk_gaps_are_the_posterior_of_a_model_of_random_effects(n_values):
    """By brute force over the mean m and the standard deviation t of the true gaps."""
    gaps, errors = (
        np.array([0.12, -0.03, 0.05, 0.01, 0.2])[:n_values],
        np.array([0.02, 0.03, 0.02, 0.05, 0.1]),
    )
    errors = errors[:n_values]
    t, m = np.linspace(0, 0.6, 601)[:, None, None], np.linspace(-1, 1, 2001)[None, :, None]
    variance = errors**2 + t**2
    log_posterior = (
        np.sum(-((gaps - m) ** 2) / variance - np.log(variance), axis=2) / 2 - (t / 0.2)[..., 0] ** 2 / 2
    )
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    mean = (t**2 * gaps + errors**2 * m) / variance
    square = t**2 * errors**2 / variance + mean**2
    wanted = np.einsum("tm,tmv->v", posterior, mean)
    spread = np.sqrt(np.einsum("tm,tmv->v", posterior, square) - wanted**2)
    found, spreads = shrunk_gaps(gaps, errors)
    np.testing.assert_allclose(found, wanted, atol=2e-4)
    np.testing.assert_allclose(spreads, spread, rtol=0.01)
    if n_values == 5:
        assert spreads[4] < errors[4]
        moved, wide = shrunk_gaps(np.append(gaps, 0.9), np.append(errors, np.inf))
        assert moved[5] == pytest.approx(np.sum(posterior * m[..., 0]), abs=2e-4)
        assert wide[5] > spreads.max()


def test_a_single_value_with_an_error_is_not_moved():
    found, spreads = shrunk_gaps(np.array([0.2, 0.1]), np.array([0.05, np.inf]))
    assert found.tolist() == [0.2, 0.1]
    assert spreads[0] == 0.05
    assert np.isnan(spreads[1])


def test_values_of_a_single_group_have_no_interval_but_a_p_value_if_others_have_several():
    rng = np.random.default_rng(6)
    p, y, by, groups = alike(rng, 3, 100, size=10, shared=0.5)
    groups = np.where(by == 2, 1000, groups)
    found = values_of(by_group(p, y, by, groups=groups))
    assert (found["2"].n_groups, found["0"].n_groups) == (1, 10)
    assert np.isnan(found["2"].alone.gap.low)
    assert 0 < found["2"].finding.p_value <= 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_of_a_single_group_each_are_not_tested(n_classes):
    rng = np.random.default_rng(0)
    p, patient = softmax(rng.normal(0, 1, (80, n_classes)), axis=1), np.arange(80) // 20
    found = by_group(p, drawn(rng, p), patient, groups=patient)
    assert found.words == "Too few groups to tell: 0, 1, 2, 3."
    assert all(np.isnan(one.finding.p_value) for one in found.values)
    assert "nan" not in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["p_value"] is None


def test_copies_of_rows_in_one_group_count_once():
    rng = np.random.default_rng(7)
    p, y, by, _ = alike(rng, 5, 60)
    once = by_group(p, y, by)
    often = by_group(np.repeat(p, 4), np.repeat(y, 4), np.repeat(by, 4), groups=np.repeat(np.arange(300), 4))
    assert often.p_value == pytest.approx(once.p_value, rel=0.05)
    others = values_of(often)
    for one in once.values:
        other = others[one.value]
        assert other.alone.p_value == pytest.approx(one.alone.p_value, rel=0.15)
        assert other.alone.gap.low == pytest.approx(one.alone.gap.low, abs=1e-9)


@pytest.mark.parametrize("answer", [False, True])
def test_labels_of_one_class_show_no_difference(answer):
    found = by_group(np.full(60, 0.99 if answer else 0.01), np.full(60, answer), np.repeat(["a", "b"], 30))
    assert found.p_value == pytest.approx(1)
    assert found.values[0].alone.p_value > 0.5


def test_a_label_of_probability_0_is_named_even_in_a_single_group():
    p, y = np.full(60, 0.5), np.arange(60) % 2 == 0
    p[0] = 0.0
    by = np.repeat(["a", "b"], 30)
    found = by_group(p, y, by, groups=by)
    assert found.words == (
        "1 row in a has a label of probability 0; whether values differ cannot be shown. "
        "Too few groups to tell: b."
    )


def test_the_positive_class_is_judged_and_heads_the_table():
    rng = np.random.default_rng(8)
    z, by = rng.normal(0, 1.8, (2000, 3)), np.repeat(["a", "b"], 1000)
    p = softmax(z, axis=1)
    y = np.array(["ant", "bee", "cat"])[drawn(rng, softmax(z + (by == "b")[:, None] * [0, 0.8, 0], axis=1))]
    about = {"classes": ["ant", "bee", "cat"], "by": by, "draws": 5}
    found = metrics.evaluate(p, y, positive="bee", **about).by_group
    assert found.words.startswith("P(bee) is too low in b: ")
    assert found.table()[0][2] == "bee"
    alone = metrics.evaluate(p[by == "b", 1], y[by == "b"] == "bee", draws=5).finding
    of_b = values_of(found)["b"].alone
    assert (of_b.p_value, of_b.ratio) == (pytest.approx(alone.p_value), alone.ratio)
    assert "worst class, O/E" in metrics.evaluate(p, y, **about).by_group.table()[0]


def test_positions_have_a_gap_and_no_class():
    rng = np.random.default_rng(9)
    z, by = rng.normal(0, 1.8, (3000, 4)), np.repeat(["law", "maths"], 1500)
    p = softmax(z * np.where(by == "maths", 2.0, 1.0)[:, None], axis=1)
    found = by_group(p, drawn(rng, softmax(z, axis=1)), by, positions=True)
    assert found.words.startswith("Overconfident in maths by ")
    assert "The values differ (p < 0.001)." in found.words
    assert found.table()[0] == ["value", "rows", "gap, 95% interval", "p"]
    assert found.degrees_of_freedom == pytest.approx(1)


def test_the_result_prints_as_a_table_and_is_json(simulate):
    probs, labels, _ = simulate(200, 3, sharpen=2.0)
    result = metrics.evaluate(probs, labels, by=np.where(np.arange(200) < 150, "old", "young"), draws=20)
    head, *rows = str(result).splitlines()[-3:]
    assert head.split() == ["value", "rows", "gap,", "95%", "interval", "worst", "class,", "O/E", "p"]
    assert rows[0].split()[:2] == ["old", "150"]
    assert len({len(row) for row in (head, *rows)}) == 1
    plain = json.loads(json.dumps(result.by_group.to_dict(), allow_nan=False))
    assert (plain["correction"], plain["values"][0]["value"]) == ("Holm", "old")
    p_values = [one["p_value"] for one in plain["values"]]
    assert all(low <= high for low, high in pairwise(p_values)), "the most evidence is first"
    assert plain["values"][0]["finding"]["words"] == result.by_group.values[0].finding.words
    assert metrics.evaluate(probs, labels, draws=20).by_group is None


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["a", "b"], r"one value per row.*; found shape \(2,\) for 3 rows"),
        (["a", "a", "a"], "from 2 to 1,000 different ones; found 1. Leave it out"),
        (np.array(["a", None, "b"], object), "found rows without one.*Give them a value such as unknown"),
    ],
)
def test_a_mistake_is_named(by, message):
    with pytest.raises(InputError, match=message):
        check_by(by, 3)


def test_numbers_must_be_cut_into_ranges():
    with pytest.raises(InputError, match=r"found 1,001\. Cut numbers into ranges first"):
        check_by(np.arange(MAX_VALUES + 1), MAX_VALUES + 1)
