"""Every method on every task from 20 to 5000 rows, with the population prior learned without the task's data.

    python benchmarks/bayes_evaluation.py TASKS --out docs/bayesian [--draws 20] [--jobs 2]

For each task, number of rows and draw one subsample of the validation half is used by all methods, and the
test half judges them. Before, the prior is learned once for each data set, from all the others (see
`learn_prior`). Writes scores.csv.gz: mean and standard deviation over the draws of each score.
`bayes_report` makes tables and figures of it. Needs probmetrics for the methods that begin with pm.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from learn_prior import dataset_of, summaries
from numpy.typing import NDArray

from temperance import CALIBRATORS, BayesianTemperatureScaling, make_calibrator, metrics
from temperance.files import write_atomically
from temperance.learning import learn_population
from temperance.population import write_population

SIZES = (5000, 1000, 200, 50, 20, 500, 100)  # in the order of running: slow ones first, and the main ones
TEST_ROWS = 5000  # at most, for a run of an hour
SCORES: dict[str, Callable[..., float]] = {
    "nll": metrics.nll,
    "brier": metrics.brier,
    "ece15": metrics.ece,
    "smooth_ece": metrics.smooth_ece,
    "classwise_ece": metrics.classwise_ece,
}
Array = NDArray[np.float64]
# Logits and labels to fit, logits to predict -> probabilities.
Method = Callable[[Array, NDArray[np.intp], Array], Array]


def ours(key: str) -> Method:
    """Return a method of the registry."""
    return lambda z, y, test: make_calibrator(key).fit(z, y).predict_proba(test)


def bayes(**options: object) -> Method:
    """Return Bayesian temperature scaling with options."""
    return lambda z, y, test: BayesianTemperatureScaling(**options).fit(z, y).predict_proba(test)  # type: ignore[arg-type]


def rival(name: str) -> Method:
    """Return a method of probmetrics."""
    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.distributions import CategoricalLogits

    quiet = {f"{name}_print_init_info": False} if name in ("svs", "sms") else {}

    def fit_predict(z: Array, y: NDArray[np.intp], test: Array) -> Array:
        calibrator = get_calibrator(name, **quiet)
        calibrator.fit_torch(CategoricalLogits(torch.from_numpy(z)), torch.from_numpy(y))
        return calibrator.predict_proba_torch(CategoricalLogits(torch.from_numpy(test))).get_probs().numpy()

    return fit_predict


def methods(prior: Path) -> dict[str, Method]:
    """Return all methods by name."""
    return {
        "none": lambda z, y, test: np.exp(test - np.logaddexp.reduce(test, axis=1, keepdims=True)),
        **{key: ours(key) for key, m in CALIBRATORS.items() if m.in_comparison and key != "bayes"},
        "bayes": bayes(prior=str(prior)),
        "bayes weak": bayes(prior="weak"),
        "bayes class_bias": bayes(prior=str(prior), class_bias=True),
        "pm ts": rival("temp-scaling"),
        "pm ts-mix": rival("ts-mix"),
        "pm svs": rival("svs"),
        "pm sms": rival("sms"),
    }


def judge(path: Path, prior: Path, size: int, draws: int) -> list[dict[str, object]]:
    """Return a line for each method, on one task with one number of rows."""
    warnings.simplefilter("ignore")  # of draws without an error, and of fits that drift
    with np.load(path) as file:
        z, y = file["logits_val"].astype(np.float64), file["labels_val"].astype(np.intp)
        test = file["logits_test"][:TEST_ROWS].astype(np.float64)
        truth = file["labels_test"][:TEST_ROWS].astype(np.intp)
    found: dict[str, list[list[float]]] = {}
    for draw in range(1 if size == len(y) else draws):  # all rows are one draw
        rows = np.random.default_rng(draw).permutation(len(y))[:size]
        for name, method in methods(prior).items():
            began = time.perf_counter()
            with contextlib.redirect_stdout(None):
                probs = method(z[rows], y[rows], test)
            seconds = time.perf_counter() - began
            values = [score(probs, truth) for score in SCORES.values()]
            found.setdefault(name, []).append([*values, seconds])
    lines = []
    for name, values in found.items():
        mean, spread = np.mean(values, axis=0), np.std(values, axis=0)
        line: dict[str, object] = {"task": path.stem, "dataset": dataset_of(path), "classes": z.shape[1]}
        line |= {"rows": size, "draws": len(values), "method": name}
        for score, m, s in zip([*SCORES, "seconds"], mean, spread, strict=True):
            line |= {score: f"{m:.6g}", f"{score}_sd": f"{s:.3g}"}
        lines.append(line)
    return lines


def rows_of(path: Path) -> int:
    """Return how many rows a task has for calibration."""
    with np.load(path) as file:
        return len(file["labels_val"])


def priors_without(tasks: Path, folder: Path) -> dict[str, Path]:
    """Learn, for each data set, the prior of all the others."""
    known = summaries(tasks)
    result = {}
    for dataset in sorted({task.dataset for task in known}):
        result[dataset] = folder / f"without_{dataset}.json"
        write_population(
            learn_population([task for task in known if task.dataset != dataset]), result[dataset]
        )
    return result


def write(path: Path, lines: list[dict[str, object]]) -> None:
    """Write what there is so far, sorted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]))
    writer.writeheader()
    writer.writerows(sorted(lines, key=lambda line: (str(line["task"]), int(str(line["rows"])))))
    write_atomically(path, gzip.compress(text.getvalue().encode(), mtime=0), overwrite=True)


def main() -> None:
    """Run all cells over the processes, the slow ones first, and write what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    for name in ("TEMPERANCE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes to come: the cells are parallel already
    lines: list[dict[str, object]] = []
    fresh = get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.jobs, fresh) as pool:
        priors = priors_without(options.tasks, Path(folder))
        paths = sorted(options.tasks.glob("*.npz"))
        cells = [(path, size) for size in SIZES for path in paths if size <= rows_of(path)]
        waiting = [pool.submit(judge, p, priors[dataset_of(p)], n, options.draws) for p, n in cells]
        for done, future in enumerate(as_completed(waiting), 1):
            lines += future.result()
            write(options.out / "scores.csv.gz", lines)
            print(f"\r{done} of {len(cells)} cells", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
