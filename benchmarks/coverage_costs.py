"""Costs of decisions: how often the interval of what they have cost contains what they cost on average.

    errors      each error costs 1
    asking      so it does, and asking a person costs 0.1
    dear        each error costs 1, and 50 if it is a row of the last class
    very dear   the same with 500

Rows are those of `coverage_worlds`, alone and in groups with a correlation of 0.5, and rows of two classes
with 2 % positives, whose log-odds are as they should be, or multiplied.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from coverage_worlds import (
    GROUPED_CLASSES,
    GROUPS,
    IN_GROUPS,
    POPULATION,
    SCENARIOS,
    draw,
    draw_groups,
    draw_labels,
)
from scipy.special import expit

from temperance.decisions import evaluate_costs
from temperance.formulas.automation import least_cost

KINDS = ("errors", "asking", "dear", "very dear")
DEAR = {"dear": 50.0, "very dear": 500.0}
ASKING, CORRELATION = 0.1, 0.5
RARE = {"calibrated": 1.0, "overconfident": 1.8, "underconfident": 0.6}
SHARE, SEPARATION = 0.02, 1.8
ALONE, RARE_ROWS, GROUPED = "as above", "2% positives", "in groups"
CELLS = [
    *(("costs", ALONE, *cell) for cell in product(SCENARIOS, (100, 1000), (3, 20))),
    *(("costs", RARE_ROWS, *cell, 2) for cell in product(RARE, (100, 1000))),
    *(
        ("costs", f"{GROUPED} of {size}", scenario, size * n_groups, GROUPED_CLASSES)
        for (size, n_groups), scenario in product(GROUPS.items(), IN_GROUPS)
    ),
]
"""What is simulated: the kind of rows, the scenario, and the numbers of rows and classes."""


def costs_of(kind, n_classes):
    """Return the costs by true class and decision."""
    costs = 1 - np.eye(n_classes)
    if kind == "asking":
        return np.column_stack([costs, np.full(n_classes, ASKING)])
    costs[-1] *= DEAR.get(kind, 1.0)
    return costs


def rows_of(cell, n_rows, rng):
    """Return the true probabilities and those to evaluate of rows that are alone."""
    _, family, scenario, _, n_classes = cell
    if family != RARE_ROWS:
        return draw(n_rows, n_classes, scenario, rng)[:2]
    shift = SEPARATION * (rng.uniform(size=n_rows) < SHARE) - SEPARATION / 2
    odds = SEPARATION * (rng.normal(size=n_rows) + shift) + np.log(SHARE / (1 - SHARE))
    positive = expit(odds), expit(RARE[scenario] * odds)
    return tuple(np.column_stack([1 - p, p]) for p in positive)


@cache
def true_costs(family, scenario, n_classes):
    """Return what decisions cost on average, by kind, on a large sample."""
    alone = RARE_ROWS if family == RARE_ROWS else ALONE  # groups change no mean
    truth, probs = rows_of(
        ("costs", alone, scenario, 0, n_classes), POPULATION, np.random.default_rng([9, n_classes])
    )
    found = {}
    for kind in KINDS:
        costs = costs_of(kind, n_classes)
        decisions, _ = least_cost(probs, costs)
        found[kind] = float((truth * costs.T[decisions]).sum(axis=1).mean())
    return found


def misses(cell, seeds):
    """Return how often each interval lay above the truth, and below it."""
    _, family, scenario, n_rows, n_classes = cell
    truths = true_costs(family, scenario, n_classes)
    above, below = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for seed in seeds:
        rng = np.random.default_rng([n_rows, n_classes, CELLS.index(cell), seed])
        groups = None
        if family.startswith(GROUPED):
            size = int(family.rpartition(" ")[2])
            probs, labels, groups = draw_groups(size, CORRELATION, scenario, rng)
        else:
            truth, probs = rows_of(cell, n_rows, rng)
            labels = draw_labels(truth, rng)
        for kind in KINDS:
            found = evaluate_costs(probs, labels, costs_of(kind, n_classes), groups=groups).realised
            above[kind] += int(found.low > truths[kind] + 1e-9)
            below[kind] += int(found.high < truths[kind] - 1e-9)
    return above, below
