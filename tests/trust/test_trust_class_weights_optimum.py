"""LTS and HnLTS find the lowest optimum that SciPy finds from many starts, on rows with heavy tails.

Such rows have several optima: T of the extreme ones is at a limit, where the gradient is 0. Some
fits still end in a higher one. The seeds are those of rows whose first optimum is not lowest.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from temperance import make_calibrator


def heavy_tailed(seed):
    """Return logits of Student's t, and labels of a temperature that depends on them."""
    rng = np.random.default_rng(seed)
    n_classes, n_rows = int(rng.choice([2, 3, 4, 6, 10])), int(rng.choice([200, 500, 1000, 3000]))
    z = rng.standard_t(rng.choice([2.0, 3.0, 5.0]), (n_rows, n_classes)) * rng.choice([1.0, 2.0, 5.0])
    scale = rng.normal(0, 0.7)
    direction = np.tanh(z @ rng.standard_normal(n_classes) / np.sqrt(n_classes))
    p = softmax(z / np.exp(scale * direction + rng.normal(0, 0.5))[:, None], axis=1)
    labels = (p.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    random = rng.random(n_rows) < rng.choice([0, 0.05, 0.2])
    labels[random] = rng.integers(0, n_classes, random.sum())
    return z, labels


def loss_of(z, labels, features, limits):
    """Return the mean negative log-likelihood and its gradient, from the definition, as a function."""
    each = np.arange(len(labels))

    def loss(theta):
        a = features @ theta
        free = np.logaddexp(0, a)
        T = np.clip(free, *limits)
        logs = log_softmax(z / T[:, None], axis=1)
        by_beta = (np.exp(logs) * z).sum(axis=1) - z[each, labels]
        slope = np.where(free == T, -expit(a) / T**2, 0)
        return -logs[each, labels].mean(), features.T @ (by_beta * slope) / len(labels)

    return loss


@pytest.mark.parametrize(
    ("key", "seed"), [("lts", 3), ("lts", 38), ("lts", 109), ("hnlts", 38), ("hnlts", 163), ("hnlts", 195)]
)
def test_the_fit_is_the_lowest_of_many_optima(key, seed):
    z, labels = heavy_tailed(seed)
    cal = make_calibrator(key).fit(z, labels)
    columns, fitted = [np.ones(len(z))], [cal.intercept_]
    if key == "hnlts":
        logs = log_softmax(z, axis=1)
        entropy = -(np.exp(logs) * logs).sum(axis=1)
        columns.append(np.maximum(np.log(entropy / np.log(z.shape[1])), -20))
        fitted.append(cal.entropy_weight_)
    features = np.column_stack([*columns, z - z.mean(axis=1, keepdims=True)])
    loss = loss_of(z, labels, features, cal.temperature_limits_)
    single = np.sqrt(cal.temperature_limits_.prod())
    rng, lowest = np.random.default_rng(seed), np.inf
    for _ in range(12):
        weights = rng.standard_normal(features.shape[1] - 1) * np.exp(rng.uniform(-2, 1)) * single
        weights /= features[:, 1:].std(axis=0) * np.sqrt(len(weights))
        level = np.log(np.expm1(single)) - features[:, 1:].mean(axis=0) @ weights
        found = minimize(loss, np.append(level, weights), jac=True, method="L-BFGS-B")
        lowest = min(lowest, found.fun)
    assert loss(np.append(fitted, cal.class_weights_))[0] < lowest + 1e-6
