"""What tests of a study share."""

import numpy as np

from temperance.data import simulate
from temperance.study.protocol import Score

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


def score_of(fit, value, metric=None):
    """Return the score of a fit: a number for all metrics or for a named one, or a number for each."""
    if metric is not None:
        return Score(fit, nll=1.0, metrics={metric: value})
    values = value if isinstance(value, dict) else dict.fromkeys(("ece50", "ece15", "nll", "brier"), value)
    return Score(fit, **values)
