"""Parts of `events.py` that judge rows: the test, the interval of O/E, the sentences, and groups of rows.

Each part takes a number of samples per cell and yields tables. Beside a figure is what version 0.3.0 found
("before"), and what was found when the method was designed ("expected"): percentages, None where nothing was.
"""

from __future__ import annotations

import numpy as np
from events_tables import Table, goal, in_brackets, samples, share
from events_worlds import TWO, World, draw, draw_labels, two_columns
from scipy.optimize import brentq
from scipy.special import chdtrc, expit, logit, ndtri
from sklearn.linear_model import LogisticRegression

from temperance.metrics import evaluate
from temperance.metrics.finding import Finding, State, excludes
from temperance.metrics.one_test import one_test

LEVEL = 0.05
# Directions are counted as wrong only where the truth has one: O/E off by 5%, confidence by half a point.
MIN_RATIO, MIN_GAP = 0.05, 0.005

# (kind, what is wrong, rows): before, expected.
OK = "calibrated"
LEVELS = {
    ("balanced", OK, 20): (7.2, 3.8), ("balanced", OK, 200): (4.7, 4.9), ("balanced", OK, 5000): (6.0, 5.3),
    ("2%", OK, 20): (3.5, 3.1), ("2%", OK, 200): (7.9, 4.4), ("2%", OK, 5000): (5.0, 4.9),
    ("99.8% accurate", OK, 50): (2.8, 2.4), ("99.8% accurate", OK, 1000): (5.5, 2.4),
    ("votes of 20 trees", OK, 20): (9.2, 3.1), ("votes of 20 trees", OK, 5000): (5.2, 4.3),
    (3, OK, 20): (7.4, 5.2), (3, OK, 100): (6.8, 3.4), (3, OK, 2000): (5.4, 4.2),
    (10, OK, 20): (5.6, 2.2), (10, OK, 100): (4.6, 3.0), (10, OK, 2000): (3.2, 4.6),
    (100, OK, 20): (8.0, 4.0), (100, OK, 100): (8.0, 2.4), (100, OK, 2000): (2.4, 3.2),
}  # fmt: skip
ACCURATE = {(k, "99.5% accurate", n): (None, "2 to 4") for k in (3, 10) for n in (50, 200, 1000, 5000)}
POWERS = {
    ("balanced", "logits x 1.5", 50): (26, 31), ("balanced", "logits x 1.5", 200): (74, 77),
    ("balanced", "log-odds +0.4", 200): (6, 55), ("balanced", "log-odds +0.4", 5000): (16, 100),
    ("2%", "log-odds +0.4", 1000): (29, 34), ("2%", "x 1.5 about the median", 200): (18, 48),
    ("2%", "x 1.5 about the median", 1000): (60, 100), ("balanced", "mixture, +-0.8", 1000): (32, 32),
    (3, "logits x 1.5", 100): (58, 71), (10, "logits x 1.5", 100): (85, 98),
    (3, "one class +0.7", 100): (7, 48), (10, "one class +0.7", 500): (3, 79),
    (100, "one class +0.7", 2000): (1, 18), (10, "all classes, +-0.5", 500): (5, 94),
    (100, "all classes, +-0.5", 2000): (6, 94), (3, "mixture, +-1.2", 500): (34, 39),
}  # fmt: skip

# Calibrated with lognormal weights: (kind, rows). Calibrated in groups of 20 rows: (kind, groups).
WEIGHTED = {("balanced", 100): 4.5, ("balanced", 1000): 4.8, (3, 300): 4.2}
GROUPED = {
    ("balanced", 10): 0.0, ("balanced", 20): None, ("balanced", 30): 2.8, ("balanced", 100): 4.7,
    (3, 10): 0.7, (3, 30): 2.2, (3, 100): 4.7, (10, 10): 0.3, (10, 30): 2.3, (10, 100): 3.3,
    ("2%", 30): 1.2, ("2%", 100): 4.2, ("2%", 300): 4.3,
}  # fmt: skip
FEW_GROUPS = [(kind, number) for kind in ("balanced", 3) for number in (10, 20, 30, 50, 100)]

