"""Bayesian temperature scaling: a map of log-probabilities and one temperature per row.

    log T = b + w . phi(z / T0) + v[predicted class]
    p = E softmax(-map(-log softmax(z / T0)) T0 / T)

phi is the shape of the row (`core.features`), standardised; the map (`core.maps`) is increasing, so it
keeps the order of the classes. T0 is the best single temperature under the prior: it makes the shapes of any
two classifiers comparable, and the log-probabilities that the map takes. The prior of b, w and the map was
learned from many public classifiers; the width of each block of the prior, including the block of v,
maximises the evidence of the rows. The likelihood gives extra weight to the predicted class (`core.maps`).
Predictions average over the remaining uncertainty of T. If rows belong together, the likelihood of each block
is tempered by its design effect (`core.design_effect`), so that the prior keeps its say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.estimator import (
    QUANTILES,
    Calibrator,
    confidence_in_words,
    fitted,
    model_of,
)
from temperance.calibrators.mono import map_in_words
from temperance.calibrators.single_temperature import (
    CHECK_LABELS,
    TOO_LARGE,
    fit_single_temperature,
    one_temperature,
    right_and_wrong,
)
from temperance.core.arrays import Floats, Matrix, Vector
from temperance.core.class_bias import ClassBias, fit_class_bias
from temperance.core.evidence import Block, Posterior, maximise_evidence, prior_alone
from temperance.core.features import (
    CLASS_BIASES,
    LOG_ENTROPY_FLOOR,
    MAX_INTERACTING,
    SHAPE_FEATURES,
    shape_features,
)
from temperance.core.kernels import KNOTS
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import RowMapLikelihood, increments_basis, slope_weights, slopes_of
from temperance.core.objective import FitData, Objective, mean_and_deviation, weighted_sum
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN, ByClass, Log
from temperance.core.solution import Status
from temperance.errors import InputError, excerpt, on_one_line, warn_user
from temperance.formulas.bayes import SIZE, BayesianFormula
from temperance.formulas.model import Model
from temperance.population import Population, read_population, shipped_population, weak_population

# At most so many classes have their own temperature: their Fisher matrix is dense.
MAX_CLASS_TEMPERATURES = 500
ADDED_SPREAD = 0.05  # to a standard deviation, so that nearly identical rows are not blown up
# T(z) stays within this factor of T0. Wider than for other methods: here the prior regularises T(z).
RANGE_FACTOR_OF_BAYES = 30.0
# Rows used to find T0: it is a reference, not a result, so a subsample is enough.
REFERENCE_ROWS = 8192
LIMIT_MARGIN = 1e-6  # of log T
# Losses at the largest temperature, in units of the loss of equal probabilities, which a high temperature
# should reach. Above the first no temperature is high enough; above the second no map is flat enough either.
MAX_LOSS_AT_LIMIT, MAX_LOSS_OF_MAP = 2.0, 2000.0
PRIORS = "'population', 'weak' or the path of a file that benchmarks/learn_prior.py made"
BLOCKS = ("level", "shape", "class temperature", "map")
# A class is told if its predicted frequency is wrong by at least this factor.
MIN_FREQUENCY_FACTOR = 1.2
# Pseudo-rows with a random label (a wrong label, probability 0 for the label), in addition to the rows of the
# fit: N rows without one do not rule out the next, which would cost more than all others together.
PSEUDO_ROWS_WITH_RANDOM_LABEL = 0.02
# Of log T: the mode is fitted to predict well on its own, and averaging over all of the variance makes
# predictions less confident. With half of it the NLL is the same and the ECE smaller (docs/bayesian.md).
AVERAGED_VARIANCE = 0.5


class BayesianTemperatureScaling(Calibrator):
    """Bayes: a map of log-probabilities and one temperature per row, with priors from many classifiers.

    Works with 20 or more rows. With few rows the prior dominates: what the population predicts for a
    classifier with this mean entropy. With many, the rows dominate. It works even if no row is wrong.

    Parameters
    ----------
    class_bias : False, True or "auto"
        Add one bias per class to the calibrated log-probabilities (and, up to 20 classes, let it depend on
        all of them). It repairs classes that are predicted too often or too seldom, but the predicted class
        can then change. "auto" averages no change, class frequencies matched to the label frequencies, and a
        bias of each class, of calibrated log-probabilities or of logits, with weights by how well each
        predicts left-out rows. If columns are positions, "auto" has no bias.
    prior : "population", "weak" or a path
        The prior that comes with the package, a weakly informative one, or the file of a prior that
        `benchmarks/learn_prior.py` learned from other tasks.

    Attributes
    ----------
    reference_ : float
        T0, the best single temperature under the prior.
    coefficients_ : (5,) array
        b, and w of log entropy, of its square, and of the gaps from the top logit to the third and the mean.
    class_shift_ : (K,) array
        v; 0 for a class that no calibration row predicts, and beyond the 500 predicted most often. There is
        none if columns are positions.
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
    bias_weights_: Vector = fitted("formula.bias_weights")
    bias_betas_: Vector = fitted("formula.bias_betas")
    biases_: Matrix = fitted("formula.biases")
    interactions_: NDArray[np.float64] = fitted("formula.interactions")

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
        if data.positions and self.class_bias is True:
            raise InputError(
                "class_bias=True adds one bias per class, so columns must be classes; found positions. "
                "Use class_bias='auto' or False: for positions, neither has a bias."
            )
        population = self._population()
        design = build_design(data, population)
        objective = data.objective(design.likelihood)
        posterior = _posterior(objective, design, population, data.n_rows)
        formula, solution = _formula(posterior, design, population, data), posterior.solution
        n_parameters = float(formula.effective_parameters.sum())
        if self.class_bias is not False and not data.positions:
            behind, on_logits = data.transformed(partial(_log_probabilities, formula)), None
            if self.class_bias == "auto" and data.n_classes <= MAX_INTERACTING:
                on_logits = data.transformed(partial(_log_probabilities_at, design.reference))
            bias = fit_class_bias(behind, on_logits, auto=self.class_bias == "auto")
            n_parameters += bias.effective_parameters
            formula = _with_bias(formula, bias) if bias.weights.any() else formula
            if bias.failed is not None:
                solution = replace(solution, status=bias.failed.status)
        return self._model(
            data,
            formula,
            solution,
            standard_errors=_standard_errors(posterior, design),
            temperature_quantiles=objective.temperature_quantiles(posterior.mode, QUANTILES),
            n_parameters=n_parameters,
        )

    def log_temperature_std(
        self, logits: Any, *, dim: int | None = None, from_probs: bool | None = None
    ) -> Any:
        """Return the posterior standard deviation of log T of each row, in the shape of `temperature`."""
        return self._apply("log_temperature_std", logits, dim, from_probs)

    def _describe(self) -> list[str]:
        model = model_of(self)
        shift = getattr(self, "class_shift_", np.empty(0))  # positions have none
        formula = "p = E softmax(-map(-log softmax(z / T0)) T0 / T), log T = b + w . phi"
        formula += " + v[class]" * (shift.size > 0)
        errors = self.standard_errors_.get("coefficients")
        lines = [
            formula,
            f"T0 = {self.reference_:.4g}: {confidence_in_words(self.reference_, self.n_classes_)}",
        ]
        if errors is not None:
            ends = self.coefficients_[0] + 1.96 * errors[0] * np.array([-1, 1])
            low, high = np.exp(np.clip(ends, *np.log(self.temperature_limits_)))
            lines.append(f"T of a typical row: {low:.3g} to {high:.3g} (95% credible interval)")
        prior = self.options_["prior"]
        lines.append(f"prior: {prior}; effective parameters by block (tau scales its variance):")
        sizes = 1, SIZE - 1, int(np.count_nonzero(shift)), len(KNOTS) - 1
        rows = zip(BLOCKS, sizes, self.taus_, self.effective_parameters_, strict=True)
        lines += [
            f"  {name}: {used:.1f} of {size}, tau = {tau:.3g}" for name, size, tau, used in rows if size
        ]
        terms = ("b", *(f"w, {feature}" for feature in SHAPE_FEATURES))
        for j, name in enumerate(terms):
            error = "" if errors is None else f" \u00b1 {errors[j]:.2g}"
            lines.append(f"  {name}: {self.coefficients_[j]:+.3f}{error}")
        lines += map_in_words(self.map_knots_, self.map_slopes_, self.standard_errors_.get("map_slopes"))
        if not model.formula.keeps_class:
            lines += self._describe_bias()
        elif self.options_["class_bias"] is not False:
            why = "it does not improve the prediction of left-out rows"
            why = "the columns are positions, not classes" if model.of_positions else why
            lines.append(f"class bias: not used; {why}")
        return lines

    def _describe_bias(self) -> list[str]:
        """Say what the class bias averages, and which class is predicted too often or too seldom."""
        weights = {"no change": 1 - self.bias_weights_.sum()}
        weights |= dict(zip(CLASS_BIASES, self.bias_weights_, strict=False))
        shares = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items() if weight >= 0.005)
        lines = [f"class bias, the mean of: {shares}; the predicted class can change"]
        logs = -self.biases_[0] * (self.bias_weights_[0] > 0)
        k = int(np.argmax(np.abs(logs)))
        factor = float(np.exp(abs(logs[k])))
        if factor >= MIN_FREQUENCY_FACTOR:
            how = "often" if logs[k] > 0 else "seldom"
            name = on_one_line(str(self.classes_[k]))
            lines.append(f"  class {name} is predicted {factor:.2g} times as {how} as it occurs")
        return lines

    def _loss_name(self) -> str:
        return "penalised loss"


