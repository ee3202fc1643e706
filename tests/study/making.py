"""What tests of a study share."""

import numpy as np

from temperance.data import simulate

SIZES, DRAWS, SEED = (30, 400), 3, 5
METHODS = ("ts", "hts", "pts", "bayes")


def write_task(folder, name, n_rows=200, n_classes=4, seed=0, **options):
    """Write a task file whose validation and test rows come from one simulated classifier."""
    task = simulate(2 * n_rows, n_classes, random_state=seed, **options)
    np.savez(
        folder / f"{name}.npz",
        logits_val=task.logits[:n_rows].astype(np.float32),
        labels_val=task.labels[:n_rows],
        logits_test=task.logits[n_rows:].astype(np.float32),
        labels_test=task.labels[n_rows:],
    )
