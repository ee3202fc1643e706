"""ETS has several optima; on rows where each of its starts is needed it finds the lowest."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from temperance import EnsembleTemperatureScaling, TemperatureScaling, make_calibrator, metrics

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


def noisy_labels(seed):
    """Return a confident classifier; one label in ten is drawn uniformly at random."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((3000, 6))
    scaled = np.exp(2 * (logits - logits.max(axis=1, keepdims=True)))
    p = 0.9 * scaled / scaled.sum(axis=1, keepdims=True) + 0.1 / 6
    return logits, (p.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_ets_reaches_what_another_solver_finds_from_many_starts(loss, seed):
    logits, labels = noisy_labels(seed)
    cal = make_calibrator("ets", loss=loss).fit(logits, labels)

    def value(x):
        weights = np.array([1 - x[1] - x[2], x[1], x[2]]).clip(1e-12)
        parts = [np.exp(b * (logits - logits.max(axis=1, keepdims=True))) for b in (np.exp(-x[0]), 1, 0)]
        p = sum(
            w * q / q.sum(axis=1, keepdims=True) for w, q in zip(weights / weights.sum(), parts, strict=True)
        )
        return getattr(metrics, loss)(p, labels)

    found = [
        minimize(
            value,
            [log_t, 0.1, third],
            method="SLSQP",
            bounds=[(-2.5, 2.5), (0, 1), (0, 1)],
            constraints={"type": "ineq", "fun": lambda x: 1 - x[1] - x[2]},
        ).fun
        for log_t in (-1.5, -0.5, 0.5)
        for third in (0.05, 0.3)
    ]
    assert cal.solution_.value <= min(found) + 1e-5
