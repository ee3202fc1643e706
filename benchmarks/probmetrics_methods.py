"""Calibrators of probmetrics as methods: `pip install probmetrics==1.3.0`.

`compare`, the study and `CalibratedClassifier` accept `ProbmetricsCalibration("sms")`; the command line,
`probmetrics_methods:svs` and `probmetrics_methods:sms` with benchmarks/ on the `PYTHONPATH`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


class ProbmetricsCalibration(BaseEstimator):
    """Calibration by a method of probmetrics, fitted to logits.

    Parameters
    ----------
    method : str
        A name that its `get_calibrator` knows, such as "sms" or "svs".

    References
    ----------
    .. [1] Berta et al. (2026). Structured matrix scaling for multi-class calibration. arXiv:2511.03685
    """

    def __init__(self, method: str = "sms") -> None:
        self.method = method

    def _logits(self, logits: Any) -> Any:
        import torch
        from probmetrics.distributions import CategoricalLogits

        return CategoricalLogits(torch.from_numpy(np.array(logits, np.float64)))

    def fit(self, logits: NDArray[np.float64], labels: NDArray[np.intp]) -> Self:
        """Fit to labelled rows."""
        import torch
        from probmetrics.calibrators import get_calibrator

        quiet = {f"{self.method}_print_init_info": False} if self.method in ("svs", "sms") else {}
        self.calibrator_ = get_calibrator(self.method, **quiet)
        self.calibrator_.fit_torch(self._logits(logits), torch.from_numpy(np.array(labels, np.int64)))
        return self

    def predict_proba(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated probabilities, (N, K)."""
        return np.asarray(self.calibrator_.predict_proba_torch(self._logits(logits)).get_probs())


svs = ProbmetricsCalibration("svs")
sms = ProbmetricsCalibration("sms")
