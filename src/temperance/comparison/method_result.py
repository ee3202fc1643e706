"""The result of one method of a comparison."""

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
    """One method: the calibrator fitted to all validation rows, and its scores.

    No (N, K) array is kept: figures and paired comparisons need three numbers for each test row.

    Attributes
    ----------
    method : str
        Its name.
    calibrator : Calibrator, or None
        Fitted to all validation rows; None for the classifier itself.
    n_parameters : float
        How many parameters the rows have determined.
    scores : Evaluation
        All metrics on the test rows, or out of fold.
    row_nll, confidence, correct : arrays of shape (N,)
        NLL, confidence, and whether the prediction is right, for each of these rows.
    changed_share : float
        Share of these rows, by weight, whose predicted class differs from the classifier's.
    seconds : float
        Time of the fit.
    warnings : tuple of str
        Warnings of the fit.
    class_reliability : mapping from column to Reliability
        Bins of a few classes: the frequency of the class by its predicted probability.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> result = comparison.results["ts"]
    >>> result.changes_decisions, result.row_nll.shape
    (False, (400,))
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
        """The share of the test rows, by weight, whose predicted class is the label."""
        return self.scores["accuracy"].value

    @property
    def changes_decisions(self) -> bool:
        """Whether the predicted class of any test row differs from the classifier's."""
        return self.changed_share > 0
