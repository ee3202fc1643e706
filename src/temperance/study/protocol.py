"""The paper's protocol: the fits of a study, the random seed of each, and its scores.

A work unit is one subsample: N validation rows of a task, drawn at random, the same for all methods. It
depends only on the seed, the task's name, N and the number of the draw, not on the order of work or on the
rest of the study. If a task has at most N rows, all are used: random methods are then fitted once per draw,
and deterministic methods only once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Method
from temperance.calibrators.external_methods import Methods, find_methods, fit
from temperance.comparison.rows import predict
from temperance.core.arrays import Indices, Matrix
from temperance.errors import InputError
from temperance.inputs.containers import LabelledRows
from temperance.metrics.bins import bin_rows
from temperance.metrics.evaluation import MetricFunction, value_of
from temperance.metrics.predictions import check_rows
from temperance.study.tasks import TaskFile, load_task

PAPER_METHODS = ("ts", "ets", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-ece")

METHODS: tuple[str, ...] = (*PAPER_METHODS, *(key for key in CALIBRATORS if key not in PAPER_METHODS))
"""In the order of tables: the paper's methods, then all others of the registry."""


class FitKey(NamedTuple):
    """The key of a result: one method on one subsample. The uncalibrated classifier has N = 0."""

    task: str
    n: int
    draw: int
    method: str


@dataclass(frozen=True)
class Score:
    """The scores of a fit. If it failed, they are nan, and `message` has the reason."""

    fit: FitKey
    ece50: float = float("nan")
    ece15: float = float("nan")
    nll: float = float("nan")
    brier: float = float("nan")
    converged: bool = False
    iterations: int = 0
    message: str = ""
    fit_seconds: float = field(default=0.0, compare=False)
    apply_seconds: float = field(default=0.0, compare=False)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Scores of the user's own metrics, by name."""

    @classmethod
    def columns(cls) -> list[str]:
        """Return the columns of a result in the store, besides its key and the user's own metrics."""
        return [column.name for column in fields(cls) if column.name not in ("fit", "metrics")]

    @classmethod
    def numbers(cls) -> list[str]:
        """Return the columns that hold floats."""
        return [column.name for column in fields(cls) if column.type == "float"]


@dataclass(frozen=True)
class WorkUnit:
    """One subsample of a task, the methods to fit to it, and the user's own metrics.

    The uncalibrated classifier is `none`, without a method.
    """

    task: TaskFile
    n: int
    draw: int
    seed: int
    methods: Mapping[str, Method | None]
    metrics: Mapping[str, MetricFunction] = field(default_factory=dict)

    def calibrator(self, method: str) -> Any:
        """Build the unfitted calibrator of a method; None for the uncalibrated classifier."""
        chosen = self.methods[method]
        return None if chosen is None else chosen.seeded(self.random_state())

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
    """Yield the remaining work, draw by draw, so that a stopped study has all tasks, with fewer draws."""
    for task in tasks:
        yield from _left(WorkUnit(task, 0, 0, seed, {UNCALIBRATED: None}, metrics or {}), done)
    random = {key: method for key, method in methods.items() if method.is_random}
    for draw in range(draws):
        for task in tasks:
            for n in sorted({min(size, task.rows) for size in sizes}):
                once_is_enough = draw > 0 and n == task.rows
                fitted = random if once_is_enough else methods
                yield from _left(WorkUnit(task, n, draw, seed, fitted, metrics or {}), done)


def _left(unit: WorkUnit, done: Collection[FitKey]) -> Iterator[WorkUnit]:
    methods = {fit.method: unit.methods[fit.method] for fit in unit.fits() if fit not in done}
    if methods:
        yield replace(unit, methods=methods)


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of methods in the order of tables, each once."""
    given = dict.fromkeys(names)
    return [*(key for key in METHODS if key in given), *(key for key in given if key not in METHODS)]


def study_methods(given: Methods | None) -> dict[str, Method]:
    """Return the methods to study by name, by default the registry's methods for studies."""
    chosen = find_methods([key for key in METHODS if CALIBRATORS[key].in_study] if given is None else given)
    if not chosen or UNCALIBRATED in chosen:
        raise InputError(
            f"methods must name at least one method, and not {UNCALIBRATED!r}, which is always studied."
        )
    return {key: chosen[key] for key in in_order(chosen)}


def run_work_unit(unit: WorkUnit) -> list[Score]:
    """Fit and score all methods of a work unit."""
    task = load_task(unit.task)
    rows = task.val.take(unit.rows()) if unit.n else task.val
    return [_run(fit, unit, rows, task.test) for fit in unit.fits()]


def _run(key: FitKey, unit: WorkUnit, rows: LabelledRows, test: LabelledRows) -> Score:
    calibrator, began = unit.calibrator(key.method), time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every fit to few rows would warn; here the scores show it
            if calibrator is not None:
                fit(calibrator, rows.logits, rows.labels, positions=rows.positions)
            fitted = time.perf_counter()
            probs = predict(calibrator, test.logits)
            ended = time.perf_counter()
            scores = _scores(unit, probs, test.labels)
    except (ImportError, MemoryError):
        raise  # the machine's fault, not the method's
    except Exception as error:
        # A failed fit is a result, and must not stop the other fits.
        return Score(key, message=f"{type(error).__name__}: {error}")
    solution = getattr(calibrator, "solution_", None)  # third-party methods might not have one
    return Score(
        key,
        **scores,
        converged=solution is None or solution.converged,
        iterations=0 if solution is None else int(solution.iterations),
        message="" if solution is None or solution.converged else solution.message,
        fit_seconds=fitted - began,
        apply_seconds=ended - fitted,
    )


def _scores(unit: WorkUnit, probs: Matrix, labels: Indices) -> dict[str, Any]:
    rows = check_rows(probs, labels)
    return {
        "ece50": bin_rows(rows, 50).error,
        "ece15": bin_rows(rows, 15).error,
        "nll": rows.mean(rows.nll),
        "brier": rows.mean(rows.brier),
        "metrics": {name: value_of(name, m, probs, labels) for name, m in unit.metrics.items()},
    }
