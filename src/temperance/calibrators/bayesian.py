"""Bayesian temperature scaling: a temperature function that a few rows are enough for.

    log T = b + w . phi(z / T0) + v[predicted class]

phi is the shape of the row (`core.features`), standardised. The prior of b and w was learned from a
population of public classifiers; the width of each block of the prior, that of v too, is chosen by the
evidence of the rows. The likelihood gives some more weight to the predicted class (`core.top_label`). What
the rows leave open is averaged over: p = E softmax(z / T), with log T normal given the row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from temperance.calibrators.base import QUANTILES, TemperatureCalibrator
from temperance.calibrators.bayes_design import (
    MOST_CLASSES,
    MOST_INTERACTING,
    Design,
    build_design,
    interacting,
    offset_blocks,
    temperature_blocks,
)
from temperance.calibrators.descriptions import confidence_in_words
from temperance.calibrators.model import Model, Shape, TemperatureFormula
from temperance.calibrators.single_temperature import warn_if_all_wrong
from temperance.core.arrays import Vector
from temperance.core.evidence import Posterior, maximise_evidence
from temperance.core.features import SHAPE_FEATURES, RowFeatures, shape_features
from temperance.core.fit_data import Build, FitData
from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.offsets import Inputs, OffsetLogLikelihood
from temperance.core.ops import Array
from temperance.core.top_label import TopLabelLikelihood
from temperance.population import Population, read_population, shipped_population, weak_population
from temperance.validation import InputError, check_limits, check_temperatures, check_unmasked

_nodes, _weights = np.polynomial.hermite_e.hermegauss(5)
NODES: list[float] = _nodes.tolist()
NODE_WEIGHTS = _weights / _weights.sum()

SIZE = 1 + len(SHAPE_FEATURES)
LEAST_VARIANCE = 1e-30  # the root of 0 has no derivative
PRIORS = "'population', 'weak' or the path of a file that temperance.learning made"


@dataclass(frozen=True, eq=False)
class BayesianFormula(TemperatureFormula):
    """The posterior of log T as a row needs it: prediction needs no covariance between classes."""

    reference: Array
    centre: Array
    spread: Array
    coefficients: Array
    covariance: Array
    class_shift: Array
    class_covariance: Array
    taus: Array
    effective_parameters: Array
    temperature_limits: Array
    bias: Array | None = None
    interactions: Array | None = None

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not with a class bias."""
        return self.bias is None

    def _log_temperature(self, rows: RowFeatures) -> tuple[Array, Array]:
        """Return the posterior mean and standard deviation of log T of each row."""
        ops = rows.ops
        x = (shape_features(rows, self.reference) - self.centre) / self.spread
        stored = ops.concat([ops.sum(x) * 0.0 + 1.0, x])
        mean = ops.dot(stored, self.coefficients) + ops.take(self.class_shift, rows.top)
        # The last column is a class's own variance, the others its covariance with the coefficients.
        with_class, of_class = ops.split(ops.take(self.class_covariance, rows.top), SIZE)
        variance = ops.dot(ops.matmul(stored, self.covariance) + 2.0 * with_class, stored) + of_class
        return mean, ops.sqrt(ops.clip(variance, LEAST_VARIANCE, math.inf))

    def _link(self) -> Log:
        return Log(self.temperature_limits[0], self.temperature_limits[1])

    def temperature_of(self, rows: RowFeatures) -> Array:
        """Return T of each row at the posterior mean of log T."""
        return self._link().temperature(self._log_temperature(rows)[0], rows.ops)

    def log_temperature_std(self, rows: RowFeatures) -> Array:
        """Return the posterior standard deviation of log T of each row."""
        return self._log_temperature(rows)[1]

    def calibrate(self, rows: RowFeatures) -> Array:
        """Return outputs averaged over the posterior of log T, by quadrature."""
        mean, std = self._log_temperature(rows)
        betas = [1.0 / self._link().temperature(mean + std * node, rows.ops) for node in NODES]
        return rows.mixture(betas, NODE_WEIGHTS, self.bias, self.interactions)

    def check(self) -> None:
        """Raise if the numbers cannot be those of a fit."""
        check_temperatures("reference", np.asarray(self.reference))
        check_limits(self.temperature_limits)
        if self.spread.min() <= 0:
            raise InputError(f"spread must be above 0; got {self.spread.tolist()}.")
        if min(self.class_covariance[:, SIZE].min(), self.covariance.diagonal().min()) < 0:
            raise InputError("variances must be >= 0; one in covariance or class_covariance is not.")


