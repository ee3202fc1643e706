"""Calibrators of scikit-learn as methods, registered as `sklearn-sigmoid` and `sklearn-isotonic`.

Each has `fit(logits, labels)` and `predict_proba(logits)`, so `compare`, the study and `CalibratedClassifier`
accept it.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV

from temperance.core.arrays import Indices, Matrix, Vector


class _LogitsAsScores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose inputs are its own scores."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Indices:
        return np.arange(self.n_classes)

    # scikit-learn warns of weights that an estimator does not take or, with metadata routing, not request.
    __metadata_request__fit: ClassVar = {"sample_weight": True}

    def fit(self, logits: Matrix, labels: Indices, sample_weight: Vector | None = None) -> Self:
        return self

    def decision_function(self, logits: Matrix) -> Matrix:
        return logits[:, 1] - logits[:, 0] if self.n_classes == 2 else logits


class SklearnCalibration(BaseEstimator):  # type: ignore[misc]
    """Calibration by scikit-learn's `CalibratedClassifierCV`, fitted to logits.

    As in scikit-learn, a class without rows gets probability 0. `sigmoid` and `isotonic` treat each class
    against the rest, and can change the predicted class.

    Parameters
    ----------
    method : "temperature", "sigmoid" or "isotonic"

    References
    ----------
    .. [1] Platt (1999). Probabilistic outputs for support vector machines and comparisons to regularized
       likelihood methods.
    .. [2] Zadrozny and Elkan (2002). Transforming classifier scores into accurate multiclass probability
       estimates. doi:10.1145/775047.775151

    Examples
    --------
    >>> from temperance.adapters import SklearnCalibration
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=500, n_classes=3)
    >>> cal = SklearnCalibration("sigmoid").fit(task.logits, task.labels)
    >>> cal.predict_proba(task.logits[:4]).shape
    (4, 3)
    """

    def __init__(self, method: str = "sigmoid") -> None:
        self.method = method

    def fit(self, logits: Matrix, labels: Indices, sample_weight: Vector | None = None) -> Self:
        """Fit to labelled rows."""
        self.present_, columns = np.unique(labels, return_inverse=True)
        scores, every = _LogitsAsScores(len(self.present_)), np.arange(len(labels))
        # One split with all rows as test rows: the scores were not trained on them.
        self.classifier_ = CalibratedClassifierCV(
            scores, method=self.method, cv=[(every, every)], ensemble=True
        )
        self.classifier_.fit(logits[:, self.present_], columns, sample_weight=sample_weight)
        return self

    def predict_proba(self, logits: Matrix) -> Matrix:
        """Return calibrated probabilities, (N, K)."""
        probs = np.zeros(logits.shape)
        probs[:, self.present_] = self.classifier_.predict_proba(logits[:, self.present_])
        return probs


sigmoid = SklearnCalibration("sigmoid")
isotonic = SklearnCalibration("isotonic")
