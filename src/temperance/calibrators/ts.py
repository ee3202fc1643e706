"""TS, temperature scaling: one temperature for all rows, T(z) = T_0."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from temperance.calibrators.estimator import (
    Calibrator,
    confidence_in_words,
    estimate,
    fitted,
)
from temperance.calibrators.single_temperature import fit_single_temperature, warn_of
from temperance.core.objective import FitData
from temperance.formulas.model import Model
from temperance.formulas.ts import SingleTemperatureFormula


class TemperatureScaling(Calibrator):
    """TS: divide all logits by one temperature, the one that maximises the likelihood.

    T is found exactly: the likelihood is unimodal in it. It lies between 1e-6 and 1e6.

    Attributes
    ----------
    temperature_ : float
        Above 1, the classifier is overconfident; below 1, underconfident.

    References
    ----------
    .. [1] Guo et al. (2017). On calibration of modern neural networks. arXiv:1706.04599

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import TemperatureScaling
    >>> logits = np.array([[4.0, 0.0], [3.0, 0.0], [5.0, 0.0], [0.0, 4.0]])
    >>> labels = np.array([0, 1, 0, 1])
    >>> cal = TemperatureScaling().fit(logits, labels)
    >>> round(cal.temperature_, 3)
    2.776
    >>> cal.predict_proba(logits).round(2)
    array([[0.81, 0.19],
           [0.75, 0.25],
           [0.86, 0.14],
           [0.19, 0.81]])
    """

    key: ClassVar[str] = "ts"
    temperature_: float = fitted("formula.temperature")

    def _fit(self, data: FitData) -> Model:
        single = fit_single_temperature(data, exact=True)
        warn_of(single, data.n_rows)
        errors = {}
        if single.solution.covariance is not None:
            # log T was estimated; dT = T dlog T
            errors["temperature"] = np.asarray(single.temperature * np.sqrt(single.solution.covariance[0, 0]))
        return self._model(
            data,
            SingleTemperatureFormula(single.temperature),
            single.solution,
            standard_errors=errors,
            temperature_quantiles=np.full(3, single.temperature),
        )

    def _describe(self) -> list[str]:
        value = estimate(self.temperature_, self.standard_errors_.get("temperature"))
        return ["softmax(z / T)", f"T = {value}: {confidence_in_words(self.temperature_, self.n_classes_)}"]
