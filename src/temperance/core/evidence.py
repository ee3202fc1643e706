"""Coefficients in blocks, each with a prior whose width the data choose.

    theta_b ~ N(m_b, tau_b S_b),      tau_b ~ inverse gamma, of scale 1 and `freedom` nu_b

Integrated over tau_b that is a multivariate t: near the mean a block is held as tightly as S_b says, and far
from it hardly at all. Given the taus the posterior mode is a penalised fit. Given the fit,

    tau_b <- (nu_b + |theta_b - m_b|^2_S) / (nu_b + gamma_b),      gamma_b = n_b - tr(S_b^-1 C_bb) / tau_b

maximises the evidence, with C the posterior covariance and gamma_b the effective number of parameters: how
many directions of the block the rows decide. The two steps alternate until the taus stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.linalg import block_diag

from temperance.core.arrays import Matrix, Vector
from temperance.core.fisher import Objective, fisher_scoring
from temperance.core.objective import Prior
from temperance.core.solution import Solution, Status

ROUNDS = 25
ROUND_ITERATIONS = 15  # of the solver; where it needs more, the next round goes on with it
FULL_ROUNDS = 8  # widths that still change then may go round in circles: from there on, half of each change
SETTLED = 0.03  # a relative change of every tau that ends the rounds
ROUND_TOLERANCE = 0.02  # of the log posterior, in a fit whose taus will change; the last one is exact
# Widths are chosen on so many rows, or rows per parameter, at most; coefficients on all.
WIDTH_ROWS, WIDTH_ROWS_PER_PARAMETER = 1024, 8
LEAST_SCALE, LARGEST_SCALE = 1e-4, 1e6


class PenalisedObjective(Objective, Protocol):
    """An objective whose prior can be exchanged."""

    def with_prior(self, prior: Prior) -> Self:
        """Return the same with another prior."""
        ...

    def every(self, step: int) -> Self:
        """Return the objective of every `step`-th row."""
        ...


@dataclass(frozen=True)
class Block:
    """Neighbouring coefficients that share a prior: its mean, its precision where tau is 1, its freedom."""

    name: str
    mean: Vector
    precision: Matrix
    freedom: float

    @classmethod
    def of_scale(cls, name: str, size: int, scale: float, freedom: float) -> Block:
        """Return independent coefficients around 0 with the standard deviation `scale`."""
        return cls(name, np.zeros(size), np.eye(size) / scale**2, freedom)


@dataclass(frozen=True)
class Posterior:
    """The posterior mode, its covariance, and by block tau and the effective number of parameters."""

    mode: Vector
    covariance: Matrix
    taus: dict[str, float]
    effective: dict[str, float]
    solution: Solution


def maximise_evidence(
    objective: PenalisedObjective,
    blocks: list[Block],
    start: Vector,
    n_rows: int,
    first_tau: float = 1.0,
    width_rows: int = WIDTH_ROWS,
) -> Posterior:
    """Alternate between coefficients and widths of the blocks, which follow each other in theta.

    `first_tau` is where the width of the first block begins. A prior with heavy tails and rows that disagree
    with it can have a mode each, and where the rounds begin decides which they find. Widths are chosen on
    about `width_rows` evenly spaced rows.
    """
    taus = np.ones(len(blocks))
    taus[0] = first_tau
    step = n_rows // max(width_rows, WIDTH_ROWS_PER_PARAMETER * len(start))
    few = objective.every(step) if step >= 2 else objective
    thinned = step >= 2 and few.total_weight > 0
    start, taus, settled = _rounds(few if thinned else objective, blocks, start, taus)
    fitted = objective.with_prior(_prior(blocks, taus, objective.total_weight))
    solution = fisher_scoring(fitted, start, correct=True)
    if solution.converged and not settled:
        solution = replace(solution, status=Status.WIDTHS_UNSETTLED)
    covariance = _covariance(fitted, solution)
    sizes = _effective(blocks, taus, covariance)
    names = [block.name for block in blocks]
    return Posterior(
        solution.parameters,
        covariance,
        dict(zip(names, taus.tolist(), strict=True)),
        dict(zip(names, sizes.tolist(), strict=True)),
        solution,
    )


def _rounds(
    objective: PenalisedObjective, blocks: list[Block], theta: Vector, taus: Vector
) -> tuple[Vector, Vector, bool]:
    """Return coefficients, widths, and whether the widths have settled."""
    tolerance = ROUND_TOLERANCE / objective.total_weight
    for number in range(ROUNDS):
        fitted = objective.with_prior(_prior(blocks, taus, objective.total_weight))
        solution = fisher_scoring(fitted, theta, tolerance, max_iterations=ROUND_ITERATIONS, correct=True)
        theta = solution.parameters
        before, taus = taus, _updated(blocks, taus, theta, _covariance(fitted, solution))
        if number >= FULL_ROUNDS:
            taus = np.sqrt(before * taus)
        if np.abs(np.log(taus / before)).max() < SETTLED:
            return theta, taus, True
    return theta, taus, False


def _prior(blocks: list[Block], taus: Vector, total_weight: float) -> Prior:
    precision = block_diag(*(block.precision / tau for block, tau in zip(blocks, taus, strict=True)))
    return Prior(np.concatenate([block.mean for block in blocks]), precision / total_weight)


def _covariance(objective: Objective, solution: Solution) -> Matrix:
    if solution.covariance is not None:
        return solution.covariance
    _, fisher = objective(solution.parameters).derivatives  # the solver went on without the matrix
    return np.asarray(np.linalg.inv(fisher) / objective.total_weight, np.float64)


def _slices(blocks: list[Block]) -> list[slice]:
    ends = np.cumsum([len(block.mean) for block in blocks])
    return [slice(end - len(block.mean), end) for block, end in zip(blocks, ends, strict=True)]


def _effective(blocks: list[Block], taus: Vector, covariance: Matrix) -> Vector:
    """Return the effective number of parameters of each block."""
    used = [
        len(block.mean) - float(np.sum(block.precision * covariance[at, at])) / tau
        for block, tau, at in zip(blocks, taus, _slices(blocks), strict=True)
    ]
    return np.maximum(np.array(used), 0.0)


def _updated(blocks: list[Block], taus: Vector, theta: Vector, covariance: Matrix) -> Vector:
    result = []
    for block, at, gamma in zip(blocks, _slices(blocks), _effective(blocks, taus, covariance), strict=True):
        off = theta[at] - block.mean
        result.append((block.freedom + off @ block.precision @ off) / (block.freedom + gamma))
    return np.clip(result, LEAST_SCALE, LARGEST_SCALE)
