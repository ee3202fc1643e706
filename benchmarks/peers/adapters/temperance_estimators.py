"""temperance, through its estimators."""

from __future__ import annotations

import numpy as np

from adapters import Fitted
from temperance import BayesianTemperatureScaling, EntropyTemperatureScaling, TemperatureScaling

PACKAGES = ("temperance", "scikit-learn", "scipy", "numpy", "numba")


def fit_ts(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit one temperature."""
    calibrator = TemperatureScaling().fit(logits, labels)
    return Fitted(float(calibrator.temperature_), calibrator.predict_proba)


def fit_hts(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit a temperature that depends on a row's entropy."""
    return Fitted(None, EntropyTemperatureScaling().fit(logits, labels).predict_proba)


def fit_bayes(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit the Bayesian method."""
    return Fitted(None, BayesianTemperatureScaling().fit(logits, labels).predict_proba)


METHODS = {"ts": fit_ts, "hts": fit_hts, "bayes": fit_bayes}
