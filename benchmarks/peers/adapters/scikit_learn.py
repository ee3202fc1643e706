"""scikit-learn's CalibratedClassifierCV(method="temperature") around a classifier whose inputs are logits.

All rows calibrate, in one split. The documented `CalibratedClassifierCV(FrozenEstimator(classifier))` takes
the same scores by way of five folds, which costs more and refuses classes with fewer than five rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from adapters import Fitted

PACKAGES = ("scikit-learn", "scipy", "numpy")


class LogitsAsScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier that returns its inputs as scores."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """Return the columns."""
        return np.arange(self.n_classes)

    def fit(self, logits: np.ndarray, labels: np.ndarray) -> LogitsAsScores:
        """Do nothing: the classifier is trained."""
        return self

    def decision_function(self, logits: np.ndarray) -> Any:
        """Return the scores: of two classes one column, as everywhere in scikit-learn."""
        return logits[:, 1] - logits[:, 0] if self.n_classes == 2 else logits


def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit the temperature; of two classes scikit-learn doubles the score, and so halves its `beta_`."""
    n_rows, n_classes = np.shape(logits)
    classifier = FrozenEstimator(LogitsAsScores(n_classes))
    every = np.arange(n_rows)
    calibrated = CalibratedClassifierCV(classifier, method="temperature", cv=[(every, every)], ensemble=True)
    calibrated.fit(logits, labels)
    (calibrator,) = calibrated.calibrated_classifiers_[0].calibrators
    inverse = float(calibrator.beta_) * (2 if n_classes == 2 else 1)
    return Fitted(1 / inverse, calibrated.predict_proba)


METHODS = {"temperature": fit}
