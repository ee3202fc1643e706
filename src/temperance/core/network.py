"""The predictor of PTS: a small network, a = MLP(x), with rectified hidden layers, and its Jacobian.

    h_0 = x,   h_l = max(0, h_{l-1} W_l + b_l),   a = h_L . w + b

The parameters are one vector: for each layer its weights, row by row, then its biases.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import row_products
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.numpy_ops import SILENT

JACOBIAN_ROWS = 4096  # rows whose Jacobian is held at once


class Network:
    """A rectified network on stored inputs; `hidden` are the sizes of its hidden layers."""

    def __init__(self, inputs: Matrix, hidden: tuple[int, ...]) -> None:
        self.inputs = inputs
        self.hidden = hidden
        self.shapes = list(pairwise((inputs.shape[1], *hidden, 1)))
        self.n_parameters = sum((n_in + 1) * n_out for n_in, n_out in self.shapes)

    def layers(self, theta: Vector) -> Iterator[tuple[Matrix, Vector]]:
        """Yield the weights and biases of each layer, as views."""
        at = 0
        for n_in, n_out in self.shapes:
            weights = theta[at : at + n_in * n_out].reshape(n_in, n_out)
            at += n_in * n_out
            yield weights, theta[at : at + n_out]
            at += n_out

    def start(self, bias: float, rng: np.random.Generator) -> Vector:
        """Return random weights with the scale that suits ReLU layers; all biases are 0 except the last."""
        theta = np.zeros(self.n_parameters)
        for weights, _ in self.layers(theta):
            weights[:] = rng.standard_normal(weights.shape) * np.sqrt(2 / weights.shape[0])
        # Start close to one temperature for all rows.
        weights *= 0.1
        theta[-1] = bias
        return theta

    def usual_start(self, rng: np.random.Generator) -> Vector:
        """Return weights and biases as PyTorch draws them: uniform within 1 / sqrt(number of inputs)."""
        theta = np.zeros(self.n_parameters)
        for weights, biases in self.layers(theta):
            most = 1 / np.sqrt(weights.shape[0])
            weights[:] = rng.uniform(-most, most, weights.shape)
            biases[:] = rng.uniform(-most, most, biases.shape)
        return theta

    def constant(self, theta: Vector) -> Vector:
        """Return `theta` with the last layer's weights set to 0, which gives the same a for every row."""
        result = theta.copy()
        result[-1 - self.shapes[-1][0] : -1] = 0
        return result

    def decay(self, strength: float) -> Matrix:
        """Return the precision matrix of weight decay: `strength` for all parameters except the last bias."""
        diagonal = np.full(self.n_parameters, strength)
        diagonal[-1] = 0
        return np.diag(diagonal)

    def predict(self, theta: Vector) -> Vector:
        """Return a of each row."""
        return self._forward(theta, self.inputs)[-1][:, 0]

    def _forward(self, theta: Vector, x: Matrix) -> list[Matrix]:
        activations = [x]
        for weights, biases in self.layers(theta):
            if len(activations) > 1:
                activations[-1][activations[-1] < SILENT] = 0
            activations.append(row_products(activations[-1], weights) + biases)
        return activations

    def _backwards(self, theta: Vector, x: Matrix) -> Iterator[tuple[Matrix, Matrix]]:
        """Yield the weights of each layer and what went into it, from the last to the first."""
        went_in = self._forward(theta, x)[:-1]
        layers = [weights for weights, _ in self.layers(theta)]
        return zip(reversed(layers), reversed(went_in), strict=True)

    def jacobian(self, theta: Vector, x: Matrix) -> Matrix:
        """Return da/dtheta of each row."""
        delta = np.ones((len(x), 1))
        parts: list[Matrix] = []
        for weights, h in self._backwards(theta, x):
            outer = h[:, :, None] * delta[:, None, :]
            parts[:0] = [outer.reshape(len(x), -1), delta]
            delta = (delta @ weights.T) * (h > 0)
        return np.concatenate(parts, axis=1)

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        if w is None:
            return self._backpropagate(theta, da), None
        gradient = np.zeros(self.n_parameters)
        fisher = np.zeros((self.n_parameters, self.n_parameters))
        for i in range(0, len(da), JACOBIAN_ROWS):
            part = slice(i, i + JACOBIAN_ROWS)
            jacobian = self.jacobian(theta, self.inputs[part])
            gradient += jacobian.T @ da[part]
            jacobian *= np.sqrt(w[part, None])
            fisher += jacobian.T @ jacobian
        return gradient, fisher

    def _backpropagate(self, theta: Vector, da: Vector) -> Vector:
        delta = da[:, None]
        parts: list[Vector] = []
        for weights, h in self._backwards(theta, self.inputs):
            parts[:0] = [(h.T @ delta).ravel(), delta.sum(axis=0)]
            delta = (delta @ weights.T) * (h > 0)
        return np.concatenate(parts)

    def take(self, index: Index, rows: LogitRows) -> Network:
        """Return the same for some rows."""
        return Network(self.inputs[index], self.hidden)
