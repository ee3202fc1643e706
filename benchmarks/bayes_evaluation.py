"""Every method on every task from 20 to 5000 rows; priors are learned without the task's data set.

    python benchmarks/bayes_evaluation.py TASKS --out docs/bayesian [--groups rivals,package,ours]
        [--draws 10] [--jobs 1] [--again]

A cell is a task and a number of rows N. In each draw all methods are fitted to the same N validation rows and
scored on the test rows. N = 5000 means all rows of a task that has 4000 or more; tasks with more than 5000
rows have three draws of 5000. Tasks with more than 300 classes and fewer than 4000 rows also have a cell with
all their rows.

OUT/scores.csv.gz holds a line for each cell and method. It is written after each cell; existing lines are
kept, so a run that was stopped can continue, and groups can be run one after the other. `--again` computes
the lines of the groups anew. `bayes_report` makes tables and figures of the file. The rivals need `pip
install probmetrics`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from bayes_methods import REFERENCE, build, most_draws, names
from learn_prior import dataset_of as family_of
from learn_prior import summaries
from numpy.typing import NDArray
from prior_from_tasks import learn_population

from temperance import metrics
from temperance.files import write_atomically
from temperance.population import write_population

SIZES = (200, 1000, 20, 50, 5000)  # in the order of running
ALL_ROWS = 5000  # the size that stands for all rows
DRAWS_OF_ALL_ROWS = 3  # where there are more of them than that
ENOUGH_FOR_ALL = 4000  # rows that a task needs for it
TEST_ROWS = 5000
MANY_CLASSES, TEST_ROWS_OF_MANY = 300, 2500
UNSHUFFLED = 20_000  # from this many test rows on, a random part of them judges
SCORES: dict[str, Callable[..., float]] = {
    "nll": metrics.nll,
    "brier": metrics.brier,
    "ece15": metrics.ece,
    "smooth_ece": metrics.smooth_ece,
    "classwise_ece": metrics.classwise_ece,
    "accuracy": metrics.accuracy,
}
RATIOS = ("nll", "brier", "ece15", "smooth_ece", "classwise_ece")
FAILED = [np.inf] * len(RATIOS) + [np.nan]
Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Line = dict[str, str]
Key = tuple[str, int, str]  # task, rows, method


@dataclass(frozen=True)
class Task:
    """The rows to fit to, and those that judge."""

    logits: Array
    labels: Labels
    test_logits: Array
    test_labels: Labels

    @property
    def n_classes(self) -> int:
        """Return the number of columns."""
        return self.logits.shape[1]


@dataclass(frozen=True)
class Cell:
    """A task, a number of rows, and the methods that are wanted there."""

    path: Path
    rows: int
    methods: tuple[str, ...]


def test_rows(n_rows: int, n_classes: int) -> NDArray[np.intp]:
    """Return which test rows judge: the first ones, or a random part of a large and sorted file."""
    limit = TEST_ROWS_OF_MANY if n_classes > MANY_CLASSES else TEST_ROWS
    if n_rows >= UNSHUFFLED:
        return np.random.default_rng(0).permutation(n_rows)[:limit]
    return np.arange(min(n_rows, limit))


def read_task(path: Path) -> Task:
    """Read a task file in double precision."""
    with np.load(path) as file:
        logits, labels = file["logits_val"].astype(np.float64), file["labels_val"].astype(np.intp)
        kept = test_rows(*file["logits_test"].shape)
        test_logits = file["logits_test"][kept].astype(np.float64)
        return Task(logits, labels, test_logits, file["labels_test"][kept].astype(np.intp))


def rows_of(path: Path) -> int:
    """Return how many rows a task has for calibration."""
    with np.load(path) as file:
        return len(file["labels_val"])


def classes_of(path: Path) -> int:
    """Return how many classes a task has."""
    with np.load(path) as file:
        return int(file["logits_val"].shape[1])


def sizes_of(n_rows: int, n_classes: int) -> list[int]:
    """Return the numbers of rows at which a task is judged, in the order of running."""
    sizes = [size for size in SIZES if n_rows >= (ENOUGH_FOR_ALL if size == ALL_ROWS else size)]
    if n_classes > MANY_CLASSES and ALL_ROWS not in sizes:
        sizes.append(n_rows)
    return sizes


def draws_of(size: int, n_rows: int, wanted: int) -> int:
    """Return the number of draws: one where all rows are taken."""
    if size >= n_rows:
        return 1
    return min(wanted, DRAWS_OF_ALL_ROWS) if size == ALL_ROWS else wanted


def score(method: str, prior: Path | None, task: Task, rows: Labels) -> list[float]:
    """Fit to some rows and return every score, then the seconds of fit and prediction."""
    began = time.perf_counter()
    try:
        with contextlib.redirect_stdout(None):
            calibrator = build(method, prior).fit(task.logits[rows], task.labels[rows])
            probs = calibrator.predict_proba(task.test_logits)
        seconds = time.perf_counter() - began
        return [*(float(f(probs, task.test_labels)) for f in SCORES.values()), seconds]
    except Exception as error:  # whatever another package raises: the failure is its score
        print(f"{method} failed with {len(rows)} rows: {error!r:.200}", file=sys.stderr, flush=True)
        return [*FAILED, time.perf_counter() - began]


def judge(cell: Cell, prior: Path | None, wanted: int) -> list[Line]:
    """Return a line for each method of a cell."""
    warnings.simplefilter("ignore")  # of draws without an error, and of fits that drift
    task = read_task(cell.path)
    found: dict[str, list[list[float]]] = {name: [] for name in (REFERENCE, *cell.methods)}
    draws = draws_of(cell.rows, len(task.labels), wanted)
    for draw in range(draws):
        rows = np.random.default_rng(draw).permutation(len(task.labels))[: cell.rows]
        for name, scores in found.items():
            if draw < most_draws(name, task.n_classes):
                scores.append(score(name, prior, task, rows))
    reference = np.array(found[REFERENCE])
    about = {
        "task": cell.path.stem,
        "dataset": cell.path.stem.split("__")[0],
        "classes": str(task.n_classes),
        "rows": str(cell.rows),
    }
    return [
        about | {"draws": str(len(found[name])), "method": name} | summary(np.array(found[name]), reference)
        for name in cell.methods
    ]


def summary(values: Array, reference: Array) -> Line:
    """Return mean and deviation over draws of each score, and the mean ratios to the reference."""
    line: Line = {}
    with np.errstate(all="ignore"):  # inf stays inf
        mean, spread = values.mean(axis=0), values.std(axis=0)
        ratios = (values / reference[: len(values)]).mean(axis=0)
    for i, name in enumerate(SCORES):
        line |= {name: f"{mean[i]:.6g}", f"{name}_sd": f"{spread[i]:.3g}"}
    for i, name in enumerate(RATIOS):
        line[f"{name}_ratio"] = f"{ratios[i]:.6g}"
    return line | {"seconds": f"{mean[-1]:.3g}"}


def key_of(line: Line) -> Key:
    """Return what a line is known by."""
    return line["task"], int(line["rows"]), line["method"]


def read_lines(path: Path) -> dict[Key, Line]:
    """Return the lines of a file of scores; none if there is no file."""
    if not path.exists():
        return {}
    with gzip.open(path, "rt", newline="") as file:
        return {key_of(line): line for line in csv.DictReader(file)}


def add_lines(path: Path, lines: Iterable[Line]) -> None:
    """Put lines into a file of scores, in place of older ones of the same cell and method."""
    merged = read_lines(path) | {key_of(line): line for line in lines}
    text = io.StringIO()
    writer = csv.DictWriter(text, list(next(iter(merged.values()))))
    writer.writeheader()
    writer.writerows(merged[key] for key in sorted(merged))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, gzip.compress(text.getvalue().encode(), mtime=0), overwrite=True)


def plan(tasks: Path, groups: Iterable[str], present: set[Key]) -> list[Cell]:
    """Return the cells that have methods without a line, in the order of running."""
    wanted = [name for group in groups for name in names(group)]
    cells = []
    for path in sorted(tasks.glob("*.npz")):
        n_classes = classes_of(path)
        here = [name for name in wanted if most_draws(name, n_classes)]
        for size in sizes_of(rows_of(path), n_classes):
            missing = tuple(name for name in here if (path.stem, size, name) not in present)
            cells += [Cell(path, size, missing)] if missing else []
    order = {size: i for i, size in enumerate(SIZES)}
    return sorted(cells, key=lambda cell: order.get(cell.rows, len(SIZES)))


def priors_without(tasks: Path, folder: Path) -> dict[str, Path]:
    """Learn, for each family of data sets, the prior of all the others."""
    known = summaries(tasks)
    result = {}
    for family in sorted({task.dataset for task in known}):
        result[family] = folder / f"without_{family}.json"
        others = [task for task in known if task.dataset != family]
        write_population(learn_population(others), result[family])
    return result


def run(cells: list[Cell], priors: dict[str, Path], out: Path, draws: int, jobs: int) -> None:
    """Judge all cells over processes, and write after each."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting = {pool.submit(judge, cell, priors.get(family_of(cell.path)), draws): cell for cell in cells}
        for done, future in enumerate(as_completed(waiting), 1):
            add_lines(out, future.result())
            cell = waiting[future]
            print(f"{done} of {len(cells)} cells: {cell.path.stem}, N = {cell.rows}", flush=True)


def main() -> None:
    """Plan, learn the priors if they are needed, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--groups", default="rivals,package,ours")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="Compute lines that are there already, too.")
    options = parser.parse_args()
    for name in ("TEMPERANCE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes to come: the cells are parallel already
    out, groups = options.out / "scores.csv.gz", options.groups.split(",")
    cells = plan(options.tasks, groups, set() if options.again else set(read_lines(out)))
    with tempfile.TemporaryDirectory() as folder:
        priors = priors_without(options.tasks, Path(folder)) if "ours" in groups and cells else {}
        run(cells, priors, out, options.draws, options.jobs)


if __name__ == "__main__":
    main()
