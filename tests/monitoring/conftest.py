"""A calibrator, and new rows of its classifier."""

import numpy as np
import pytest

from temperance import make_calibrator
from temperance.data import simulate


@pytest.fixture(scope="session")
def world():
    """Return a calibrator fitted to 1000 rows, and 6000 new rows with labels."""
    task = simulate(n_rows=7000, n_classes=3, random_state=3)
    calibrator = make_calibrator("bayes").fit(task.logits[:1000], task.labels[:1000])
    return calibrator, task.logits[1000:], task.labels[1000:]


@pytest.fixture(scope="session")
def noisy(world):
    """Return the labels of the new rows, of which a third is replaced by any class."""
    _, _, labels = world
    rng = np.random.default_rng(0)
    return np.where(rng.random(len(labels)) < 1 / 3, rng.integers(0, 3, len(labels)), labels)


@pytest.fixture(scope="session")
def shifted(world):
    """Return 1500 of the new rows, in which the first class is four times as frequent."""
    _, logits, labels = world
    weight = np.where(labels == 0, 4.0, 1.0)
    at = np.random.default_rng(0).choice(len(labels), 1500, p=weight / weight.sum(), replace=False)
    return logits[at], labels[at]
