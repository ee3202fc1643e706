"""The best single temperature: TS itself, and the reference that every other method stays near.

A function T(z) can go to 0 or to infinity on rows that happen to be all correct or all wrong; such a T is
noise, and can be very wrong on the next row. All methods therefore keep T(z) within a factor
of `RANGE_FACTOR` of the best single temperature. On data that determine T(z) the limits do not bind, so for
many rows a subsample of a few thousand is enough to set them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.design_effect import with_group_errors
from temperance.core.fisher import solve
from temperance.core.kernels import LOWEST
from temperance.core.logit_rows import LogitRows
from temperance.core.mixture import LogMixture
from temperance.core.objective import FitData, LogLikelihood, Prior, weighted_sum
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN, Constant, Log
from temperance.core.solution import Solution
from temperance.errors import warn_user

# Rows for a first estimate of the scale, and initial values for methods that refine it.
SCALE_ROWS, START_ROWS = 512, 4096
# A subsample with as many rows right, and as many wrong, shows whether the likelihood has a maximum.
MIN_RIGHT_AND_WRONG = 10
# Chosen on the public tasks among 4, 10, 20, 50 and 1,000: with all rows, 10 changes nothing for a network;
# with 50 or 200 rows it reduces the loss of methods that diverge by a factor of up to a thousand.
RANGE_FACTOR = 10.0

# Of the uniform prediction, where outliers must not decide: an outlier then costs log(100 K) at most.
UNIFORM_SHARE = 0.01

CHECK_LABELS = "check that labels and columns match"
TOO_LARGE = f"The temperature is at its upper limit, {TEMPERATURE_MAX:g}: scale the logits down"
_BOUNDS = np.log([TEMPERATURE_MIN]), np.log([TEMPERATURE_MAX])


class Degeneracy(Enum):
    """Why the labels determine no single temperature."""

    ALL_RIGHT = auto()  # the smaller T, the better
    ALL_WRONG = auto()  # the larger T, the better, and no row is correct
    NO_BETTER_THAN_CHANCE = auto()  # the larger T, the better
    OUTLIERS = auto()  # the larger T, the better, though many rows are correct
    LOGITS_TOO_LARGE = auto()  # the best T is above the upper limit


@dataclass(frozen=True)
class SingleTemperatureFit:
    """The best single temperature of some rows, and why the labels determine none, if so.

    `right` is how many rows are classified correctly, `n_counted` how many have weight, estimated where a
    subsample was enough.
    """

    temperature: float
    solution: Solution
    right: int
    n_counted: int
    degeneracy: Degeneracy | None

    @property
    def mismatch(self) -> str | None:
        """The sentence that labels and columns hardly match, or some do not at all, if so."""
        if self.degeneracy is Degeneracy.ALL_WRONG:
            return f"All {self.n_counted} rows are classified wrong: {CHECK_LABELS}"
        if self.degeneracy is Degeneracy.NO_BETTER_THAN_CHANCE:
            return f"The labels agree with the logits no better than chance: {CHECK_LABELS}"
        if self.degeneracy is Degeneracy.OUTLIERS:
            return (
                f"The logits of a few rows are so far from their labels' that they outweigh the {self.right} "
                f"rows classified correctly, of {self.n_counted}: check the rows with the largest logits"
            )
        return None


def fit_single_temperature(data: FitData, *, exact: bool) -> SingleTemperatureFit:
    """Fit one temperature: to all rows if `exact`, else to a subsample with enough correct and wrong rows."""
    step, n_rows = data.n_rows // START_ROWS, data.n_rows
    if not exact and step >= 4:
        some = data.every(step)
        data = some if some.total(right_and_wrong)[0].min() >= MIN_RIGHT_AND_WRONG else data
    objective = data.objective(one_temperature)
    # At the mean gap between the top logit and the others no row is saturated.
    step = data.n_rows // SCALE_ROWS
    some = data.every(step) if step > 1 else data
    gap = -float(some.total(_sum_of_means)[0]) / some.n_rows
    start = np.log([min(max(gap, 1e-4), 1e4) if gap > 0 else 1.0])
    solution = solve(objective, start, data.n_rows, bounds=_BOUNDS)
    right, wrong = data.total(right_and_wrong)[0].tolist()
    degeneracy = None
    if not wrong:
        degeneracy = Degeneracy.ALL_RIGHT
    elif solution.parameters[0] >= _BOUNDS[1][0]:
        if _has_a_best_temperature(data):
            degeneracy = Degeneracy.LOGITS_TOO_LARGE
        elif right > _most_by_chance(right + wrong, data.n_classes):
            degeneracy = Degeneracy.OUTLIERS
        else:
            degeneracy = Degeneracy.NO_BETTER_THAN_CHANCE if right else Degeneracy.ALL_WRONG
    if degeneracy not in (None, Degeneracy.LOGITS_TOO_LARGE):
        # The likelihood has no maximum: one pseudo-observation, log T ~ N(0, 1), gives it one.
        prior = Prior(np.zeros(1), np.full((1, 1), 1 / data.total_weight))
        solution = solve(objective.with_prior(prior), np.zeros(1), data.n_rows, bounds=_BOUNDS)
    if exact:
        solution = with_group_errors(objective, solution)
    temperature = float(Log().temperature(solution.parameters)[0])
    n_counted = (right + wrong) * n_rows // data.n_rows
    return SingleTemperatureFit(temperature, solution, right, n_counted, degeneracy)


def one_temperature(rows: LogitRows, weights: Vector | None) -> LogLikelihood:
    """Return the likelihood as a function of the log of one temperature for all rows."""
    return LogLikelihood(rows, Constant(), Log(), weights)


def temperature_without_outliers(data: FitData) -> float:
    """Return the best T of a mixture with the uniform prediction, which limits the loss of each row."""
    (gap,) = data.quantiles(_gaps, np.array([0.5])).values
    start = np.array([np.log(min(max(gap, 1e-4), 1e4)), UNIFORM_SHARE, 1.0])
    bounds = tuple(np.append(bound, start[1:]) for bound in _BOUNDS)
    solution = solve(data.objective(LogMixture), start, data.n_rows, bounds=(bounds[0], bounds[1]))
    return float(np.exp(solution.parameters[0]))


def _gaps(rows: LogitRows, weights: Vector | None) -> tuple[Vector, Vector | None]:
    return -rows.moments(1e-6).mu, weights


def _most_by_chance(n_rows: int, n_classes: int) -> float:
    """Return how many rows are correct by chance at most: the expectation plus three standard errors."""
    return float(n_rows / n_classes + 3 * np.sqrt(n_rows * (1 - 1 / n_classes) / n_classes))


def _has_a_best_temperature(data: FitData) -> bool:
    """Say whether the loss, which is convex in 1/T, rises towards T = infinity.

    The slope is that at the largest temperature in units of the labels' mean gap. There gaps that a label
    can have are close to 0, and classes that are masked, by -inf or by a number such as -1e9, still have
    probability 0.
    """
    (gaps,) = data.total(_sum_of_label_gaps)
    beta = data.total_weight / (TEMPERATURE_MAX * -float(gaps))
    return bool(data.total(partial(_slope, beta))[0] < 0)


def _label_gaps(rows: LogitRows, weights: Vector | None) -> Vector:
    """Return the gap of each row's label, which is 0 without weight; as in moments, the lowest is finite."""
    gaps = np.maximum(rows.label_gap, LOWEST[rows.dtype.itemsize])
    return gaps if weights is None else np.where(weights > 0, gaps, 0.0)


