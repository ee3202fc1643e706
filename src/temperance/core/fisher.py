"""Fisher scoring: the one solver.

1. Evaluate.
2. Solve Fisher . step = -gradient.
3. If the decrease predicted without damping is below the tolerance, take the step and stop.
4. Try the full step, then halve it until Armijo's condition holds.
5. If only a small fraction satisfies it, damp the matrix and go on.
6. If no step lowers the value, L-BFGS takes over, and the result says so.

Many rows are solved on subsamples first: from the optimum of a tenth of the rows, two or three passes over
all rows suffice.

References
----------
.. [1] Nelder and Wedderburn (1972). Generalized linear models. doi:10.2307/2344614
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import minimize

from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import one_blas_thread
from temperance.core.objective import Objective, ObjectivePoint
from temperance.core.ops import NUMPY
from temperance.core.solution import Solution, Solver, Status

Bounds = tuple[Vector, Vector]

# Decreases of the mean loss that a step is predicted to bring.
TOLERANCE = 1e-12  # of the last step: 1e-6 standard errors with a million rows
ROUGH_TOLERANCE = 1e-7  # of the last step, in a fit that is only a start
NEAR_OPTIMUM = 1e-6  # below it, the next decreases can be extrapolated
SAME_BASIN = 1e-3  # below it, corrected steps cannot lead to another optimum

# The line search, and what corrects the Fisher matrix.
ARMIJO = 1e-4  # least share of the predicted decrease
MAX_HALVINGS = 25  # of a step; then the search has failed
MIN_FRACTION = 1 / 8  # of a step: below it, the Fisher matrix is damped
FIRST_DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-4, 1e-6, 1.0  # of a matrix whose diagonal is 1, by factors of 10
FIRST_RIDGE = 1e-12  # the same, where the matrix is not positive definite; then ten times as much, and so on
MAX_SECANTS = 5  # steps that are remembered
MIN_SECANT_COSINE = 1e-10  # of a step and the change of the gradient along it: a positive curvature
MAX_CORRECTION = 100.0  # of the predicted decrease, by secants
MIN_CURVATURE = 1e-200  # smaller counts as 0: its inverse, the variance, could overflow

# Subsamples that give the start, and the numbers of parameters for which no Fisher matrix is formed.
SUBSAMPLE_ROWS, ROWS_PER_PARAMETER = 1024, 20  # at least so many rows, and so many per parameter
MIN_THINNING = 4  # a larger part of the rows would not save much
MAX_LOSS_RATIO = 1.2  # on all rows to that on a subsample: above it, the subsample was overfitted
SMALL_FISHER = 500  # parameters; up to here the matrix is cheap, even where too few rows make it singular
MAX_FISHER = 4096  # parameters; beyond, the matrix costs more than the steps that it saves
MAX_LBFGS_ITERATIONS = 1000

_ENDINGS = {0: Status.CONVERGED, 1: Status.ITERATION_LIMIT}  # of SciPy's L-BFGS-B; else: no descent


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
    if n_parameters > MAX_FISHER:
        return lbfgs(objective, start, Solver.LBFGS_MANY_PARAMETERS, bounds)
    if n_parameters > max(n_rows, SMALL_FISHER):
        return lbfgs(objective, start, Solver.LBFGS_FEW_ROWS, bounds)
    few, step = _subsample(objective, n_parameters, n_rows)
    if step > 1:
        rough = solve(few, start, n_rows // step, max(tolerance, ROUGH_TOLERANCE), stall, bounds)
        value = objective(rough.parameters).value
        # Overfitted to the subsample, it can be worse on all rows than the initial values.
        if value <= MAX_LOSS_RATIO * rough.value or value <= objective(start).value:
            start = rough.parameters
    return fisher_scoring(objective, start, tolerance, stall, bounds)


def solve_from_each(
    objective: Objective, starts: Sequence[Vector], n_rows: int, bounds: Bounds | None = None
) -> list[Solution]:
    """Minimise from several starts; those that lead to the same valley of a subsample are followed once.

    Where rows are too few for a subsample, it is a rough fit to all of them that tells.
    """
    few, step = _subsample(objective, len(starts[0]), n_rows)
    distinct: list[Solution] = []
    for start in starts:
        end = solve(few, start, n_rows // step, ROUGH_TOLERANCE, bounds=bounds)
        others = []
        for other in distinct:
            # The ends of rough fits can be far apart where the valley is flat, as along a parameter without
            # effect: they are in one valley if the point between them is no higher.
            between = few((end.parameters + other.parameters) / 2).value
            if between > max(end.value, other.value) + ROUGH_TOLERANCE:
                others.append(other)
            elif other.value < end.value:
                end = other
        distinct = [*others, end]
    return [fisher_scoring(objective, end.parameters, bounds=bounds) for end in distinct]


def _subsample(objective: Objective, n_parameters: int, n_rows: int) -> tuple[Objective, int]:
    """Return the objective of one of n rows, and n; of all rows, and 1, where fewer would not save much."""
    step = min(objective.thinning, n_rows // max(SUBSAMPLE_ROWS, ROWS_PER_PARAMETER * n_parameters))
    few = objective.every(step) if step >= MIN_THINNING else objective
    return (few, step) if step >= MIN_THINNING and few.total_weight > 0 else (objective, 1)


def fisher_scoring(
    objective: Objective,
    start: Vector,
    tolerance: float = TOLERANCE,
    stall: float = 0.0,
    bounds: Bounds | None = None,
    max_iterations: int = 200,
) -> Solution:
    """Minimise `objective` from `start` by Fisher scoring with a line search.

    The search has converged if the next step is predicted to lower the value by at most `tolerance`, or if
    the step after it would be, should the predicted decreases keep falling at this rate. It also has if the
    last step lowered the value by less than `stall`, for objectives with kinks, where predictions are too
    high. Within `bounds`, a parameter at its bound stays there while the gradient pulls it outwards. Where a
    link is at its limit for all rows the gradient is 0: start inside, or give bounds. Without bounds, the
    last steps correct the matrix where it misjudges the curvature.
    """
    lower, upper = (np.full(len(start), -np.inf), np.full(len(start), np.inf)) if bounds is None else bounds
    theta = NUMPY.clip(start, lower, upper)
    here = objective(theta)
    decrease, before, damping, fraction = np.inf, None, 0.0, 1.0
    secants = _Secants() if bounds is None and len(start) > 1 else None
    for iteration in range(max_iterations):
        _, gradient, fisher = here
        assert fisher is not None
        free = ~((theta <= lower) & (gradient > 0) | (theta >= upper) & (gradient < 0))
        factor = _factorise(fisher, free, damping)
        downhill = np.where(free, gradient, 0.0)
        step = -(factor.solve(downhill) if secants is None else secants.solve(factor, downhill))
        predicted_fall = -float(gradient @ step) / 2
        plain, fall = factor, predicted_fall
        if damping > 0:
            # Damping shortens the step and adds curvature that the rows do not have: it must decide neither
            # the end nor the covariance.
            plain = _factorise(fisher, free, 0.0)
            before, fall = None, float(gradient @ plain.solve(downhill)) / 2
        close = _is_close(fall, before, tolerance, objective.order)
        if close or decrease < stall:
            return Solution(
                NUMPY.clip(theta + step, lower, upper) if close else theta,
                here.value,
                float(np.linalg.norm(gradient[free])),
                iteration,
                objective.passes,
                Status.CONVERGED,
                covariance=plain.covariance() / objective.total_weight,
            )
        found = _line_search(objective, theta, here, step, fraction, lower, upper)
        if found is None and damping >= MAX_DAMPING:
            return lbfgs(objective, theta, Solver.LBFGS_NO_DESCENT, bounds)
        fraction, moved, there = found or (0.0, theta, here)
        # As Levenberg and Marquardt do: damp if only a small fraction of the step was taken, else relax.
        if fraction < MIN_FRACTION:
            damping = max(10 * damping, FIRST_DAMPING)
        else:
            damping = damping / 10 if damping > MIN_DAMPING else 0.0
        decrease = here.value - there.value if fraction >= MIN_FRACTION else np.inf
        before = predicted_fall if fraction == 1 and secants is None else None  # corrected: uneven falls
        if secants is not None and fraction >= MIN_FRACTION and predicted_fall <= SAME_BASIN:
            secants.add(moved - theta, there.gradient - gradient)
        elif secants is not None:
            secants.forget()
        theta, here = moved, there
    norm = float(np.linalg.norm(here.gradient))
    return Solution(theta, here.value, norm, max_iterations, objective.passes, Status.ITERATION_LIMIT)


def _is_close(predicted_fall: float, before: float | None, tolerance: float, order: int) -> bool:
    """Say whether this step, or by extrapolation the next one, is the last worth taking."""
    falling = min(predicted_fall / before, 1.0) ** order if before else 1.0
    is_near = predicted_fall <= NEAR_OPTIMUM and predicted_fall * falling <= tolerance / 10**order
    return predicted_fall <= tolerance or is_near


class _Secants:
    """The last steps and the changes of the gradient along them, to correct the Fisher matrix.

    The Fisher matrix is the mean curvature if the model is correct. If it is not, the steps are too long or
    too short; BFGS corrections to the matrix at the current point repair that. Not for a single parameter:
    they would replace its matrix entirely by the curvature at an earlier point.
    """

    def __init__(self) -> None:
        self._pairs: list[tuple[Vector, Vector]] = []

    def add(self, step: Vector, change: Vector) -> None:
        """Store a step along which the curvature is positive; drop the oldest."""
        if step @ change > MIN_SECANT_COSINE * np.linalg.norm(step) * np.linalg.norm(change):
            self._pairs = [*self._pairs[1 - MAX_SECANTS :], (step, change)]

    def forget(self) -> None:
        """Start again: corrections that make a step too long are worse than none."""
        self._pairs = []

    def solve(self, factor: _Factor, gradient: Vector) -> Vector:
        """Return the inverse of the Fisher matrix times the gradient, corrected by a limited factor."""
        plain = factor.solve(gradient)
        if not self._pairs:
            return plain
        with np.errstate(over="ignore", invalid="ignore"):  # logits near the largest that can be fitted
            rest, parts = gradient, []
            for step, change in reversed(self._pairs):
                parts.append((step @ rest) / (step @ change))
                rest = rest - parts[-1] * change
            corrected = factor.solve(rest)
            for (step, change), part in zip(self._pairs, reversed(parts), strict=True):
                corrected = corrected + (part - (change @ corrected) / (step @ change)) * step
            fall, usual = float(gradient @ corrected), float(gradient @ plain)
        return corrected if usual / MAX_CORRECTION < fall < MAX_CORRECTION * usual else plain


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
    scale = 1 / np.sqrt(np.where(diagonal > MIN_CURVATURE, diagonal, 1.0))
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
        ridge = max(10 * ridge, FIRST_RIDGE)


def _line_search(
    objective: Objective,
    theta: Vector,
    here: ObjectivePoint,
    step: Vector,
    last: float,
    lower: Vector,
    upper: Vector,
) -> tuple[float, Vector, ObjectivePoint] | None:
    """Return the first of 1, 1/2, 1/4, ... of the step that satisfies Armijo, and the point there.

    Near a kink one short step follows another: if only a small fraction was taken `last`, do not begin with
    the full step.
    """
    slack = objective.noise * abs(here.value)
    fraction = min(1.0, last / MIN_FRACTION) or 1.0
    for _ in range(MAX_HALVINGS):
        moved = NUMPY.clip(theta + fraction * step, lower, upper)
        with np.errstate(over="ignore", invalid="ignore"):  # of a step too long, which is halved
            there = objective(moved, with_fisher=fraction == last == 1)  # otherwise it is often rejected
            if there.value <= here.value + ARMIJO * float(here.gradient @ (moved - theta)) + slack:
                return fraction, moved, objective(moved)
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

    Where the loss has kinks or jumps, a line search can end above its start: the result is then the lowest
    point that was visited.
    """
    lowest = np.inf, start, start

    def value_and_gradient(at: Vector) -> tuple[float, Vector]:
        nonlocal lowest
        here = objective(at * scale, with_fisher=False)
        if here.value < lowest[0]:
            lowest = here.value, at.copy(), here.gradient * scale
        return here.value, here.gradient * scale

    options = {"ftol": stall, "gtol": tolerance, "maxiter": MAX_LBFGS_ITERATIONS}
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
