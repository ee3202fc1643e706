"""ETS, ensemble temperature scaling: a mixture of three predictions.

p = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K,      w >= 0, w_1 + w_2 + w_3 = 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from temperance.calibrators.base import Calibrator
from temperance.calibrators.descriptions import confidence_in_words
from temperance.calibrators.model import Formula, Model, Shape
from temperance.calibrators.single_temperature import fit_single_temperature, limits_around, warn_of
from temperance.core.arrays import Vector
from temperance.core.features import RowFeatures
from temperance.core.fisher import solve_from_each
from temperance.core.fit_data import FitData
from temperance.core.mixture import ALMOST_ZERO, BrierMixture, LogMixture, mixture_weights
from temperance.core.ops import Array
from temperance.validation import InputError, check_choice, check_temperatures


@dataclass(frozen=True, eq=False)
class EnsembleFormula(Formula):
    """p = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K."""

    temperature: Array
    weights: Array

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs of the mixture."""
        return rows.mixture((1.0 / self.temperature, 1.0, ALMOST_ZERO), self.weights)

    def check(self) -> None:
        """Raise if temperature or weights cannot be those of a fit."""
        check_temperatures("temperature", np.asarray(self.temperature))
        if (self.weights < 0).any() or abs(self.weights.sum() - 1) > 1e-9:
            raise InputError(f"weights must be >= 0 and sum to 1; found {self.weights.tolist()}.")


class EnsembleTemperatureScaling(Calibrator):
    """ETS: the tempered prediction, the raw one and the uniform one, mixed.

    Temperature and weights are optimised together. It keeps the predicted class, but is no z / T(z): it has
    no temperature of a row, and `transform` gives log-probabilities.

    Parameters
    ----------
    loss : "nll" or "brier"
        What the fit minimises; "brier" reproduces the paper's table.

    Attributes
    ----------
    temperature_ : float
        T, within a factor of 10 of the best single temperature.
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
    formula_type = EnsembleFormula
    temperature_: float
    weights_: Vector

    def __init__(self, *, loss: str = "nll") -> None:
        self.loss = loss

    def _check_options(self) -> None:
        check_choice("loss", self.loss, ("nll", "brier"))

    def _fit(self, data: FitData) -> Model:
        single = fit_single_temperature(data, exact=False)
        warn_of(single, data.n_rows)
        if single.degenerate_reason:
            alone = EnsembleFormula(single.temperature, np.array([1.0, 0.0, 0.0]))
            return self._model(data, alone, single.solution)
        objective = data.objective(LogMixture if self.loss == "nll" else BrierMixture)
        low, high = np.log(limits_around(single.temperature))
        bounds = np.array([low, 0.0, 0.0]), np.array([high, 1.0, 1.0])
        # The loss may have several optima: near temperature scaling, and of a sharp tempered part that the
        # uniform one makes up for (noisy labels). At u = 0, q tells nothing any more: so both of its ends
        # are tried.
        middle = np.array([np.log(single.temperature), 0.0, 0.0])
        starts = middle + np.array([[0, 0.1, 0], [0, 0.1, 1], [-0.9, 0.35, 0.9], [-1.8, 0.35, 0.9]])
        solutions = solve_from_each(objective, list(starts), data.n_rows, bounds)
        solution = min(solutions, key=lambda solution: solution.value)
        formula = EnsembleFormula(float(np.exp(solution.parameters[0])), mixture_weights(solution.parameters))
        return self._model(data, formula, solution)

    def _shapes(self, n_classes: int) -> dict[str, Shape]:
        return {"temperature": (), "weights": (3,)}

    def temperature(self, logits: Any, *, dim: int = -1) -> Any:
        """Raise: a mixture has no temperature of a row."""
        raise AttributeError(
            "EnsembleTemperatureScaling mixes probabilities, so a row has no temperature; its tempered part "
            "has temperature_. Use TS, LTS, HTS, HnLTS, BTS or PTS for T(z)."
        )

    def _summary(self) -> str:
        tempered, raw, uniform = (f"{100 * w:.1f} %" for w in self.weights_)
        return (
            f"{type(self).__name__} (ETS)\np = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K\n"
            f"{self.n_classes_} classes, fitted on {self.n_rows_} rows\n"
            f"T = {self.temperature_:.4g}: {confidence_in_words(self.temperature_)}\n"
            f"mixture: {tempered} tempered, {raw} as the classifier gave it, {uniform} uniform\n"
            f"{self.options_['loss']} of the calibration rows: {self.solution_.value:.4f}\n"
            f"solver: {self.solution_.message}, {self.solution_.passes} passes over the rows"
        )
