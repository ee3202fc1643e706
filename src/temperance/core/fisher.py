"""Fisher scoring: the one solver.

Order of steps: (1) evaluate; (2) solve Fisher . step = -gradient; (3) when the step promises less than the
tolerance, take it and stop; (4) try the full step, then halves of it, until Armijo's condition holds; (5) if
none does, L-BFGS takes over, and the result says so. Many rows are solved on a subsample first: the optimum
of a few thousand rows is a start from which two or three passes over all rows suffice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize

from temperance.core.objective import Evaluation

__all__ = ["Objective", "Solution", "fisher_scoring", "lbfgs", "solve"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

TOLERANCE = 1e-12  # of the promised decrease: 1e-6 standard errors with a million rows
ARMIJO = 1e-4
HALVINGS = 25
SUBSAMPLE_ROWS = 4096
ROWS_PER_PARAMETER = 20
LARGEST_FISHER = 4096  # parameters; beyond, the matrix costs more than the steps that it saves


class Objective(Protocol):
    """A sum over rows that can be evaluated at a point, and thinned out."""

    n_parameters: int
    noise: float  # relative error of a value
    total_weight: float

    @property
    def passes(self) -> int:
        """How often the rows were read so far."""
        ...

    def every(self, step: int) -> Objective:
        """Return the objective of every `step`-th row."""
        ...

    def __call__(self, theta: Vector) -> Evaluation:
        """Evaluate at `theta`."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where the solver ended, and how.

    `value` and `gradient_norm` are those of the last point that was evaluated; when converged, the
    parameters are one step further, and that step promised to lower the value by less than the tolerance.
    `covariance` is the inverse of the Fisher information of all rows, where it exists.
    """

    parameters: Vector
    value: float
    gradient_norm: float
    iterations: int
    passes: int
    converged: bool
    message: str
    covariance: Matrix | None = None


def solve(
    objective: Objective, start: Vector, n_rows: int, tolerance: float = TOLERANCE, stall: float = 0.0
) -> Solution:
    """Minimise from `start`: on a subsample where there are many rows, then on all of them."""
    if objective.n_parameters > LARGEST_FISHER:
        return lbfgs(objective, start, f"L-BFGS, for more than {LARGEST_FISHER} parameters")
    step = n_rows // max(SUBSAMPLE_ROWS, ROWS_PER_PARAMETER * objective.n_parameters)
    if step >= 4:
        start = fisher_scoring(objective.every(step), start, max(tolerance, 1e-7), stall).parameters
    return fisher_scoring(objective, start, tolerance, stall)


def fisher_scoring(
    objective: Objective,
    start: Vector,
    tolerance: float = TOLERANCE,
    stall: float = 0.0,
    max_iterations: int = 200,
) -> Solution:
    """Minimise `objective` from `start` by Fisher scoring with a line search.

    Converged means that the next step promises to lower the value by at most `tolerance`, or that the last
    one did lower it by less than `stall` (for objectives with kinks, which promise more than they keep).
    """
    theta, here = start, objective(start)
    decrease = np.inf
    for iteration in range(max_iterations):
        gradient, fisher = here.derivatives
        factor = _factorise(fisher)
        step = -factor.solve(gradient)
        promised = -float(gradient @ step) / 2
        if promised <= tolerance or decrease < stall:
            return Solution(
                theta + step if promised <= tolerance else theta,
                here.value,
                float(np.linalg.norm(gradient)),
                iteration,
                objective.passes,
                converged=True,
                message="converged",
                covariance=factor.solve(np.eye(len(theta))) / objective.total_weight,
            )
        found = _line_search(objective, theta, here, step)
        if found is None:
            return lbfgs(objective, theta, "L-BFGS, as no step along the Fisher direction went down")
        decrease = here.value - found[1].value
        theta, here = found
    norm = float(np.linalg.norm(here.derivatives[0]))
    message = f"not converged after {max_iterations} iterations"
    return Solution(
        theta, here.value, norm, max_iterations, objective.passes, converged=False, message=message
    )


@dataclass(frozen=True)
class _Factor:
    """Cholesky factor of the Fisher matrix with its diagonal scaled to 1, and that scale."""

    cholesky: Matrix
    scale: Vector

    def solve(self, right: Matrix) -> Matrix:
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        return np.asarray(cho_solve((self.cholesky, True), right * scale) * scale)


def _factorise(fisher: Matrix) -> _Factor:
    """Factorise, adding to the diagonal as little as makes the matrix positive definite."""
    diagonal = fisher.diagonal()
    # A parameter that no row depends on any more has no curvature: its gradient is 0 and it stays.
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = fisher * scale * scale[:, None]
    ridge = 0.0
    while True:
        try:
            lower = cholesky(scaled + ridge * np.eye(len(scaled)), lower=True)
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-12)
        else:
            return _Factor(lower, scale)


def _line_search(
    objective: Objective, theta: Vector, here: Evaluation, step: Vector
) -> tuple[Vector, Evaluation] | None:
    slope = float(here.derivatives[0] @ step)
    slack = objective.noise * abs(here.value)
    fraction = 1.0
    for _ in range(HALVINGS):
        there = objective(theta + fraction * step)
        if there.value <= here.value + ARMIJO * fraction * slope + slack:
            return theta + fraction * step, there
        fraction /= 2
    return None


def lbfgs(objective: Objective, start: Vector, reason: str) -> Solution:
    """Minimise from `start` by gradients alone; the message begins with the `reason`."""

    def value_and_gradient(at: Vector) -> tuple[float, Vector]:
        here = objective(at)
        return here.value, here.gradient

    options = {"ftol": 1e-12, "gtol": 1e-8, "maxiter": 1000}
    result = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    return Solution(
        parameters=np.asarray(result.x),
        value=float(result.fun),
        gradient_norm=float(np.linalg.norm(result.jac)),
        iterations=int(result.nit),
        passes=objective.passes,
        converged=bool(result.success),
        message=f"{reason}: {result.message}",
    )