# Coverage of the interval of O/E: calibrated, log-odds +0.4, logits x 1.5.
COVERAGE = {
    ("balanced", 50): (98, 95, 93), ("balanced", 500): (97, 94, 92), ("2%", 50): (100, None, None),
    ("2%", 1000): (99, 97, 95), ("99.8% accurate", 200): (100, None, None),
    ("99.8% accurate", 1000): (98, 98, 98),
}  # fmt: skip

# (kind, what is wrong, rows): the share of each state.
STATES_OF_TWO = ("level", "level and spread", "spread", "unclear", "may be", "none", "too few", "reversed")
EXPECTED = {
    ("balanced", OK, 500): {"level": 2, "spread": 3, "may be": 2, "none": 92},
    ("balanced", "log-odds +0.4", 500): {"level": 88, "level and spread": 3, "may be": 4, "none": 5},
    ("balanced", "logits x 1.5", 500): {"level and spread": 5, "spread": 94, "none": 1},
    ("2%", OK, 3000): {"level": 1, "level and spread": 1, "spread": 2, "may be": 2, "none": 94},
    ("2%", "log-odds +0.4", 3000): {"level": 76, "level and spread": 3, "may be": 6, "none": 15},
    ("2%", "logits x 1.5", 3000): {"level": 1, "level and spread": 99},
    ("balanced", OK, 50): {"too few": 93},
    ("2%", OK, 500): {"too few": 89},
}
SENTENCES_OF_TWO = [
    (kind, wrong, n)
    for kind in ("balanced", "2%", "99.8% accurate")
    for n in (50, 500, 3000)
    for wrong in (OK, "log-odds +0.4", "logits x 1.5")
]
STATES_OF_SEVERAL = ("gap", "gap and class", "class", "frequencies", "spread", "may be", "none", "too few")
SENTENCES_OF_SEVERAL = [
    (kind, wrong, n)
    for kind in (3, 10)
    for n in (50, 500, 2000)
    for wrong in (OK, "one class +0.7", "all classes, +-0.5", "logits x 1.5", "logits x 0.67")
]

# Columns mixed up, which should be said, and weak or ordinary rows, of which it should not be.
MIXED_UP = [
    *((kind, "swapped columns", n) for kind in ("balanced", "2%", "99.8% accurate") for n in (50, 200, 1000)),
    *(("weak", "swapped columns", n) for n in (50, 200, 1000)),
    *((kind, "columns moved by one", n) for kind in (3, 10) for n in (50, 200, 1000)),
    *((10, "two columns swapped", n) for n in (200, 1000)),
    *((kind, "labels by chance", n) for kind in ("balanced", "2%", 3, 10) for n in (50, 1000)),
    *((kind, OK, n) for kind in ("weak", "2%", 3) for n in (50, 1000)),
]

# (kind, rows): how often the first sentence of 0.3.0 said "miscalibrated", and expected.
FIRST = {
    ("balanced", 200): (15.0, 5.0), ("balanced", 2000): (10.0, 4.5), ("2%", 2000): (4.5, 2.0),
    (3, 500): (10.5, 5.0), (10, 1000): (16.0, 4.5),
}  # fmt: skip

