"""ETS, ensemble temperature scaling: a mixture of three predictions.

p = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K,      w >= 0, w_1 + w_2 + w_3 = 1
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from temperance.calibrators.estimator import Calibrator, confidence_in_words, fitted
from temperance.calibrators.single_temperature import (
    Degeneracy,
    fit_single_temperature,
    limits_around,
    temperature_without_outliers,
    warn_of,
)
from temperance.core.arrays import Vector
from temperance.core.fisher import solve_from_each
from temperance.core.mixture import BrierMixture, LogMixture, mixture_weights
from temperance.core.objective import FitData
from temperance.formulas.ets import EnsembleFormula
from temperance.formulas.model import Model
from temperance.inputs.validation import check_choice


class EnsembleTemperatureScaling(Calibrator):
    """ETS: the tempered prediction, the raw one and the uniform one, mixed.

    Temperature and weights are optimised together. It keeps the predicted class, but is not of the form
    z / T(z): a row has no temperature, and `transform` gives log-probabilities.

    Parameters
    ----------
    loss : "nll" or "brier"
        What the fit minimises; "brier" reproduces the paper's table.

    Attributes
    ----------
    temperature_ : float
        T, within a factor of 10 of the best single temperature, or of one that outliers do not decide.
    weights_ : (3,) array
        w_1 (tempered), w_2 (raw), w_3 (uniform).

    References
    ----------
    .. [1] Zhang et al. (2020). Mix-n-Match: Ensemble and compositional methods for uncertainty calibration in
       deep learning. arXiv:2003.07329

    Examples
    --------
    >>> from temperance import EnsembleTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
    >>> cal = EnsembleTemperatureScaling().fit(task.logits, task.labels)
    >>> round(float(cal.weights_.sum()), 12)
    1.0
    """

    key: ClassVar[str] = "ets"
    temperature_: float = fitted("formula.temperature")
    weights_: Vector = fitted("formula.weights")

    def __init__(self, *, loss: str = "nll") -> None:
        self.loss = loss

    def _check_options(self) -> None:
        check_choice("loss", self.loss, ("nll", "brier"))

    def _fit(self, data: FitData) -> Model:
        single = fit_single_temperature(data, exact=False)
        warn_of(single, data.n_rows, limits_outliers=True)
        temperature = single.temperature
        if single.degeneracy is Degeneracy.OUTLIERS:
            temperature = temperature_without_outliers(data)
        elif single.degeneracy:
            alone = EnsembleFormula(single.temperature, np.array([1.0, 0.0, 0.0]))
            return self._model(data, alone, single.solution)
        objective = data.objective(LogMixture if self.loss == "nll" else BrierMixture)
        low, high = np.log(limits_around(temperature))
        bounds = np.array([low, 0.0, 0.0]), np.array([high, 1.0, 1.0])
        # The loss can have several optima: one near temperature scaling, and one where the uniform component
        # compensates for a sharp tempered one (noisy labels). At u = 0, q has no effect, so try both of
        # its ends.
        middle = np.array([np.log(temperature), 0.0, 0.0])
        starts = middle + np.array([[0, 0.1, 0], [0, 0.1, 1], [-0.9, 0.35, 0.9], [-1.8, 0.35, 0.9]])
        solutions = solve_from_each(objective, list(starts), data.n_rows, bounds)
        solution = min(solutions, key=lambda solution: solution.value)
        formula = EnsembleFormula(float(np.exp(solution.parameters[0])), mixture_weights(solution.parameters))
        return self._model(data, formula, solution)

    def _describe(self) -> list[str]:
        tempered, raw, uniform = (f"{100 * w:.1f}%" for w in self.weights_)
        return [
            "p = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K",
            f"T = {self.temperature_:.4g}: {confidence_in_words(self.temperature_, self.n_classes_)}",
            f"mixture: {tempered} tempered, {raw} as the classifier gave it, {uniform} uniform",
        ]

    def _loss_name(self) -> str:
        return str(self.options_["loss"])
