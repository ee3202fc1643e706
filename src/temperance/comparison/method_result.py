"""How one method of a comparison was judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.metrics import Evaluation, Reliability


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method: the calibrator fitted to all validation rows, and how it was judged.

    `row_nll`, `confidence` and `correct` are of the judged rows: all that pictures and paired comparisons
    need, so that no (N, K) array is kept. `changed_share` is the share of these rows, by weight, whose
    predicted class is not the classifier's own. `class_reliability` has the bins of a few classes, by column:
    how often rows to which a class was given some probability are of that class.
    """

    method: str
    calibrator: Any
    n_parameters: float
    scores: Evaluation
    row_nll: Vector
    confidence: Vector
    correct: NDArray[np.bool_]
    changed_share: float
    seconds: float
    warnings: tuple[str, ...]
    class_reliability: Mapping[int, Reliability] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The share of the judged rows, by weight, whose predicted class is the label."""
        return self.scores["accuracy"].value

    @property
    def changes_decisions(self) -> bool:
        """Whether the predicted class of any judged row is not the classifier's own."""
        return self.changed_share > 0
