"""The paper's protocol: the fits of a study, and the random seed of each.

A work unit is one subsample: N validation rows of a task, drawn at random, the same for all methods. It
depends only on the seed, the task's name, N and the number of the draw, not on the order of work or on the
rest of the study. If a task has no more than N rows, all are used: random methods are then fitted once for
each draw, and deterministic methods once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Method
from temperance.calibrators.external_methods import Methods, find_methods
from temperance.errors import InputError
from temperance.metrics.evaluation import MetricFunction
from temperance.study.tasks import TaskFile

PAPER_METHODS = ("ts", "ets", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-ece")

METHODS: tuple[str, ...] = (*PAPER_METHODS, *(key for key in CALIBRATORS if key not in PAPER_METHODS))
"""In the order of tables: the paper's methods, and then all others of the registry."""


class FitKey(NamedTuple):
    """The key of a result: one method on one subsample. The uncalibrated classifier has N = 0."""

    task: str
    n: int
    draw: int
    method: str


@dataclass(frozen=True)
class WorkUnit:
    """One subsample of a task, and the methods to fit to it.

    It includes the user's own methods and metrics.
    """

    task: TaskFile
    n: int
    draw: int
    seed: int
    methods: tuple[str, ...]
    outside_methods: Mapping[str, Method] = field(default_factory=dict)
    outside_metrics: Mapping[str, MetricFunction] = field(default_factory=dict)

    def calibrator(self, method: str) -> Any:
        """Build the unfitted calibrator of a method; None for the uncalibrated classifier."""
        if method == UNCALIBRATED:
            return None
        return (self.outside_methods.get(method) or CALIBRATORS[method]).seeded(self.random_state())

    def rows(self) -> NDArray[np.intp]:
        """Return the indices of the validation rows to fit to, in the order of the file."""
        if self.n >= self.task.rows:
            return np.arange(self.task.rows)
        return np.sort(self._chance(0).permutation(self.task.rows)[: self.n])

    def random_state(self) -> int:
        """Return the random seed of this unit's fits."""
        return int(self._chance(1).integers(2**31))

    def fits(self) -> list[FitKey]:
        """Return the names of the results."""
        return [FitKey(self.task.name, self.n, self.draw, method) for method in self.methods]

    def _chance(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, crc32(self.task.name.encode()), self.n, self.draw, purpose])


def plan(
    tasks: Sequence[TaskFile],
    methods: Mapping[str, Method],
    sizes: Sequence[int],
    draws: int,
    seed: int,
    done: Collection[FitKey] = (),
    metrics: Mapping[str, MetricFunction] | None = None,
) -> Iterator[WorkUnit]:
    """Yield the remaining work, draw by draw: a study that is stopped has all tasks, with fewer draws."""
    external_methods = {key: method for key, method in methods.items() if CALIBRATORS.get(key) is not method}
    external = external_methods, metrics or {}
    for task in tasks:
        yield from _left(WorkUnit(task, 0, 0, seed, (UNCALIBRATED,), *external), done)
    random = tuple(key for key, method in methods.items() if method.is_random)
    for draw in range(draws):
        for task in tasks:
            for n in sorted({min(size, task.rows) for size in sizes}):
                once_is_enough = draw > 0 and n == task.rows
                keys = random if once_is_enough else tuple(methods)
                yield from _left(WorkUnit(task, n, draw, seed, keys, *external), done)


def _left(unit: WorkUnit, done: Collection[FitKey]) -> Iterator[WorkUnit]:
    methods = tuple(fit.method for fit in unit.fits() if fit not in done)
    if methods:
        yield replace(unit, methods=methods)


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of methods in the order of tables, each once."""
    given = dict.fromkeys(names)
    return [*(key for key in METHODS if key in given), *(key for key in given if key not in METHODS)]


def study_methods(given: Methods | None) -> dict[str, Method]:
    """Return the methods to study by name, by default those of the registry that are meant for it."""
    chosen = find_methods([key for key in METHODS if CALIBRATORS[key].in_study] if given is None else given)
    if not chosen or UNCALIBRATED in chosen:
        raise InputError(
            f"methods must name at least one method, and not {UNCALIBRATED!r}, which is always studied."
        )
    return {key: chosen[key] for key in in_order(chosen)}
