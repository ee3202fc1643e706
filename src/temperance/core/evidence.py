"""Coefficients in blocks, each with a prior whose width is estimated from the data.

    theta_b ~ N(m_b, tau_b S_b),      tau_b ~ inverse gamma, with scale 1 and `freedom` nu_b

Integrated over tau_b, the prior is a multivariate t: near the mean it shrinks a block according to S_b, and
far from it hardly at all. Given the taus, the posterior mode is a penalised fit. Given the fit,

    tau_b <- (nu_b + |theta_b - m_b|^2_S) / (nu_b + gamma_b),      gamma_b = n_b - tr(S_b^-1 C_bb) / tau_b

maximises the evidence, with C the posterior covariance and gamma_b the effective number of parameters: how
many directions of the block the data determine. The two steps alternate until the taus converge. With too
many coefficients for a covariance matrix, all matrices are replaced by their diagonals.

Rows in groups are worth fewer independent rows, by the design effect d_b of a block (`design_effect`). So the
likelihood is tempered: the Fisher matrix F becomes d^-1/2 F d^-1/2. The mode then equals the mode of the
whole likelihood with priors d_b times as precise, and C = d^1/2 (F + d P)^-1 d^1/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import one_blas_thread
from temperance.core.design_effect import design_effects
from temperance.core.fisher import fisher_scoring
from temperance.core.objective import Objective, Prior
from temperance.core.solution import Solution, Status

MAX_ROUNDS = 50  # widths that grow slowly, as of forests with few trees, take up to 40
ROUND_ITERATIONS = 15  # of the solver; if it needs more, the next round continues
FULL_ROUNDS = 8  # widths that still change after this might oscillate: then take half of each change
SETTLED = 0.03  # the rounds end when no tau has a larger relative change
ROUND_TOLERANCE = 0.02  # of the log posterior, while the taus still change; the last fit is exact
# The largest number of rows, or rows per parameter, used for the widths; coefficients use all rows.
WIDTH_ROWS, WIDTH_ROWS_PER_PARAMETER = 1024, 8
MIN_TAU, MAX_TAU = 1e-4, 1e6


@dataclass(frozen=True)
class Block:
    """Adjacent coefficients that share a prior: its mean, its precision at tau = 1, its freedom.

    A precision with one axis is the diagonal of a diagonal matrix; then all blocks of a fit have one axis.
    """

    name: str
    mean: Vector
    precision: Matrix
    freedom: float

    @classmethod
    def of_scale(cls, name: str, size: int, scale: float, freedom: float, *, diagonal: bool = False) -> Block:
        """Return independent coefficients around 0 with the standard deviation `scale`."""
        precision = np.full(size, scale**-2.0) if diagonal else np.eye(size) / scale**2
        return cls(name, np.zeros(size), precision, freedom)


@dataclass(frozen=True)
class Posterior:
    """The posterior mode, its covariance, and tau and the effective number of parameters by block.

    With diagonal matrices, the covariance has one axis: the inverse of each parameter's own information.
    """

    covariance: Matrix
    taus: dict[str, float]
    effective: dict[str, float]
    solution: Solution
    design_effects: dict[str, float]
    """1 without groups."""
    deviations: Vector
    """The roots of the design effects, one per coefficient."""

    @property
    def mode(self) -> Vector:
        """The coefficients."""
        return self.solution.parameters

    @property
    def inverse_information(self) -> Matrix:
        """(F + d P)^-1, whose likelihood is not tempered."""
        return _scaled(self.covariance, 1 / self.deviations)


Fit = Callable[[Vector, Prior], tuple[Solution, Matrix]]
"""From initial coefficients and a prior to the fit and its covariance, or variances if it is diagonal."""


def maximise_evidence(
    objective: Objective,
    blocks: list[Block],
    start: Vector,
    n_rows: int,
    first_tau: float = 1.0,
    width_rows: int = WIDTH_ROWS,
) -> Posterior:
    """Alternate between the coefficients and the widths of the blocks, which are consecutive in theta.

    `first_tau` is the initial width of the first block. If a heavy-tailed prior and the rows disagree, the
    posterior can have two modes, and the initial value determines which one the rounds find. Widths are
    estimated from a sample of about `width_rows` rows.
    """
    taus = np.ones(len(blocks))
    taus[0] = first_tau
    step = n_rows // max(width_rows, WIDTH_ROWS_PER_PARAMETER * len(start))
    few = objective.every(step) if step >= 2 else objective
    thinned = step >= 2 and few.total_weight > 0
    some = few if thinned else objective
    effects = _design_effects(some, blocks, start)
    tolerance = ROUND_TOLERANCE * effects.min() / some.total_weight

    def fit(theta: Vector, prior: Prior) -> tuple[Solution, Matrix]:
        fitted = some.with_prior(prior)
        solution = fisher_scoring(fitted, theta, tolerance, max_iterations=ROUND_ITERATIONS)
        return solution, _covariance(fitted, solution)

    with one_blas_thread:  # once: setting the limit takes as long as a pass over few rows
        last = _rounds(blocks, start, taus, some.total_weight, effects, fit)
        effects = _design_effects(objective, blocks, start) if thinned else effects
        fitted = objective.with_prior(_prior(blocks, last.updated, objective.total_weight, effects))
        solution = fisher_scoring(fitted, last.solution.parameters)
        covariance = _scaled(_covariance(fitted, solution), _deviations(blocks, effects))
    return _posterior(blocks, last.updated, solution, covariance, effects, settled=last.settled)


def alternate(objective: Objective, blocks: list[Block], start: Vector, fit: Fit) -> Posterior:
    """Return the posterior of the last round, with the caller's own function that fits the coefficients."""
    effects = _design_effects(objective, blocks, start)
    last = _rounds(blocks, start, np.ones(len(blocks)), objective.total_weight, effects, fit)
    return _posterior(blocks, last.taus, last.solution, last.covariance, effects, settled=last.settled)


