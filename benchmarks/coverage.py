"""How often do the intervals contain the truth? Writes docs/coverage.md.

Labels are drawn from known probabilities, so the true value of every metric is known: it is computed from a
large sample with the probabilities of the labels instead of labels. Each simulation draws rows, evaluates
them, and checks which intervals contain the truth.

    python benchmarks/coverage.py --simulations 2000 --jobs 2

Finished cells are kept in build/coverage.json; a cell with too few simulations gets the missing ones.
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import entr, softmax

from temperance.comparison.recommendation import Difference
from temperance.metrics import METRICS, evaluate
from temperance.metrics.bins import assign, bin_edges
from temperance.metrics.predictions import Predictions
from temperance.metrics.selective import RiskCurve
from temperance.metrics.smooth import fixed_point, grid_mean

ROOT = Path(__file__).resolve().parents[1]
SIZES, CLASSES = (200, 1000, 5000), (2, 4, 20)
SCENARIOS = {
    "calibrated": "p is the truth",
    "overconfident": "logits times 1.8",
    "underconfident": "logits times 0.6",
    "biased": "1 added to the logit of the first class",
}
DIFFERENCE = "nll difference"
NAMES = (*(name for name in METRICS if name != "mce"), DIFFERENCE)
POPULATION = 200_000
BINS, LEVEL = 15, 0.95
AT_ONCE = 50  # simulations of a job


def draw(n_rows, n_classes, scenario, rng):
    """Return the true probabilities, those to evaluate, and those of a rival classifier."""
    logits = 2 * rng.normal(size=(n_rows, n_classes))
    truth = softmax(logits, axis=1)
    if scenario == "biased":
        return truth, softmax(logits + np.eye(n_classes)[0], axis=1), truth
    factor = {"calibrated": 1.0, "overconfident": 1.8, "underconfident": 0.6}[scenario]
    rival = softmax(1.3 * logits, axis=1) if factor == 1 else truth
    return truth, softmax(factor * logits, axis=1), rival


def draw_labels(truth, rng):
    """Return labels with these probabilities."""
    labels = (truth.cumsum(axis=1) < rng.uniform(size=(len(truth), 1))).sum(axis=1)
    return np.minimum(labels, truth.shape[1] - 1)


def population(n_classes, scenario):
    """Return the truth of every metric."""
    truth, probs, rival = draw(POPULATION, n_classes, scenario, np.random.default_rng([9, n_classes]))
    rows = Predictions(probs, np.zeros(POPULATION, int), np.ones(POPULATION))
    # Cached, so that what is computed from these sees the probability of being right.
    rows.__dict__["correct"] = np.take_along_axis(truth, probs.argmax(axis=1)[:, None], axis=1)[:, 0]
    edges = bin_edges(probs[:1, 0], np.ones(1), BINS, "width")
    in_bins = np.bincount(assign(rows.confidence, edges), rows.residual, minlength=BINS)
    of_classes = [
        np.abs(np.bincount(assign(probs[:, k], edges), truth[:, k] - probs[:, k])).sum()
        for k in range(n_classes)
    ]
    nll, nll_of_truth = -(truth * np.log(probs)).sum(axis=1).mean(), entr(truth).sum(axis=1).mean()
    brier_of_truth = 1 - (truth**2).sum(axis=1).mean()
    brier = brier_of_truth + ((truth - probs) ** 2).sum(axis=1).mean()
    error = float(np.abs(in_bins).sum() / POPULATION)
    return {
        "accuracy": rows.correct.mean(),
        "nll": nll,
        "nll_calibration": nll - nll_of_truth,
        "nll_refinement": nll_of_truth,
        "brier": brier,
        "brier_calibration": brier - brier_of_truth,
        "brier_refinement": brier_of_truth,
        "ece": error,
        "debiased_ece": error,
        "classwise_ece": sum(of_classes) / (n_classes * POPULATION),
        "smooth_ece": fixed_point(grid_mean(rows)),
        "overconfidence": -rows.residual.mean(),
        "aurc": RiskCurve(rows).area,
        DIFFERENCE: (truth * (np.log(rival) - np.log(probs))).sum(axis=1).mean(),
    }


def misses(n_rows, n_classes, scenario, truths, seeds, draws):
    """Return how often each interval lay above the truth, and below it."""
    above, below = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    for seed in seeds:
        rng = np.random.default_rng([n_rows, n_classes, list(SCENARIOS).index(scenario), seed])
        truth, probs, rival = draw(n_rows, n_classes, scenario, rng)
        labels = draw_labels(truth, rng)
        found = dict(evaluate(probs, labels, bins=BINS, confidence=LEVEL, draws=draws))
        at = np.arange(n_rows), labels
        rows = np.log(rival[at]) - np.log(probs[at])
        found[DIFFERENCE] = Difference.of(rows, np.full(n_rows, 1 / n_rows)).interval(LEVEL)
        for name in NAMES:
            # Rounding: a truth of 0 is 1e-17 here and there.
            above[name] += bool(found[name].low > truths[name] + 1e-9)
            below[name] += bool(found[name].high < truths[name] - 1e-9)
    return above, below


def job(cell, truths, seeds, draws):
    """Run some simulations of a cell in a process of its own."""
    warnings.simplefilter("ignore")
    return cell, len(seeds), misses(*cell, truths, seeds, draws)


def run(cells, simulations, draws, jobs, store):
    """Add to the results what is missing, and keep them after each part."""
    results = json.loads(store.read_text()) if store.exists() else {}
    truths = {key: population(*key) for key in {cell[1:] for cell in cells}}
    with ProcessPoolExecutor(jobs) as pool:
        waiting = []
        for cell in cells:
            done = results.setdefault(" ".join(map(str, cell)), {"n": 0, "above": {}, "below": {}})["n"]
            for start in range(done, simulations, AT_ONCE):
                seeds = range(start, min(start + AT_ONCE, simulations))
                waiting.append(pool.submit(job, cell, truths[cell[1:]], seeds, draws))
        for future in as_completed(waiting):
            cell, n, (above, below) = future.result()
            entry = results[" ".join(map(str, cell))]
            entry["n"] += n
            for side, found in (("above", above), ("below", below)):
                for name in NAMES:
                    entry[side][name] = entry[side].get(name, 0) + found[name]
            store.parent.mkdir(parents=True, exist_ok=True)
            store.write_text(json.dumps(results))
    return results


def page(results, draws):
    """Return the page: a table for each metric, with the cells outside the target in bold."""
    counts = sorted({entry["n"] for entry in results.values()})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = [
        "# Do the intervals cover?",
        "",
        "`make coverage-study` writes this page. It draws rows with known probabilities, evaluates them",
        f"with {draws} resamples, and counts how often a 95 % interval contains the true value, in",
        f"{number} simulations for each cell. Each entry is the coverage in percent; in brackets, how",
        "often the interval was above and below the truth, in percent. Entries outside 93 to 97 % are",
        "bold. The standard error of an entry is about "
        f"{100 * np.sqrt(0.05 * 0.95 / counts[0]):.1f} with {counts[0]} simulations.",
        "",
        "| scenario | what is evaluated |",
        "|---|---|",
        *(f"| {name} | {words} |" for name, words in SCENARIOS.items()),
        "",
        "Logits are normal with standard deviation 2. The true values of `ece`, `debiased_ece` and",
        "`classwise_ece` use the same 15 bins. Those of the calibration and refinement parts use the best",
        "recalibrator. Their intervals keep the fitted recalibrators fixed, as `evaluate` says, so with few",
        "rows and many classes they need not contain the truth. `mce` has no interval. `nll difference` is",
        "the paired difference of two classifiers, as `compare` shows it.",
        "",
    ]
    keys = list(results)
    share = {name: np.mean([_coverage(results[key], name) for key in keys]) for name in NAMES}
    inside = {name: sum(93 <= _coverage(results[key], name) <= 97 for key in keys) for name in NAMES}
    lines += ["| metric | mean coverage % | cells within 93 to 97 % |", "|---|---|---|"]
    lines += [f"| {name} | {share[name]:.1f} | {inside[name]} of {len(keys)} |" for name in NAMES]
    for name in NAMES:
        lines += ["", f"## {name}", "", "| N | K | " + " | ".join(SCENARIOS) + " |", "|---" * 6 + "|"]
        for n, k in product(SIZES, CLASSES):
            if f"{n} {k} calibrated" not in results:
                continue
            cells = [_entry(results.get(f"{n} {k} {scenario}"), name) for scenario in SCENARIOS]
            lines.append(f"| {n} | {k} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _coverage(entry, name):
    return 100 * (1 - (entry["above"][name] + entry["below"][name]) / entry["n"])


def _entry(entry, name):
    if entry is None or not entry["n"]:
        return ""
    covered = _coverage(entry, name)
    sides = "/".join(f"{100 * entry[side][name] / entry['n']:.1f}" for side in ("above", "below"))
    shown = f"{covered:.1f} ({sides})"
    return shown if 93 <= covered <= 97 else f"**{shown}**"


def main() -> None:
    """Run the study and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--store", type=Path, default=ROOT / "build" / "coverage.json")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "coverage.md")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    cells = list(product(sizes, CLASSES, SCENARIOS))
    results = run(cells, options.simulations, options.draws, options.jobs, options.store)
    results = {key: entry for key, entry in results.items() if entry["n"]}
    options.out.write_text(page(results, options.draws), encoding="utf-8")


if __name__ == "__main__":
    main()
