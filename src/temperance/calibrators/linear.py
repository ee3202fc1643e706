"""LTS, linear temperature scaling: T(z) = softplus(w_L . (z - mean z) + b)."""

from __future__ import annotations

from typing import ClassVar

from temperance.calibrators.linear_predictor import LinearPredictorCalibrator
from temperance.formulas.linear_predictor import LinearFormula


class LinearTemperatureScaling(LinearPredictorCalibrator):
    """LTS: a temperature that depends on which classes score high.

    w_L shows where the classifier is overconfident: a class with a positive weight is predicted with too
    much confidence. With fewer than about 100 rows per class the weights fit noise; prefer HTS there.
    The row mean is subtracted first, so a constant added to a row changes nothing, and w_L sums to 0.
    T(z) stays within a factor of 10 of the best single temperature.

    Parameters
    ----------
    solver : "exact" or "sgd"
        Fisher scoring, or the paper's gradient descent.

    Attributes
    ----------
    class_weights_, intercept_ : (K,) array, float
        w_L and b.

    References
    ----------
    .. [1] Balanya et al. (2024). Adaptive temperature scaling for robust calibration of deep neural networks.
       doi:10.1007/s00521-024-09505-4

    Examples
    --------
    >>> from temperance import LinearTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
    >>> cal = LinearTemperatureScaling().fit(task.logits, task.labels)
    >>> cal.temperature(task.logits[:4]).shape
    (4,)
    >>> bool(abs(cal.class_weights_.sum()) < 1e-12)
    True
    """

    key: ClassVar[str] = "lts"
    formula_type = LinearFormula
    formula: ClassVar[str] = "T(z) = softplus(w_L . (z - mean z) + b)"
