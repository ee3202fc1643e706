"""Bayesian temperature scaling: a map of log-probabilities and a temperature for each row.

    log T = b + w . phi(z / T0) + v[predicted class]
    p = E softmax(-map(-log softmax(z / T0)) T0 / T)

phi is the shape of the row (`core.features`), standardised; the map (`core.maps`) is increasing, so it
keeps the order of the classes. The prior of b, w and the map was learned from many public classifiers;
the width of each block of the prior, including that of v, maximises the evidence of the rows. The likelihood
gives extra weight to the predicted class (`core.maps`). Predictions average over the remaining
uncertainty of T.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from temperance.calibrators.bayes_design import (
    LIMIT_MARGIN,
    MAX_LOSS_OF_MAP,
    Design,
    build_design,
    prior_blocks,
)
from temperance.calibrators.estimator import (
    QUANTILES,
    TemperatureCalibrator,
    confidence_in_words,
    fitted,
    model_of,
)
from temperance.calibrators.mono import map_in_words
from temperance.calibrators.single_temperature import TOO_LARGE, warn_of_mismatch
from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.class_bias import ClassBias, fit_class_bias
from temperance.core.evidence import Posterior, maximise_evidence, prior_alone
from temperance.core.features import SHAPE_FEATURES
from temperance.core.kernels import KNOTS
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import slopes_of
from temperance.core.objective import FitData, Objective
from temperance.core.predictors import TEMPERATURE_MAX
from temperance.errors import InputError, excerpt
from temperance.formulas.bayes import SIZE, BayesianFormula
from temperance.formulas.model import Model
from temperance.population import Population, read_population, shipped_population, weak_population

MAX_LOG_TEMPERATURE = 100.0  # far beyond the limits of T
PRIORS = "'population', 'weak' or the path of a file that temperance.learning made"
BLOCKS = ("level", "shape", "class temperature", "map", "class bias", "class interactions")
# Pseudo-rows with a random label (a wrong label, probability 0 for the label), in addition to those of the
# fit: N rows without one do not rule out the next, which would cost more than all others together.
PSEUDO_ROWS_WITH_RANDOM_LABEL = 0.02
# Of log T: the mode is fitted to predict well on its own, and averaging over all of the variance makes
# predictions less confident. With half of it the NLL is the same and the ECE smaller (docs/bayesian.md).
AVERAGED_VARIANCE = 0.5


class BayesianTemperatureScaling(TemperatureCalibrator):
    """Bayes: a map of log-probabilities and a temperature for each row, with priors from many classifiers.

    Works from 20 rows on. With few rows the prior dominates: what the population predicts for a classifier
    with this mean entropy. With many, the rows dominate. All rows may be classified right.

    Parameters
    ----------
    class_bias : False, True or "auto"
        Add a bias for each class to the calibrated log-probabilities (and, up to 20 classes, let it depend on
        all of them). It repairs classes that are predicted too often or too seldom, but the predicted class
        may then change. "auto" mixes it in with the weight that predicts held-out rows best.
    prior : "population", "weak" or a path
        The prior that comes with the package, a weakly informative one, or the file of a prior that
        `temperance.learning` learned from other tasks.

    Attributes
    ----------
    reference_ : float
        T0, the best single temperature under the prior.
    coefficients_ : (5,) array
        b, and w of log entropy, of its square, and of the gaps from the top logit to the third and the mean.
    class_shift_ : (K,) array
        v; 0 for a class that no calibration row predicts, and beyond the 500 predicted most often.
    map_knots_, map_slopes_ : (9,) arrays
        Where the slope of the map changes, in units of log-probability, and the slope above each knot.

    References
    ----------
    .. [1] MacKay (1992). Bayesian interpolation. doi:10.1162/neco.1992.4.3.415
    .. [2] MacKay (1992). The evidence framework applied to classification networks.
       doi:10.1162/neco.1992.4.5.720

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
    reference_: float = fitted("formula.reference")
    centre_: Vector = fitted("formula.centre")
    spread_: Vector = fitted("formula.spread")
    coefficients_: Vector = fitted("formula.coefficients")
    covariance_: Matrix = fitted("formula.covariance")
    class_shift_: Vector = fitted("formula.class_shift")
    class_covariance_: Matrix = fitted("formula.class_covariance")
    taus_: Vector = fitted("formula.taus")
    effective_parameters_: Vector = fitted("formula.effective_parameters")
    temperature_limits_: Vector = fitted("formula.temperature_limits")
    map_knots_: Vector = fitted("formula.map_knots")
    map_slopes_: Vector = fitted("formula.map_slopes")
    uniform_weight_: float = fitted("formula.uniform_weight")
    averaged_variance_: float = fitted("formula.averaged_variance")
    bias_beta_: float = fitted("formula.bias_beta")
    bias_: Vector = fitted("formula.bias")
    interactions_: Matrix = fitted("formula.interactions")
    bias_weight_: float = fitted("formula.bias_weight")

    def __init__(self, *, class_bias: bool | str = False, prior: str = "population") -> None:
        self.class_bias = class_bias
        self.prior = prior

    @property
    def keeps_class(self) -> bool:
        """Whether the predicted class is always the classifier's own: not with a class bias."""
        return self.class_bias is False

    def _check_options(self) -> None:
        if not isinstance(self.class_bias, bool) and self.class_bias != "auto":
            raise InputError(f"class_bias must be True, False or 'auto'; found {excerpt(self.class_bias)}.")
        if not isinstance(self.prior, str):
            raise InputError(f"prior must be {PRIORS}; found {excerpt(self.prior)}.")

    def _population(self) -> Population:
        if self.prior == "population":
            return shipped_population()
        if self.prior == "weak":
            return weak_population()
        if not Path(self.prior).is_file():
            raise InputError(f"prior must be {PRIORS}; there is no file {self.prior!r}.")
        return read_population(self.prior)

    def _fit(self, data: FitData) -> Model:
        population = self._population()
        design = build_design(data, population)
        warn_of_mismatch(design.mismatch, design.right, data.n_rows)
        objective = data.objective(design.likelihood)
        posterior = _posterior(objective, design, population, data.n_rows)
        formula, solution = _formula(posterior, design, population, data), posterior.solution
        if self.class_bias is not False:
            behind = data.transformed(partial(_log_probabilities, formula))
            bias = fit_class_bias(behind, auto=self.class_bias == "auto")
            formula = formula if bias.weight == 0 else _with_bias(formula, bias)
            if not bias.solution.converged:
                solution = replace(solution, status=bias.solution.status)
        return self._model(
            data,
            formula,
            solution,
            standard_errors=_standard_errors(posterior, design),
            temperature_quantiles=objective.temperature_quantiles(posterior.mode, QUANTILES),
            n_parameters=float(formula.effective_parameters.sum()),
        )

    def log_temperature_std(self, logits: Any, *, dim: int = -1) -> Any:
        """Return the posterior standard deviation of log T of each row, in the shape of `temperature`."""
        return self._apply("log_temperature_std", logits, dim)

    def _summary(self) -> str:
        formula = "p = E softmax(-map(-log softmax(z / T0)) T0 / T), log T = b + w . phi + v[class]"
        errors = self.standard_errors_["coefficients"]
        logs = self.coefficients_[0] + 1.96 * errors[0] * np.array([-1, 1])
        inside = np.clip(logs, -MAX_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE)
        typical = np.clip(np.exp(inside), *self.temperature_limits_)
        lines = [
            self._headline(formula),
            f"T0 = {self.reference_:.4g}: {confidence_in_words(self.reference_)}",
            f"T of a typical row: {typical[0]:.3g} to {typical[1]:.3g} (95 % credible interval)",
            f"prior: {self.options_['prior']}; effective parameters by block (tau scales its variance):",
        ]
        K, n_shifts = self.n_classes_, int(np.count_nonzero(self.class_shift_))
        sizes = dict(zip(BLOCKS, (1, SIZE - 1, n_shifts, len(KNOTS) - 1, K, K * K), strict=True))
        blocks = BLOCKS[: len(self.taus_)]
        for name, tau, used in zip(blocks, self.taus_, self.effective_parameters_, strict=True):
            lines.append(f"  {name}: {used:.1f} of {sizes[name]}, tau = {tau:.3g}")
        terms = ("b", *(f"w, {feature}" for feature in SHAPE_FEATURES))
        for name, value, error in zip(terms, self.coefficients_, errors, strict=True):
            lines.append(f"  {name}: {value:+.3f} \u00b1 {error:.2g}")
        lines += map_in_words(self.map_knots_, self.map_slopes_, self.standard_errors_["map_slopes"])
        lines += self._bias_in_words()
        return "\n".join([*lines, self._describe_fit("penalised loss")])

    def _bias_in_words(self) -> list[str]:
        if self.options_["class_bias"] is False:
            return []
        if model_of(self).formula.keeps_class:
            return ["class bias: not used; it does not improve the prediction of held-out rows"]
        weight = self.parameters()["bias_weight"]
        return [f"class bias: mixed in with weight {weight:.2f}; the predicted class may change"]


