from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import softmax

Simulator = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]


@pytest.fixture(scope="session")
def simulate() -> Simulator:
    """Return a simulator of (probs, labels, truth): probs has the logits of truth times `sharpen`."""

    def draw(n_rows, n_classes, *, sharpen=1.0, spread=2.0, seed=0):
        rng = np.random.default_rng(seed)
        logits = spread * rng.normal(size=(n_rows, n_classes))
        truth = softmax(logits, axis=1)
        labels = (truth.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
        return softmax(sharpen * logits, axis=1), np.minimum(labels, n_classes - 1), truth

    return draw
