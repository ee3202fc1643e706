"""How good is it to follow the recommendation of `compare`? Measured on rows that it has not seen.

    python benchmarks/recommendation.py TASKS --cache DIR [--draws 2] [--jobs 1]

A case is a task, a number N of calibration rows, a draw of them, and a way to evaluate: 1000 test rows, or 5
folds. The methods are fitted once for each case, with a prior learned without the task's data set, and the
cases are stored in DIR. The rule is then applied to the stored cases, which takes seconds: change the rule
and run again. Beside the task files there are simulated tasks. The tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import os
import pickle
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bayes_evaluation import Task, priors_without, read_task
from learn_prior import dataset_of
from numpy.typing import NDArray

from temperance import CALIBRATORS, compare
from temperance.comparison import MethodResult
from temperance.comparison.recommendation import DEFAULT_METHODS, recommend
from temperance.comparison.rows import label_nll, predict
from temperance.data import simulate

SIZES = (20, 50, 100, 200, 500, 1000)
TEST_ROWS, FOLDS = 1000, 5
SIMULATED = 24
HARM = 1.02  # NLL over the uncalibrated classifier's, from which following a rule did harm
LARGE_GAIN = 0.9  # NLL of bayes-bias over that of bayes, up to which it should be recommended
POLICIES = ("the recommendation", "always bayes", "always ts", "always bayes-bias")


@dataclass(frozen=True)
class Case:
    """A comparison, and the true NLL of each method: on rows that it has not used."""

    task: str
    rows: int
    folds: int | None
    results: dict[str, MethodResult]
    truth: dict[str, float]


def simulated_task(seed: int) -> Task:
    """Return a task of a random kind, a third of them calibrated but for a class bias or nothing at all."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.choice([2, 3, 5, 10, 20]))
    calibrated = seed % 3 == 0
    drawn = simulate(
        7000,
        n_classes,
        temperature=1.0 if calibrated else float(np.exp(rng.normal(0.4, 0.4))),
        entropy_slope=0.0 if calibrated else float(rng.normal(0, 0.1)),
        class_spread=0.0 if calibrated else 0.1,
        sharpness=float(rng.uniform(1.5, 8)),
        random_state=seed,
    )
    bias = rng.choice([0.0, 0.0, 0.5, 2.0]) * rng.normal(size=n_classes)
    logits = drawn.logits + bias
    return Task(logits[:2000], drawn.labels[:2000], logits[2000:], drawn.labels[2000:])


def cases(name: str, task: Task, prior: Path | None, draws: int) -> list[Case]:
    """Fit the default methods to draws of rows; return what the comparisons saw and the truth."""
    warnings.simplefilter("ignore")
    options = {} if prior is None else {"prior": str(prior)}
    methods = {
        key: replace(
            CALIBRATORS[key], options={**CALIBRATORS[key].options, **(options if key != "ts" else {})}
        )
        for key in DEFAULT_METHODS
    }
    found = []
    for size in (size for size in SIZES if size <= len(task.labels)):
        for draw in range(draws):
            rng = np.random.default_rng([size, draw])
            val = rng.permutation(len(task.labels))[:size]
            order = rng.permutation(len(task.test_labels))
            n_test = min(TEST_ROWS, len(order) // 2)
            test, unseen = order[:n_test], order[n_test:]
            rows: tuple[Any, ...] = (task.logits[val], task.labels[val])
            tests = (task.test_logits[test], task.test_labels[test])
            for folds, more in ((None, tests), (FOLDS, ())):
                compared = compare(*rows, *more, methods=methods, folds=FOLDS, draws=1, progress=False)
                truth = {
                    key: _true_nll(result.calibrator, task, unseen)
                    for key, result in compared.results.items()
                }
                slim = {
                    key: replace(result, calibrator=None, class_reliability={})
                    for key, result in compared.results.items()
                }
                found.append(Case(name, size, folds, slim, truth))
    return found


def _true_nll(calibrator: Any, task: Task, rows: NDArray[np.intp]) -> float:
    return float(label_nll(predict(calibrator, task.test_logits[rows]), task.test_labels[rows]).mean())


def collect(name: str, path: Path | None, prior: Path | None, draws: int, out: Path) -> None:
    """Store the cases of a task file, or of a simulated task."""
    task = simulated_task(int(name.split("-")[1])) if path is None else read_task(path)
    out.write_bytes(pickle.dumps(cases(name, task, prior, draws)))
    print(name, flush=True)


def table(found: Iterable[Case]) -> list[list[str]]:
    """Return a line for each number of rows: what each policy gives, relative to no calibration."""
    lines = []
    by_size: dict[int, list[Case]] = {}
    for case in found:
        by_size.setdefault(case.rows, []).append(case)
    for size, here in sorted(by_size.items()):
        chosen = {name: [choice(case, name) for case in here] for name in POLICIES}
        cells = [str(size), str(len(here))]
        for name in POLICIES:
            ratios = np.array(
                [c.truth[key] / c.truth["none"] for c, key in zip(here, chosen[name], strict=True)]
            )
            mean, harmed = np.exp(np.log(ratios).mean()), (ratios > HARM).mean()
            cells.append(f"{mean:.4f} ({100 * harmed:.1f}%)")
        earned = [c for c in here if c.truth["bayes-bias"] <= LARGE_GAIN * c.truth["bayes"]]
        found_it = sum(choice(c, POLICIES[0]) == "bayes-bias" for c in earned)
        keys, counts = np.unique(chosen[POLICIES[0]], return_counts=True)
        shares = ", ".join(f"{key} {100 * n / len(here):.0f}%" for key, n in zip(keys, counts, strict=True))
        lines.append([*cells, f"{found_it} of {len(earned)}", shares])
    return lines


def choice(case: Case, policy: str) -> str:
    """Return the method that a policy uses."""
    if policy != POLICIES[0]:
        return policy.removeprefix("always ")
    return recommend(case.results).method


def main() -> None:
    """Collect what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for name in ("TEMPERANCE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    options.cache.mkdir(parents=True, exist_ok=True)
    wanted: dict[str, Path | None] = {path.stem: path for path in sorted(options.tasks.glob("*.npz"))}
    wanted |= {f"simulated-{seed}": None for seed in range(SIMULATED)}
    missing = {name: path for name, path in wanted.items() if not (options.cache / f"{name}.pickle").exists()}
    if missing:
        priors = priors_without(options.tasks, options.cache)
        with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
            waiting = [
                pool.submit(
                    collect, name, path, priors.get(dataset_of(path)) if path else None, options.draws,
                    options.cache / f"{name}.pickle",
                )
                for name, path in missing.items()
            ]  # fmt: skip
            for future in waiting:
                future.result()
    found = [
        case for name in wanted for case in pickle.loads((options.cache / f"{name}.pickle").read_bytes())
    ]
    heads = ["rows", "cases", *POLICIES, "bayes-bias where it gains 10%", "recommended"]
    for evaluated, folds in (("1000 test rows", None), (f"{FOLDS} folds", FOLDS)):
        for kind in ("real", "simulated"):
            here = [
                c
                for c in found
                if c.folds == folds and c.task.startswith("simulated-") == (kind == "simulated")
            ]
            print(f"\n{kind} tasks, {evaluated}\n")
            print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
            for line in table(here):
                print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