# Two classes by value: kind, share of each value, shift of its log-odds, rows, and how often 0.3.0 named any.
# Expected: any value is named, the last is, the values differ, each at a level of 5%; either, at half of it.
FOUR = [0.5, 0.241, 0.15, 0.109]
SPREAD_OUT = (0.25 * ndtri((np.arange(20) + 0.5) / 20)).tolist()
BY_VALUE = {
    "calibrated, 2 values": ("balanced", [0.5, 0.5], [0, 0], 2000, 5, (6.0, None, 4.0, 4.7)),
    "calibrated, 5 values": (
        "balanced",
        [0.4, 0.3, 0.2, 0.08, 0.02],
        [0] * 5,
        2000,
        3,
        (5.3, None, 6.0, 6.0),
    ),
    "calibrated, 20 values": ("balanced", [0.05] * 20, [0] * 20, 2000, 2, (4.7, None, 4.7, 5.3)),
    "calibrated, 5 values, 2%": ("2%", [0.4, 0.3, 0.2, 0.08, 0.02], [0] * 5, 5000, 5, (5.3, None, 6.0, 4.7)),
    "last -0.7, 11%": ("balanced", FOUR, [0, 0, 0, -0.7], 20000, 27, (100, 100, 100, 100)),
    "last -0.7, 11% of 2,000": ("balanced", FOUR, [0, 0, 0, -0.7], 2000, 3, (89, 89, 91, 87)),
    "last +0.7, 2%": ("2%", FOUR, [0, 0, 0, 0.7], 20000, 100, (99, 99, 99, 99)),
    "all +0.3": ("balanced", [0.25] * 4, [0.3] * 4, 2000, 3, (93, None, 5, 87)),
    "20 values, s.d. 0.25": ("balanced", [0.05] * 20, SPREAD_OUT, 4000, 5, (75, None, 99, 99)),
}
# Several classes by value: classes, rows, values, change of the logits of the last.
BY_VALUE_OF_SEVERAL = {
    "calibrated, 2 values": (3, 1500, 2, 0.0, None, (None, None, None, None)),
    "calibrated, 4 values": (10, 3000, 4, 0.0, None, (None, None, None, None)),
    "all classes of the last": (3, 6000, 4, [0.75, -0.75, 0.0], 80, (100, 100, 100, None)),
    "one class of the last +0.7": (10, 4000, 4, [0.7] + [0.0] * 9, 0, (100, 100, 79, None)),
}
BY_VALUE_HEAD = (
    *("world", "rows", "any named before", "any named (expected)", "the last named (expected)"),
    *("differ (expected)", "either (expected)"),
)


def source(seed, *cell):
    """Return random numbers of a cell of a table, the same in every run."""
    return np.random.default_rng([seed, *("".join(map(str, cell)).encode())])


def kind_in_words(kind):
    """Return a kind of rows as the tables call it."""
    return kind if kind in TWO else f"{kind} classes"


