"""Where a solver ended, and how; the caller decides whether to raise an error."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from temperance.core.arrays import Matrix, Vector


class Solver(StrEnum):
    """Which solver gave the result: Fisher scoring, or a fallback named by its reason."""

    FISHER = "Fisher scoring"
    LBFGS_MANY_PARAMETERS = "L-BFGS, for too many parameters"
    LBFGS_FEW_ROWS = "L-BFGS, for more parameters than rows"
    LBFGS_NO_DESCENT = "L-BFGS, as no step along the Fisher direction went down"
    LBFGS_KINKS = "L-BFGS, for a loss with kinks"
    SGD = "SGD"


class Status(StrEnum):
    """How a solver ended."""

    CONVERGED = "converged"
    STALLED = "no step lowered the loss"  # the end for a loss with kinks, whose gradient is never 0
    LEARNING_RATE_FLOOR = "the learning rate reached its floor"  # the end of the paper's schedule
    ITERATION_LIMIT = "stopped at the iteration limit"
    LINE_SEARCH_FAILED = "the line search failed"
    WIDTHS_UNSETTLED = "the widths of the prior did not settle"
    NOT_CONVERGED = "not converged"  # in a file without the reason


@dataclass(frozen=True)
class Solution:
    """The point that a solver found.

    `value` and `gradient_norm` belong to the last point that was evaluated. When converged, the parameters
    are one step further, and that step was predicted to lower the value by less than the tolerance.
    `covariance` is the inverse of the Fisher information of all rows, if it exists. `passes` counts how often
    all rows were read.
    """

    parameters: Vector
    value: float
    gradient_norm: float
    iterations: int
    passes: int
    status: Status
    solver: Solver = Solver.FISHER
    covariance: Matrix | None = None

    @property
    def converged(self) -> bool:
        """Whether the solver ended by its own criterion."""
        return self.status in (Status.CONVERGED, Status.STALLED, Status.LEARNING_RATE_FLOOR)

    @property
    def message(self) -> str:
        """Solver and status as text: "converged" for the usual end."""
        return str(self.status) if self.solver is Solver.FISHER else f"{self.solver}: {self.status}"

    @property
    def summary(self) -> str:
        """The message, and how much work it took."""
        return f"{self.message} (iterations: {self.iterations}, passes over the rows: {self.passes})"


def parse_message(message: str, *, converged: bool) -> tuple[Solver, Status]:
    """Return solver and status from the message in a file; an unknown message gives the plain status."""
    solver, colon, status = message.rpartition(": ")
    try:
        return Solver(solver) if colon else Solver.FISHER, Status(status)
    except ValueError:
        return Solver.FISHER, Status.CONVERGED if converged else Status.NOT_CONVERGED
