"""What LTS, HTS and HnLTS share: T = softplus(a) with a linear in features of the row.

    a(z) = b  [+ w_H log Hbar(z)]  [+ w_L . (z - mean z)]

log Hbar is the log of the entropy over log K, not below `LOG_ENTROPY_FLOOR`: a row of smaller entropy is
treated as one at the floor, at fit and at use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.base import Shape, TemperatureCalibrator
from temperance.calibrators.descriptions import class_weights_in_words, entropy_weight_in_words, estimate
from temperance.calibrators.single_temperature import fit_single_temperature, limits_around, warn_of
from temperance.core import formulas
from temperance.core.arrays import Vector
from temperance.core.descent import descend
from temperance.core.features import LOG_ENTROPY_FLOOR
from temperance.core.fisher import Solution, solve
from temperance.core.fit_data import FitData
from temperance.core.links import Softplus
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.ops import Array, Ops
from temperance.core.predictors import Linear
from temperance.validation import check_choice, check_limits, check_unmasked

__all__ = ["LinearPredictorCalibrator", "log_normalised_entropy"]


def log_normalised_entropy(rows: LogitRows) -> Vector:
    """Return log(H / log K) of each row, not below the floor."""
    normalised = rows.uncertainty().log_entropy - np.log(np.log(rows.n_classes))
    return np.maximum(normalised, LOG_ENTROPY_FLOOR)


class LinearPredictorCalibrator(TemperatureCalibrator):
    """T = softplus(a), a linear in the log entropy, in the logits less their mean, or in both.

    Parameters
    ----------
    solver : "exact" or "sgd"
        Fisher scoring to the optimum, or the paper's own stochastic gradient descent: the reference that
        the exact solver is judged against, slower by far.
    """

    uses_entropy: ClassVar[bool]
    uses_logits: ClassVar[bool]
    formula: ClassVar[str]

    intercept_: float
    entropy_weight_: float
    class_weights_: Vector
    temperature_limits_: Vector

    def __init__(self, *, solver: str = "exact") -> None:
        self.solver = solver

    @property
    def supports_masked_classes(self) -> bool:
        """Whether -inf may mark an impossible class: not where every logit has a weight."""
        return not self.uses_logits

    def _check_options(self) -> None:
        check_choice("solver", self.solver, ("exact", "sgd"))

    def _fit(self, sample: FitData) -> None:
        if self.solver == "sgd":
            sample.require_in_memory("solver='sgd' takes rows at random")
        if self.uses_logits:
            sample.total(self._check_unmasked)
        anchor = fit_single_temperature(sample, exact=False)
        self.temperature_limits_ = np.array(limits_around(anchor.temperature))
        start = np.zeros(sum(self._named_sizes().values()))
        start[0] = self._link().inverse(anchor.temperature)
        objective = sample.objective(self._likelihood)
        warn_of(anchor, sample.n_rows)
        if anchor.degenerate_reason:
            self.solution_, theta = anchor.solution, start
        else:
            self.solution_ = (
                descend(objective) if self.solver == "sgd" else solve(objective, start, sample.n_rows)
            )
            theta = self.solution_.parameters
            self._set_errors(self.solution_)
        self._restore(self._named(theta))
        self._set_quantiles(objective, theta)

    def _check_unmasked(self, rows: LogitRows, weights: Vector | None) -> tuple[()]:
        check_unmasked(rows.values, rows.mean(), type(self).__name__)
        return ()

    def _likelihood(self, rows: LogitRows, weights: Vector | None) -> LogLikelihood:
        return LogLikelihood(rows, self._predictor(rows), self._link(), weights)

    def _predictor(self, rows: LogitRows) -> Linear:
        columns = [np.ones(rows.n_rows)]
        if self.uses_entropy:
            columns.append(log_normalised_entropy(rows))
        return Linear(np.column_stack(columns), rows if self.uses_logits else None)

    def _link(self) -> Softplus:
        return Softplus(*self.temperature_limits_)

    def _temperature(self, rows: LogitRows) -> Vector:
        theta = [np.atleast_1d(getattr(self, f"{name}_")) for name in self._named_sizes()]
        a = self._predictor(rows).predict(np.concatenate(theta))
        if self.uses_logits:
            check_unmasked(rows.values, a, type(self).__name__)
        return self._link().temperature(a)

    def _temperature_formula(self, z: Array, ops: Ops) -> Array:
        a = ops.parameter("intercept")
        if self.uses_entropy:
            gaps = formulas.gaps_of(z, self.n_classes_, ops)
            h = formulas.log_normalised_entropy(gaps, 1.0, ops)
            a = a + h * ops.parameter("entropy_weight")
        if self.uses_logits:
            x = formulas.centred(z, self.n_classes_, ops)
            a = a + ops.sum(x * ops.parameter("class_weights"))
        return formulas.softplus_link(a, ops)

    def _named_sizes(self) -> dict[str, int]:
        sizes = {"intercept": 1}
        if self.uses_entropy:
            sizes["entropy_weight"] = 1
        if self.uses_logits:
            sizes["class_weights"] = self.n_classes_
        return sizes

    def _named(self, theta: Vector) -> dict[str, Vector]:
        """Split the vector [b, w_H, w_L]; a constant added to w_L changes nothing, so its mean is made 0."""
        parts = self._split(theta)
        if self.uses_logits:
            parts["class_weights"] = parts["class_weights"] - parts["class_weights"].mean()
        return parts

    def _split(self, vector: Vector) -> dict[str, Vector]:
        names = self._named_sizes()
        parts = np.split(vector, np.cumsum(list(names.values()))[:-1])
        return {
            name: part if name == "class_weights" else part[0]
            for name, part in zip(names, parts, strict=True)
        }

    def _set_errors(self, solution: Solution) -> None:
        if solution.covariance is None:
            return
        covariance = solution.covariance
        if self.uses_logits:
            # The covariance of the weights less their mean; what the solver holds the mean by drops out.
            K = self.n_classes_
            centre = np.eye(len(covariance))
            centre[-K:, -K:] -= 1 / K
            covariance = centre @ covariance @ centre
        self.standard_errors_ = self._split(np.sqrt(covariance.diagonal()))

    def _shapes(self) -> Mapping[str, Shape]:
        shapes: dict[str, Shape] = dict.fromkeys(self._named_sizes(), ())
        if self.uses_logits:
            shapes["class_weights"] = ("K",)
        return {**shapes, "temperature_limits": (2,)}

    def _check_parameters(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        check_limits(parameters["temperature_limits"])

    def _summary(self) -> str:
        errors = self.standard_errors_
        lines = [self._headline(self.formula), f"b = {estimate(self.intercept_, errors.get('intercept'))}"]
        if self.uses_entropy:
            error = errors.get("entropy_weight")
            words = entropy_weight_in_words(self.entropy_weight_, error)
            lines.append(f"w_H = {estimate(self.entropy_weight_, error)}: {words}")
        if self.uses_logits:
            lines.append(class_weights_in_words(self.class_weights_, errors.get("class_weights")))
        return "\n".join([*lines, self._describe_fit()])
