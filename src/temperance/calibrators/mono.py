"""Monotone scaling: one increasing function of the log-probabilities, the same for all classes.

    p = softmax(-map(-log softmax(z / T0)))          map: linear in 9 segments, with slopes w > 0

It can change small log-probabilities differently from large ones: a floor under very small probabilities, or
a different slope for the runner-up than for the tail. A temperature can do neither. The order of the classes
stays the same. The negative log-likelihood is convex in the slopes, and so is the penalty of the prior, which
keeps adjacent slopes similar (w_j+1 - w_j is normal with mean 0): there is one optimum.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from temperance.calibrators.estimator import Calibrator, confidence_in_words, estimate, fitted
from temperance.calibrators.single_temperature import (
    Degeneracy,
    fit_single_temperature,
    temperature_without_outliers,
    warn_of,
)
from temperance.core.arrays import Matrix, Vector
from temperance.core.design_effect import design_effects
from temperance.core.fisher import solve
from temperance.core.kernels import KNOTS
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import MapLikelihood
from temperance.core.objective import FitData, Prior
from temperance.core.solution import Solution
from temperance.formulas.model import Model
from temperance.formulas.mono import MonotoneFormula

STEP_DEVIATION = 0.3  # prior standard deviation of the difference of adjacent slopes
FIRST_DEVIATION = 0.5  # prior standard deviation of the first slope around 1
MIN_SLOPE, MAX_SLOPE = 1e-3, 1e3


class MonotoneScaling(Calibrator):
    """Mono: one increasing map of the log-probabilities, which keeps the order of the classes.

    A row has no temperature, and `transform` gives log-probabilities. Use it for probabilities with zeros or
    a floor, and where small probabilities are miscalibrated in a different way from large ones.

    Attributes
    ----------
    reference_ : float
        T0, the best single temperature.
    map_knots_, map_slopes_ : (9,) arrays
        Where the slope of the map changes, in units of log-probability at T0, and the slope above each.

    References
    ----------
    .. [1] Rahimi et al. (2020). Intra order-preserving functions for calibration of multi-class neural
       networks. arXiv:2003.06820

    Examples
    --------
    >>> from temperance import MonotoneScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=500, n_classes=5, random_state=0)
    >>> cal = MonotoneScaling().fit(task.logits, task.labels)
    >>> bool((cal.map_slopes_ > 0).all())
    True
    """

    key: ClassVar[str] = "mono"
    reference_: float = fitted("formula.reference")
    map_knots_: Vector = fitted("formula.map_knots")
    map_slopes_: Vector = fitted("formula.map_slopes")

    def _fit(self, data: FitData) -> Model:
        single = fit_single_temperature(data, exact=True)
        warn_of(single, data.n_rows, limits_outliers=True)
        straight, reference = np.ones(len(KNOTS)), single.temperature
        if single.degeneracy is Degeneracy.OUTLIERS:
            reference = temperature_without_outliers(data)
        elif single.degeneracy:
            unchanged = MonotoneFormula(single.temperature, KNOTS, straight)
            return self._model(data, unchanged, single.solution, standard_errors={"map_slopes": 0 * straight})
        likelihood, precision = data.objective(partial(_likelihood, reference=reference)), _precision()
        (effect,) = design_effects(likelihood, straight, precision.diagonal(), [len(KNOTS)])
        prior = Prior(straight, precision * effect / data.total_weight)
        objective = likelihood.with_prior(prior)
        bounds = MIN_SLOPE * straight, MAX_SLOPE * straight
        solution = solve(objective, straight, data.n_rows, bounds=bounds)
        formula = MonotoneFormula(reference, KNOTS, solution.parameters)
        return self._model(
            data,
            formula,
            solution,
            standard_errors={"map_slopes": np.sqrt(effect) * _errors(solution, objective, data)},
        )

    def _describe(self) -> list[str]:
        return [
            "p = softmax(-map(-log softmax(z / T0)))",
            f"T0 = {self.reference_:.4g}: {confidence_in_words(self.reference_, self.n_classes_)}",
            *map_in_words(self.map_knots_, self.map_slopes_, self.standard_errors_.get("map_slopes")),
        ]

    def _loss_name(self) -> str:
        return "penalised NLL"


def _likelihood(rows: LogitRows, weights: Vector | None, reference: float) -> MapLikelihood:
    return MapLikelihood(rows, reference, weights)


def _precision() -> Matrix:
    """Return the prior precision of the slopes: adjacent ones are similar, and the first is near 1."""
    steps = np.diff(np.eye(len(KNOTS)), axis=0) / STEP_DEVIATION
    precision: Matrix = steps.T @ steps
    precision[0, 0] += FIRST_DEVIATION**-2.0
    return precision


def _errors(solution: Solution, objective: Any, data: FitData) -> Vector:
    variances = np.zeros(1) if solution.covariance is None else solution.covariance.diagonal()
    if not (variances > 0).all():  # the solver has none for a slope at its bound
        hessian = objective(solution.parameters).fisher
        variances = np.linalg.inv(hessian).diagonal() / data.total_weight
    return np.sqrt(variances)


def map_in_words(knots: Vector, slopes: Vector, errors: Vector | None) -> list[str]:
    """Say which probabilities were too small or too large according to a map, and give its slopes."""
    values = np.append(0.0, np.cumsum(slopes[:-1] * np.diff(knots)))
    lines = ["map, relative to the top class and at T0:"]
    for e, value in zip(knots[3::2], values[3::2], strict=True):
        times = f"{np.exp(min(abs(e - value), 300.0)):.3g} times too"
        said = "right" if abs(e - value) < 0.02 else f"{times} {'small' if e > value else 'large'}"
        lines.append(f"  a probability of {100 * np.exp(-e):.2g}% was {said}")
    bounds = [f"{100 * np.exp(-knot):.3g}%" for knot in knots[1:]]
    names = [f"above {bounds[0]}", *(f"down to {bound}" for bound in bounds[1:]), f"below {bounds[-1]}"]
    lines.append("  slopes; 1 keeps a log-probability as it is, less than 1 shrinks it:")
    for j, name in enumerate(names):
        lines.append(f"    {name}: {estimate(slopes[j], None if errors is None else errors[j])}")
    return lines
