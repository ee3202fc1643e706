"""The methods with few calibration rows: test NLL relative to TS, on a folder of task files.

    python benchmarks/small_sets.py TASKS --rows 200 --draws 10 --match cifar

A task file is an .npz with logits_val, labels_val, logits_test and labels_test. Each draw takes `rows` rows
of the validation set, the same for all methods. Below 1 is better than TS.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from temperance import CALIBRATORS, make_calibrator
from temperance.calibrators import single_temperature
from temperance.metrics import nll


def ratios(path: Path, methods: list[str], rows: int, draws: int) -> dict[str, float]:
    """Return the mean over draws of each method's test NLL over that of TS, on one task."""
    task = np.load(path)
    logits, labels = task["logits_val"].astype(np.float64), task["labels_val"]
    test, truth = task["logits_test"].astype(np.float64), task["labels_test"]
    found: dict[str, list[float]] = {method: [] for method in methods}
    for draw in range(draws):
        chosen = np.random.default_rng(draw).permutation(len(labels))[:rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of draws without an error, and of fits that drift
            scores = {
                method: nll(
                    make_calibrator(method).fit(logits[chosen], labels[chosen]).predict_proba(test), truth
                )
                for method in {"ts", *methods}
            }
        for method in methods:
            found[method].append(scores[method] / scores["ts"])
    return {method: float(np.mean(values)) for method, values in found.items()}


def main() -> None:
    """Print a table: a line for each method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--rows", type=int, default=200, help="calibration rows of a draw")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--match", default="", help="only tasks whose name contains this")
    parser.add_argument(
        "--methods",
        default=",".join(key for key, m in CALIBRATORS.items() if m.in_comparison and key != "ts"),
    )
    parser.add_argument(
        "--spread", type=float, default=single_temperature.RANGE_FACTOR, help="limit of T(z) over the best T"
    )
    options = parser.parse_args()
    single_temperature.RANGE_FACTOR = options.spread
    methods = options.methods.split(",")
    paths = sorted(p for p in options.tasks.glob("*.npz") if options.match in p.stem)
    table = {path.stem: ratios(path, methods, options.rows, options.draws) for path in paths}
    print(f"test NLL / that of TS: {len(paths)} tasks, {options.rows} rows, {options.draws} draws each\n")
    print(f"{'method':<9}{'mean':>8}{'s.e.':>8}{'median':>8}{'worst':>8}  worst task")
    for method in methods:
        values = np.array([table[task][method] for task in table])
        worst = max(table, key=lambda task: table[task][method])
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        numbers = f"{values.mean():>8.3f}{error:>8.3f}{np.median(values):>8.3f}{values.max():>8.3f}"
        print(f"{method:<9}{numbers}  {worst}")


if __name__ == "__main__":
    main()
