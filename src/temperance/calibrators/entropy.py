"""HTS, entropy-based temperature scaling: T(z) = softplus(w_H log Hbar(z) + b)."""

from __future__ import annotations

from typing import ClassVar

from temperance.calibrators.linear_predictor import LinearPredictorCalibrator
from temperance.formulas.linear_predictor import EntropyFormula


class EntropyTemperatureScaling(LinearPredictorCalibrator):
    """HTS: a temperature that depends on how sure the prediction is.

    Hbar is the entropy of softmax(z) over log K. Two numbers are fitted, so a few hundred rows suffice.
    log Hbar is floored at -20, and T(z) stays within a factor of 10 of the best single temperature.

    Parameters
    ----------
    solver : "exact" or "sgd"
        Fisher scoring, or the paper's gradient descent.

    Attributes
    ----------
    entropy_weight_, intercept_ : float
        w_H and b. w_H > 0: unsure predictions are more overconfident; w_H = 0: HTS is TS.

    References
    ----------
    .. [1] Balanya et al. (2024). Adaptive temperature scaling for robust calibration of deep neural networks.
       doi:10.1007/s00521-024-09505-4

    Examples
    --------
    >>> from temperance import EntropyTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
    >>> cal = EntropyTemperatureScaling().fit(task.logits, task.labels)
    >>> print(cal.summary().splitlines()[1])
    T(z) = softplus(w_H log Hbar(z) + b)
    """

    key: ClassVar[str] = "hts"
    formula_type = EntropyFormula
    formula: ClassVar[str] = "T(z) = softplus(w_H log Hbar(z) + b)"
