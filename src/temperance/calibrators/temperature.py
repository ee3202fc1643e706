"""TS, temperature scaling: one temperature for all rows, T(z) = T_0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.base import Shape, TemperatureCalibrator
from temperance.calibrators.descriptions import confidence_in_words, estimate
from temperance.calibrators.single_temperature import fit_single_temperature, warn_of
from temperance.core.fit_data import FitData
from temperance.core.logit_rows import LogitRows
from temperance.core.ops import Array, Ops
from temperance.validation import check_temperatures

__all__ = ["TemperatureScaling"]


class TemperatureScaling(TemperatureCalibrator):
    """TS: divide all logits by one temperature, the one that maximises the likelihood.

    T is found exactly: the likelihood is unimodal in it. It lies between 1e-6 and 1e6.

    Attributes
    ----------
    temperature_ : float
        Above 1 the classifier was over-confident, below 1 under-confident.

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
    temperature_: float

    def _fit(self, sample: FitData) -> None:
        anchor = fit_single_temperature(sample, exact=True)
        warn_of(anchor, sample.n_rows)
        self.temperature_ = anchor.temperature
        self.temperature_quantiles_ = np.full(3, anchor.temperature)
        self.solution_ = anchor.solution
        if anchor.solution.covariance is not None:
            # log T is what was estimated; dT = T dlog T
            error = anchor.temperature * np.sqrt(anchor.solution.covariance[0, 0])
            self.standard_errors_ = {"temperature": np.asarray(error)}

    def _temperature(self, rows: LogitRows) -> NDArray[np.float64]:
        return np.full(rows.n_rows, self.temperature_)

    def _temperature_formula(self, z: Array, ops: Ops) -> Array:
        return ops.parameter("temperature")

    def _shapes(self) -> Mapping[str, Shape]:
        return {"temperature": ()}

    def _check_parameters(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        check_temperatures("temperature", parameters["temperature"])

    def _summary(self) -> str:
        value = estimate(self.temperature_, self.standard_errors_.get("temperature"))
        return (
            f"{self._headline('softmax(z / T)')}\n"
            f"T = {value}: {confidence_in_words(self.temperature_)}\n{self._describe_fit()}"
        )