def _posterior(objective: Objective, design: Design, population: Population, n_rows: int) -> Posterior:
    """Fit all blocks, or keep the prior where the logits are too large for any temperature and map."""
    blocks, start = prior_blocks(design, population), design.start(population)
    if design.reference >= TEMPERATURE_MAX * (1 - LIMIT_MARGIN):
        warnings.warn(f"{TOO_LARGE}.", UserWarning, stacklevel=4)
    if design.loss_at_limit > MAX_LOSS_OF_MAP:
        return prior_alone(objective, blocks, start)
    return maximise_evidence(objective, blocks, start, n_rows, design.level_tau)


def _formula(posterior: Posterior, design: Design, population: Population, data: FitData) -> BayesianFormula:
    """Keep the parts of the posterior that predictions need."""
    mode, covariance, n_classes = posterior.mode, _given_the_map(posterior, design), data.n_classes
    groups = slice(SIZE, design.n_coefficients)
    shift, by_class = np.zeros(n_classes), np.zeros((n_classes, SIZE + 1))
    shift[design.class_of_group] = mode[groups]
    # A class that no row predicts has the variance of the prior.
    by_class[:, SIZE] = population.class_scale**2 * posterior.taus["class temperature"]
    by_class[design.class_of_group, :SIZE] = covariance[groups, :SIZE]
    by_class[design.class_of_group, SIZE] = covariance[groups, groups].diagonal()
    link = design.link()
    return BayesianFormula(
        reference=design.reference,
        centre=design.centre,
        spread=design.spread,
        coefficients=mode[:SIZE],
        covariance=covariance[:SIZE, :SIZE],
        class_shift=shift,
        class_covariance=by_class,
        taus=np.array(list(posterior.taus.values())),
        effective_parameters=np.array(list(posterior.effective.values())),
        temperature_limits=np.array([link.lower, link.upper]),
        map_knots=KNOTS,
        map_slopes=slopes_of(design.basis, mode[design.n_coefficients :])[0],
        uniform_weight=PSEUDO_ROWS_WITH_RANDOM_LABEL / (PSEUDO_ROWS_WITH_RANDOM_LABEL + data.total_weight),
        averaged_variance=AVERAGED_VARIANCE,
    )


