"""The work of a study: fit each method of a unit to its subsample, apply it to the test rows, score it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from temperance.calibrators.external_methods import fit
from temperance.comparison.rows import LabelledRows, predict
from temperance.core.arrays import Indices, Matrix
from temperance.metrics.bins import bin_rows
from temperance.metrics.evaluation import value_of
from temperance.metrics.predictions import check_rows
from temperance.study.protocol import FitKey, WorkUnit
from temperance.study.tasks import load_task


@dataclass(frozen=True)
class Score:
    """The scores of a fit. They are nan if it failed; `message` then says why."""

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


def run_work_unit(unit: WorkUnit) -> list[Score]:
    """Fit and score all methods of a work unit."""
    task = load_task(unit.task)
    rows = task.val.take(unit.rows()) if unit.n else task.val
    return [_run(fit, unit, rows, task.test) for fit in unit.fits()]


def _run(key: FitKey, unit: WorkUnit, rows: LabelledRows, test: LabelledRows) -> Score:
    calibrator, began = unit.calibrator(key.method), time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # methods warn about few rows in each fit; here the scores show it
            if calibrator is not None:
                fit(calibrator, rows.logits, rows.labels)
            fitted = time.perf_counter()
            probs = predict(calibrator, test.logits)
            ended = time.perf_counter()
            scores = _scores(unit, probs, test.labels)
    except (ImportError, MemoryError):
        raise  # a problem of this machine, not of the method
    except Exception as error:
        # A method that cannot be fitted to some rows is a result too; the others must not be lost.
        return Score(key, message=f"{type(error).__name__}: {error}")
    solution = getattr(calibrator, "solution_", None)  # a method from outside may not report it
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
        "metrics": {name: value_of(name, m, probs, labels) for name, m in unit.outside_metrics.items()},
    }