def rejected(name, cells, n, seed):
    """Return the table of how often the one test and its parts reject."""
    rows = []
    for (kind, wrong, size), goals in cells.items():
        rng = source(seed, name, kind, wrong, size)
        number = max(1, n // 5) if kind == 100 else n
        tests = [one_test(draw(kind, wrong, size, rng).rows()) for _ in range(number)]
        rows.append((kind_in_words(kind), wrong, f"{size:,}", *map(goal, goals), *shares(tests)))
    head = ("rows of", "", "rows", "before", "expected", *PARTS_HEAD)
    fifth = " A fifth of them with 100 classes." * any(kind == 100 for kind, *_ in cells)
    return Table(name, head, rows, samples(n) + fifth)


PARTS_HEAD = ("one test", "level part", "spread part")


def shares(tests):
    """Return how often the test rejects, and each of its parts."""
    return [share([getattr(test, p) < LEVEL for test in tests]) for p in ("p_value", "level_p", "spread_p")]


def test_part(n, seed):
    """Count how often the one test rejects calibrated rows, at a level of 5%."""
    yield rejected("level", LEVELS, n, seed)


def accurate_part(n, seed):
    """Count the same where next to no row is wrong."""
    yield rejected("accurate", ACCURATE, n, seed)


def power_part(n, seed):
    """Count how often the one test rejects rows that are not calibrated."""
    yield rejected("power", POWERS, n, seed)


def weights_part(n, seed):
    """Count rejections of calibrated rows with weights and in groups, and what few groups cost."""
    rows = []
    for (kind, size), expected in WEIGHTED.items():
        rng, tests = source(seed, "weights", kind, size), []
        for _ in range(n):
            weights = np.exp(rng.normal(size=size))
            tests.append(one_test(draw(kind, OK, size, rng).rows(sample_weight=weights)))
        rows.append((kind_in_words(kind), f"weights, {size:,} rows", goal(expected), *shares(tests)))
    for (kind, number), expected in GROUPED.items():
        tests = in_groups(kind, OK, number, n, source(seed, "groups", kind, number))
        rows.append((kind_in_words(kind), f"{number} groups of 20", goal(expected), *shares(tests)))
    yield Table("weights", ("rows of", "with", "expected", *PARTS_HEAD), rows, samples(n))
    rows = []
    for kind, number in FEW_GROUPS:
        rng = source(seed, "few groups", kind, number)
        wrong = "log-odds +0.4" if kind in TWO else "one class +0.7"
        null, found = (
            np.array([test.p_value for test in in_groups(kind, what, number, n, rng)]) for what in (OK, wrong)
        )
        at_level = np.quantile(null, LEVEL)
        unequal = in_groups(kind, OK, number, n, rng, spread=1.0)
        told = (
            share([test.p_value < LEVEL for test in unequal]),
            share(found < LEVEL),
            share(found < at_level),
        )
        rows.append((kind_in_words(kind), wrong, number, share(null < LEVEL), *told, f"{at_level:.2f}"))
    head = (
        *("rows of", "wrong", "groups", "level", "level, unequal groups", "power", "power at a level of 5%"),
        "p at it",
    )
    yield Table("few-groups", head, rows, samples(n))


def in_groups(kind, wrong, number, n, rng, spread=0.0):
    """Return tests of rows in groups of 20, or of lognormal sizes."""
    tests = []
    for _ in range(n):
        sizes = np.full(number, 20)
        if spread:
            sizes = np.maximum(1, 20 * np.exp(rng.normal(-(spread**2) / 2, spread, number))).astype(int)
        groups = np.repeat(np.arange(number), sizes)
        tests.append(one_test(draw(kind, wrong, len(groups), rng, groups).rows(groups=groups)))
    return tests


def coverage_part(n, seed):
    """Count how often the interval of O/E contains the ratio of these rows' true and stated means."""
    rows = []
    for (kind, size), expected in COVERAGE.items():
        for wrong, wanted in zip((OK, "log-odds +0.4", "logits x 1.5"), expected, strict=True):
            rng, hits = source(seed, "coverage", kind, wrong, size), []
            for _ in range(n):
                world = draw(kind, wrong, size, rng)
                ratio, means = (
                    Finding.of(world.rows()).ratio,
                    (world.truth.mean(axis=0), world.stated.mean(axis=0)),
                )
                hits.append(ratio.low <= means[0][1] / means[1][1] <= ratio.high)
            rows.append((kind, wrong, f"{size:,}", goal(wanted), share(hits)))
    yield Table("coverage", ("rows of", "", "rows", "expected", "coverage"), rows, samples(n))


def sentence_part(n, seed):
    """Count the states of two classes, and sentences whose direction is not the truth's."""
    yield sentences("sentence", SENTENCES_OF_TWO, STATES_OF_TWO, n, seed)


def sentence3_part(n, seed):
    """Count the states of several classes."""
    yield sentences("sentence3", SENTENCES_OF_SEVERAL, STATES_OF_SEVERAL, n, seed)


def sentences(name, cells, states, n, seed):
    """Return the table of states by cell."""
    rows = []
    for kind, wrong, size in cells:
        rng, found, false = source(seed, "sentence", kind, wrong, size), [], 0
        for _ in range(n):
            world = draw(kind, wrong, size, rng)
            finding = Finding.of(world.rows())
            found.append(str(finding.state))
            false += is_false(finding, world, wrong)
        expected = EXPECTED.get((kind, wrong, size), {})
        told = [share([one == state for one in found]) + in_brackets(expected.get(state)) for state in states]
        others = sum(one not in states for one in found)
        rows.append((kind_in_words(kind), wrong, f"{size:,}", *told, others, false))
    head = ("rows of", "", "rows", *states, "others", "wrong direction")
    return Table(name, head, rows, f"{samples(n)} The last two columns count samples.")


def is_false(finding, world, wrong):
    """Say whether a sentence that says "miscalibrated" names a direction that is not the truth's."""
    if not finding.state.miscalibrated:
        return False
    column = 1 if finding.of_event else int(finding.name.removeprefix("class "))
    at, top = np.arange(len(world.labels)), world.stated.argmax(axis=1)
    ratio = world.truth[:, column].mean() / world.stated[:, column].mean() - 1
    gap = np.mean((world.stated - world.truth)[at, top])
    spread = {"logits x 1.5": True, "logits x 0.67": False}.get(wrong)
    of_class = abs(ratio) >= MIN_RATIO and (ratio > 0) != (finding.ratio.value > 1)
    of_gap = abs(gap) >= MIN_GAP and (gap > 0) != (finding.gap.value > 0)
    of_spread = spread is not None and spread != finding.too_extreme
    named = {"level": of_class, "class": of_class, "gap": of_gap, "spread": of_spread}
    return any(false and part in finding.state for part, false in named.items())


def reversed_part(n, seed):
    """Count how often "reversed" is said of columns that are mixed up, and of others."""
    rows = []
    for kind, wrong, size in MIXED_UP:
        rng = source(seed, "reversed", kind, wrong, size)
        states = [Finding.of(draw(kind, wrong, size, rng).rows()).state for _ in range(n)]
        told = share([one is State.REVERSED for one in states]), share([one.miscalibrated for one in states])
        rows.append((kind_in_words(kind), wrong, f"{size:,}", *told))
    head = ("rows of", "", "rows", "reversed", "miscalibrated in any way")
    yield Table("reversed", head, rows, samples(n))


def first_part(n, seed):
    """Count first sentences that say "miscalibrated" of calibrated rows."""
    rows = []
    for (kind, size), goals in FIRST.items():
        rng = source(seed, "first", kind, size)
        found = [Finding.of(draw(kind, OK, size, rng).rows()) for _ in range(n)]
        beside = [
            one.state in (State.NONE, State.TOO_FEW)
            and (excludes(one.ratio, 1.0) if one.of_event else excludes(one.gap, 0.0))
            for one in found
        ]
        told = (
            share(hits)
            for hits in (
                *([one.state.miscalibrated for one in found], [one.state is State.MAY_BE for one in found]),
                beside,
            )
        )
        rows.append((kind_in_words(kind), f"{size:,}", *map(goal, goals), *told))
    head = ("rows of", "rows", "before", "expected", "miscalibrated", "may be", "contradicts an interval")
    yield Table("first", head, rows, samples(n))


def anchors_part(n, seed):
    """Compare the numbers beside the sentence with a fit by scikit-learn on the same rows."""
    rows = []
    for kind, wrong, size in (
        *(("balanced", OK, 2000), ("2%", "log-odds +0.4", 5000), ("balanced", "logits x 1.5", 1000)),
        *(("24%", OK, 2000), ("24%", "logits x 0.67", 2000)),
    ):
        world = draw(kind, wrong, size, source(seed, "anchors", kind, wrong))
        x, y, at = logit(world.stated[:, 1]), world.labels, (np.arange(size), world.labels)
        fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], y)
        ratio = 2 * np.log(fit.predict_proba(x[:, None])[at] / world.stated[at]).sum()
        in_the_large = brentq(lambda a, x=x, y=y: expit(x + a).sum() - y.sum(), -9, 9)
        found, slope = Finding.of(world.rows()), float(fit.coef_[0, 0])
        numbers = (
            f"{found.ratio.value:.2f}",
            f"{in_the_large:+.2f}",
            f"{slope:.3f}",
            f"{found.slope.value:.3f}",
        )
        p_values = f"{chdtrc(2, ratio):.2g}", f"{found.p_value:.2g}"
        rows.append((kind, wrong, f"{size:,}", *numbers, *p_values))
    head = (
        *("rows of", "", "rows", "O/E", "calibration in the large", "slope, scikit-learn", "slope"),
        *("p, likelihood ratio", "p, one test"),
    )
    yield Table("anchors", head, rows, "One sample per row.")


