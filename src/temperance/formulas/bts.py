"""BTS: a table of temperatures, by ranges of the top confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.core.features import RowFeatures, RowNumbers
from temperance.core.ops import Array, Index
from temperance.errors import InputError, excerpt
from temperance.formulas.model import Shape, TemperatureFormula
from temperance.inputs.validation import check_temperatures


def bin_of(edges: Array, rows: RowNumbers) -> Index:
    """Return the bin of each row; logarithms keep the precision of a confidence near 1."""
    return rows.ops.searchsorted(rows.ops.log(edges), rows.log_confidence())


@dataclass(frozen=True, eq=False)
class BinwiseFormula(TemperatureFormula):
    """T(z) = temperatures[bin of the confidence]."""

    edges: Array
    temperatures: Array

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row."""
        return rows.ops.take(self.temperatures, bin_of(self.edges, rows))

    def check(self) -> None:
        """Raise if no fit can give these edges or temperatures."""
        check_temperatures("temperatures", self.temperatures)
        if (np.diff(self.edges) < 0).any() or not (self.edges[0] >= 0 and self.edges[-1] <= 1):
            found = excerpt(self.edges.tolist())
            raise InputError(f"edges must be between 0 and 1 and must not decrease; found {found}.")

    @classmethod
    def shapes(cls, n_classes: int, options: Mapping[str, Any], given: Collection[str]) -> dict[str, Shape]:
        """Return the shapes for the number of bins."""
        return {"edges": (options["bins"] - 1,), "temperatures": (options["bins"],)}
