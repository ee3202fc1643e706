"""From rows and parameters to temperatures: a predictor a = a(row; theta), and a link from a to T.

    Constant   a = theta, one number for all rows
    Linear     a = Phi theta, with features stored for each row and, on request, the centred logits
    ByClass    a = Phi theta + shift[class of the row]; without features, one a for each group of rows
    Network    a = MLP(inputs of the row; theta)

A predictor gives a. From the first and second derivatives (da, w) of a sum over rows by each a, it gives
J' da and J' diag(w) J, where J is the Jacobian of a with respect to theta. A link gives T and its inverse
beta = 1/T, with its derivative:

    softplus   T = log(1 + exp(a))      the paper's link
    log        T = exp(a)               a step in a multiplies T by the same factor at every scale

Each is limited to lower <= T <= upper, in fits and in predictions: beyond, T stays at the limit and the
derivative is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import row_products, row_slices
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.ops import NUMPY, SILENT, Array, Ops

# Wide limits: logits that are 1e4 times too large or too small need a T well inside them.
TEMPERATURE_MIN = 1e-6
TEMPERATURE_MAX = 1e6

_MAX_LOG = 50.0  # keeps exp from overflowing; far beyond the limits above


class Beta(NamedTuple):
    """The inverse temperature, and its derivative with respect to a."""

    value: Vector
    first: Vector


@dataclass(frozen=True)
class Link(ABC):
    """A function from a predictor to a temperature, within limits."""

    lower: Array = TEMPERATURE_MIN
    upper: Array = TEMPERATURE_MAX

    @abstractmethod
    def unlimited(self, a: Array, ops: Ops) -> Array:
        """Return T without the limits."""

    @abstractmethod
    def slope(self, a: Vector, beta: Vector) -> Vector:
        """Return d beta / d a without the limits."""

    @abstractmethod
    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""

    def temperature(self, a: Array, ops: Ops = NUMPY) -> Array:
        """Return T of each predictor."""
        return ops.clip(self.unlimited(a, ops), self.lower, self.upper)

    def beta(self, a: Vector) -> Beta:
        """Return 1/T of each predictor, with its derivative."""
        T = self.temperature(a)
        beta = 1 / T
        return Beta(beta, np.where((self.lower < T) & (self.upper > T), self.slope(a, beta), 0.0))


class Softplus(Link):
    """T = log(1 + exp(a))."""

    def unlimited(self, a: Array, ops: Ops) -> Array:
        """Return T without the limits."""
        return ops.softplus(a)

    def slope(self, a: Vector, beta: Vector) -> Vector:
        """Return d beta / d a."""
        from scipy.special import expit  # for a fit: a prediction needs only NumPy

        return -np.asarray(expit(a), np.float64) * beta**2

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        # log(exp(T) - 1) = T + log(1 - exp(-T)), which does not overflow
        return float(temperature + np.log(-np.expm1(-temperature)))


class Log(Link):
    """T = exp(a)."""

    def unlimited(self, a: Array, ops: Ops) -> Array:
        """Return T without the limits."""
        return ops.exp(ops.clip(a, -_MAX_LOG, _MAX_LOG))

    def slope(self, a: Vector, beta: Vector) -> Vector:
        """Return d beta / d a."""
        return -beta

    def inverse(self, temperature: float) -> float:
        """Return the predictor of a temperature."""
        return float(np.log(temperature))


JACOBIAN_ROWS = 512  # rows of a network whose Jacobian is held at once, in the cache


class Predictor(Protocol):
    """A function of a row and of the parameters, with its Jacobian."""

    n_parameters: int

    def predict(self, theta: Vector) -> Vector:
        """Return a of each row, or one number that they share."""
        ...

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and, for w >= 0, J' diag(w) J; the latter is None if w is None."""
        ...

    def jacobian(self, theta: Vector) -> Matrix:
        """Return J, (N, parameters), or one row that all share; for few rows at a time."""
        ...

    def take(self, index: Index, rows: LogitRows) -> Predictor:
        """Return the predictor of some rows, which `rows` holds."""
        ...


class Constant:
    """a = theta: values that depend only on a are computed once, not per row."""

    n_parameters = 1

    def predict(self, theta: Vector) -> Vector:
        """Return the one a for all rows, (1,)."""
        return theta

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        return np.array([np.sum(da)]), None if w is None else np.array([[np.sum(w)]])

    def jacobian(self, theta: Vector) -> Matrix:
        """Return J, the same for all rows."""
        return np.ones((1, 1))

    def take(self, index: Index, rows: LogitRows) -> Constant:
        """Return the predictor of some rows."""
        return self


class Linear:
    """a = Phi theta, where Phi has the stored `features` and, if `rows` is given, z - mean z."""

    def __init__(self, features: Matrix, rows: LogitRows | None = None) -> None:
        self.features = features
        self.rows = rows
        self.n_stored = features.shape[1]
        self.n_parameters = self.n_stored + (0 if rows is None else rows.n_classes)

    def predict(self, theta: Vector) -> Vector:
        """Return a of each row."""
        a = row_products(self.features, theta[: self.n_stored])
        if self.rows is not None:
            a += self.rows.project(theta[self.n_stored :])[:, 0]
        return a

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        gradient = self.features.T @ da
        weighted = None if w is None else self.features * w[:, None]
        fisher = None if weighted is None else self.features.T @ weighted
        if self.rows is None:
            return gradient, fisher
        cross, gram = self.rows.gram(np.column_stack([da] if weighted is None else [da, weighted]), w)
        gradient = np.concatenate([gradient, cross[:, 0]])
        if gram is None:
            return gradient, None
        # Adding a constant to all class weights changes nothing: keep that direction fixed.
        gram += np.trace(gram) / gram.shape[0] ** 2
        return gradient, np.block([[fisher, cross[:, 1:].T], [cross[:, 1:], gram]])

    def jacobian(self, theta: Vector) -> Matrix:
        """Return J."""
        if self.rows is None:
            return self.features
        return np.hstack([self.features, self.rows.map(lambda rows: rows.z.astype(np.float64) - rows.mean())])

    def take(self, index: Index, rows: LogitRows) -> Linear:
        """Return the predictor of some rows."""
        return Linear(self.features[index], None if self.rows is None else rows)


