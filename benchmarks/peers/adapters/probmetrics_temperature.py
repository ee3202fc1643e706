"""probmetrics: TemperatureScalingCalibrator with its default, bisection; it takes logits as tensors."""

from __future__ import annotations

import numpy as np
import torch
from probmetrics.calibrators import get_calibrator
from probmetrics.distributions import CategoricalLogits

from adapters import Fitted

PACKAGES = ("probmetrics", "torch", "numpy")


def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit through the interface for tensors: the one for arrays asks for probabilities."""
    calibrator = get_calibrator("temp-scaling")
    calibrator.fit_torch(CategoricalLogits(torch.as_tensor(logits)), torch.as_tensor(labels))

    def predict_proba(new: np.ndarray) -> np.ndarray:
        return calibrator.predict_proba_torch(CategoricalLogits(torch.as_tensor(new))).get_probs().numpy()

    return Fitted(1 / float(calibrator.invtemp_), predict_proba)


METHODS = {"temp-scaling": fit}
