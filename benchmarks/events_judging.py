"""Parts of `events.py` that judge rows: the test, the interval of O/E, the sentences, and groups of rows.

Each part takes a number of samples per cell and yields tables. Their cells say what version 0.3.0 found
("before") and what the design expects ("expected"), both in percent.
"""

from __future__ import annotations

import numpy as np
from events_tables import Table, goal, samples, share
from events_worlds import TWO, World, draw, draw_accurate, draw_labels, two_columns
from scipy.optimize import brentq
from scipy.special import chdtrc, expit, logit, ndtri
from sklearn.linear_model import LogisticRegression

from temperance.metrics import evaluate
from temperance.metrics.finding import Finding, State, excludes
from temperance.metrics.one_test import one_test

LEVEL = 0.05

# (kind, rows): before, expected. "accurate" rows of several classes have an accuracy of 99.5%.
LEVELS = {
    ("balanced", 20): (7.2, 3.8), ("balanced", 200): (4.7, 4.9), ("balanced", 5000): (6.0, 5.3),
    ("2%", 20): (3.5, 3.1), ("2%", 200): (7.9, 4.4), ("2%", 5000): (5.0, 4.9),
    ("99.8% accurate", 50): (2.8, 2.4), ("99.8% accurate", 1000): (5.5, 2.4),
    ("votes of 20 trees", 20): (9.2, 3.1), ("votes of 20 trees", 5000): (5.2, 4.3),
    (3, 20): (7.4, 5.2), (3, 100): (6.8, 3.4), (3, 2000): (5.4, 4.2),
    (10, 20): (5.6, 2.2), (10, 100): (4.6, 3.0), (10, 2000): (3.2, 4.6),
    (100, 20): (8.0, 4.0), (100, 100): (8.0, 2.4), (100, 2000): (2.4, 3.2),
}  # fmt: skip
ACCURATE = {(k, n): (None, "2 to 4" if k == 10 else None) for k in (3, 10) for n in (50, 200, 1000, 5000)}

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

# Calibrated, with lognormal weights: (kind, rows). Calibrated, in groups of 20 rows: (kind, groups).
WEIGHTED = {("balanced", 100): 4.5, ("balanced", 1000): 4.8, (3, 300): 4.2}
GROUPED = {
    ("balanced", 10): 0.0, ("balanced", 20): None, ("balanced", 30): 2.8, ("balanced", 50): None,
    ("balanced", 100): 4.7, (3, 10): 0.7, (3, 30): 2.2, (3, 100): 4.7,
    (10, 10): 0.3, (10, 30): 2.3, (10, 100): 3.3, ("2%", 30): 1.2, ("2%", 100): 4.2, ("2%", 300): 4.3,
}  # fmt: skip
GROUP_POWER = (("balanced", 10), ("balanced", 20), ("balanced", 30), ("balanced", 100), (3, 10), (3, 30))

# Coverage of the interval of O/E: calibrated, log-odds +0.4, logits x 1.5.
COVERAGE = {
    ("balanced", 50): (98, 95, 93), ("balanced", 500): (97, 94, 92), ("2%", 50): (100, None, None),
    ("2%", 1000): (99, 97, 95), ("99.8% accurate", 200): (100, None, None),
    ("99.8% accurate", 1000): (98, 98, 98),
}  # fmt: skip

STATES_OF_TWO = ("level", "level and spread", "spread", "unclear", "may be", "none", "too few", "reversed")
SENTENCES = {
    ("balanced", "calibrated", 500): {"level": 2, "spread": 3, "may be": 2, "none": 92},
    ("balanced", "log-odds +0.4", 500): {"level": 88, "level and spread": 3, "may be": 4, "none": 5},
    ("balanced", "logits x 1.5", 500): {"level and spread": 5, "spread": 94, "none": 1},
    ("2%", "calibrated", 3000): {"level": 1, "level and spread": 1, "spread": 2, "may be": 2, "none": 94},
    ("2%", "log-odds +0.4", 3000): {"level": 76, "level and spread": 3, "may be": 6, "none": 15},
    ("2%", "logits x 1.5", 3000): {"level": 1, "level and spread": 99},
    ("balanced", "calibrated", 50): {"too few": 93}, ("2%", "calibrated", 500): {"too few": 89},
}  # fmt: skip
STATES_OF_SEVERAL = (
    *("gap", "gap and class", "class", "frequencies", "spread", "may be", "none", "too few", "reversed"),
)
SEVERAL = [
    (kind, change, n)
    for kind in (3, 10)
    for n in (100, 500, 2000)
    for change in ("calibrated", "one class +0.7", "all classes, +-0.5", "logits x 1.5", "logits x 0.67")
]

