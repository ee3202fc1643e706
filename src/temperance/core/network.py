"""The predictor of PTS: a small network, a = MLP(x), with rectified hidden layers, and its Jacobian.

    h_0 = x,   h_l = max(0, h_{l-1} W_l + b_l),   a = h_L . w + b

The parameters are one vector: for each layer its weights, row by row, then its biases. The inputs of a
layer are held as (units, rows), so that all loops run along the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import row_slices
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.ops import SILENT

JACOBIAN_ROWS = 512  # rows whose Jacobian is held at once, in the cache


class Network:
    """A rectified network on stored inputs; `hidden` are the sizes of its hidden layers."""

    def __init__(self, inputs: Matrix, hidden: tuple[int, ...]) -> None:
        self.inputs = inputs
        self.hidden = hidden
        self.shapes = list(pairwise((inputs.shape[1], *hidden, 1)))
        self.n_parameters = sum((n_in + 1) * n_out for n_in, n_out in self.shapes)
        self._last_theta, self._last_inputs = np.empty(0), list[Matrix]()

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
        return self._layer_inputs(theta)[-1][0]

    def _layer_inputs(self, theta: Vector) -> list[Matrix]:
        """Return the inputs of each layer, and finally a, as (units, rows); kept for the last theta."""
        if not np.array_equal(self._last_theta, theta):
            self._last_inputs, self._last_theta = self._forward(theta), theta.copy()
        return self._last_inputs

    def _forward(self, theta: Vector) -> list[Matrix]:
        passed = [self._columns]
        for weights, biases in self.layers(theta):
            if len(passed) > 1:
                np.putmask(passed[-1], passed[-1] < SILENT, 0.0)
            passed.append(weights.T @ passed[-1])
            passed[-1] += biases[:, None]
        return passed

    @cached_property
    def _columns(self) -> Matrix:
        return np.ascontiguousarray(self.inputs.T)

    def _backwards(
        self, theta: Vector, delta: Matrix, rows: slice = slice(None)
    ) -> Iterator[tuple[Matrix, Matrix]]:
        """Yield each layer's inputs and the derivative by its outputs, from the last layer to the first."""
        layers = [weights for weights, _ in self.layers(theta)]
        went_in = [h[:, rows] for h in self._layer_inputs(theta)[:-1]]
        for weights, h in zip(reversed(layers), reversed(went_in), strict=True):
            yield h, delta
            delta = (weights @ delta) * (h > 0)

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        return self._backpropagate(theta, da), None if w is None else self._gram(theta, w)

    def _backpropagate(self, theta: Vector, da: Vector) -> Vector:
        parts: list[Vector] = []
        for h, delta in self._backwards(theta, da[None, :]):
            parts[:0] = [(h @ delta.T).ravel(), delta.sum(axis=1)]
        return np.concatenate(parts)

    def _gram(self, theta: Vector, w: Vector) -> Matrix:
        gram, root = np.zeros((self.n_parameters, self.n_parameters)), np.sqrt(w)
        buffer = np.empty(self.n_parameters * min(JACOBIAN_ROWS, len(w)))
        for rows in row_slices(len(w), JACOBIAN_ROWS):
            weighted = root[None, rows]
            jacobian = buffer[: self.n_parameters * weighted.size].reshape(self.n_parameters, -1)
            self._write_jacobian(theta, weighted, rows, jacobian)
            gram += jacobian @ jacobian.T
        return gram

    def _write_jacobian(self, theta: Vector, weight: Matrix, rows: slice, out: Matrix) -> None:
        """Write da/dtheta of some rows, each times its weight, (parameters, rows)."""
        stop = self.n_parameters
        for h, delta in self._backwards(theta, weight, rows):
            out[stop - len(delta) : stop] = delta
            stop -= len(delta)
            of_weights = out[stop - len(h) * len(delta) : stop]
            np.multiply(h[:, None, :], delta, out=of_weights.reshape(len(h), len(delta), -1))
            stop -= len(of_weights)

    def take(self, index: Index, rows: LogitRows) -> Network:
        """Return the same for some rows."""
        return Network(self.inputs[index], self.hidden)
