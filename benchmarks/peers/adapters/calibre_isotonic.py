"""calibre: NearlyIsotonicRegression with its defaults; it has methods for two classes, and no temperature."""

from __future__ import annotations

import numpy as np
from calibre import NearlyIsotonicRegression
from scipy.special import softmax

from adapters import Fitted

PACKAGES = ("calibre", "cvxpy", "numpy")


def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit to the probability of class 1 of two."""
    calibrator = NearlyIsotonicRegression().fit(softmax(logits, axis=1)[:, 1], labels)

    def predict_proba(new: np.ndarray) -> np.ndarray:
        probs = calibrator.transform(softmax(new, axis=1)[:, 1])
        return np.column_stack([1 - probs, probs])

    return Fitted(None, predict_proba)


METHODS = {"NearlyIsotonicRegression": fit}
