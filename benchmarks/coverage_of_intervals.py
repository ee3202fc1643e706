"""How often do the intervals contain the truth? Fills the tables of docs/benchmarks/coverage.md.

    python benchmarks/coverage_of_intervals.py                     runs all simulations, then fills the page
    python benchmarks/coverage_of_intervals.py --simulations 0     fills the page from what is done

Each simulation draws rows, evaluates them, and asks which intervals contain the truth. What is done is kept
in the folder of `--store`, a file for each cell. Stop it at any time, and go on later: simulations are added
in rounds, so that all cells have about as many.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import coverage_costs
import coverage_fits
import numpy as np
from coverage_page import tables
from coverage_worlds import BINS, NLL_GAIN, SCENARIOS, draw, draw_labels, true_values
from generated_blocks import fill_blocks

from temperance.comparison.method_result import Difference
from temperance.metrics import METRICS
from temperance.metrics.bootstrap import DRAWS
from temperance.metrics.evaluation import Scorer
from temperance.metrics.predictions import check_rows

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "coverage.md"
SIZES, CLASSES = (100, 1000), (3, 20)
NAMES = (*(name for name, metric in METRICS.items() if metric.interval != "none"), NLL_GAIN)
LEVEL = 0.95
AT_ONCE = 100  # simulations of a round


def intervals(scorer, probs, rival, labels):
    """Return the interval of every metric, and that of the gain that `compare` shows."""
    rows, others = check_rows(probs, labels), check_rows(rival, labels)
    found = dict(scorer.evaluate(rows))
    share = rows.weight / rows.total
    wrong = rows.pseudo_error
    others_wrong = check_rows(rival, wrong.labels)
    pseudo = wrong.nll - others_wrong.nll, wrong.weight
    found[NLL_GAIN] = Difference.of(rows.nll - others.nll, share, pseudo).interval(LEVEL)
    return found


def misses(scorer, cell, truths, seeds):
    """Return how often each interval lay above the truth, and below it, and the sum of their lengths."""
    n_rows, n_classes, scenario = cell
    above, below, length = (dict.fromkeys(NAMES, 0) for _ in range(3))
    for seed in seeds:
        rng = np.random.default_rng([n_rows, n_classes, list(SCENARIOS).index(scenario), seed])
        truth, probs, rival = draw(n_rows, n_classes, scenario, rng)
        found = intervals(scorer, probs, rival, draw_labels(truth, rng))
        for name in NAMES:
            low, high = found[name].low, found[name].high
            # Rounding: a truth of 0 is 1e-17 here and there.
            above[name] += int(low > truths[name] + 1e-9)
            below[name] += int(high < truths[name] - 1e-9)
            length[name] += float(high - low)
    return above, below, length


class Store:
    """Results by cell in a folder, each in a file that is replaced as a whole."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, cell):
        """Return what is stored of a cell, or None."""
        path = self._path(cell)
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, cell, content):
        """Replace what is stored of a cell."""
        new = self._path(cell).with_suffix(".new")
        new.write_text(json.dumps(content))
        new.replace(self._path(cell))

    def add(self, cell, n, **columns):
        """Add the counts of some simulations to those of a cell."""
        entry = self.read(cell) or {"cell": list(cell), "n": 0}
        entry["n"] += n
        for column, counts in columns.items():
            sums = entry.setdefault(column, {})
            for name, count in counts.items():
                sums[name] = sums.get(name, 0) + count
        self.write(cell, entry)

    def all(self, cells):
        """Return what is done of some cells, by cell."""
        found = {cell: self.read(cell) for cell in cells}
        return {cell: entry for cell, entry in found.items() if entry}

    def _path(self, cell):
        return self.folder / ("-".join(map(str, cell)).replace(" ", "-") + ".json")


def truths_of(store, n_classes, scenario):
    """Return the true values, from the store if they are there."""
    key = ("truth", n_classes, scenario)
    found = store.read(key)
    if found is None:
        found = true_values(n_classes, scenario)
        store.write(key, found)
    return found


class Study:
    """The cells, and how many simulations of each are missing."""

    def __init__(self, store):
        self.store = store
        self.fits = list(product(coverage_fits.METHODS, coverage_fits.SIZES, coverage_fits.CLASSES))
        self.cells = list(product(SIZES, CLASSES, SCENARIOS))
        self.costs = coverage_costs.CELLS
        self._scorers = {n_rows: Scorer(BINS, LEVEL, DRAWS, 0) for n_rows in SIZES}

    def run(self, simulations):
        """Add what is missing, a round for all cells at a time."""
        for stop in range(AT_ONCE, simulations + AT_ONCE, AT_ONCE):
            for cell in (*self.fits, *self.cells, *self.costs):
                self._add(cell, min(stop, simulations))

    def _add(self, cell, stop):
        done = (self.store.read(cell) or {"n": 0})["n"]
        seeds = range(done, stop)
        if not seeds:
            return
        if cell in self.fits:
            above, below = coverage_fits.misses(*cell, seeds)
            self.store.add(cell, len(seeds), above=above, below=below)
        elif cell in self.costs:
            above, below = coverage_costs.misses(cell, seeds)
            self.store.add(cell, len(seeds), above=above, below=below)
        else:
            truths = truths_of(self.store, *cell[1:])
            above, below, length = misses(self._scorers[cell[0]], cell, truths, seeds)
            self.store.add(cell, len(seeds), above=above, below=below, length=length)

    def tables(self):
        """Return the tables from what is done."""
        stored = (self.store.all(cells) for cells in (self.cells, self.fits, self.costs))
        return tables(*stored, NAMES)


def main() -> None:
    """Run the study and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--store", type=Path, default=ROOT / "build" / "coverage")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    study = Study(Store(options.store))
    study.run(options.simulations)
    PAGE.write_text(fill_blocks(PAGE.read_text(encoding="utf-8"), study.tables()), encoding="utf-8")


if __name__ == "__main__":
    main()