def _sum_of_label_gaps(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    return (np.asarray(weighted_sum(_label_gaps(rows, weights), weights)),)


def _slope(beta: float, rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    """Return the derivative of the loss by 1/T: how far the labels' logits are below the expected ones."""
    below = rows.moments(beta, variance=False).mu - _label_gaps(rows, weights)
    return (np.asarray(weighted_sum(below, weights)),)


def right_and_wrong(rows: LogitRows, weights: Vector | None) -> tuple[NDArray[np.intp]]:
    """Return how many rows with weight are correct (no logit above the label's), and how many are wrong."""
    right = rows.label_gap == 0
    if weights is not None:
        right = right[weights > 0]
    return (np.array([right.sum(), (~right).sum()]),)


def warn_of(single: SingleTemperatureFit, n_rows: int, *, limits_outliers: bool = False) -> None:
    """Tell the user what is wrong with the labels, if anything; some methods limit what outliers cost."""
    if single.degeneracy is Degeneracy.LOGITS_TOO_LARGE:
        message = f"{TOO_LARGE}."
    elif single.degeneracy is Degeneracy.ALL_RIGHT:
        message = (
            f"All {single.n_counted} rows are classified correctly (no class has a larger logit than the "
            "label's), so they cannot show whether the classifier is overconfident. A weak prior keeps the "
            f"temperature near 1: {single.temperature:.4g} for all rows. Add labelled rows until some are "
            "wrong."
        )
    elif single.degeneracy is Degeneracy.OUTLIERS and limits_outliers:
        message = f"{single.mismatch}."
    elif single.degeneracy is not None:
        message = f"{single.mismatch}. With a weak prior, T is {single.temperature:.4g} for all rows."
    elif not single.right:
        message = (
            f"All {n_rows} rows are classified wrong. The temperature {single.temperature:.4g} fits "
            f"them, but {CHECK_LABELS}."
        )
    elif single.temperature <= TEMPERATURE_MIN * (1 + 1e-9):
        message = f"The temperature is at its lower limit, {TEMPERATURE_MIN:g}: scale the logits up."
    else:
        return
    warn_user(UserWarning(message))


def warn_of_few_rows(single: SingleTemperatureFit, name: str, n_parameters: int) -> None:
    """Warn of a method with at least as many parameters as rows: many fits are equally good."""
    if single.n_counted <= n_parameters and not single.degeneracy:
        message = (
            f"{name} has {n_parameters} parameters, so it needs more rows than that; found "
            f"{single.n_counted}. Its temperatures are not identified. Use bayes or ts, or add "
            "labelled rows."
        )
        warn_user(UserWarning(message))


def _sum_of_means(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    return (np.array(rows.moments(1e-6).mu.sum()),)


def limits_around(temperature: float) -> tuple[float, float]:
    """Return the range that T(z) is kept in."""
    return temperature / RANGE_FACTOR, temperature * RANGE_FACTOR