# Columns mixed up, which must be said, and weak or ordinary rows, of which it must not be.
MIXED_UP = [
    *((kind, "swapped columns", n) for kind in ("balanced", "2%", "99.8% accurate") for n in (50, 200, 1000)),
    *(("weak", "swapped columns", n) for n in (200, 1000, 5000)),
    *((kind, "columns moved by one", n) for kind in (3, 10) for n in (50, 200, 1000)),
    *((10, "two columns swapped", n) for n in (200, 1000)),
    *((kind, "labels by chance", n) for kind in ("balanced", "2%", 3, 10) for n in (50, 1000)),
    *((kind, "calibrated", n) for kind in ("weak", "2%", 3) for n in (50, 1000)),
]

# (kind, rows): the first sentence of 0.3.0 said "miscalibrated", and expected.
FIRST = {
    ("balanced", 200): (15.0, 5.0), ("balanced", 2000): (10.0, 4.5), ("2%", 2000): (4.5, 2.0),
    (3, 500): (10.5, 5.0), (10, 1000): (16.0, 4.5),
}  # fmt: skip


def source(seed, *cell):
    """Return random numbers of a cell of a table, the same in every run."""
    return np.random.default_rng([seed, *(sum(map(ord, str(part))) for part in cell)])


def classes(kind):
    """Return the number of classes of a kind, and the kind in words."""
    return (2, kind) if kind in TWO else (kind, "several")


def test_part(n, seed):
    """How often the one test rejects calibrated rows, at a level of 5%."""
    rows = []
    for (kind, size), (before, expected) in LEVELS.items():
        rng = source(seed, "level", kind, size)
        tests = [one_test(draw(kind, "calibrated", size, rng).rows()) for _ in range(fewer(kind, n))]
        rows.append((*classes(kind), f"{size:,}", goal(before), goal(expected), *rejections(tests)))
    yield Table("level", ("classes", "rows of", "rows", *HEAD), rows, fewer_words(n))


HEAD = ("before", "expected", "one test", "level part", "spread part")


def rejections(tests):
    """Return how often the test rejects, and each of its parts."""
    return tuple(
        share([getattr(test, p) < LEVEL for test in tests]) for p in ("p_value", "level_p", "spread_p")
    )


