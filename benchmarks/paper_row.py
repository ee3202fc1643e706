"""The paper's ResNet-50 / CIFAR-10 row: the table of docs/explanation/paper.md, from the paper's own logits.

    python benchmarks/paper_row.py TASKS/cifar10__resnet50-psrcal.npz [--sgd]

Fitted to the 5000 validation rows, scored on the 10000 test rows. `--sgd` adds the paper's training, which
takes minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from temperance import make_calibrator
from temperance.calibrators import Calibrator
from temperance.core.logit_rows import LogitRows
from temperance.metrics import brier, ece, nll

SEEDS = range(5)


def variants(with_sgd: bool) -> dict[str, list[Calibrator]]:
    """Return what is compared; of random methods, one for each seed."""
    exact = {key: [make_calibrator(key)] for key in ("ts", "ets", "bts", "hts", "lts", "hnlts")}
    exact["ets, brier"] = [make_calibrator("ets", loss="brier")]
    for key in ("pts", "pts-ece"):
        exact[key] = [make_calibrator(key, random_state=seed) for seed in SEEDS]
    exact["pts, no decay"] = [make_calibrator("pts", random_state=seed, weight_decay=0.0) for seed in SEEDS]
    if with_sgd:
        for key in ("hts", "lts", "hnlts", "pts", "pts-ece"):
            exact[f"{key}, sgd"] = [make_calibrator(key, solver="sgd")]
    return exact


def line(name: str, seconds: float, fitted: float, scores: np.ndarray) -> str:
    """Return one line of the table."""
    error, log_loss, square = scores
    return f"{name:<15}{100 * error:>10.2f}{log_loss:>9.4f}{square:>9.4f}{fitted:>12.4f}{seconds:>9.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", type=Path)
    parser.add_argument("--sgd", action="store_true")
    options = parser.parse_args()
    task = np.load(options.task)
    truth = task["labels_test"]

    def scores(probs: np.ndarray) -> list[float]:
        return [ece(probs, truth, bins=50), nll(probs, truth), brier(probs, truth)]

    print(f"{'':<15}{'ECE50 %':>10}{'NLL':>9}{'Brier':>9}{'fit loss':>12}{'fit s':>9}")
    print(line("uncalibrated", 0.0, np.nan, np.array(scores(LogitRows(task["logits_test"]).softmax(1.0)))))
    for name, calibrators in variants(options.sgd).items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PTS without decay does not converge
            for calibrator in calibrators:
                calibrator.fit(task["logits_val"], task["labels_val"])
        seconds = (time.perf_counter() - began) / len(calibrators)
        fitted = float(np.mean([calibrator.solution_.value for calibrator in calibrators]))
        found = np.mean([scores(c.predict_proba(task["logits_test"])) for c in calibrators], axis=0)
        print(line(name, seconds, fitted, found), flush=True)


if __name__ == "__main__":
    main()