def _block_names(class_bias: bool, n_classes: int) -> list[str]:
    names = ["level", "shape", "class temperature"]
    if class_bias:
        names += ["class bias", "class interactions"] if n_classes <= MOST_INTERACTING else ["class bias"]
    return names


def _top_label(parts: Design, rows: LogitRows, weights: Vector | None) -> TopLabelLikelihood:
    return TopLabelLikelihood(rows, parts.predictor(rows), parts.link(), weights)


def _with_bias(parts: Design, inputs: Inputs, rows: LogitRows, weights: Vector | None) -> OffsetLogLikelihood:
    return OffsetLogLikelihood(rows, parts.predictor(rows), parts.link(), inputs, weights)


def _check_for_bias(rows: LogitRows, weights: Vector | None) -> tuple[()]:
    check_unmasked(rows.values, rows.mean(), "BayesianTemperatureScaling(class_bias=True)")
    if rows.n_classes > MOST_CLASSES:
        raise InputError(
            f"class_bias=True takes at most {MOST_CLASSES} classes, for its matrix of all pairs of them; "
            f"got {rows.n_classes}. Leave class_bias out."
        )
    return ()


class BayesianTemperatureScaling(TemperatureCalibrator):
    """Bayes: a temperature for each row, with a prior learned from many classifiers.

    For 20 rows or any number: with few it is what the population expects of a classifier as sure as this
    one, with many what the rows say. Rows that are all classified right are no obstacle.

    Parameters
    ----------
    class_bias : bool
        Add a bias for each class to the calibrated logits (and, up to 32 classes, let it depend on all
        logits). It repairs classes that are predicted too often or too seldom, but the predicted class
        may then change.
    prior : "population", "weak" or a path
        The prior that comes with the package, one that knows little, or the file of one that
        `temperance.learning` learned from other tasks.

    Attributes
    ----------
    reference_ : float
        T0, the best single temperature under the prior.
    coefficients_ : (5,) array
        b, and w of log entropy, of its square, and of the gaps from the top logit to the third and the mean.
    class_shift_ : (K,) array
        v; 0 for a class that no calibration row predicts, and beyond the 2000 predicted most often.
    bias_ : (K,) array
        Only with `class_bias`, and up to 32 classes `interactions_` M, (K, K): the offsets are
        bias + M (z - mean z).

    Examples
    --------
    >>> from temperance import BayesianTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=50, n_classes=5, random_state=0)
    >>> cal = BayesianTemperatureScaling().fit(task.logits, task.labels)
    >>> bool((cal.predict_proba(task.logits).argmax(axis=1) == task.logits.argmax(axis=1)).all())
    True
    >>> cal.log_temperature_std(task.logits).shape
    (50,)
    """

    key: ClassVar[str] = "bayes"
    formula_type = BayesianFormula

    reference_: float
    coefficients_: Vector
    class_shift_: Vector
    taus_: Vector
    effective_parameters_: Vector

    def __init__(self, *, class_bias: bool = False, prior: str = "population") -> None:
        self.class_bias = class_bias
        self.prior = prior

    @property
    def supports_masked_classes(self) -> bool:
        """Whether -inf may mark an impossible class: not with a class bias."""
        return not self.class_bias

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not with a class bias."""
        return not self.class_bias

    def _check_options(self) -> None:
        if not isinstance(self.class_bias, bool):
            raise InputError(f"class_bias must be True or False; got {self.class_bias!r}.")
        if not isinstance(self.prior, str):
            raise InputError(f"prior must be {PRIORS}; got {self.prior!r}.")

    def _population(self) -> Population:
        if self.prior == "population":
            return shipped_population()
        if self.prior == "weak":
            return weak_population()
        if not Path(self.prior).is_file():
            raise InputError(f"prior must be {PRIORS}; there is no file {self.prior!r}.")
        return read_population(self.prior)

    def _fit(self, data: FitData) -> Model:
        if self.class_bias:
            data.total(_check_for_bias)
        population = self._population()
        parts = build_design(data, population)
        warn_if_all_wrong(parts.right, data.n_rows)
        blocks, start = temperature_blocks(parts, population), parts.start(population, 0)
        inputs = interacting(data.n_classes, parts.reference)
        build: Build = partial(_top_label, parts)
        if self.class_bias:
            build, blocks = partial(_with_bias, parts, inputs), blocks + offset_blocks(inputs, population)
            start = parts.start(population, inputs.n_offsets)
        objective = data.objective(build)
        posterior = maximise_evidence(objective, blocks, start, data.n_rows, parts.level_tau)
        return self._model(
            data,
            _formula(posterior, parts, inputs, population),
            posterior.solution,
            standard_errors={"coefficients": np.sqrt(posterior.covariance.diagonal()[:SIZE])},
            temperature_quantiles=objective.temperature_quantiles(posterior.mode, QUANTILES),
        )

    def log_temperature_std(self, logits: Any) -> Any:
        """Return the posterior standard deviation of log T of each row, (N,)."""
        return self._apply("log_temperature_std", logits)

    def _shapes(self, n_classes: int) -> dict[str, Shape]:
        size, names = len(SHAPE_FEATURES), _block_names(self.class_bias, n_classes)
        shapes: dict[str, Shape] = {
            "reference": (),
            "centre": (size,),
            "spread": (size,),
            "coefficients": (SIZE,),
            "covariance": (SIZE, SIZE),
            "class_shift": (n_classes,),
            "class_covariance": (n_classes, SIZE + 1),
            "taus": (len(names),),
            "effective_parameters": (len(names),),
            "temperature_limits": (2,),
        }
        if "class bias" in names:
            shapes["bias"] = (n_classes,)
        if "class interactions" in names:
            shapes["interactions"] = (n_classes, n_classes)
        return shapes

    def _summary(self) -> str:
        formula = "log T = b + w . phi(z / T0) + v[predicted class], averaged over the posterior"
        errors = self.standard_errors_["coefficients"]
        typical = np.exp(self.coefficients_[0] + 1.96 * errors[0] * np.array([-1, 1]))
        lines = [
            self._headline(formula),
            f"T0 = {self.reference_:.4g}: {confidence_in_words(self.reference_)}",
            f"T of a typical row: {typical[0]:.3g} to {typical[1]:.3g}, with a probability of 95 %",
            f"prior: {self.options_['prior']}; what the rows added to it (tau widens its variance):",
        ]
        sizes = {"level": 1, "shape": SIZE - 1, "class interactions": self.n_classes_**2}
        sizes["class temperature"] = int(np.count_nonzero(self.class_shift_))
        names = _block_names(self.options_["class_bias"], self.n_classes_)
        for name, tau, used in zip(names, self.taus_, self.effective_parameters_, strict=True):
            size = sizes.get(name, self.n_classes_)
            lines.append(f"  {name}: {used:.1f} of {size} parameters, tau = {tau:.3g}")
        terms = ("b", *(f"w, {feature}" for feature in SHAPE_FEATURES))
        for name, value, error in zip(terms, self.coefficients_, errors, strict=True):
            lines.append(f"  {name}: {value:+.3f} \u00b1 {error:.2g}")
        return "\n".join([*lines, self._describe_fit("penalised loss")])


def _formula(posterior: Posterior, parts: Design, inputs: Inputs, population: Population) -> BayesianFormula:
    """Keep of the posterior what a row needs."""
    mode, covariance = posterior.mode, posterior.covariance
    groups, n_classes = slice(SIZE, parts.n_coefficients), inputs.n_classes
    shift, by_class = np.zeros(n_classes), np.zeros((n_classes, SIZE + 1))
    shift[parts.class_of_group] = mode[groups]
    # A class that no row predicts has the variance of the prior.
    by_class[:, SIZE] = population.class_scale**2 * posterior.taus["class temperature"]
    by_class[parts.class_of_group, :SIZE] = covariance[groups, :SIZE]
    by_class[parts.class_of_group, SIZE] = covariance[groups, groups].diagonal()
    link = parts.link()
    return BayesianFormula(
        reference=parts.reference,
        centre=parts.centre,
        spread=parts.spread,
        coefficients=mode[:SIZE],
        covariance=covariance[:SIZE, :SIZE],
        class_shift=shift,
        class_covariance=by_class,
        taus=np.array(list(posterior.taus.values())),
        effective_parameters=np.array(list(posterior.effective.values())),
        temperature_limits=np.array([link.lower, link.upper]),
        **_offsets(mode[parts.n_coefficients :], inputs),
    )


def _offsets(columns: Vector, inputs: Inputs) -> Mapping[str, Vector]:
    """Return the class bias and the interactions, where they were fitted."""
    K = inputs.n_classes
    if not len(columns):
        return {}
    if inputs.scale is None:
        return {"bias": columns}
    return {"bias": columns[:K], "interactions": columns[K:].reshape(-1, K).T / inputs.scale}
