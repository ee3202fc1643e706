"""netcal: TemperatureScaling with its default, maximum likelihood; it takes probabilities."""

from __future__ import annotations

import numpy as np
from netcal.scaling import TemperatureScaling
from scipy.special import softmax

from adapters import Fitted

PACKAGES = ("netcal", "torch", "numpy")


def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit to the softmax; what netcal calls `temperature` multiplies the logits, and is 1 / T."""
    calibrator = TemperatureScaling()
    calibrator.fit(softmax(logits, axis=1), np.asarray(labels), tensorboard=False)

    def predict_proba(new: np.ndarray) -> np.ndarray:
        probs = calibrator.transform(softmax(new, axis=1))
        return np.column_stack([1 - probs, probs]) if np.ndim(probs) == 1 else probs

    return Fitted(1 / float(np.squeeze(calibrator.temperature)), predict_proba)


METHODS = {"TemperatureScaling": fit}
