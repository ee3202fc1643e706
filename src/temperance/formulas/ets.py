"""ETS: a mixture of the tempered prediction, the raw one and the uniform one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.core.features import ALMOST_ZERO, RowFeatures
from temperance.core.ops import Array
from temperance.errors import InputError
from temperance.formulas.model import Formula, shaped
from temperance.inputs.validation import check_temperatures


@dataclass(frozen=True, eq=False)
class EnsembleFormula(Formula):
    """p = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K."""

    temperature: Array
    weights: Array = shaped(3)

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs of the mixture."""
        return rows.mixture((1.0 / self.temperature, 1.0, ALMOST_ZERO), self.weights)

    def check(self) -> None:
        """Raise if no fit can give this temperature or these weights."""
        check_temperatures("temperature", np.asarray(self.temperature))
        if (self.weights < 0).any() or abs(self.weights.sum() - 1) > 1e-9:
            raise InputError(f"weights must be >= 0 and sum to 1; found {self.weights.tolist()}.")