def prior_alone(objective: Objective, blocks: list[Block], theta: Vector) -> Posterior:
    """Return theta with the prior covariance, for rows that no coefficients fit."""
    point, names = objective(theta), [block.name for block in blocks]
    covariance = _block_diagonal([np.asarray(np.linalg.inv(block.precision), np.float64) for block in blocks])
    solution = Solution(theta, point.value, 0.0, 0, objective.passes, Status.CONVERGED)
    ones, zeros = dict.fromkeys(names, 1.0), dict.fromkeys(names, 0.0)
    return Posterior(covariance, ones, zeros, solution, ones, np.ones(len(theta)))


class _Round(NamedTuple):
    """A fit under some taus, and the taus that follow from it."""

    solution: Solution
    covariance: Matrix
    taus: Vector
    updated: Vector
    settled: bool


def _design_effects(objective: Objective, blocks: list[Block], theta: Vector) -> Vector:
    diagonals = [
        block.precision if block.precision.ndim == 1 else block.precision.diagonal() for block in blocks
    ]
    return design_effects(objective, theta, np.concatenate(diagonals), [len(block.mean) for block in blocks])


def _deviations(blocks: list[Block], effects: Vector) -> Vector:
    return np.repeat(np.sqrt(effects), [len(block.mean) for block in blocks])


def _scaled(covariance: Matrix, deviations: Vector) -> Matrix:
    """Return the covariance of coefficients times these factors."""
    return covariance * (deviations**2 if covariance.ndim == 1 else np.outer(deviations, deviations))


def _rounds(
    blocks: list[Block], theta: Vector, taus: Vector, total_weight: float, effects: Vector, fit: Fit
) -> _Round:
    """Alternate between fits and updates of the taus until these settle; return the last round."""
    deviations = _deviations(blocks, effects)
    for number in range(MAX_ROUNDS):
        solution, untempered = fit(theta, _prior(blocks, taus, total_weight, effects))
        theta, covariance = solution.parameters, _scaled(untempered, deviations)
        _, updated = _update(blocks, taus, theta, covariance)
        if number >= FULL_ROUNDS:
            updated = np.sqrt(taus * updated)
        settled = bool(np.abs(np.log(updated / taus)).max() < SETTLED)
        last = _Round(solution, covariance, taus, updated, settled)
        if settled:
            break
        taus = updated
    return last


def _posterior(
    blocks: list[Block],
    taus: Vector,
    solution: Solution,
    covariance: Matrix,
    effects: Vector,
    *,
    settled: bool,
) -> Posterior:
    if solution.converged and not settled:
        solution = replace(solution, status=Status.WIDTHS_UNSETTLED)
    names = [block.name for block in blocks]
    effective, _ = _update(blocks, taus, solution.parameters, covariance)
    return Posterior(
        covariance,
        dict(zip(names, taus.tolist(), strict=True)),
        dict(zip(names, effective.tolist(), strict=True)),
        solution,
        dict(zip(names, effects.tolist(), strict=True)),
        _deviations(blocks, effects),
    )


def _prior(blocks: list[Block], taus: Vector, total_weight: float, effects: Vector | float = 1.0) -> Prior:
    mean = np.concatenate([block.mean for block in blocks])
    weights = taus * total_weight / effects
    scaled = [block.precision / weight for block, weight in zip(blocks, weights, strict=True)]
    return Prior(mean, _block_diagonal(scaled))


def _block_diagonal(parts: list[Matrix]) -> Matrix:
    """Return the block-diagonal matrix of these, faster than SciPy's function for few parameters.

    If they are diagonals with one axis, so is the result.
    """
    if parts[0].ndim == 1:
        return np.concatenate(parts)
    ends = np.cumsum([len(part) for part in parts])
    result = np.zeros((ends[-1], ends[-1]))
    for part, end in zip(parts, ends, strict=True):
        result[end - len(part) : end, end - len(part) : end] = part
    return result


def _covariance(objective: Objective, solution: Solution) -> Matrix:
    if solution.covariance is not None:
        return solution.covariance
    fisher = objective(solution.parameters).fisher  # the solver's last point has no covariance
    assert fisher is not None
    return np.asarray(np.linalg.inv(fisher) / objective.total_weight, np.float64)


def _update(blocks: list[Block], taus: Vector, theta: Vector, covariance: Matrix) -> tuple[Vector, Vector]:
    """Return the effective number of parameters of each block, and the taus that follow from the fit."""
    effective, updated, end = [], [], 0
    for block, tau in zip(blocks, taus, strict=True):
        at = slice(end, end + len(block.mean))
        end = at.stop
        own = covariance[at] if covariance.ndim == 1 else covariance[at, at]
        gamma = max(len(block.mean) - float(np.sum(block.precision * own)) / tau, 0.0)
        off = theta[at] - block.mean
        pull = off * block.precision if block.precision.ndim == 1 else off @ block.precision
        effective.append(gamma)
        updated.append((block.freedom + pull @ off) / (block.freedom + gamma))
    return np.array(effective), np.clip(updated, MIN_TAU, MAX_TAU)
