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
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.base import Shape, TemperatureCalibrator
from temperance.calibrators.bayes_design import (
    MOST_CLASSES,
    MOST_INTERACTING,
    Design,
    design,
    interacting,
    offset_blocks,
    temperature_blocks,
)
from temperance.calibrators.descriptions import confidence_in_words
from temperance.calibrators.single_temperature import warn_if_all_wrong
from temperance.core import formulas
from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import row_products
from temperance.core.evidence import Posterior, maximise_evidence
from temperance.core.features import SHAPE_FEATURES, shape_features
from temperance.core.fit_data import FitData
from temperance.core.formulas import Gaps
from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.offsets import Inputs, OffsetLogLikelihood, offset_mixture
from temperance.core.ops import Array, Ops
from temperance.core.top_label import TopLabelLikelihood
from temperance.population import Population, read_population, shipped_population, weak_population
from temperance.validation import InputError, check_limits, check_temperatures, check_unmasked

__all__ = ["BayesianTemperatureScaling"]


_nodes, _weights = np.polynomial.hermite_e.hermegauss(5)
NODES, NODE_WEIGHTS = _nodes, _weights / _weights.sum()
NODE_PAIRS: list[tuple[float, float]] = list(zip(NODES.tolist(), np.log(NODE_WEIGHTS).tolist(), strict=True))