def by_value(world, value, **given):
    """Return whether any value is named, whether the last one is, whether values differ, and either."""
    found = evaluate(world.stated, world.labels, by=value, draws=1, **given).by_group
    named = {one.value for one in found.values if one.finding.state.miscalibrated}
    differ = found.p_value < LEVEL
    return bool(named), str(value.max()) in named, differ, bool(named) or differ


def values_in_words(found, expected):
    """Return the share of each, with its target."""
    both = zip(np.transpose(found), expected, strict=True)
    return [share(hits) + in_brackets(wanted) for hits, wanted in both]


def groups_part(n, seed):
    """Count which values are named with two classes, and whether values differ."""
    rows = []
    for name, (kind, of_values, shifts, size, before, expected) in BY_VALUE.items():
        rng, found = source(seed, "by value", name), []
        for _ in range(n):
            value, x = rng.choice(len(of_values), size, p=of_values / np.sum(of_values)), TWO[kind](size, rng)
            true = two_columns(x + np.array(shifts)[value])
            found.append(by_value(World(two_columns(x), true, draw_labels(true, rng)), value))
        rows.append((name, f"{size:,}", before, *values_in_words(found, expected)))
    yield Table("groups", BY_VALUE_HEAD, rows, samples(n))


def groups3_part(n, seed):
    """Count the same with several classes."""
    rows = []
    for name, (n_classes, size, number, change, before, expected) in BY_VALUE_OF_SEVERAL.items():
        rng, found = source(seed, "by value", n_classes, name), []
        for _ in range(n):
            value, world = rng.integers(0, number, size), draw(n_classes, OK, size, rng)
            true = world.truth * np.exp(np.outer(value == number - 1, np.broadcast_to(change, n_classes)))
            true /= true.sum(axis=1, keepdims=True)
            found.append(by_value(World(world.stated, true, draw_labels(true, rng)), value))
        told = values_in_words(found, expected)
        rows.append((f"{n_classes} classes, {name}", f"{size:,}", goal(before), *told))
    yield Table("groups3", BY_VALUE_HEAD, rows, samples(n))


