"""The likelihood that gives more weight to the predicted class."""

import numpy as np
import pytest

from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Linear
from temperance.core.top_label import EMPHASIS, TopLabelLikelihood


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(60, 5))
    labels = np.where(rng.random(60) < 0.6, logits.argmax(axis=1), rng.integers(0, 5, 60))
    features = np.column_stack([np.ones(60), rng.normal(size=60)])
    return logits, labels, features, rng.uniform(0.5, 2, 60)


def probabilities(logits, features, theta):
    u = logits / np.exp(features @ theta)[:, None]
    return np.exp(u - np.logaddexp.reduce(u, axis=1, keepdims=True))


def test_its_value_is_the_likelihood_and_the_log_loss_of_being_right(parts):
    logits, labels, features, weights = parts
    theta = np.array([0.4, -0.2])
    p = probabilities(logits, features, theta)
    right = logits.argmax(axis=1) == labels
    top = p.max(axis=1)
    loss = -np.log(p[np.arange(60), labels])
    loss = loss - EMPHASIS * np.where(right, np.log(top), np.log(1 - top))
    objective = TopLabelLikelihood(LogitRows(logits, labels), Linear(features), Log(), weights)
    assert objective(theta).value == pytest.approx(np.average(loss, weights=weights), rel=1e-12)


def test_its_gradient_is_that_of_differences(parts):
    logits, labels, features, weights = parts
    prior = Prior(np.array([0.1, 0.2]), np.array([[2.0, 0.3], [0.3, 1.0]]))
    objective = TopLabelLikelihood(LogitRows(logits, labels), Linear(features), Log(), weights, prior)
    theta, step = np.array([0.4, -0.2]), 1e-6
    differences = [
        (objective(theta + step * e).value - objective(theta - step * e).value) / (2 * step)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(objective(theta).gradient, differences, rtol=1e-6, atol=1e-9)


def test_its_fisher_matrix_is_the_mean_curvature_over_the_labels_that_the_model_expects(parts):
    logits, _, features, _ = parts
    theta = np.array([0.4, -0.2])
    p = probabilities(logits, features, theta)
    total = np.zeros((2, 2))
    for label in range(5):  # the expected outer product of gradients, row by row, class by class
        for row in range(60):
            one = LogitRows(logits[[row]], np.array([label]))
            plain = LogLikelihood(one, Linear(features[[row]]), Log())
            both = TopLabelLikelihood(one, Linear(features[[row]]), Log())
            g = plain(theta).gradient
            extra = (both(theta).gradient - g) / EMPHASIS
            total += p[row, label] * (np.outer(g, g) + EMPHASIS * np.outer(extra, extra)) / 60
    objective = TopLabelLikelihood(LogitRows(logits, np.zeros(60, np.intp)), Linear(features), Log())
    np.testing.assert_allclose(objective(theta).derivatives[1], total, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremely_confident_rows_stay_finite(dtype):
    logits = np.array([[1e4, 0.0, -5.0], [1e4, 0.0, -5.0], [1.0, 0.5, 0.0]], dtype)
    objective = TopLabelLikelihood(LogitRows(logits, np.array([0, 1, 2])), Linear(np.ones((3, 1))), Log())
    evaluation = objective(np.zeros(1))
    gradient, fisher = evaluation.derivatives
    assert np.isfinite([evaluation.value, *gradient, *fisher.ravel()]).all()
    assert gradient[0] < 0  # a higher temperature is better
