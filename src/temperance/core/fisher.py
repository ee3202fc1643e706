"""Fisher scoring: the one solver.

Order of steps: (1) evaluate; (2) solve Fisher . step = -gradient; (3) if the predicted decrease is below the
tolerance, take the step and stop; (4) try the full step, then halve it until Armijo's condition holds; (5) if
only a small fraction satisfies it, damp the matrix and go on; (6) if no step lowers the value, L-BFGS takes
over, and the result says so. Many rows are solved on subsamples first: from the optimum of
a tenth of the rows, two or three passes over all rows suffice.

References
----------
.. [1] Nelder and Wedderburn (1972). Generalized linear models. doi:10.2307/2344614
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import minimize

from temperance.core.arrays import Matrix, Vector
from temperance.core.objective import ObjectivePoint
from temperance.core.solution import Solution, Solver, Status
from temperance.core.threads import one_blas_thread

Bounds = tuple[Vector, Vector]

TOLERANCE = 1e-12  # of the predicted decrease: 1e-6 standard errors with a million rows
NEAR = 1e-6  # below this predicted decrease, the next ones can be extrapolated
ARMIJO = 1e-4
HALVINGS = 25
LEAST_FRACTION = 1 / 8  # of a step: below it, the Fisher matrix is damped
MOST_DAMPING = 1.0
MOST_SECANTS = 5
SUBSAMPLE_ROWS = 1024
LEAST_THINNING = 4
MOST_CORRECTION = 100.0  # of the predicted decrease
SAME_BASIN = 1e-3  # predicted decrease below which corrected steps cannot lead to another optimum
ROUGH = 1e-7  # tolerance of a fit that is only a start
ROWS_PER_PARAMETER = 20
SUSPICIOUS = 1.2  # ratio of the value on all rows to that on a subsample, at the optimum of the subsample
LEAST_CURVATURE = 1e-200  # smaller counts as 0: its inverse, the variance, could overflow
SMALL_FISHER = 500  # parameters; up to here the matrix is cheap, even where too few rows make it singular
LARGEST_FISHER = 4096  # parameters; beyond, the matrix costs more than the steps that it saves

_ENDINGS = {0: Status.CONVERGED, 1: Status.ITERATION_LIMIT}  # of SciPy's L-BFGS-B; else: no descent


class Objective(Protocol):
    """A sum over rows that can be evaluated at a point, and subsampled."""

    noise: float  # relative error of a value
    total_weight: float
    thinning: int  # a subsample keeps at least one row in so many

    @property
    def passes(self) -> int:
        """How often the rows have been read so far."""
        ...

    @property
    def order(self) -> int:
        """Order of convergence: 2 if the Fisher matrix is the second derivative at the optimum, else 1."""
        ...

    def every(self, step: int) -> Objective:
        """Return the objective of every `step`-th row."""
        ...

    def __call__(self, theta: Vector) -> ObjectivePoint:
        """Evaluate at `theta`."""
        ...


def solve(
    objective: Objective,
    start: Vector,
    n_rows: int,
    tolerance: float = TOLERANCE,
    stall: float = 0.0,
    bounds: Bounds | None = None,
) -> Solution:
    """Minimise from `start`: on ever larger subsamples where there are many rows, then on all of them."""
    n_parameters = len(start)
    if n_parameters > LARGEST_FISHER:
        return lbfgs(objective, start, Solver.LBFGS_MANY_PARAMETERS, bounds)
    if n_parameters > max(n_rows, SMALL_FISHER):
        return lbfgs(objective, start, Solver.LBFGS_FEW_ROWS, bounds)
    few, step = _subsample(objective, n_parameters, n_rows)
    if step > 1:
        rough = solve(few, start, n_rows // step, max(tolerance, ROUGH), stall, bounds)
        there = objective(rough.parameters)
        if there.value > SUSPICIOUS * rough.value:
            # Overfitted to the subsample, and perhaps worse on all rows than the initial values.
            here = objective(start)
            if here.value < there.value:
                return fisher_scoring(objective, start, tolerance, stall, bounds, here=here)
        start, known = rough.parameters, there
    else:
        known = None
    return fisher_scoring(objective, start, tolerance, stall, bounds, here=known)


def solve_from_each(
    objective: Objective, starts: Sequence[Vector], n_rows: int, bounds: Bounds | None = None
) -> list[Solution]:
    """Minimise from several starts; those that lead to the same valley of a subsample are followed once.

    Where rows are too few for a subsample, it is a rough fit to all of them that tells.
    """
    few, step = _subsample(objective, len(starts[0]), n_rows)
    distinct: list[Solution] = []
    for start in starts:
        end = solve(few, start, n_rows // step, ROUGH, bounds=bounds)
        others = []
        for other in distinct:
            if not _in_one_valley(few, end, other):
                others.append(other)
            elif other.value < end.value:
                end = other
        distinct = [*others, end]
    return [fisher_scoring(objective, end.parameters, bounds=bounds) for end in distinct]


def _in_one_valley(objective: Objective, one: Solution, other: Solution) -> bool:
    """Say whether the point between two ends is no higher than they are.

    The ends of rough fits may be far apart where the valley is flat, as along a parameter without effect.
    """
    between = objective((one.parameters + other.parameters) / 2)
    return between.value <= max(one.value, other.value) + ROUGH


def _subsample(objective: Objective, n_parameters: int, n_rows: int) -> tuple[Objective, int]:
    """Return the objective of every n-th row, and n; of all rows, and 1, where fewer would not save much."""
    step = min(objective.thinning, n_rows // max(SUBSAMPLE_ROWS, ROWS_PER_PARAMETER * n_parameters))
    few = objective.every(step) if step >= LEAST_THINNING else objective
    return (few, step) if step >= LEAST_THINNING and few.total_weight > 0 else (objective, 1)


def fisher_scoring(
    objective: Objective,
    start: Vector,
    tolerance: float = TOLERANCE,
    stall: float = 0.0,
    bounds: Bounds | None = None,
    max_iterations: int = 200,
    here: ObjectivePoint | None = None,
) -> Solution:
    """Minimise `objective` from `start` by Fisher scoring with a line search.

    Converged means that the next step is predicted to lower the value by at most `tolerance`; or that the one
    after it would be, if the predicted decreases keep falling at this rate; or that the last step lowered the
    value by less than `stall` (for objectives with kinks, where predictions are too high). Within `bounds`, a
    parameter at its bound stays there while the gradient pulls it outwards. Where a link is at its limit for
    all rows the gradient is 0: start inside, or give bounds. `here` is the evaluation at the start, if known.
    Without bounds, the last steps correct the matrix where it misjudges the curvature.
    """
    lower, upper = (np.full(len(start), -np.inf), np.full(len(start), np.inf)) if bounds is None else bounds
    theta = _clipped(start, lower, upper)
    here = here or objective(theta)
    decrease, before, damping, fraction = np.inf, None, 0.0, 1.0
    secants = _Secants() if bounds is None and len(start) > 1 else None
    for iteration in range(max_iterations):
        gradient, fisher = here.derivatives
        free = ~((theta <= lower) & (gradient > 0) | (theta >= upper) & (gradient < 0))
        factor = _factorise(fisher, free, damping)
        downhill = np.where(free, gradient, 0.0)
        step = -(factor.solve(downhill) if secants is None else secants.solve(factor, downhill))
        predicted_fall = -float(gradient @ step) / 2
        close = _is_close(predicted_fall, before, tolerance, objective.order)
        if close or decrease < stall:
            return Solution(
                _clipped(theta + step, lower, upper) if close else theta,
                here.value,
                float(np.linalg.norm(gradient[free])),
                iteration,
                objective.passes,
                Status.CONVERGED,
                covariance=factor.covariance() / objective.total_weight,
            )
        # Near a kink one short step follows another: do not begin each search with the full step.
        first = min(1.0, fraction / LEAST_FRACTION) or 1.0
        found = _line_search(objective, theta, here, first * step, lower, upper)
        if found is None and damping >= MOST_DAMPING:
            return lbfgs(objective, theta, Solver.LBFGS_NO_DESCENT, bounds)
        fraction, moved, there = found or (0.0, theta, here)
        fraction *= first
        damping = _adapt(damping, fraction)
        decrease = here.value - there.value if fraction >= LEAST_FRACTION else np.inf
        before = predicted_fall if fraction == 1 and secants is None else None  # corrected: uneven falls
        if secants is not None and fraction >= LEAST_FRACTION and predicted_fall <= SAME_BASIN:
            secants.add(moved - theta, there.derivatives[0] - gradient)
        elif secants is not None:
            secants.forget()
        theta, here = moved, there
    norm = float(np.linalg.norm(here.gradient))
    return Solution(theta, here.value, norm, max_iterations, objective.passes, Status.ITERATION_LIMIT)


def _clipped(theta: Vector, lower: Vector, upper: Vector) -> Vector:
    """Return theta within its bounds; for few numbers np.clip takes several times as long."""
    return np.minimum(np.maximum(theta, lower), upper)


def _is_close(predicted_fall: float, before: float | None, tolerance: float, order: int) -> bool:
    """Say whether this step, or by extrapolation the next one, is the last worth taking."""
    falling = min(predicted_fall / before, 1.0) ** order if before else 1.0
    is_near = predicted_fall <= NEAR and predicted_fall * falling <= tolerance / 10**order
    return predicted_fall <= tolerance or is_near


def _adapt(damping: float, fraction: float) -> float:
    """Damp, as Levenberg and Marquardt do, if only a small fraction of the step was taken; else relax."""
    if fraction < LEAST_FRACTION:
        return max(10 * damping, 1e-4)
    return damping / 10 if damping > 1e-6 else 0.0


class _Secants:
    """The last steps and the changes of the gradient along them, to correct the Fisher matrix.

    The Fisher matrix is the mean curvature if the model is right. If it is not, the steps are too long or
    too short; BFGS corrections to the matrix at the current point repair that. Not for a single parameter:
    they would replace its matrix entirely by the curvature at an earlier point.
    """

    def __init__(self) -> None:
        self._pairs: list[tuple[Vector, Vector]] = []

    def add(self, step: Vector, change: Vector) -> None:
        """Store a step along which the curvature is positive; drop the oldest."""
        if step @ change > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            self._pairs = [*self._pairs[1 - MOST_SECANTS :], (step, change)]

    def forget(self) -> None:
        """Start again: corrections that make a step too long are worse than none."""
        self._pairs = []

    def solve(self, factor: _Factor, gradient: Vector) -> Vector:
        """Return the inverse of the Fisher matrix times the gradient, corrected by a limited factor."""
        plain = factor.solve(gradient)
        if not self._pairs:
            return plain
        with np.errstate(over="ignore", invalid="ignore"):  # logits near the largest that can be fitted
            corrected = self._corrected(factor, gradient)
            fall, usual = float(gradient @ corrected), float(gradient @ plain)
        return corrected if usual / MOST_CORRECTION < fall < MOST_CORRECTION * usual else plain

    def _corrected(self, factor: _Factor, gradient: Vector) -> Vector:
        rest, parts = gradient, []
        for step, change in reversed(self._pairs):
            parts.append((step @ rest) / (step @ change))
            rest = rest - parts[-1] * change
        result = factor.solve(rest)
        for (step, change), part in zip(self._pairs, reversed(parts), strict=True):
            result = result + (part - (change @ result) / (step @ change)) * step
        return result


@dataclass(frozen=True)
class _Factor:
    """Cholesky factor of the free parameters' Fisher matrix, and the scale that made its diagonal 1."""

    cholesky: Matrix
    scale: Vector
    free: NDArray[np.bool_]

    def solve(self, right: Matrix) -> Matrix:
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        solved, _ = dpotrs(self.cholesky, right * scale, lower=1)
        return np.asarray(solved * scale)

    def covariance(self) -> Matrix:
        """Return the inverse, with 0 for parameters held at a bound."""
        return self.solve(np.eye(len(self.free))) * self.free * self.free[:, None]


