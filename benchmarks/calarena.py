"""Our methods in the CalArena benchmark, which fits calibrators to probabilities instead of logits."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from temperance import logits_from_probs, make_calibrator, probability_floor
from temperance.core.arrays import AnyArray, Matrix
from temperance.inputs.probabilities import both_columns


class CalArenaCalibrator(BaseEstimator):
    """A calibrator of this package with the interface of CalArena: probabilities in, probabilities out.

    Parameters
    ----------
    method : str, default="bayes"
        A key of `temperance.CALIBRATORS`.

    Notes
    -----
    The logits are the logarithms of the probabilities. Small ones are raised to the `probability_floor` of
    the calibration rows, since a label can be a class with probability 0.

    References
    ----------
    Berta, Holzmüller, Bach, Jordan: CalArena, a large-scale post-hoc calibration benchmark. arXiv 2605.30188.
    """

    def __init__(self, method: str = "bayes") -> None:
        self.method = method

    def fit(self, p_cal: ArrayLike, y_cal: ArrayLike) -> Self:
        """Fit to labelled rows.

        Parameters
        ----------
        p_cal : array of shape (N, K), or (N,) with the probabilities of class 1 of two
        y_cal : array of shape (N,)
            Labels, 0 to K - 1.

        Returns
        -------
        self
        """
        self.floor_ = probability_floor(_both_columns(p_cal))
        self.calibrator_: Any = make_calibrator(self.method).fit(self._logits(p_cal), y_cal)
        return self

    def predict_proba(self, p_test: ArrayLike) -> Matrix:
        """Return calibrated probabilities, (N, K); (N, 2) for binary probabilities (N,)."""
        check_is_fitted(self)
        return np.asarray(self.calibrator_.predict_proba(self._logits(p_test)))

    def _logits(self, probs: ArrayLike) -> Matrix:
        return np.asarray(logits_from_probs(_both_columns(probs), self.floor_), np.float64)


def _both_columns(probs: ArrayLike) -> AnyArray:
    array = np.asarray(probs)
    return both_columns(array) if array.ndim == 1 else array