class ByClass:
    """a = Phi theta + shift[group], with stored features and one group per row, or -1 for none.

    The groups are never expanded to N x n_groups numbers: all sums over their rows are weighted counts.
    Without features, the Fisher matrix is diagonal: one solve fits all groups.
    """

    def __init__(self, features: Matrix, group: NDArray[np.intp], n_groups: int) -> None:
        self.features, self.group, self.n_groups = features, group, n_groups
        self.n_stored = features.shape[1]
        self.n_parameters = self.n_stored + n_groups

    def predict(self, theta: Vector) -> Vector:
        """Return a of each row."""
        shift = np.append(theta[self.n_stored :], 0.0)  # the last belongs to group -1
        result: Vector = row_products(self.features, theta[: self.n_stored]) + shift[self.group]
        return result

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        gradient = np.concatenate([self.features.T @ da, self._members @ da])
        if w is None:
            return gradient, None
        by_feature = self.gather(self.features * w[:, None])
        groups = np.diag(self._members @ w)
        cross = by_feature[self.n_stored :]
        return gradient, np.block([[by_feature[: self.n_stored], cross.T], [cross, groups]])

    def gather(self, columns: Matrix) -> Matrix:
        """Return J' columns."""
        return np.concatenate([self.features.T @ columns, self._members @ columns])

    @cached_property
    def _members(self) -> Any:
        """1 where a row (the second axis) is in a group (the first), a sparse array."""
        from scipy.sparse import csr_array  # for a fit: a prediction needs only NumPy

        grouped = np.flatnonzero(self.group >= 0)
        ones, shape = np.ones(len(grouped)), (self.n_groups, len(self.group))
        return csr_array((ones, (self.group[grouped], grouped)), shape=shape)

    def jacobian(self, theta: Vector) -> Matrix:
        """Return J."""
        return np.hstack([self.features, self.group[:, None] == np.arange(self.n_groups)])

    def take(self, index: Index, rows: LogitRows) -> ByClass:
        """Return the predictor of some rows."""
        return ByClass(self.features[index], self.group[index], self.n_groups)


class Network:
    """a = MLP(x), a small network with rectified hidden layers, for PTS; `hidden` are their sizes.

        h_0 = x,   h_l = max(0, h_{l-1} W_l + b_l),   a = h_L . w + b

    The parameters are one vector, layer by layer: the weights, row by row, then the biases. The inputs of a
    layer are held as (units, rows), so that all loops run along the rows.
    """

    def __init__(self, inputs: Matrix, hidden: tuple[int, ...]) -> None:
        self.inputs = inputs
        self.hidden = hidden
        self.shapes = list(pairwise((inputs.shape[1], *hidden, 1)))
        self.n_parameters = sum((n_in + 1) * n_out for n_in, n_out in self.shapes)
        self._columns = np.ascontiguousarray(inputs.T)
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
            passed = [self._columns]
            for weights, biases in self.layers(theta):
                if len(passed) > 1:
                    np.putmask(passed[-1], passed[-1] < SILENT, 0.0)
                passed.append(weights.T @ passed[-1])
                passed[-1] += biases[:, None]
            self._last_inputs, self._last_theta = passed, theta.copy()
        return self._last_inputs

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
        parts: list[Vector] = []
        for h, delta in self._backwards(theta, da[None, :]):
            parts[:0] = [(h @ delta.T).ravel(), delta.sum(axis=1)]
        if w is None:
            return np.concatenate(parts), None
        gram, root = np.zeros((self.n_parameters, self.n_parameters)), np.sqrt(w)
        buffer = np.empty(self.n_parameters * min(JACOBIAN_ROWS, len(w)))
        for rows in row_slices(len(w), JACOBIAN_ROWS):
            weighted = root[None, rows]
            jacobian = buffer[: self.n_parameters * weighted.size].reshape(self.n_parameters, -1)
            self._write_jacobian(theta, weighted, rows, jacobian)
            gram += jacobian @ jacobian.T
        return np.concatenate(parts), gram

    def _write_jacobian(self, theta: Vector, weight: Matrix, rows: slice, out: Matrix) -> None:
        """Write da/dtheta of some rows, each times its weight, (parameters, rows)."""
        stop = self.n_parameters
        for h, delta in self._backwards(theta, weight, rows):
            out[stop - len(delta) : stop] = delta
            stop -= len(delta)
            of_weights = out[stop - len(h) * len(delta) : stop]
            np.multiply(h[:, None, :], delta, out=of_weights.reshape(len(h), len(delta), -1))
            stop -= len(of_weights)

    def jacobian(self, theta: Vector) -> Matrix:
        """Return J."""
        result = np.empty((self.n_parameters, len(self.inputs)))
        self._write_jacobian(theta, np.ones((1, len(self.inputs))), slice(None), result)
        return result.T

    def take(self, index: Index, rows: LogitRows) -> Network:
        """Return the predictor of some rows."""
        return Network(self.inputs[index], self.hidden)
