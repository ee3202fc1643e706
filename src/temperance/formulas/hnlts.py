"""LTS, HTS and HnLTS: T = softplus(a), with a linear in features of the row.

a(z) = b  [+ w_H log Hbar(z)]  [+ w_L . (z - mean z)]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from temperance.core.features import RowFeatures, normalised_log_entropy
from temperance.core.ops import Array
from temperance.core.predictors import Softplus
from temperance.formulas.model import Shape, TemperatureFormula, shaped
from temperance.inputs.validation import check_limits, check_max_entropy


@dataclass(frozen=True, eq=False)
class LinearPredictorFormula(TemperatureFormula):
    """T = softplus(a); a method without one of the two terms has None for its weight."""

    uses_entropy: ClassVar[bool]
    uses_logits: ClassVar[bool]

    intercept: Array
    temperature_limits: Array = shaped(2)
    entropy_weight: Array | None = None
    class_weights: Array | None = shaped("K", default=None)
    max_entropy: Array | None = None
    """log K of the fit, if the columns are positions, whose number can differ at prediction."""

    @property
    def any_columns(self) -> bool:
        """Whether the number of columns can differ from the fit."""
        return self.class_weights is None and self.max_entropy is not None

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row."""
        a = self.intercept
        if self.entropy_weight is not None:
            h = normalised_log_entropy(rows.log_entropy(), rows.n_classes, rows.ops, self.max_entropy)
            a = a + h * self.entropy_weight
        if self.class_weights is not None:
            a = a + rows.project(self.class_weights)
        return self.link().temperature(a, rows.ops)

    def link(self) -> Softplus:
        """Return the link, with the limits of T(z)."""
        return Softplus(self.temperature_limits[0], self.temperature_limits[1])

    def check(self) -> None:
        """Raise if no fit can give these limits."""
        check_limits(self.temperature_limits)
        check_max_entropy(self.max_entropy)

    @classmethod
    def shapes(cls, n_classes: int, options: Mapping[str, Any], given: Collection[str]) -> dict[str, Shape]:
        """Return the shapes of the terms that the method has."""
        uses = {"entropy_weight": cls.uses_entropy, "class_weights": cls.uses_logits}
        uses["max_entropy"] = cls.uses_entropy and "max_entropy" in given
        return super().shapes(n_classes, options, [name for name, used in uses.items() if used])


class EntropyFormula(LinearPredictorFormula):
    """HTS."""

    uses_entropy = True
    uses_logits = False


class LinearFormula(LinearPredictorFormula):
    """LTS."""

    uses_entropy = False
    uses_logits = True


class EntropyLinearFormula(LinearPredictorFormula):
    """HnLTS."""

    uses_entropy = True
    uses_logits = True
