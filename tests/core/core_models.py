"""One small problem, and every predictor of the core on it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from core_reference import draw

from temperance.core.logit_rows import LogitRows
from temperance.core.objective import ObjectivePoint
from temperance.core.predictors import ByClass, Linear, Network

N_ROWS, N_CLASSES, N_GROUPS = 60, 5, 4
Z, Y = draw(N_ROWS, N_CLASSES, seed=11)
_RNG = np.random.default_rng(12)
FEATURES = np.column_stack([np.ones(N_ROWS), _RNG.normal(size=N_ROWS)])
GROUPS = _RNG.integers(N_GROUPS, size=N_ROWS)
INPUTS = _RNG.normal(size=(N_ROWS, 3))
CLASSES = _RNG.integers(-1, N_GROUPS, size=N_ROWS)  # -1: none

PREDICTORS: dict[str, Callable[[LogitRows], Any]] = {
    "constant": lambda rows: Linear(FEATURES[:, :1]),
    "features": lambda rows: Linear(FEATURES),
    "logits": lambda rows: Linear(FEATURES[:, :1], rows),
    "features and logits": lambda rows: Linear(FEATURES, rows),
    "groups": lambda rows: ByClass(FEATURES[:, :0], GROUPS, N_GROUPS),
    "features and classes": lambda rows: ByClass(FEATURES, CLASSES, N_GROUPS),
    "network 5-5": lambda rows: Network(INPUTS, (5, 5)),
    "network 4": lambda rows: Network(INPUTS, (4,)),
    "network without hidden layer": lambda rows: Network(INPUTS, ()),
}


class Analytic:
    """An objective without rows, whose `function` gives value, gradient and Fisher matrix at a point."""

    noise, total_weight, thinning, order = 0.0, 1.0, 1, 1

    def __init__(self, function: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]) -> None:
        self.function, self.points = function, list[np.ndarray]()

    @property
    def passes(self) -> int:
        """How often it was evaluated."""
        return len(self.points)

    def falsify_gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient that comes with the matrix; a test may distort it."""
        return gradient

    def __call__(self, theta: np.ndarray, with_fisher: bool = True) -> ObjectivePoint:
        if not self.points or not np.array_equal(self.points[-1], theta):  # else it is kept
            self.points.append(theta)
        value, gradient, fisher = self.function(theta)
        gradient = self.falsify_gradient(gradient) if with_fisher else gradient
        return ObjectivePoint(float(value), gradient, fisher)


def quadratic(A: np.ndarray, c: np.ndarray, fisher: np.ndarray | None = None) -> Analytic:
    """Return (x - c)' A (x - c) / 2, with its own matrix or another."""
    return Analytic(lambda x: ((x - c) @ A @ (x - c) / 2, A @ (x - c), A if fisher is None else fisher))


def build(name: str) -> tuple[LogitRows, Any, np.ndarray]:
    """Return the rows, the predictor and parameters at which the temperatures differ and are not extreme."""
    rows = LogitRows(Z, Y)
    predictor = PREDICTORS[name](rows)
    theta = 0.4 * np.random.default_rng(13).normal(size=predictor.n_parameters)
    return rows, predictor, theta


def without_pin(name: str, matrix: np.ndarray) -> np.ndarray:
    """Remove the term that fixes the common level of the class weights: the mean curvature over K.

    With J' diag(w) J = G on the class weights, whose rows sum to 0, the predictor adds trace(G) / K^2 to
    every entry; the trace grows by trace(G) / K, by which the constant is found again.
    """
    if "logits" not in name:
        return matrix
    result = matrix.copy()
    block = result[-N_CLASSES:, -N_CLASSES:]
    block -= np.trace(block) / (1 + 1 / N_CLASSES) / N_CLASSES**2
    return result
