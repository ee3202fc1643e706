"""HnLTS, and LTS and HTS, which have one of its two terms: T = softplus(a), a linear in features of the row.

    a(z) = b  [+ w_H log Hbar(z)]  [+ w_L . (z - mean z)]

log Hbar is the log of the entropy over log K, not below `LOG_ENTROPY_FLOOR`: a row with a smaller entropy
is treated as one at the floor, in fits and in predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from temperance.calibrators.estimator import QUANTILES, Calibrator, estimate, fitted
from temperance.calibrators.single_temperature import (
    fit_single_temperature,
    limits_around,
    warn_of,
    warn_of_few_rows,
)
from temperance.core.arrays import Matrix, Vector
from temperance.core.descent import descend
from temperance.core.design_effect import with_group_errors
from temperance.core.features import normalised_log_entropy
from temperance.core.fisher import solve
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, LogLikelihood, Objective
from temperance.core.ops import NUMPY
from temperance.core.predictors import Linear, Softplus
from temperance.core.solution import Solution
from temperance.errors import InputError, on_one_line
from temperance.formulas.hnlts import (
    EntropyFormula,
    EntropyLinearFormula,
    LinearFormula,
    LinearPredictorFormula,
)
from temperance.formulas.model import Model
from temperance.inputs.validation import check_choice, check_unmasked

# With few rows the likelihood can have several optima: one limit for HTS, one for LTS and HnLTS.
FEW_ROWS = 100
FEW_ROWS_FOR_CLASSES = 4096
# From fits with other limits of T(z), by these factors, and with weights so many times as large, most fits
# reach the best optimum that SciPy finds from many starts.
OTHER_LIMITS = (1 / 3, 10.0)
STEEPER = 2.0
MIN_GAIN = 1e-7  # of the mean loss: a difference that rounding cannot make
# A steeper predictor is a step function: T of every row is at a limit, and the slope is not identified.
MAX_SLOPE = 10.0
SMALL_RANGE = 1.05  # of T over nine in ten rows, as a ratio: less changes no probability much
SLOPES = np.array([-5.0, -1.0, 1.0, 5.0])
CROSSINGS = np.array([0.1, 0.5, 0.9])  # quantiles of the log entropy


def _likelihood(
    formula: type[LinearPredictorFormula], link: Softplus, rows: LogitRows, weights: Vector | None
) -> LogLikelihood:
    columns = [np.ones(rows.n_rows)]
    if formula.uses_entropy:
        columns.append(log_normalised_entropy(rows))
    predictor = Linear(np.column_stack(columns), rows if formula.uses_logits else None)
    return LogLikelihood(rows, predictor, link, weights)


def log_normalised_entropy(rows: LogitRows) -> Vector:
    """Return log(H / log K) of each row, not below the floor."""
    h: Vector = normalised_log_entropy(rows.log_entropy()[:, 0], rows.n_classes, NUMPY)
    return h


def _tilted_starts(level: float, data: FitData) -> list[list[Vector]]:
    """Return, per slope, predictors that cross `level`, or a value near it, at low and high entropy."""
    centres = data.quantiles(_entropy_and_weights, CROSSINGS, 0.0).values
    levels = [(centre, level + shift) for centre in centres for shift in (-1.0, 0.0, 1.0)]
    return [[np.array([at - slope * centre, slope]) for centre, at in levels] for slope in SLOPES]


def _entropy_and_weights(rows: LogitRows, weights: Vector | None) -> tuple[Vector, Vector | None]:
    return log_normalised_entropy(rows), weights


def _require_unmasked(name: str, rows: LogitRows, weights: Vector | None) -> tuple[()]:
    check_unmasked(rows.values, rows.mean(), name, fits=True)
    return ()


class LinearPredictorCalibrator(Calibrator):
    """T = softplus(a), a linear in the log entropy, in the logits minus their mean, or in both.

    Parameters
    ----------
    solver : "exact" or "sgd"
        Fisher scoring to an optimum, with up to 4,096 rows the best from several starts; or the paper's own
        stochastic gradient descent: the reference that the exact solver is compared with, far slower.
    """

    formula_type: ClassVar[type[LinearPredictorFormula]]
    formula: ClassVar[str]

    intercept_: float = fitted("formula.intercept")
    entropy_weight_: float = fitted("formula.entropy_weight")
    class_weights_: Vector = fitted("formula.class_weights")
    temperature_limits_: Vector = fitted("formula.temperature_limits")

    def __init__(self, *, solver: str = "exact") -> None:
        self.solver = solver

    def _check_options(self) -> None:
        check_choice("solver", self.solver, ("exact", "sgd"))

    def _fit(self, data: FitData) -> Model:
        if self.solver == "sgd":
            data.require_in_memory("solver='sgd' draws rows at random")
        if data.positions and self.formula_type.uses_logits:
            raise InputError(
                f"{type(self).__name__} has one weight per class, so columns must be classes; found "
                "positions. Use bayes, ts or hts."
            )
        if self.formula_type.uses_logits:
            data.total(partial(_require_unmasked, type(self).__name__))
        single = fit_single_temperature(data, exact=False)
        limits = np.array(limits_around(single.temperature))
        link = Softplus(*limits)
        start = np.zeros(1 + self.formula_type.uses_entropy + self.formula_type.uses_logits * data.n_classes)
        start[0] = link.inverse(single.temperature)
        objective = data.objective(partial(_likelihood, self.formula_type, link))
        warn_of(single, data.n_rows)
        warn_of_few_rows(single, type(self).__name__, len(start))
        solution, theta = single.solution, start
        if not single.degeneracy:
            exact = self.solver == "exact"
            found = self._solve(objective, start, data, link) if exact else descend(objective)
            solution = with_group_errors(objective, found)
            theta = solution.parameters
        return self._model(
            data,
            self.formula_type(
                temperature_limits=limits,
                max_entropy=float(np.log(data.n_classes)) if data.positions else None,
                **self._split(self._centred(theta, data.n_classes)),
            ),
            solution,
            standard_errors=self._errors(solution.covariance, len(theta), data.n_classes),
            temperature_quantiles=objective.temperature_quantiles(theta, QUANTILES),
        )

    def _solve(self, objective: Objective, start: Vector, data: FitData, link: Softplus) -> Solution:
        """Return the best optimum found: with few rows there can be several."""
        first = solve(objective, start, data.n_rows)
        starts: list[Vector] = []
        if self.formula_type.uses_logits and data.n_rows <= FEW_ROWS_FOR_CLASSES:
            for factor in OTHER_LIMITS:
                limited = Softplus(link.lower / factor, link.upper * factor)
                other = data.objective(partial(_likelihood, self.formula_type, limited))
                starts.append(solve(other, start, data.n_rows).parameters)
            starts.append(np.append(first.parameters[:1], STEEPER * first.parameters[1:]))
        elif not self.formula_type.uses_logits and data.n_rows <= FEW_ROWS:
            groups = _tilted_starts(start[0], data)
            starts = [min(group, key=lambda theta: objective(theta).value) for group in groups]
        best = first
        for theta in starts:
            found = solve(objective, theta, data.n_rows)
            sound = self.formula_type.uses_logits or abs(found.parameters[1]) <= MAX_SLOPE
            if sound and found.converged and found.value < best.value - MIN_GAIN:
                best = found
        return best

    def _centred(self, theta: Vector, n_classes: int) -> Vector:
        """Make the mean of w_L zero: a constant added to all class weights changes nothing."""
        if not self.formula_type.uses_logits:
            return theta
        weights = theta[-n_classes:]
        return np.concatenate([theta[:-n_classes], weights - weights.mean()])

    def _split(self, vector: Vector) -> dict[str, Any]:
        """Name the parts of a vector [b, w_H, w_L]."""
        parts: dict[str, Any] = {"intercept": float(vector[0])}
        if self.formula_type.uses_entropy:
            parts["entropy_weight"] = float(vector[1])
        if self.formula_type.uses_logits:
            parts["class_weights"] = vector[len(parts) :]
        return parts

    def _errors(self, covariance: Matrix | None, n_parameters: int, n_classes: int) -> dict[str, Any]:
        if covariance is None or len(covariance) != n_parameters:
            return {}
        if self.formula_type.uses_logits:
            # The covariance of the weights minus their mean; the solver's constraint on the mean drops out.
            centre = np.eye(len(covariance))
            centre[-n_classes:, -n_classes:] -= 1 / n_classes
            covariance = centre @ covariance @ centre
        return {name: np.asarray(e) for name, e in self._split(np.sqrt(covariance.diagonal())).items()}

    def _describe(self) -> list[str]:
        errors = self.standard_errors_
        lines = [self.formula, f"b = {estimate(self.intercept_, errors.get('intercept'))}"]
        if self.formula_type.uses_entropy:
            error = errors.get("entropy_weight")
            words = _entropy_weight_in_words(self.entropy_weight_, error, self.model_.temperature_quantiles)
            lines.append(f"w_H = {estimate(self.entropy_weight_, error)}: {words}")
        if self.formula_type.uses_logits:
            weights, error = self.class_weights_, errors.get("class_weights")
            lines += _class_weights_in_words(weights, error, list(map(on_one_line, self.classes_)))
        return lines


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
    supports_masked_classes: ClassVar[bool] = False  # every logit has a weight
    formula_type = LinearFormula
    formula: ClassVar[str] = "T(z) = softplus(w_L . (z - mean z) + b)"


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
    supports_masked_classes: ClassVar[bool] = False  # every logit has a weight
    formula_type = EntropyLinearFormula
    formula: ClassVar[str] = "T(z) = softplus(w_L . (z - mean z) + w_H log Hbar(z) + b)"


def _entropy_weight_in_words(weight: float, error: Vector | None, quantiles: Vector | None) -> str:
    """Say what the weight of the log entropy means here, and whether its effect on T matters."""
    if error is not None and abs(weight) < 2 * float(error):
        return "no clear relation: sure and unsure predictions are about equally over- or underconfident"
    if quantiles is not None and quantiles[-1] < SMALL_RANGE * quantiles[0]:
        return "a small effect: sure and unsure predictions need nearly the same temperature"
    if weight > 0:
        return "unsure predictions need a higher temperature than sure ones: they are more overconfident"
    return "sure predictions need a higher temperature than unsure ones: they are more overconfident"


def _class_weights_in_words(weights: Vector, errors: Vector | None, names: Sequence[object]) -> list[str]:
    """Name the classes whose logits raise and lower the temperature most."""
    order = np.argsort(weights, kind="stable")
    count = min(3, len(weights) // 2)
    lines = []
    for most, effect, classes in (("most", "raise", order[::-1]), ("least", "lower", order)):
        lines.append(f"w_L, {most} overconfident classes (their logits {effect} T):")
        for k in classes[:count]:
            error = None if errors is None else errors[k]
            lines.append(f"  class {names[k]}: {estimate(weights[k], error)}")
    return lines
