"""Monotone scaling: p = softmax(-map(-log softmax(z / T0))), the map linear between its knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.core.features import RowFeatures
from temperance.core.kernels import KNOTS
from temperance.core.ops import Array
from temperance.errors import InputError, excerpt
from temperance.formulas.model import Formula, shaped
from temperance.inputs.validation import check_temperatures


@dataclass(frozen=True, eq=False)
class MonotoneFormula(Formula):
    """p = softmax(-map(-log softmax(z / T0)))."""

    largest: ClassVar[float] = 1e30

    reference: Array
    map_knots: Array = shaped(len(KNOTS))
    map_slopes: Array = shaped(len(KNOTS))

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs of the map."""
        return rows.mapped_mixture(self.reference, self.map_knots, self.map_slopes, [1.0], [1.0])

    def check(self) -> None:
        """Raise if no fit can give these numbers."""
        check_temperatures("reference", np.asarray(self.reference))
        check_map(self.map_knots, self.map_slopes)


def check_map(knots: Array, slopes: Array) -> None:
    """Raise unless the map begins at 0 and increases."""
    if knots[0] != 0 or (np.diff(knots) <= 0).any():
        raise InputError(f"map_knots must begin at 0 and increase; found {excerpt(knots.tolist())}.")
    if (slopes <= 0).any():
        raise InputError(f"map_slopes must be above 0; found {excerpt(slopes.tolist())}.")
