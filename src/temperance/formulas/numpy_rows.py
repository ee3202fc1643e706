"""Rows of logits in memory, as formulas see them: features from passes over the rows, outputs in one pass.

`LogitRows` has vectors (N,); formulas have columns (N, 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.biased_rows import Inputs, Offsets, add_class_bias, offset_mixture
from temperance.core.class_shift import shift_outputs
from temperance.core.features import RowShape
from temperance.core.kernels import MapTable, stack_scales
from temperance.core.logit_rows import LogitRows
from temperance.core.numpy_ops import NUMPY
from temperance.inputs.validation import check_unmasked


class NumpyRows:
    """The features of `core.features`; outputs are probabilities, or calibrated logits if `log`.

    `name` is the method, for error messages about masked classes.
    """

    ops = NUMPY

    def __init__(self, rows: LogitRows, name: str, *, log: bool = False) -> None:
        self.rows, self.name, self.log = rows, name, log
        self.n_classes = rows.n_classes

    def _require_unmasked(self, row_numbers: Vector) -> None:
        """Raise if a row has a masked class; its number among these, one for each row, is then not finite."""
        check_unmasked(self.rows.values, row_numbers, self.name, fits=self.rows.labels is not None)

    @property
    def top(self) -> Indices:
        """The column of each row's largest logit."""
        return self.rows.top[:, None]

    def log_entropy(self) -> Matrix:
        """Return log H."""
        return self.rows.uncertainty().log_entropy[:, None]

    def log_confidence(self) -> Matrix:
        """Return the logarithm of the largest probability."""
        return self.rows.uncertainty().log_confidence[:, None]

    def shape_at(self, beta: float) -> RowShape:
        """Return the shape of beta z."""
        shape = self.rows.shape_at(float(beta))
        columns = (shape.log_entropy, shape.gap_to_third, shape.gap_to_mean)
        return RowShape(*(column[:, None] for column in columns))

    def topk(self, k: int) -> Matrix:
        """Return the k largest logits minus the row's mean, in descending order."""
        largest = self.rows.largest(k).astype(np.float64)
        self._require_unmasked(np.abs(largest).max(axis=1))
        return largest

    def project(self, weights: Vector) -> Matrix:
        """Return (z - mean z) . weights."""
        projected = self.rows.project(weights)
        self._require_unmasked(projected)
        return projected[:, None]

    def divide(self, temperature: Matrix | float) -> Floats:
        """Return softmax(z / T), or z / T."""
        beta = 1 / (temperature if isinstance(temperature, float) else temperature[:, 0])
        return self.rows.scaled(beta) if self.log else self.rows.softmax(beta)

    def mixture(
        self,
        betas: Sequence[Matrix | float],
        weights: Vector,
        bias: Vector | None = None,
        interactions: Matrix | None = None,
    ) -> Floats:
        """Return sum_j w_j softmax(beta_j z + bias + M (z - mean z)), or its logarithm."""
        columns = [np.broadcast_to(beta, (self.rows.n_rows, 1)) for beta in betas]
        stacked = np.concatenate(columns, axis=1)
        if bias is None:
            return (self.rows.log_mixture if self.log else self.rows.mixture)(stacked, weights)
        self._require_unmasked(self.rows.mean())
        W = bias[:, None] if interactions is None else np.hstack([bias[:, None], interactions])
        inputs = Inputs(self.n_classes, None if interactions is None else 1.0)
        return offset_mixture(self.rows, stacked, weights, inputs, W, log=self.log)

    def mapped_mixture(
        self,
        reference: float,
        knots: Vector,
        slopes: Vector,
        scales: Sequence[Matrix | float],
        weights: Sequence[float],
    ) -> Floats:
        """Return sum_j w_j softmax(-scale_j map(-log softmax(z / T0))), or its logarithm."""
        columns = stack_scales(scales, self.rows.n_rows)
        table = MapTable.kept(knots, slopes)
        shares = np.asarray(weights, np.float64)
        return self.rows.mapped_mixture(1 / float(reference), table, columns, shares, log=self.log)

    def shift_classes(self, output: Floats, log_ratio: Vector) -> Floats:
        """Return probabilities, or log-probabilities, under new class frequencies, in place."""
        shift_outputs(output, log_ratio, log=self.log)
        return output

    def class_bias(
        self, output: Floats, beta: float, bias: Vector, interactions: Matrix | None, weight: float
    ) -> Floats:
        """Return (1 - weight) p + weight softmax(beta l + bias + M x), l = log p, or its logarithm.

        The output is overwritten.
        """
        return add_class_bias(
            output, self.rows, Offsets(beta, bias, interactions), float(weight), log=self.log
        )