def _factorise(fisher: Matrix, free: NDArray[np.bool_], damping: float) -> _Factor:
    """Factorise with damping on the diagonal, or with as little as makes the matrix positive definite."""
    diagonal = fisher.diagonal()
    # A parameter that no longer affects any row has no curvature: its gradient is 0, so it stays put.
    scale = 1 / np.sqrt(np.where(diagonal > LEAST_CURVATURE, diagonal, 1.0))
    ridge = damping
    while True:
        scaled = fisher * scale
        scaled *= scale[:, None]
        if not free.all():
            scaled = np.where(free & free[:, None], scaled, np.eye(len(free)))
        if not np.isfinite(scaled).all():
            raise ValueError("the Fisher matrix must be finite")  # no ridge would make it definite
        scaled.reshape(-1)[:: len(free) + 1] += ridge
        # LAPACK itself: SciPy's checks take longer than a small matrix. It wants columns; this is symmetric.
        lower, failed = dpotrf(scaled.T, lower=1, overwrite_a=1)
        if not failed:
            return _Factor(lower, scale, free)
        ridge = max(10 * ridge, 1e-12)


def _line_search(
    objective: Objective, theta: Vector, here: ObjectivePoint, step: Vector, lower: Vector, upper: Vector
) -> tuple[float, Vector, ObjectivePoint] | None:
    """Return the first of 1, 1/2, 1/4, ... of the step that satisfies Armijo, and the point there."""
    gradient = here.derivatives[0]
    slack = objective.noise * abs(here.value)
    fraction = 1.0
    for _ in range(HALVINGS):
        moved = _clipped(theta + fraction * step, lower, upper)
        with np.errstate(over="ignore", invalid="ignore"):  # of a step too long, which is halved
            there = objective(moved)
        if there.value <= here.value + ARMIJO * float(gradient @ (moved - theta)) + slack:
            return fraction, moved, there
        fraction /= 2
    return None


