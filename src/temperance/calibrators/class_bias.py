"""A class bias as a second stage, added to the log-probabilities l of a calibrator that keeps the class.

    p = (1 - weight) softmax(l) + weight softmax(l / T + bias + M x)        x: l, floored and centred

T, bias and interactions M (up to `MAX_INTERACTING` classes) have priors centred at "no change". Their widths
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
from temperance.core.evidence import Block, PenalisedObjective, Posterior, alternate, maximise_evidence
from temperance.core.fisher import lbfgs
from temperance.core.fit_data import FitData
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import Prior
from temperance.core.solution import Solution, Solver

# Up to so many classes, a bias may depend on all probabilities: the parameters grow with its square.
MAX_INTERACTING = 20
# Candidates for the weight. Below the first step the weight is 0: then no predicted class changes.
WEIGHTS = np.append(np.linspace(0.0, 0.98, 50), [0.99, 0.995, 0.998, 0.999])
PENALTY = 1.0  # of a weight w: -PENALTY log(1 - w), in units of one row's loss
FIXED = 1e9  # freedom of a prior with a fixed width
STANDARD_ERRORS = 0.02  # largest distance of a coefficient from its optimum, without a matrix
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


def fit_class_bias(data: FitData, *, auto: bool, widths: Widths | None = None) -> ClassBias:
    """Fit a bias to rows of log-probabilities, with the weight 1 or, if `auto`, the best.

    Up to `MAX_INTERACTING` classes the posterior has a full covariance. With more classes there is a bias
    alone, and covariances between classes are neglected: any number of classes is possible, at the cost of
    about forty to eighty passes over the rows.
    """
    widths, K = widths or Widths(), data.n_classes
    interacting = K <= MAX_INTERACTING
    build = partial(_likelihood, interacting)
    posterior = _posterior(data, build, widths, interacting=interacting)
    weight = _best_weight(data, build, posterior) if auto else 1.0
    offsets = Offsets.of(posterior.mode, K)
    taus, effective = (
        np.array(list(by_block.values())[1:]) for by_block in (posterior.taus, posterior.effective)
    )
    return ClassBias(
        offsets.beta, offsets.bias, offsets.interactions, weight, taus, effective, posterior.solution
    )


Build = Callable[[LogitRows, Vector | None], ClassBiasLikelihood]


def _likelihood(interacting: bool, rows: LogitRows, weights: Vector | None) -> ClassBiasLikelihood:
    return ClassBiasLikelihood(rows, interacting, weights)


def _posterior(data: FitData, build: Build, widths: Widths, *, interacting: bool) -> Posterior:
    """Return that of [log T, bias, interactions], or of [log T, bias] by diagonals."""
    K, objective = data.n_classes, data.objective(build)
    block = partial(Block.of_scale, diagonal=not interacting)
    blocks = [
        block("log T", 1, widths.log_temperature, FIXED),
        block("bias", K, widths.bias, widths.bias_freedom),
    ]
    if interacting:
        blocks.append(block("interactions", K * K, widths.interaction, widths.interaction_freedom))
        start = np.zeros(1 + K + K * K)
        return maximise_evidence(objective, blocks, start, data.n_rows, width_rows=WIDTH_NUMBERS // K)
    fit = partial(_fit_by_diagonal, data, build, objective)
    return alternate(blocks, np.zeros(1 + K), objective.total_weight, fit)


def _fit_by_diagonal(
    data: FitData, build: Build, objective: PenalisedObjective, start: Vector, prior: Prior
) -> tuple[Solution, Vector]:
    """Return the coefficients by L-BFGS, as a matrix of so many classes would be too large, and variances.

    Each coefficient is measured in units of its standard error times the root of the total weight: then
    the tolerance is the same for each of them.
    """
    total = objective.total_weight
    information = data.total(partial(_diagonal, build, start))[0] + prior.precision * total
    solution = lbfgs(
        objective.with_prior(prior),
        start,
        Solver.LBFGS_MANY_PARAMETERS,
        scale=np.sqrt(total / information),
        tolerance=STANDARD_ERRORS / np.sqrt(total),
    )
    # A constant added to all biases changes only the prior, by less than the tolerance.
    bias = solution.parameters[1:]
    centred = np.append(solution.parameters[0], bias - bias.mean())
    return replace(solution, parameters=centred), 1 / information


def _diagonal(build: Build, theta: Vector, rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    objective = build(rows, weights)
    return (objective.diagonal(theta) * objective.total_weight,)


def _best_weight(data: FitData, build: Build, fitted: Posterior) -> float:
    (gains,) = data.total(partial(_gains, build, fitted.mode, fitted.covariance))
    return float(WEIGHTS[np.argmax(gains + PENALTY * np.log1p(-WEIGHTS))])


def _gains(
    build: Build, theta: Vector, covariance: Matrix, rows: LogitRows, weights: Vector | None
) -> tuple[Vector]:
    """Return the leave-one-out log-likelihood for each weight, minus that of the base."""
    held_out = build(rows, weights).leave_one_out_log_probs(theta, covariance)
    ratio = np.exp(np.minimum(held_out - (rows.label_gap + rows.peak), 300.0)) - 1
    counts = np.ones(rows.n_rows) if weights is None else weights
    return (np.array([counts @ np.log1p(weight * ratio) for weight in WEIGHTS]),)