SIZE = 1 + len(SHAPE_FEATURES)
LEAST_VARIANCE = 1e-30  # the root of 0 has no derivative
PRIORS = "'population', 'weak' or the path of a file that temperance.learning made"


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

    reference_: float
    temperature_limits_: Vector
    centre_: Vector
    spread_: Vector
    coefficients_: Vector
    covariance_: Matrix
    class_shift_: Vector
    class_covariance_: Matrix
    bias_: Vector
    interactions_: Matrix
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

    @property
    def n_parameters_(self) -> float:
        """How many parameters the rows have determined."""
        return float(self.effective_parameters_.sum())

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

    def _fit(self, sample: FitData) -> None:
        if self.class_bias:
            sample.total(self._check_for_bias)
        population = self._population()
        parts = design(sample, population)
        warn_if_all_wrong(parts.right, sample.n_rows)
        objective, posterior = self._solve(sample, population, parts)
        self.reference_, self.centre_, self.spread_ = parts.reference, parts.centre, parts.spread
        self.temperature_limits_ = np.array([parts.link().lower, parts.link().upper])
        self._set_temperature(posterior, parts, population)
        self._set_offsets(posterior.mode[parts.n_coefficients :], parts.reference)
        self.solution_ = posterior.solution
        self.taus_ = np.array([posterior.taus[name] for name in self._block_names()])
        self.effective_parameters_ = np.array([posterior.effective[name] for name in self._block_names()])
        self._set_quantiles(objective, posterior.mode)

    def _check_for_bias(self, rows: LogitRows, weights: Vector | None) -> tuple[()]:
        check_unmasked(rows.values, rows.mean(), "BayesianTemperatureScaling(class_bias=True)")
        if rows.n_classes > MOST_CLASSES:
            raise InputError(
                f"class_bias=True takes at most {MOST_CLASSES} classes, for its matrix of all pairs of them; "
                f"got {rows.n_classes}. Leave class_bias out."
            )
        return ()

    def _solve(self, sample: FitData, population: Population, parts: Design) -> tuple[Any, Posterior]:
        """Return the objective and its posterior."""
        inputs = interacting(sample.n_classes, parts.reference)

        def top_label(rows: LogitRows, weights: Vector | None) -> TopLabelLikelihood:
            return TopLabelLikelihood(rows, parts.predictor(rows), parts.link(), weights)

        def with_bias(rows: LogitRows, weights: Vector | None) -> OffsetLogLikelihood:
            return OffsetLogLikelihood(rows, parts.predictor(rows), parts.link(), inputs, weights)

        objective = sample.objective(with_bias if self.class_bias else top_label)
        blocks = temperature_blocks(parts, population)
        if self.class_bias:
            blocks += offset_blocks(inputs, population)
        start = parts.start(population, inputs.n_offsets if self.class_bias else 0)
        return objective, maximise_evidence(objective, blocks, start, sample.n_rows, parts.level_tau)

    def _set_temperature(self, posterior: Posterior, parts: Design, population: Population) -> None:
        """Keep of the posterior what a row needs: a class is met alone, so no pair of classes is."""
        mode, covariance = posterior.mode, posterior.covariance
        groups = slice(SIZE, parts.n_coefficients)
        self.coefficients_, self.covariance_ = mode[:SIZE], covariance[:SIZE, :SIZE]
        self.standard_errors_ = {"coefficients": np.sqrt(self.covariance_.diagonal())}
        self.class_shift_ = np.zeros(self.n_classes_)
        self.class_shift_[parts.class_of_group] = mode[groups]
        # The last column is a class's own variance: the prior's where no row predicts it.
        self.class_covariance_ = np.zeros((self.n_classes_, SIZE + 1))
        self.class_covariance_[:, SIZE] = population.class_scale**2 * posterior.taus["class temperature"]
        self.class_covariance_[parts.class_of_group, :SIZE] = covariance[groups, :SIZE]
        self.class_covariance_[parts.class_of_group, SIZE] = covariance[groups, groups].diagonal()

    def _set_offsets(self, columns: Vector, reference: float) -> None:
        if self.class_bias:
            self.bias_ = columns[: self.n_classes_]
            scale = interacting(self.n_classes_, reference).scale
            if scale is not None:
                self.interactions_ = columns[self.n_classes_ :].reshape(-1, self.n_classes_).T / scale

    def _log_temperature(self, rows: LogitRows) -> tuple[Vector, Vector]:
        """Return the posterior mean and standard deviation of log T of each row."""
        features = (shape_features(rows, self.reference_) - self.centre_) / self.spread_
        stored = np.column_stack([np.ones(rows.n_rows), features])
        mean = row_products(stored, self.coefficients_) + self.class_shift_[rows.top]
        by_class = self.class_covariance_[rows.top]
        own = np.einsum("ij,ij->i", row_products(stored, self.covariance_) + 2 * by_class[:, :SIZE], stored)
        return mean, np.sqrt(np.maximum(own + by_class[:, SIZE], 0.0))

    def _temperature(self, rows: LogitRows) -> Vector:
        return self._link().temperature(self._log_temperature(rows)[0])

    def _link(self) -> Log:
        return Log(*self.temperature_limits_)

    def log_temperature_std(self, logits: Any) -> Any:
        """Return the posterior standard deviation of log T of each row, (N,): what the rows left open."""
        return self._apply("log_temperature_std", logits)

    def _log_temperature_std(self, rows: LogitRows) -> Vector:
        return self._log_temperature(rows)[1]

    def _betas(self, rows: LogitRows) -> Matrix:
        """Return 1/T of each row at the nodes of the average over its posterior, (N, 5)."""
        mean, std = self._log_temperature(rows)
        at_nodes = mean[:, None] + std[:, None] * NODES
        result: Matrix = 1 / self._link().temperature(at_nodes)
        return result

    def _probabilities(self, rows: LogitRows, *, log: bool) -> NDArray[np.floating[Any]]:
        betas = self._betas(rows)
        if not self.options_["class_bias"]:
            return (rows.log_mixture if log else rows.mixture)(betas, NODE_WEIGHTS)
        check_unmasked(rows.values, rows.mean(), "BayesianTemperatureScaling(class_bias=True)")
        W = self.bias_[:, None]
        if self.n_classes_ <= MOST_INTERACTING:
            W = np.hstack([W, self.interactions_])
        inputs = Inputs(self.n_classes_, 1.0 if W.shape[1] > 1 else None)
        return offset_mixture(rows, betas, NODE_WEIGHTS, inputs, W, log=log)

    def _log_temperature_formula(self, gaps: Gaps, ops: Ops) -> tuple[Array, Array]:
        """Return the posterior mean and standard deviation of log T, as `_log_temperature` does."""
        features = formulas.shape_features(gaps, ops.parameter("reference"), ops)
        x = (features - ops.parameter("centre")) / ops.parameter("spread")
        one = ops.sum(x) * 0.0 + 1.0
        stored = ops.concat([one, x])
        shift = ops.take(ops.parameter("class_shift"), gaps.top)
        mean = ops.sum(stored * ops.parameter("coefficients")) + shift
        own = ops.sum(ops.matmul(stored, ops.parameter("covariance")) * stored)
        by_class = ops.take(ops.parameter("class_covariance"), gaps.top)
        variance = own + ops.sum(by_class * ops.concat([stored * 2.0, one]))
        return mean, ops.sqrt(ops.clip(variance, LEAST_VARIANCE, math.inf))

    def _temperature_formula(self, z: Array, ops: Ops) -> Array:
        gaps = formulas.gaps_of(z, self.n_classes_, ops)
        return formulas.exp_link(self._log_temperature_formula(gaps, ops)[0], ops)

    def _log_temperature_std_formula(self, z: Array, ops: Ops) -> Array:
        return self._log_temperature_formula(formulas.gaps_of(z, self.n_classes_, ops), ops)[1]

    def _formula(self, z: Array, ops: Ops) -> Array:
        gaps = formulas.gaps_of(z, self.n_classes_, ops)
        mean, std = self._log_temperature_formula(gaps, ops)
        offsets = self._offsets_formula(z, ops) if self.options_["class_bias"] else None

        def part(node: float, log_weight: float) -> Array:
            scaled = gaps.d / formulas.exp_link(mean + std * node, ops)
            if offsets is None:
                return scaled + (log_weight - formulas.log_sum(scaled, gaps.is_top, ops))
            return formulas.log_softmax(scaled + offsets, self.n_classes_, ops) + log_weight

        mixed = formulas.log_mixture((part(*pair) for pair in NODE_PAIRS), ops)
        return ops.where(ops.is_finite(z), mixed, z)

    def _decision_formula(self, z: Array, ops: Ops) -> Array:
        return self._formula(z, ops) if self.options_["class_bias"] else z

    def _offsets_formula(self, z: Array, ops: Ops) -> Array:
        bias = ops.parameter("bias")
        x = formulas.centred(z, self.n_classes_, ops)
        if self.n_classes_ > MOST_INTERACTING:
            return bias + x * 0.0  # NaN for a row with a masked class, which has no bias of its own
        return bias + ops.matmul(x, ops.transpose(ops.parameter("interactions")))

    def _predict_proba(self, rows: LogitRows) -> NDArray[np.floating[Any]]:
        return self._probabilities(rows, log=False)

    def _transform(self, rows: LogitRows) -> NDArray[np.floating[Any]]:
        return self._probabilities(rows, log=True)

    def _predict(self, rows: LogitRows) -> NDArray[np.intp]:
        return np.argmax(self._predict_proba(rows), axis=1) if self.options_["class_bias"] else rows.top

    def _block_names(self) -> list[str]:
        names = ["level", "shape", "class temperature"]
        if self.options_["class_bias"]:
            names.append("class bias")
            if self.n_classes_ <= MOST_INTERACTING:
                names.append("class interactions")
        return names

    def _shapes(self) -> Mapping[str, Shape]:
        size, blocks = len(SHAPE_FEATURES), len(self._block_names())
        shapes: dict[str, Shape] = {
            "reference": (),
            "centre": (size,),
            "spread": (size,),
            "coefficients": (SIZE,),
            "covariance": (SIZE, SIZE),
            "class_shift": ("K",),
            "class_covariance": ("K", SIZE + 1),
            "taus": (blocks,),
            "effective_parameters": (blocks,),
        }
        if "class bias" in self._block_names():
            shapes["bias"] = ("K",)
        if "class interactions" in self._block_names():
            shapes["interactions"] = ("K", "K")
        return {**shapes, "temperature_limits": (2,)}

    def _check_parameters(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        check_temperatures("reference", parameters["reference"])
        check_limits(parameters["temperature_limits"])
        variances = parameters["class_covariance"][:, SIZE], parameters["covariance"].diagonal()
        if parameters["spread"].min() <= 0:
            raise InputError(f"spread must be above 0; got {parameters['spread'].tolist()}.")
        if min(variance.min() for variance in variances) < 0:
            raise InputError("variances must be >= 0; one in covariance or class_covariance is not.")

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
        for name, tau, used in zip(self._block_names(), self.taus_, self.effective_parameters_, strict=True):
            size = sizes.get(name, self.n_classes_)
            lines.append(f"  {name}: {used:.1f} of {size} parameters, tau = {tau:.3g}")
        names = ("b", *(f"w, {feature}" for feature in SHAPE_FEATURES))
        for name, value, error in zip(names, self.coefficients_, errors, strict=True):
            lines.append(f"  {name}: {value:+.3f} \u00b1 {error:.2g}")
        return "\n".join([*lines, self._describe_fit("penalised loss")])
