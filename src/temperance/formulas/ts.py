"""TS: one temperature for all rows, T(z) = T_0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.core.features import RowFeatures
from temperance.core.ops import Array
from temperance.formulas.model import TemperatureFormula
from temperance.inputs.validation import check_temperatures


@dataclass(frozen=True, eq=False)
class SingleTemperatureFormula(TemperatureFormula):
    """T(z) = T_0."""

    temperature: Array

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return the one temperature."""
        return self.temperature

    def check(self) -> None:
        """Raise if no fit can give this temperature."""
        check_temperatures("temperature", np.asarray(self.temperature))