def _given_the_map(posterior: Posterior, design: Design) -> Matrix:
    """Return the covariance of the coefficients of log T, given the map.

    A map with a wide prior can do the work of the intercept. Predictions average over T given the map
    that they use, not over the T that another map would need.
    """
    covariance, own = posterior.covariance, slice(design.n_coefficients)
    of_map = slice(design.n_coefficients, None)
    shared = covariance[own, of_map]
    given: Matrix = covariance[own, own] - shared @ np.linalg.solve(covariance[of_map, of_map], shared.T)
    return given


def _log_probabilities(formula: BayesianFormula, rows: LogitRows) -> Floats:
    """Return the calibrated log-probabilities that a class bias is added to."""
    output: Floats = rows.map(formula.calibrate, log=True)
    return output


def _with_bias(formula: BayesianFormula, bias: ClassBias) -> BayesianFormula:
    """Return the formula with the class bias."""
    return replace(
        formula,
        bias_beta=bias.beta,
        bias=bias.bias,
        interactions=bias.interactions,
        bias_weight=bias.weight,
        taus=np.append(formula.taus, bias.taus),
        effective_parameters=np.append(formula.effective_parameters, bias.effective_parameters),
    )


def _standard_errors(posterior: Posterior, design: Design) -> dict[str, Vector]:
    of_map = slice(design.n_coefficients, None)
    logs = design.basis @ posterior.covariance[of_map, of_map] @ design.basis.T
    slopes, _ = slopes_of(design.basis, posterior.mode[of_map])
    return {
        "coefficients": np.sqrt(posterior.covariance.diagonal()[:SIZE]),
        "map_slopes": slopes * np.sqrt(logs.diagonal()),
    }