@dataclass(frozen=True)
class Design:
    """The features that the coefficients multiply, and the prior mean of the intercept.

    `reference` is T0 and `level_tau` the tau of its prior. `loss_at_limit` is the loss at T0, divided by
    the loss of equal probabilities, if T0 is the largest temperature, else 0. `mean_log_entropy` is the
    classifier's own uncertainty, on which `expected`, the prior mean, depends.
    """

    reference: float
    level_tau: float
    loss_at_limit: float
    centre: Vector
    spread: Vector
    mean_log_entropy: float
    expected: float
    basis: Matrix
    group_of_class: NDArray[np.intp]
    class_of_group: NDArray[np.intp]

    @property
    def n_coefficients(self) -> int:
        """The number of coefficients of log T."""
        return 1 + len(self.centre) + len(self.class_of_group)

    def predictor(self, rows: LogitRows) -> ByClass:
        """Return log T of some rows as a function of the coefficients."""
        features = (shape_features(rows, self.reference) - self.centre) / self.spread
        stored = np.column_stack([np.ones(rows.n_rows), features])
        return ByClass(stored, self.group_of_class[rows.top], len(self.class_of_group))

    def link(self) -> Log:
        """Return the link, with the limits of T(z)."""
        low, high = self.reference / RANGE_FACTOR_OF_BAYES, self.reference * RANGE_FACTOR_OF_BAYES
        return Log(max(low, TEMPERATURE_MIN), min(high, TEMPERATURE_MAX))

    def start(self, population: Population) -> Vector:
        """Return the prior mean, with the intercept where T is T0."""
        classes = np.zeros(len(self.class_of_group))
        return np.concatenate([[np.log(self.reference)], population.mean, classes, population.map_mean])

    def likelihood(self, rows: LogitRows, weights: Vector | None) -> RowMapLikelihood:
        """Return the likelihood of some rows as a function of the coefficients and of the map."""
        return RowMapLikelihood(rows, self.reference, self.predictor(rows), self.link(), self.basis, weights)


