"""How often do the intervals contain the truth if rows belong together? Fills a table of coverage.md.

    python benchmarks/coverage_by_groups.py --simulations 1000     adds what is missing, then fills the page
    python benchmarks/coverage_by_groups.py --simulations 0        fills the page from what is done

`coverage_worlds.draw_groups` has the worlds.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from coverage_of_intervals import LEVEL, PAGE, ROOT, Store, truths_of
from coverage_worlds import BINS, GROUPED_CLASSES, GROUPS, IN_GROUPS, draw_groups

from temperance.metrics.evaluation import Scorer
from temperance.metrics.predictions import check_rows

CORRELATIONS = (0.0, 0.1, 0.5)
NAMES = ("accuracy", "nll", "brier", "debiased_ece", "overconfidence")
DRAWS, AT_ONCE = 300, 50


def misses(cell, truths, seeds):
    """Return how often each interval missed the truth, by groups and without them."""
    size, correlation, scenario = cell
    scorers = {kind: Scorer(BINS, LEVEL, DRAWS, 0) for kind in ("groups", "rows")}
    missed = {kind: dict.fromkeys(NAMES, 0) for kind in scorers}
    for seed in seeds:
        rng = np.random.default_rng([size, int(100 * correlation), list(IN_GROUPS).index(scenario), seed])
        probs, labels, groups = draw_groups(size, correlation, scenario, rng)
        for kind, scorer in scorers.items():
            found = scorer.evaluate(check_rows(probs, labels, groups=groups if kind == "groups" else None))
            for name in NAMES:
                inside = found[name].low - 1e-9 <= truths[name] <= found[name].high + 1e-9
                missed[kind][name] += int(not inside)
    return missed


def table(results):
    """Yield the lines of the table: the lowest and the highest coverage over the scenarios."""
    yield f"{min(entry['n'] for entry in results.values()):,} simulations per scenario and line."
    yield ""
    yield f"| rows of a group | correlation | groups given | {' | '.join(NAMES)} |"
    yield "|---" * (3 + len(NAMES)) + "|"
    for size, correlation in product(GROUPS, CORRELATIONS):
        entries = [results[cell] for cell in results if cell[:2] == (size, correlation)]
        for kind, given in (("groups", "yes"), ("rows", "no")):
            spans = []
            for name in NAMES:
                found = [100 * (1 - entry[kind][name] / entry["n"]) for entry in entries]
                spans.append(f"{min(found):.1f} to {max(found):.1f}%")
            yield f"| {size} | {correlation:g} | {given} | {' | '.join(spans)} |"


def main() -> None:
    """Run the simulations and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--store", type=Path, default=ROOT / "build" / "coverage-by-groups")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    store, cells = Store(options.store), list(product(GROUPS, CORRELATIONS, IN_GROUPS))
    for stop in range(AT_ONCE, options.simulations + AT_ONCE, AT_ONCE):
        for cell in cells:
            seeds = range((store.read(cell) or {"n": 0})["n"], min(stop, options.simulations))
            if seeds:
                store.add(cell, len(seeds), **misses(cell, truths_of(store, GROUPED_CLASSES, cell[2]), seeds))
    lines = "\n".join(table(store.all(cells)))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- by groups -->\n")
    _, _, after = rest.partition("<!-- end of by groups -->\n")
    filled = f"{before}<!-- by groups -->\n\n{lines}\n\n<!-- end of by groups -->\n{after}"
    PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
