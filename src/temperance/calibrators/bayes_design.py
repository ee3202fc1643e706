"""The parts of Bayesian temperature scaling before its coefficients: scale, features, classes, blocks.

    log T = b + w . phi(z / T0) + v[predicted class]         phi: the shape of the row, standardised

T0 is the best single temperature under the prior: it makes the shapes of any two classifiers comparable, and
the log-probabilities that the map takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.single_temperature import fit_single_temperature, one_temperature, right_and_wrong
from temperance.core.arrays import Matrix, Vector
from temperance.core.evidence import Block, maximise_evidence
from temperance.core.features import LOG_ENTROPY_FLOOR, shape_features
from temperance.core.logit_rows import LogitRows
from temperance.core.maps import RowMapLikelihood, increments_basis, slope_weights
from temperance.core.objective import FitData, mean_and_deviation, weighted_sum
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN, ByClass, Log
from temperance.population import Population

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


@dataclass(frozen=True)
class Design:
    """The features that the coefficients multiply, and the prior mean of the intercept.

    `reference` is T0 and `level_tau` the tau of its prior. `loss_at_limit` is the loss at T0, in units of
    that of equal probabilities, if T0 is the largest temperature, else 0. `mean_log_entropy` is the
    classifier's own uncertainty, on which `expected`, the prior mean, depends. `right` is how many rows are
    classified right; `mismatch` is the sentence on labels and columns that hardly match, or None.
    """

    reference: float
    level_tau: float
    loss_at_limit: float
    centre: Vector
    spread: Vector
    mean_log_entropy: float
    expected: float
    right: int
    mismatch: str | None
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
    reference, level_tau, loss_at_limit = _reference(some, single.temperature, population, expected)
    centre, deviation = mean_and_deviation(data, partial(shape_features, reference=reference))
    (information,) = some.total(partial(slope_weights, reference=reference))
    group_of_class, class_of_group = _groups(predicted)
    return Design(
        reference=reference,
        level_tau=level_tau,
        loss_at_limit=loss_at_limit,
        centre=centre,
        spread=deviation + ADDED_SPREAD,
        mean_log_entropy=mean_log_entropy,
        expected=expected,
        right=int(right),
        mismatch=single.mismatch,
        basis=increments_basis(information),
        group_of_class=group_of_class,
        class_of_group=class_of_group,
    )


def _first_look(rows: LogitRows, weights: Vector | None) -> tuple[NDArray[Any], ...]:
    """Return the counts of right and wrong rows, the sum of log entropies, and counts by predicted class."""
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
        found.append((objective(posterior.mode).value * objective.total_weight + tail, posterior))
    chosen = min(found, key=lambda pair: pair[0])[1]
    return float(Log().temperature(chosen.mode)[0]), chosen.taus[block.name], loss_at_limit


def _groups(count: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the group of each class (-1 for none) and each group's class: the most often predicted ones."""
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
