"""The paper's own training: stochastic gradient descent, as a reference for the exact solver.

SGD has Nesterov momentum 0.9 and a learning rate of 1e-4 on shuffled batches of 1,000. The rate is divided by
10 whenever the mean loss of an epoch has not improved by a ten-thousandth for 100 epochs (50 more after a
division), until it falls to 1e-7. With g the gradient of a batch and m the momentum:

    m <- 0.9 m + g,        theta <- theta - rate (g + 0.9 m)

Weights start at 0 and T at 1; a network starts as PyTorch's layers do. These are the rules of
`torch.optim.SGD` and `ReduceLROnPlateau`, which the paper used. A step is so little work that function calls
take most of its time. So we use neither automatic differentiation nor the blocks and threads of `LogitRows`,
and a step takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.kernels import LOWEST
from temperance.core.logit_rows import Index, LogitRows, Moments
from temperance.core.objective import LogLikelihood
from temperance.core.predictors import Linear, Softplus
from temperance.core.solution import Solution, Solver, Status

LEARNING_RATE, MIN_RATE = 1e-4, 1e-7
MOMENTUM = 0.9
BATCH = 1000
PATIENCE, COOLDOWN, IMPROVEMENT = 100, 50, 1e-4


def descend(objective: LogLikelihood, start: Vector | None = None, seed: int = 0) -> Solution:
    """Minimise `objective` as the paper did, without its prior, if any."""
    objective = _held(objective)
    rng = np.random.default_rng(seed)
    theta = _first_guess(objective) if start is None else start.copy()
    momentum = np.zeros_like(theta)
    plateau = _Plateau(LEARNING_RATE)
    epochs = 0
    while plateau.rate > MIN_RATE * (1 + 1e-6):
        total = 0.0
        for batch in _batches(objective, rng):
            here = batch(theta, with_fisher=False)
            total += here.value * batch.total_weight
            momentum = MOMENTUM * momentum + here.gradient
            theta = theta - plateau.rate * (here.gradient + MOMENTUM * momentum)
        plateau.step(total / objective.total_weight)
        epochs += 1
    here = objective(theta, with_fisher=False)
    return Solution(
        parameters=theta,
        value=here.value,
        gradient_norm=float(np.linalg.norm(here.gradient)),
        iterations=epochs,
        passes=objective.passes + epochs,
        status=Status.LEARNING_RATE_FLOOR,
        solver=Solver.SGD,
    )


class _HeldRows(LogitRows):
    """Rows stored as gaps to the top logit, so that a step needs only a few NumPy calls."""

    def __init__(self, gaps: Vector, labels: NDArray[np.intp], top: NDArray[np.intp]) -> None:
        super().__init__(gaps, labels)
        self._located = top, np.zeros(len(gaps)), gaps[np.arange(len(gaps)), labels]
        self._gaps = gaps

    def take(self, index: Index) -> _HeldRows:
        """Return some rows."""
        assert self.labels is not None
        return _HeldRows(self._gaps[index], self.labels[index], self.top[index])

    def moments(self, beta: Vector | float, *, variance: bool = False) -> Moments:
        """Return the moments except the variance, which a gradient does not need."""
        e = np.exp(np.reshape(beta, (-1, 1)) * self._gaps)
        s = e.sum(axis=1)
        return Moments(np.log(s), np.einsum("ij,ij->i", e, self._gaps) / s, np.empty(0))


def _held(objective: LogLikelihood) -> LogLikelihood:
    """Return the same objective without a prior, on rows and features in the form that steps use."""
    rows, predictor = objective.rows, objective.predictor
    assert rows.labels is not None
    logits = rows.map(lambda block: block.z.astype(np.float64))
    if isinstance(predictor, Linear) and predictor.rows is not None:
        centred = logits - logits.mean(axis=1, keepdims=True)
        predictor = Linear(np.column_stack([predictor.features, centred]), None)
    gaps = np.maximum(logits - logits.max(axis=1, keepdims=True), LOWEST[8])
    held = _HeldRows(gaps, rows.labels, rows.top)
    return type(objective)(held, predictor, objective.link, objective.weights)


def _first_guess(objective: LogLikelihood) -> Vector:
    link = objective.link
    assert isinstance(link, Softplus)
    theta = np.zeros(objective.n_parameters)
    theta[0] = link.inverse(float(np.clip(1.0, link.lower * 1.01, link.upper / 1.01)))
    return theta


def _batches(objective: LogLikelihood, rng: np.random.Generator) -> Iterator[LogLikelihood]:
    """Yield the rows in a new order, a batch at a time; skip batches whose weights are all 0."""
    n_rows = objective.rows.n_rows
    if n_rows <= BATCH:
        yield objective
        return
    order = rng.permutation(n_rows)
    for at in range(0, n_rows, BATCH):
        batch = objective.take(order[at : at + BATCH])
        if batch.total_weight > 0:
            yield batch


class _Plateau:
    """A learning rate that falls when the loss stops falling."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._best, self._bad, self._rest = np.inf, 0, 0

    def step(self, loss: float) -> None:
        """Record the loss of an epoch."""
        better = loss < self._best * (1 - IMPROVEMENT)
        self._best = loss if better else self._best
        self._bad = 0 if better else self._bad + 1
        if self._rest > 0:
            self._rest, self._bad = self._rest - 1, 0
        if self._bad > PATIENCE:
            self.rate, self._rest, self._bad = self.rate / 10, COOLDOWN, 0