def build_design(data: FitData, population: Population) -> Design:
    """Find T0, then the features of the rows at it and the classes that they predict."""
    (right, _), log_entropy, predicted = data.total(_first_look)
    mean_log_entropy = float(log_entropy) / data.total_weight
    expected = float(population.intercept @ [1.0, mean_log_entropy])
    step = max(1, data.n_rows // REFERENCE_ROWS)
    some = data if step == 1 else data.every(step)
    some = some if some.total_weight else data
    single = fit_single_temperature(some, exact=False)
    mismatch = single.mismatch if right else f"All {data.n_rows} rows are classified wrong: {CHECK_LABELS}"
    if mismatch is not None:
        warn_user(UserWarning(f"{mismatch}."))
    reference, level_tau, loss_at_limit = _reference(some, single.temperature, population, expected)
    centre, deviation = mean_and_deviation(data, partial(shape_features, reference=reference))
    (information,) = some.total(partial(slope_weights, reference=reference))
    group_of_class, class_of_group = _groups(predicted * (not data.positions))
    return Design(
        reference=reference,
        level_tau=level_tau,
        loss_at_limit=loss_at_limit,
        centre=centre,
        spread=deviation + ADDED_SPREAD,
        mean_log_entropy=mean_log_entropy,
        expected=expected,
        basis=increments_basis(information),
        group_of_class=group_of_class,
        class_of_group=class_of_group,
    )


def _first_look(rows: LogitRows, weights: Vector | None) -> tuple[NDArray[Any], ...]:
    """Return counts of correct and wrong rows, the sum of log entropies, and counts by predicted class."""
    top = rows.top if weights is None else rows.top[weights > 0]
    predicted = np.bincount(top, minlength=rows.n_classes)
    log_entropy = np.maximum(rows.log_entropy()[:, 0], LOG_ENTROPY_FLOOR)
    return *right_and_wrong(rows, weights), weighted_sum(log_entropy, weights), predicted


def _reference(
    data: FitData, best_temperature: float, population: Population, expected: float
) -> tuple[float, float, float]:
    """Return T0 and the tau of its prior, at the higher of two modes: near the prior, or near the data.

    The third number is the loss at the limit.
    """
    objective = data.objective(one_temperature)
    block = intercept_block(population, expected)
    best, loss_at_limit = np.log(best_temperature), 0.0
    if best >= np.log(TEMPERATURE_MAX) - LIMIT_MARGIN:
        loss_at_limit = objective(np.array([best])).value / float(np.log(data.n_classes))
    if loss_at_limit > MAX_LOSS_OF_MAP:
        return float(np.exp(best)), 1.0, loss_at_limit
    found = []
    # Where no temperature is high enough, a search from the prior would only go to and fro at the limit.
    for start in (best,) if loss_at_limit > MAX_LOSS_AT_LIMIT else (expected, best):
        off = ((start - expected) / population.intercept_scale) ** 2
        tau = (population.freedom + off) / (population.freedom + 1)
        posterior = maximise_evidence(objective, [block], np.array([start]), data.n_rows, max(tau, 1.0))
        off = ((posterior.mode[0] - expected) / population.intercept_scale) ** 2
        tail = (population.freedom + 1) / 2 * np.log1p(off / population.freedom)
        total = objective.total_weight / posterior.design_effects[block.name]
        found.append((objective(posterior.mode).value * total + tail, posterior))
    chosen = min(found, key=lambda pair: pair[0])[1]
    return float(Log().temperature(chosen.mode)[0]), chosen.taus[block.name], loss_at_limit


def _groups(count: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the group of each class (-1 for none) and each group's class: the most often predicted ones.

    Positions are not counted, so they have no groups.
    """
    often = np.sort(np.argsort(-count, kind="stable")[:MAX_CLASS_TEMPERATURES])
    classes = often[count[often] > 0]
    group = np.full(len(count), -1, np.intp)
    group[classes] = np.arange(len(classes))
    return group, classes


def intercept_block(population: Population, expected: float) -> Block:
    """Return the prior of the mean of log T."""
    precision = np.full((1, 1), population.intercept_scale**-2.0)
    return Block("level", np.array([expected]), precision, population.freedom)


def prior_blocks(design: Design, population: Population) -> list[Block]:
    """Return the prior of the coefficients: level, shape, classes, map."""
    precision = np.asarray(np.linalg.inv(population.covariance), np.float64)
    shape = Block("shape", population.mean, precision, population.freedom)
    size = len(design.class_of_group)
    classes = Block.of_scale("class temperature", size, population.class_scale, population.class_freedom)
    map_precision = np.asarray(np.linalg.inv(population.map_covariance), np.float64)
    of_map = Block("map", population.map_mean, map_precision, population.freedom)
    return [intercept_block(population, design.expected), shape, classes, of_map]


def _posterior(objective: Objective, design: Design, population: Population, n_rows: int) -> Posterior:
    """Fit all blocks, or keep the prior where the logits are too large for any temperature and map."""
    blocks, start = prior_blocks(design, population), design.start(population)
    at_limit = design.reference >= TEMPERATURE_MAX * (1 - LIMIT_MARGIN)
    if at_limit:
        warn_user(UserWarning(f"{TOO_LARGE}."))
    if design.loss_at_limit > MAX_LOSS_OF_MAP:
        return prior_alone(objective, blocks, start)
    posterior = maximise_evidence(objective, blocks, start, n_rows, design.level_tau)
    if at_limit and posterior.solution.status is Status.LINE_SEARCH_FAILED:
        # The loss has a kink where a row's T reaches the limit, and a search can end in one.
        return replace(posterior, solution=replace(posterior.solution, status=Status.STALLED))
    return posterior


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
    link, total_weight = design.link(), data.total_weight / posterior.design_effects["level"]
    return BayesianFormula(
        reference=design.reference,
        centre=design.centre,
        spread=design.spread,
        coefficients=mode[:SIZE],
        covariance=covariance[:SIZE, :SIZE],
        taus=np.array(list(posterior.taus.values())),
        effective_parameters=np.array(list(posterior.effective.values())),
        temperature_limits=np.array([link.lower, link.upper]),
        map_knots=KNOTS,
        map_slopes=slopes_of(design.basis, mode[design.n_coefficients :])[0],
        uniform_weight=PSEUDO_ROWS_WITH_RANDOM_LABEL / (PSEUDO_ROWS_WITH_RANDOM_LABEL + total_weight),
        averaged_variance=AVERAGED_VARIANCE,
        class_shift=None if data.positions else shift,
        class_covariance=None if data.positions else by_class,
        max_entropy=float(np.log(n_classes)) if data.positions else None,
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


def _log_probabilities_at(reference: float, rows: LogitRows) -> Floats:
    """Return log softmax(z / T0), not below the floor; -inf for an impossible class."""
    output: Floats = rows.map(lambda block: block.floored_log_probs(1 / reference))
    return output


def _with_bias(formula: BayesianFormula, bias: ClassBias) -> BayesianFormula:
    """Return the formula with the class bias."""
    offsets = [kind.offsets for kind in bias.kinds]
    K = len(offsets[0].bias)
    matrices = [np.zeros((K, K)) if one.interactions is None else one.interactions for one in offsets[1:]]
    return replace(
        formula,
        bias_weights=bias.weights,
        bias_betas=np.array([one.beta for one in offsets]),
        biases=np.array([one.bias for one in offsets]),
        interactions=np.array(matrices) if K <= MAX_INTERACTING else None,
    )


def _standard_errors(posterior: Posterior, design: Design) -> dict[str, Vector]:
    of_map = slice(design.n_coefficients, None)
    logs = design.basis @ posterior.covariance[of_map, of_map] @ design.basis.T
    slopes, _ = slopes_of(design.basis, posterior.mode[of_map])
    return {
        "coefficients": np.sqrt(posterior.covariance.diagonal()[:SIZE]),
        "map_slopes": slopes * np.sqrt(logs.diagonal()),
    }
