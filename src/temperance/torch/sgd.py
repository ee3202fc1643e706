"""The paper's own training: stochastic gradient descent, as the reference for the exact solver.

SGD with Nesterov momentum 0.9 and a learning rate of 1e-4 on shuffled batches of 1000; the rate is divided by
10 whenever the mean loss of an epoch has not improved for 100 epochs (50 more after a division), until it
falls below 1e-7. Weights start at 0 and T at 1, a network at random.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.ece_loss import BINS, EceLoss
from temperance.core.fisher import Solution
from temperance.core.links import Softplus
from temperance.core.network import Network
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import Linear
from temperance.torch._import import torch

__all__ = ["descend"]

Vector = NDArray[np.float64]

LEARNING_RATE, LOWEST_RATE = 1e-4, 1e-7
MOMENTUM = 0.9
BATCH = 1000
PATIENCE, COOLDOWN = 100, 50


def descend(objective: LogLikelihood, start: Vector | None = None, seed: int = 0) -> Solution:
    """Minimise `objective` as the paper did; its prior, if any, is left out."""
    generator = torch.Generator().manual_seed(seed)
    data = _Data(objective)
    theta = torch.tensor(
        data.first_guess() if start is None else start, dtype=torch.float32, requires_grad=True
    )
    optimiser = torch.optim.SGD([theta], lr=LEARNING_RATE, momentum=MOMENTUM, nesterov=True)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.1, patience=PATIENCE, cooldown=COOLDOWN, min_lr=0.0
    )
    epochs = 0
    while optimiser.param_groups[0]["lr"] > LOWEST_RATE * (1 + 1e-6):
        loss = _epoch(data, theta, optimiser, generator)
        plateau.step(loss)
        epochs += 1
    parameters = theta.detach().numpy().astype(np.float64)
    here = objective(parameters)
    return Solution(
        parameters=parameters,
        value=here.value,
        gradient_norm=float(np.linalg.norm(here.gradient)),
        iterations=epochs,
        passes=objective.passes + epochs,
        converged=True,
        message="SGD: the learning rate reached its floor",
    )


def _epoch(data: _Data, theta: Any, optimiser: Any, generator: Any) -> float:
    total, weight = 0.0, 0.0
    for rows in torch.split(torch.randperm(data.n_rows, generator=generator), BATCH):
        optimiser.zero_grad()
        loss, batch_weight = data.loss(theta, rows)
        if batch_weight == 0:
            continue
        loss.backward()
        optimiser.step()
        total += float(loss.detach()) * batch_weight
        weight += batch_weight
    return total / weight


class _Data:
    """The rows of an objective as tensors, and its loss on a batch of them."""

    def __init__(self, objective: LogLikelihood) -> None:
        link = objective.link
        assert isinstance(link, Softplus)
        self.link = link
        rows = objective.rows
        self.n_rows = rows.n_rows
        self.logits = torch.from_numpy(rows.scaled(1.0)).float()
        self.labels = torch.from_numpy(np.asarray(rows.labels))
        weights = np.ones(rows.n_rows) if objective.weights is None else objective.weights
        self.weights = torch.from_numpy(weights).float()
        self.predict = _predictor(objective.predictor, self.logits)
        self.n_parameters = objective.n_parameters
        self.batch_loss = _ece if isinstance(objective, EceLoss) else _nll

    def first_guess(self) -> Vector:
        theta = np.zeros(self.n_parameters)
        theta[0] = self.link.inverse(float(np.clip(1.0, self.link.lower * 1.01, self.link.upper / 1.01)))
        return theta

    def loss(self, theta: Any, rows: Any) -> tuple[Any, float]:
        temperature = torch.nn.functional.softplus(self.predict(theta, rows))
        temperature = temperature.clamp(self.link.lower, self.link.upper)
        scaled = self.logits[rows] / temperature[:, None]
        weights = self.weights[rows]
        return self.batch_loss(scaled, self.labels[rows], weights), float(weights.sum())


def _nll(scaled: Any, labels: Any, weights: Any) -> Any:
    per_row = torch.nn.functional.cross_entropy(scaled, labels, reduction="none")
    return (per_row * weights).sum() / weights.sum()


def _ece(scaled: Any, labels: Any, weights: Any) -> Any:
    confidence, top = scaled.softmax(dim=1).max(dim=1)
    group = (confidence.detach() * BINS).ceil().long().clamp(1, BINS) - 1
    gaps = torch.zeros(BINS).index_add(0, group, weights * ((top == labels).float() - confidence))
    return gaps.abs().sum() / weights.sum()


def _predictor(predictor: Any, logits: Any) -> Callable[[Any, Any], Any]:
    if isinstance(predictor, Network):
        return _network(predictor)
    assert isinstance(predictor, Linear)
    features = torch.from_numpy(predictor.features).float()
    if predictor.rows is not None:
        features = torch.cat([features, logits - logits.mean(dim=1, keepdim=True)], dim=1)
    return lambda theta, rows: features[rows] @ theta


def _network(network: Network) -> Callable[[Any, Any], Any]:
    inputs = torch.from_numpy(network.inputs).float()

    def predict(theta: Any, rows: Any) -> Any:
        hidden, at = inputs[rows], 0
        for i, (n_in, n_out) in enumerate(network.shapes):
            weights = theta[at : at + n_in * n_out].reshape(n_in, n_out)
            at += n_in * n_out
            hidden = (hidden.relu() if i else hidden) @ weights + theta[at : at + n_out]
            at += n_out
        return hidden[:, 0]

    return predict
