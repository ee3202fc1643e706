"""The ECE as a training loss: value from its definition, gradient from differences."""

import numpy as np
import pytest
from core_models import N_ROWS, PREDICTORS, Y, Z, build
from core_reference import softmax

from temperance import make_calibrator
from temperance.calibrators import pts
from temperance.core.ece_loss import BINS, EceLoss
from temperance.core.fisher import lbfgs
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior
from temperance.core.predictors import Linear, Log, Softplus
from temperance.data import simulate

WEIGHTS = np.random.default_rng(41).integers(0, 3, size=N_ROWS).astype(float)


def plain_ece(confidence: np.ndarray, correct: np.ndarray, share: np.ndarray) -> float:
    """Return the sum over bins (lower, upper] of |accuracy - confidence|, weighted by their share."""
    total = 0.0
    for b in range(BINS):
        inside = (confidence > b / BINS) & (confidence <= (b + 1) / BINS)
        total += abs(np.sum(share[inside] * (correct[inside] - confidence[inside])))
    return total


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("link", [Softplus(), Log()], ids=["Softplus", "Log"])
@pytest.mark.parametrize("name", PREDICTORS)
def test_value_is_the_ece_and_the_prior(name, link, weights):
    rows, predictor, theta = build(name)
    prior = Prior(np.zeros(len(theta)), 0.01 * np.eye(len(theta)))
    loss = EceLoss(rows, predictor, link, weights, prior)
    confidence = softmax(Z, 1 / link.temperature(predictor.predict(theta))).max(axis=1)
    share = np.ones(N_ROWS) / N_ROWS if weights is None else weights / weights.sum()
    want = plain_ece(confidence, Z.argmax(axis=1) == Y, share) + 0.005 * theta @ theta
    here = loss(theta)
    np.testing.assert_allclose(here.value, want, rtol=1e-12)
    assert np.array_equal(here.fisher, prior.precision)  # the loss itself has no matrix
    assert np.abs(here.gradient - prior.precision @ theta).max() > 1e-4  # the loss itself has a slope


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("edge", [0.6, 0.7, 0.8, 0.9])
def test_a_confidence_at_an_edge_is_in_the_bin_below_it_in_its_own_dtype(edge, dtype):
    # One row right at the edge, one wrong just below it: in one bin, what they lack cancels.
    gaps = np.log(np.array([edge, edge - 0.01]) / (1 - np.array([edge, edge - 0.01])))
    rows = LogitRows(np.column_stack([gaps, 0 * gaps]).astype(dtype), np.array([0, 1]))
    loss = EceLoss(rows, Linear(np.ones((2, 1))), Log())(np.zeros(1)).value
    assert loss == pytest.approx(abs(1 - edge - (edge - 0.01)) / 2, abs=1e-6)


def test_a_certain_row_is_in_the_last_bin():
    rows = LogitRows(np.array([[0.0, -1e4], [0.0, -1e4]]), np.array([0, 1]))
    assert EceLoss(rows, Linear(np.ones((2, 1))), Log())(np.zeros(1)).value == 0.5


@pytest.mark.parametrize("seed", [5, 11, 36])  # where the line search ends above its start
def test_a_fit_of_the_ece_is_never_worse_than_its_start(seed, monkeypatch):
    ends = []

    def noted(objective, start, *rest, **options):
        solution = lbfgs(objective, start, *rest, **options)
        ends.append((objective(start).value, solution.value, objective(solution.parameters).value))
        return solution

    monkeypatch.setattr(pts, "lbfgs", noted)
    task = simulate(n_rows=50, n_classes=5, random_state=seed)
    make_calibrator("pts-ece").fit(task.logits, task.labels)
    ((before, stated, after),) = ends
    assert after == stated <= before
