"""A class bias as a second stage, added to the log-probabilities l of a calibrator that keeps the class.

    p = (1 - weight) softmax(l) + weight softmax(l / T + bias + M x)        x: l, floored and centred

T, bias and interactions M (up to `MOST_INTERACTING` classes) have priors centred at "no change". Their widths
maximise the evidence, under a hyperprior that a few rows cannot override. The weight is 1 or, with `auto`,
the one that predicts left-out rows best, minus a penalty; it is 0 where the bias does not help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.biased_rows import Offsets
from temperance.core.class_bias import ClassBiasLikelihood
from temperance.core.evidence import Block, PenalisedObjective, maximise_evidence
from temperance.core.fisher import lbfgs
from temperance.core.fit_data import FitData
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior
from temperance.core.solution import Solution, Solver, Status

# Up to so many classes, a bias may depend on all probabilities: the parameters grow with its square.
MOST_INTERACTING = 20
# Candidates for the weight. Below the first step the weight is 0: then no predicted class changes.
WEIGHTS = np.append(np.linspace(0.0, 0.98, 50), [0.99, 0.995, 0.998, 0.999])
PENALTY = 1.0  # of a weight w: -PENALTY log(1 - w), in units of one row's loss
FIXED = 1e9  # freedom of a prior with a fixed width
ROUNDS = 20
SETTLED = 0.03  # the rounds end when tau has no larger relative change
STANDARD_ERRORS = 0.02  # largest distance of a coefficient from its optimum


# Numbers in the rows that the widths are estimated from: with fewer, a rare class may have no label.
WIDTH_NUMBERS = 1 << 17


@dataclass(frozen=True)
class Widths:
    """Prior standard deviations at tau = 1; a larger `freedom` keeps tau closer to 1."""

    log_temperature: float = 0.1
    bias: float = 0.2
    bias_freedom: float = 2.0
    interaction: float = 0.06
    interaction_freedom: float = 1.0


@dataclass(frozen=True, eq=False)
class ClassBias:
    """A fitted class bias; `taus` and `effective_parameters` are those of bias and interactions."""

    beta: float
    bias: Vector
    interactions: Matrix | None
    weight: float
    taus: Vector
    effective_parameters: Vector
    solution: Solution


@dataclass(frozen=True)
class _Fit:
    """The posterior mode of [log T, bias, interactions], and its covariance or its variances alone."""

    covariance: Matrix
    taus: Vector
    effective: Vector
    solution: Solution

    @property
    def mode(self) -> Vector:
        return self.solution.parameters


def fit_class_bias(data: FitData, *, auto: bool, widths: Widths | None = None) -> ClassBias:
    """Fit a bias to rows of log-probabilities, with the weight 1 or, if `auto`, the best.

    Up to `MOST_INTERACTING` classes the posterior has a full covariance. With more classes there is a bias
    alone, and covariances between classes are neglected: any number of classes is possible, at the cost of
    about forty to eighty passes over the rows.
    """
    widths = widths or Widths()
    interacting = data.n_classes <= MOST_INTERACTING
    build = partial(_likelihood, interacting)
    fit = (_fit_by_matrix if interacting else _fit_by_diagonal)(data, build, widths)
    weight = _best_weight(data, build, fit) if auto else 1.0
    offsets = Offsets.of(fit.mode, data.n_classes)
    return ClassBias(
        offsets.beta, offsets.bias, offsets.interactions, weight, fit.taus, fit.effective, fit.solution
    )


Build = Callable[[LogitRows, Vector | None], ClassBiasLikelihood]


def _likelihood(interacting: bool, rows: LogitRows, weights: Vector | None) -> ClassBiasLikelihood:
    return ClassBiasLikelihood(rows, interacting, weights)


def _fit_by_matrix(data: FitData, build: Build, widths: Widths) -> _Fit:
    K = data.n_classes
    blocks = [
        Block.of_scale("log T", 1, widths.log_temperature, FIXED),
        Block.of_scale("bias", K, widths.bias, widths.bias_freedom),
        Block.of_scale("interactions", K * K, widths.interaction, widths.interaction_freedom),
    ]
    start, width_rows = np.zeros(1 + K + K * K), WIDTH_NUMBERS // K
    posterior = maximise_evidence(data.objective(build), blocks, start, data.n_rows, width_rows=width_rows)
    taus, effective = list(posterior.taus.values())[1:], list(posterior.effective.values())[1:]
    return _Fit(posterior.covariance, np.array(taus), np.array(effective), posterior.solution)


def _fit_by_diagonal(data: FitData, build: Build, widths: Widths) -> _Fit:
    """Alternate between coefficients and the width of the bias, as `core.evidence` does."""
    theta, tau = np.zeros(1 + data.n_classes), 1.0
    objective = data.objective(build)
    for _ in range(ROUNDS):
        precision = np.full(len(theta), widths.bias**-2 / tau)
        precision[0] = widths.log_temperature**-2
        fisher = data.total(partial(_diagonal, build, theta))[0] + precision
        solution = _solve_by_diagonal(objective, precision, fisher, theta)
        theta, before = solution.parameters, tau
        effective = float(np.sum(1 - precision[1:] / fisher[1:]))
        square = float(theta[1:] @ theta[1:]) / widths.bias**2
        tau = (widths.bias_freedom + square) / (widths.bias_freedom + effective)
        if abs(np.log(tau / before)) < SETTLED:
            break
    else:
        solution = replace(solution, status=Status.WIDTHS_UNSETTLED)
    return _Fit(1 / fisher, np.array([before]), np.array([effective]), solution)


def _solve_by_diagonal(
    objective: PenalisedObjective, precision: Vector, fisher: Vector, start: Vector
) -> Solution:
    total = objective.total_weight
    fitted = objective.with_prior(Prior(np.zeros(len(start)), precision / total))
    solution = lbfgs(
        fitted,
        start,
        Solver.LBFGS_MANY_PARAMETERS,
        scale=np.sqrt(total / fisher),
        tolerance=STANDARD_ERRORS / np.sqrt(total),  # in these units a standard error is 1 / sqrt(total)
    )
    # A constant added to all biases changes only the prior, by less than the tolerance.
    bias = solution.parameters[1:]
    return replace(solution, parameters=np.append(solution.parameters[0], bias - bias.mean()))


def _diagonal(build: Build, theta: Vector, rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    objective = build(rows, weights)
    return (objective.diagonal(theta) * objective.total_weight,)


def _best_weight(data: FitData, build: Build, fit: _Fit) -> float:
    (gains,) = data.total(partial(_gains, build, fit.mode, fit.covariance))
    return float(WEIGHTS[np.argmax(gains + PENALTY * np.log1p(-WEIGHTS))])


def _gains(
    build: Build, theta: Vector, covariance: Matrix, rows: LogitRows, weights: Vector | None
) -> tuple[Vector]:
    """Return the leave-one-out log-likelihood for each weight, minus that of the base."""
    left_out = build(rows, weights).leave_one_out_log_probs(theta, covariance)
    ratio = np.exp(np.minimum(left_out - (rows.label_gap + rows.peak), 300.0)) - 1
    counts = np.ones(rows.n_rows) if weights is None else weights
    return (np.array([counts @ np.log1p(weight * ratio) for weight in WEIGHTS]),)