def fewer(kind, n):
    """Return the number of samples of a kind: a fifth of 100 classes, which take longest."""
    return max(1, n // 5) if kind == 100 else n


def fewer_words(n):
    """Say how many samples there are."""
    return f"{n:,} samples per row; {fewer(100, n):,} with 100 classes."


def accurate_part(n, seed):
    """The level where next to no row is wrong."""
    rows = []
    for (n_classes, size), (_, expected) in ACCURATE.items():
        rng = source(seed, "accurate", n_classes, size)
        tests = [one_test(draw_accurate(n_classes, size, rng).rows()) for _ in range(n)]
        rows.append((n_classes, f"{size:,}", goal(expected), *rejections(tests)))
    yield Table("accurate", ("classes", "rows", *HEAD[1:]), rows, samples(n))


def power_part(n, seed):
    """How often the one test rejects rows that are not calibrated."""
    rows = []
    for (kind, change, size), (before, expected) in POWERS.items():
        rng = source(seed, "power", kind, change, size)
        tests = [one_test(draw(kind, change, size, rng).rows()) for _ in range(fewer(kind, n))]
        rows.append((*classes(kind), change, f"{size:,}", goal(before), goal(expected), *rejections(tests)))
    yield Table("power", ("classes", "rows of", "wrong", "rows", *HEAD), rows, fewer_words(n))


def weights_part(n, seed):
    """The level with weights and with groups of rows, and what few groups cost."""
    rows = []
    for (kind, size), expected in WEIGHTED.items():
        rng, tests = source(seed, "weights", kind, size), []
        for _ in range(n):
            given = {"sample_weight": np.exp(rng.normal(size=size))}
            tests.append(one_test(draw(kind, "calibrated", size, rng).rows(**given)))
        rows.append((*classes(kind), "weights", f"{size:,}", goal(expected), *rejections(tests)))
    for (kind, number), expected in GROUPED.items():
        tests = in_groups(kind, "calibrated", number, n, source(seed, "groups", kind, number))
        rows.append(
            (*classes(kind), f"{number} groups", f"{20 * number:,}", goal(expected), *rejections(tests))
        )
    yield Table("weights", ("classes", "rows of", "with", "rows", *HEAD[1:]), rows, samples(n))
    rows = []
    for kind, number in GROUP_POWER:
        rng = source(seed, "group power", kind, number)
        change = "log-odds +0.4" if kind in TWO else "one class +0.7"
        null, found = (
            np.array([test.p_value for test in in_groups(kind, what, number, n, rng)])
            for what in ("calibrated", change)
        )
        exact = np.quantile(null, LEVEL)
        told = share(null < LEVEL), share(found < LEVEL), share(found < exact)
        rows.append((*classes(kind), change, number, *told, f"{exact:.2f}"))
    head = ("classes", "rows of", "wrong", "groups", "level", "power", "power at an exact level", "p there")
    yield Table("few groups", head, rows, samples(n))


def in_groups(kind, change, number, n, rng):
    """Return tests of rows in groups of 20."""
    groups = np.arange(20 * number) // 20
    worlds = (draw(kind, change, len(groups), rng, groups) for _ in range(n))
    return [one_test(world.rows(groups=groups, min_groups=2)) for world in worlds]


def coverage_part(n, seed):
    """How often the interval of O/E contains the true rate over the mean probability, of these rows."""
    rows = []
    for (kind, size), expected in COVERAGE.items():
        for change, wanted in zip(("calibrated", "log-odds +0.4", "logits x 1.5"), expected, strict=True):
            rng, hits = source(seed, "coverage", kind, change, size), []
            for _ in range(n):
                world = draw(kind, change, size, rng)
                ratio, truth = (
                    Finding.of(world.rows()).ratio,
                    world.truth[:, 1].mean() / world.stated[:, 1].mean(),
                )
                hits.append(ratio.low <= truth <= ratio.high)
            rows.append((kind, change, f"{size:,}", goal(wanted), share(hits)))
    yield Table("coverage", ("rows of", "wrong", "rows", "expected", "coverage"), rows, samples(n))


def sentence_part(n, seed):
    """Which sentence a sample gets with two classes, and whether its direction is that of the truth."""
    cells = [
        (kind, change, size)
        for kind in ("balanced", "2%", "99.8% accurate")
        for size in (50, 500, 3000)
        for change in ("calibrated", "log-odds +0.4", "logits x 1.5")
    ]
    yield sentences("sentence", cells, STATES_OF_TWO, n, seed)


def sentence3_part(n, seed):
    """The same with several classes."""
    yield sentences("sentence3", SEVERAL, STATES_OF_SEVERAL, n, seed)


def sentences(name, cells, states, n, seed):
    """Return the table of states by cell."""
    rows = []
    for kind, change, size in cells:
        rng, found, wrong = source(seed, "sentence", kind, change, size), [], []
        for _ in range(n):
            world = draw(kind, change, size, rng)
            finding = Finding.of(world.rows())
            found.append(str(finding.state))
            wrong.append(is_wrong(finding, world, change))
        expected = SENTENCES.get((kind, change, size), {})
        told = [
            f"{share([one == state for one in found])}" + in_brackets(expected.get(state)) for state in states
        ]
        assert set(found) <= {*states, "impossible"}, set(found)
        rows.append((*classes(kind), change, f"{size:,}", *told, f"{sum(wrong)} of {n:,}"))
    head = ("classes", "rows of", "wrong", "rows", *states, "wrong direction")
    return Table(name, head, rows, samples(n))


def in_brackets(expected):
    """Return a target in brackets, or nothing."""
    return "" if expected is None else f" ({expected})"


def is_wrong(finding, world, change):
    """Say whether a sentence that says "miscalibrated" names a direction that is not the truth's."""
    if not finding.state.miscalibrated or change == "calibrated":
        return False
    at, top = np.arange(len(world.labels)), world.stated.argmax(axis=1)
    column = 1 if finding.of_event else int(finding.name.removeprefix("class "))
    of_class = np.mean(world.stated[:, column] - world.truth[:, column])
    gap = of_class if finding.of_event else np.mean((world.stated - world.truth)[at, top])
    says = [
        (finding.gap.value, gap) if "gap" in finding.state or "level" in finding.state else None,
        (1 - finding.ratio.value, of_class) if "class" in finding.state else None,
        (finding.too_extreme - 0.5, {"logits x 1.5": 1.0, "logits x 0.67": -1.0}.get(change, 0.0))
        if "spread" in finding.state
        else None,
    ]
    return any(pair is not None and pair[0] * pair[1] < 0 for pair in says)


def reversed_part(n, seed):
    """How often "reversed" is said of columns that are mixed up, and of others."""
    rows = []
    for kind, change, size in MIXED_UP:
        rng, states = source(seed, "reversed", kind, change, size), []
        for _ in range(n):
            states.append(Finding.of(draw(kind, change, size, rng).rows()).state)
        told = share([one is State.REVERSED for one in states]), share([one.miscalibrated for one in states])
        rows.append((*classes(kind), change, f"{size:,}", *told))
    head = ("classes", "rows of", "wrong", "rows", "reversed", "miscalibrated in any way")
    yield Table("reversed", head, rows, samples(n))


def first_part(n, seed):
    """How often the first sentence says "miscalibrated" of calibrated rows, and none stands beside an interval."""
    rows = []
    for (kind, size), (before, expected) in FIRST.items():
        rng = source(seed, "first", kind, size)
        found = [Finding.of(draw(kind, "calibrated", size, rng).rows()) for _ in range(n)]
        beside = [
            one.state is State.NONE and (excludes(one.ratio, 1.0) if one.of_event else excludes(one.gap, 0.0))
            for one in found
        ]
        told = (
            share([one.state.miscalibrated for one in found]),
            share([one.state is State.MAY_BE for one in found]),
        )
        rows.append((*classes(kind), f"{size:,}", goal(before), goal(expected), *told, share(beside)))
    head = (
        "classes",
        "rows of",
        "rows",
        "before",
        "expected",
        "miscalibrated",
        "may be",
        "none beside an interval",
    )
    yield Table("first", head, rows, samples(n))


def anchors_part(n, seed):
    """The numbers beside the sentence, against a maximum-likelihood fit by scikit-learn on the same rows."""
    rows = []
    for kind, change, size in (
        *(
            ("balanced", "calibrated", 2000),
            ("2%", "log-odds +0.4", 5000),
            ("balanced", "logits x 1.5", 1000),
        ),
        ("24%", "calibrated", 2183),
    ):
        world = draw(kind, change, size, source(seed, "anchors", kind, change))
        x, y = logit(world.stated[:, 1]), world.labels
        fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], y)
        p = fit.predict_proba(x[:, None])
        ratio = 2 * np.log(p[np.arange(size), y] / world.stated[np.arange(size), y]).sum()
        in_the_large = brentq(lambda a, x=x, y=y: expit(x + a).sum() - y.sum(), -9, 9)
        found, slope = Finding.of(world.rows()), float(fit.coef_[0, 0])
        numbers = (
            f"{found.ratio.value:.2f}",
            f"{in_the_large:+.2f}",
            f"{slope:.3f}",
            f"{found.slope.value:.3f}",
        )
        rows.append((kind, change, f"{size:,}", *numbers, f"{chdtrc(2, ratio):.2g}", f"{found.p_value:.2g}"))
    head = ("rows of", "wrong", "rows", "O/E", "calibration in the large", "slope, scikit-learn", "slope",
            "likelihood ratio: p", "one test: p")  # fmt: skip
    yield Table("anchors", head, rows, "One sample per row.")