def lbfgs(
    objective: Objective,
    start: Vector,
    reason: Solver,
    bounds: Bounds | None = None,
    scale: Vector | float = 1.0,
    tolerance: float = 1e-8,
    stall: float = 1e-12,
) -> Solution:
    """Minimise from `start` by gradients alone, for the `reason` in the solver's name.

    Each parameter is measured in units of its `scale`, ideally 1 / sqrt(its second derivative). The
    `tolerance` applies to each derivative with respect to the scaled parameters. A step that lowers the value
    by less than `stall`, or than that share of a value above 1, is the last.

    Where the loss has kinks or jumps, a line search may end above its start: the result is then the lowest
    point that was visited.
    """
    lowest = np.inf, start, start

    def value_and_gradient(at: Vector) -> tuple[float, Vector]:
        nonlocal lowest
        here = objective(at * scale)
        if here.value < lowest[0]:
            lowest = here.value, at.copy(), here.gradient * scale
        return here.value, here.gradient * scale

    options = {"ftol": stall, "gtol": tolerance, "maxiter": 1000}
    box = None if bounds is None else list(zip(*(bound / scale for bound in bounds), strict=True))
    with one_blas_thread:  # on vectors this short, threads of the library cost more than they save
        result = minimize(
            value_and_gradient, start / scale, jac=True, method="L-BFGS-B", bounds=box, options=options
        )
    has_kinks = reason is Solver.LBFGS_KINKS
    value, end, gradient = lowest if has_kinks else (result.fun, result.x, result.jac)
    stuck = Status.STALLED if has_kinks else Status.LINE_SEARCH_FAILED
    return Solution(
        parameters=np.asarray(end * scale),
        value=float(value),
        gradient_norm=float(np.linalg.norm(gradient / scale)),
        iterations=int(result.nit),
        passes=objective.passes,
        status=_ENDINGS.get(result.status, stuck),
        solver=reason,
    )
