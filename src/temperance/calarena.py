"""Our methods in the CalArena benchmark, which fits calibrators to probabilities instead of logits."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from temperance.calibrators import make_calibrator
from temperance.containers import logits_from_probs
from temperance.core.arrays import Matrix

__all__ = ["CalArenaCalibrator"]

# Where probmetrics clips log-probabilities: in the benchmark, all methods see the same numbers.
_LOWEST_LOGIT = float(np.log(np.finfo(np.float32).tiny))


class CalArenaCalibrator(BaseEstimator):  # type: ignore[misc]
    """A calibrator of this package with the interface of CalArena: probabilities in, probabilities out.

    Parameters
    ----------
    method : str, default="bayes"
        A key of `temperance.CALIBRATORS`.

    Notes
    -----
    The logits are the logarithms of the probabilities. A probability of 0 counts as the smallest normal
    number of single precision (a logit of about -87), as in the other methods of the benchmark: labels may
    be of classes to which the classifier gave the probability 0.

    References
    ----------
    Berta, Holzmüller, Bach, Jordan: CalArena, a large-scale post-hoc calibration benchmark. arXiv 2605.30188.

    Examples
    --------
    >>> from temperance.calarena import CalArenaCalibrator
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=500, n_classes=3)
    >>> probs = np.exp(task.logits - np.logaddexp.reduce(task.logits, axis=1, keepdims=True))
    >>> CalArenaCalibrator("ts").fit(probs, task.labels).predict_proba(probs[:4]).shape
    (4, 3)
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
        self.calibrator_: Any = make_calibrator(self.method).fit(_finite_logits(p_cal), y_cal)
        return self

    def predict_proba(self, p_test: ArrayLike) -> Matrix:
        """Return calibrated probabilities, (N, K); (N, 2) for binary probabilities (N,)."""
        check_is_fitted(self)
        return np.asarray(self.calibrator_.predict_proba(_finite_logits(p_test)))


def _finite_logits(probs: ArrayLike) -> Matrix:
    array = np.asarray(probs)
    table = np.column_stack([1 - array, array]) if array.ndim == 1 else array
    return np.maximum(np.asarray(logits_from_probs(table), np.float64), _LOWEST_LOGIT)