# By value: (kind, share of each value, shift of the log-odds of each value, rows), and what is expected:
# any value named, the last one named, the values differ.
BY_VALUE = {
    "calibrated, 2 values": ("balanced", [0.5, 0.5], [0, 0], 2000, (6.0, None, 4.0)),
    "calibrated, 5 values": ("balanced", [0.4, 0.3, 0.2, 0.08, 0.02], [0] * 5, 2000, (5.3, None, 6.0)),
    "calibrated, 20 values": ("balanced", [0.05] * 20, [0] * 20, 2000, (4.7, None, 4.7)),
    "calibrated, 5 values, 2%": ("2%", [0.4, 0.3, 0.2, 0.08, 0.02], [0] * 5, 5000, (5.3, None, 6.0)),
    "last -0.7, 11%": ("balanced", [0.5, 0.241, 0.15, 0.109], [0, 0, 0, -0.7], 20000, (100, 100, 100)),
    "last -0.7, 11% of 2,000": ("balanced", [0.5, 0.241, 0.15, 0.109], [0, 0, 0, -0.7], 2000, (89, 89, 91)),
    "last +0.7, 2%": ("2%", [0.5, 0.241, 0.15, 0.109], [0, 0, 0, 0.7], 20000, (99, 99, 99)),
    "all +0.3": ("balanced", [0.25] * 4, [0.3] * 4, 2000, (93, None, 5)),
    "20 values, s.d. 0.25": (
        *("balanced", [0.05] * 20, list(0.25 * ndtri((np.arange(20) + 0.5) / 20)), 4000, (75, None, 99)),
    ),
}
# (classes, rows, values, change of the last value's logits), expected: any named, the last, the values differ.
BY_VALUE_OF_SEVERAL = {
    "calibrated, 2 values": (3, 1500, 2, None, (None, None, None)),
    "calibrated, 4 values": (10, 3000, 4, None, (None, None, None)),
    "all classes of the last": (3, 6000, 4, [0.75, -0.75, 0.0], (100, 100, 100)),
    "one class of the last +0.7": (10, 4000, 4, [0.7] + [0.0] * 9, (100, 100, 79)),
}


