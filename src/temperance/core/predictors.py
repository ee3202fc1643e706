"""What a temperature may depend on: a = a(row; theta), the predictor that a link turns into T.

    Constant   a = theta, one number for all rows
    Linear     a = Phi theta, with features stored for each row and, on request, the centred logits
    Grouped    a = theta[group of the row]
    ByClass    a = Phi theta + shift[class of the row]
    Network    a = MLP(inputs of the row; theta)            (in `network`)

A predictor gives a. From the first and second derivatives (da, w) of a sum over rows by each a, it gives
J' da and J' diag(w) J, where J is the Jacobian of a with respect to theta.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import row_products
from temperance.core.logit_rows import Index, LogitRows


class Predictor(Protocol):
    """A function of a row and of the parameters, with its Jacobian."""

    n_parameters: int

    def predict(self, theta: Vector) -> Vector:
        """Return a of each row, or one number that they share."""
        ...

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and, for w >= 0, J' diag(w) J; the latter is None if w is None."""
        ...

    def take(self, index: Index, rows: LogitRows) -> Predictor:
        """Return the same for some rows; `rows` holds them."""
        ...


class Constant:
    """a = theta: values that depend on a alone are computed once, not for each row."""

    n_parameters = 1

    def predict(self, theta: Vector) -> Vector:
        """Return the one a for all rows, (1,)."""
        return theta

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        return np.array([np.sum(da)]), None if w is None else np.array([[np.sum(w)]])

    def take(self, index: Index, rows: LogitRows) -> Constant:
        """Return the same for some rows."""
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
        if w is None:
            if self.rows is not None:
                gradient = np.concatenate([gradient, self.rows.cross(da[:, None])[:, 0]])
            return gradient, None
        weighted = self.features * w[:, None]
        fisher = self.features.T @ weighted
        if self.rows is None:
            return gradient, fisher
        gram, cross = self.rows.gram(w, np.column_stack([da, weighted]))
        # Adding a constant to all class weights changes nothing: keep that direction fixed.
        gram += np.trace(gram) / gram.shape[0] ** 2
        gradient = np.concatenate([gradient, cross[:, 0]])
        return gradient, np.block([[fisher, cross[:, 1:].T], [cross[:, 1:], gram]])

    def take(self, index: Index, rows: LogitRows) -> Linear:
        """Return the same for some rows."""
        return Linear(self.features[index], None if self.rows is None else rows)


class Grouped:
    """a = theta[group]: one solve fits all groups, since their Fisher matrix is diagonal."""

    def __init__(self, group: NDArray[np.intp], n_groups: int) -> None:
        self.group = group
        self.n_parameters = n_groups

    def predict(self, theta: Vector) -> Vector:
        """Return a of each row."""
        return theta[self.group]

    def pull_back(self, theta: Vector, da: Vector, w: Vector | None) -> tuple[Vector, Matrix | None]:
        """Return J' da and J' diag(w) J."""
        gradient: Vector = np.bincount(self.group, da, self.n_parameters).astype(np.float64, copy=False)
        return gradient, None if w is None else np.diag(np.bincount(self.group, w, self.n_parameters))

    def take(self, index: Index, rows: LogitRows) -> Grouped:
        """Return the same for some rows."""
        return Grouped(self.group[index], self.n_parameters)


class ByClass:
    """a = Phi theta + shift[group], with stored features and one group for each row, or -1 for none.

    The groups are never expanded to N x n_groups numbers: all sums over their rows are weighted counts.
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
        gradient = np.concatenate([self.features.T @ da, self._total(da)])
        if w is None:
            return gradient, None
        by_feature = self.gather(self.features * w[:, None])
        groups = np.diag(self._total(w))
        cross = by_feature[self.n_stored :]
        return gradient, np.block([[by_feature[: self.n_stored], cross.T], [cross, groups]])

    def gather(self, columns: Matrix) -> Matrix:
        """Return J' columns."""
        return np.concatenate([self.features.T @ columns, self._members @ columns])

    def _total(self, values: Vector) -> Vector:
        totals: Vector = self._members @ values
        return totals

    @cached_property
    def _members(self) -> csr_array:
        """1 where a row (the second axis) is in a group (the first)."""
        grouped = np.flatnonzero(self.group >= 0)
        ones, shape = np.ones(len(grouped)), (self.n_groups, len(self.group))
        return csr_array((ones, (self.group[grouped], grouped)), shape=shape)

    def take(self, index: Index, rows: LogitRows) -> ByClass:
        """Return the same for some rows."""
        return ByClass(self.features[index], self.group[index], self.n_groups)
