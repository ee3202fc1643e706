"""HnLTS, the two combined: T(z) = softplus(w_L . (z - mean z) + w_H log Hbar(z) + b)."""

from __future__ import annotations

from typing import ClassVar

from temperance.calibrators.linear_predictor import LinearPredictorCalibrator
from temperance.formulas.linear_predictor import EntropyLinearFormula


class EntropyLinearTemperatureScaling(LinearPredictorCalibrator):
    """HnLTS: a temperature that depends on how sure the prediction is and on which classes score high.

    It contains HTS and LTS, and outperforms both with plenty of rows; with few, see the warning of LTS. The
    limits of HTS and LTS apply.

    Parameters
    ----------
    solver : "exact" or "sgd"
        Fisher scoring, or the paper's gradient descent.

    Attributes
    ----------
    entropy_weight_, class_weights_, intercept_ : float, (K,) array, float
        w_H, w_L and b.

    References
    ----------
    .. [1] Balanya et al. (2024). Adaptive temperature scaling for robust calibration of deep neural networks.
       doi:10.1007/s00521-024-09505-4

    Examples
    --------
    >>> from temperance import EntropyLinearTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
    >>> cal = EntropyLinearTemperatureScaling().fit(task.logits, task.labels)
    >>> cal.class_weights_.shape
    (3,)
    """

    key: ClassVar[str] = "hnlts"
    formula_type = EntropyLinearFormula
    formula: ClassVar[str] = "T(z) = softplus(w_L . (z - mean z) + w_H log Hbar(z) + b)"