def by_value(world, value, **given):
    """Return whether any value is named, the last one is, and the values differ; None if that is not tested."""
    found = evaluate(world.stated, world.labels, by=value, draws=1, **given).by_group
    named = {one.value for one in found.values if one.corrected < LEVEL}
    return bool(named), str(value.max()) in named, found.p_value < LEVEL


def groups_part(n, seed):
    """Which values are named with two classes, and whether values differ."""
    rows = []
    for name, (kind, shares, shifts, size, expected) in BY_VALUE.items():
        rng, found = source(seed, "by value", name), []
        for _ in range(n):
            value = rng.choice(len(shares), size, p=np.array(shares) / sum(shares))
            x = TWO[kind](size, rng)
            true = two_columns(x + np.array(shifts)[value])
            found.append(by_value(World(two_columns(x), true, draw_labels(true, rng)), value))
        rows.append((name, f"{size:,}", *told_by_value(found, expected)))
    yield Table("groups", ("world", "rows", *BY_VALUE_HEAD), rows, samples(n))


BY_VALUE_HEAD = ("any named (expected)", "the last one named (expected)", "differ (expected)")


def told_by_value(found, expected):
    """Return each share with its target."""
    return [
        share(hits) + in_brackets(wanted) for hits, wanted in zip(np.transpose(found), expected, strict=True)
    ]


def groups3_part(n, seed):
    """Several classes by value."""
    rows = []
    for name, (n_classes, size, number, change, expected) in BY_VALUE_OF_SEVERAL.items():
        rng, found = source(seed, "by value", n_classes, name), []
        for _ in range(n):
            value, world = rng.integers(0, number, size), draw(n_classes, "calibrated", size, rng)
            odds = np.exp(np.outer(value == number - 1, np.zeros(n_classes) if change is None else change))
            true = world.truth * odds / (world.truth * odds).sum(axis=1, keepdims=True)
            found.append(by_value(World(world.stated, true, draw_labels(true, rng)), value))
        rows.append((n_classes, name, f"{size:,}", *told_by_value(found, expected)))
    yield Table("groups3", ("classes", "world", "rows", *BY_VALUE_HEAD), rows, samples(n))


def groups_rows_part(n, seed):
    """Calibrated rows by value, with groups of 10 rows inside four values."""
    rows = []
    for number, expected in ((60, 0.7), (200, 3.0)):
        rng, groups, found = source(seed, "group rows", number), np.arange(10 * number) // 10, []
        for _ in range(n):
            world = draw("balanced", "calibrated", len(groups), rng, groups)
            found.append(by_value(world, groups % 4, groups=groups))
        rows.append((number, *told_by_value(found, (expected, None, None))))
    yield Table("groups_rows", ("groups", *BY_VALUE_HEAD), rows, samples(n))


def examples_part(n, seed):
    """The table with four hospitals of which one is off, in words."""
    rng, size = np.random.default_rng(5), 20000
    x = rng.normal(size=size) * 1.8
    hospital = rng.choice(["North", "South", "East", "West"], size, p=[0.5, 0.2, 0.15, 0.15])
    labels = (rng.random(size) < expit(x - 0.7 * (hospital == "West"))).astype(int)
    new = slice(5000, None)
    found = evaluate(two_columns(x[new]), labels[new], by=hospital[new], classes=["no", "yes"], draws=1)
    yield Table(
        "examples", ("of", "words"), [("all", found.finding), ("each", found.by_group.words)], "One sample."
    )
