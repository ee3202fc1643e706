"""The tasks on which speed, memory and accuracy are measured.

    python grid.py FOLDER

writes FOLDER/NxK.npz for each size that is not there yet, and the best temperature beside it in NxK.json.
The logits are those of an overconfident classifier in float32, as networks return them; the labels are drawn
from their softmax at T = 2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from optimum import best_temperature
from plan import SIZES, name_of


def make_task(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return logits and labels."""
    rng = np.random.default_rng([n_rows, n_classes])
    logits = rng.standard_normal((n_rows, n_classes), dtype=np.float32)
    logits *= rng.uniform(2, 8, (n_rows, 1)).astype(np.float32)
    labels = np.empty(n_rows, np.int64)
    for rows in np.array_split(np.arange(n_rows), max(1, n_rows * n_classes // 2**20)):
        noise = rng.gumbel(size=(len(rows), n_classes))
        labels[rows] = (logits[rows] / 2 + noise).argmax(axis=1)
    return logits, labels


def write_task(size: tuple[int, int], folder: Path) -> None:
    """Write a task and its best temperature; the latter is last, and says that the task is complete."""
    logits, labels = make_task(*size)
    np.savez(folder / f"{name_of(size)}.npz", logits=logits, labels=labels)
    guess = best_temperature(logits[:1000], labels[:1000])
    best = {"temperature": best_temperature(logits, labels, guess)}
    (folder / f"{name_of(size)}.json").write_text(json.dumps(best), encoding="utf-8")


def main(folder: Path) -> None:
    """Write the tasks that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        if not (folder / f"{name_of(size)}.json").exists():
            write_task(size, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
