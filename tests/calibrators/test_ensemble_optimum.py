"""ETS has several optima; on rows where each of its starts is needed it finds the lowest."""

import numpy as np
import pytest
from scipy.special import softmax

from temperance import EnsembleTemperatureScaling, TemperatureScaling

SIMPLEX = np.array([[a, b, 20 - a - b] for a in range(21) for b in range(21 - a)]) / 20


def draw(seed):
    """Return rows of a random size, sharpness and noise of labels."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.choice([40, 80, 150])), int(rng.choice([3, 5, 10]))
    noise, sharp = rng.choice([0, 0.1, 0.3, 0.5]), rng.choice([0.3, 1, 3, 10.0])
    logits = sharp * rng.normal(size=(n, K)) * rng.choice([0.5, 1, 2])
    truth = softmax(logits / sharp * rng.choice([0.5, 1, 3, 8]), axis=1)
    labels = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, K - 1)
    flipped = rng.random(n) < noise
    labels[flipped] = rng.integers(0, K, flipped.sum())
    return logits, labels


def lowest_on_a_grid(logits, labels, loss):
    """Return the lowest loss over temperatures within the limits and over mixtures."""
    one_hot = np.eye(logits.shape[1])[labels]
    raw, uniform = softmax(logits, axis=1), np.full(logits.shape, 1 / logits.shape[1])
    best = TemperatureScaling().fit(logits, labels).temperature_
    lowest = np.inf
    for T in best * np.geomspace(0.1, 10, 81):
        parts = np.stack([softmax(logits / T, axis=1), raw, uniform])
        p = np.tensordot(SIMPLEX, parts, axes=1)
        if loss == "nll":
            with np.errstate(divide="ignore"):
                losses = -np.log(p[:, np.arange(len(labels)), labels]).mean(axis=1)
        else:
            losses = ((p - one_hot) ** 2).sum(axis=2).mean(axis=1)
        lowest = min(lowest, losses.min())
    return lowest


@pytest.mark.parametrize(
    ("seed", "loss"), [(8, "nll"), (126, "nll"), (69, "nll"), (158, "brier"), (69, "brier")]
)
def test_no_temperature_and_mixture_of_a_grid_is_better(seed, loss):
    logits, labels = draw(seed)
    cal = EnsembleTemperatureScaling(loss=loss).fit(logits, labels)
    assert cal.solution_.value <= lowest_on_a_grid(logits, labels, loss) + 1e-9