def groups_rows_part(n, seed):
    """Count the same of calibrated rows in groups of 10 rows, each within one of four values."""
    rows = []
    for number, expected in ((60, 0.7), (200, 3.0)):
        rng, groups = source(seed, "group rows", number), np.arange(10 * number) // 10
        worlds = (draw("balanced", OK, 10 * number, rng, groups) for _ in range(n))
        found = [by_value(world, groups % 4, groups=groups) for world in worlds]
        told = values_in_words(found, (expected, None, None, None))
        rows.append((f"{number} groups", f"{10 * number:,}", "-", *told))
    yield Table("groups-rows", BY_VALUE_HEAD, rows, samples(n))


def examples_part(n, seed):
    """Print the words for a table with four hospitals, one of which is off."""
    rng, size = np.random.default_rng(5), 20000
    x = rng.normal(size=size) * 1.8
    hospital = rng.choice(["North", "South", "East", "West"], size, p=[0.5, 0.2, 0.15, 0.15])
    labels = (rng.random(size) < expit(x - 0.7 * (hospital == "West"))).astype(int)
    new = slice(5000, None)
    found = evaluate(two_columns(x[new]), labels[new], by=hospital[new], classes=["no", "yes"], draws=1)
    rows = [("all", found.finding), ("each", found.by_group.words)]
    yield Table("examples", ("of", "words"), rows, "One sample.")
