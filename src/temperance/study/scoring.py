"""The work of a study: fit each method of a unit to its subsample, apply it to the test rows, score it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import Calibrator
from temperance.comparison import LabelledRows
from temperance.comparison.rows import predict
from temperance.metrics import brier, ece, nll
from temperance.study.methods import UNCALIBRATED, make_method
from temperance.study.protocol import FitKey, WorkUnit
from temperance.study.tasks import load_task

__all__ = ["Score", "run_work_unit"]


@dataclass(frozen=True)
class Score:
    """What a fit gave. Scores are nan if it failed, and then `message` says how."""

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


def run_work_unit(unit: WorkUnit) -> list[Score]:
    """Fit and score all methods of a work unit."""
    task = load_task(unit.task)
    rows = task.val.take(unit.rows()) if unit.n else task.val
    return [_run(fit, unit.random_state(), rows, task.test) for fit in unit.fits()]


def _run(fit: FitKey, random_state: int, rows: LabelledRows, test: LabelledRows) -> Score:
    calibrator = None if fit.method == UNCALIBRATED else make_method(fit.method, random_state)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # with few rows methods say so each time; here the scores say it
            if calibrator is not None:
                calibrator.fit(rows.logits, rows.labels)
            fitted = time.perf_counter()
            probs = predict(calibrator, test.logits)
    except (ImportError, MemoryError):
        raise  # of this machine, not of the method
    except Exception as error:
        # One method that cannot be fitted to some rows is a result too, and no reason to lose the others.
        return Score(fit, message=f"{type(error).__name__}: {error}")
    return _score(fit, calibrator, probs, test.labels, fitted - began, time.perf_counter() - fitted)


def _score(
    fit: FitKey,
    calibrator: Calibrator | None,
    probs: NDArray[np.float64],
    labels: NDArray[np.intp],
    fit_seconds: float,
    apply_seconds: float,
) -> Score:
    solution = None if calibrator is None else calibrator.solution_
    return Score(
        fit,
        ece50=ece(probs, labels, bins=50),
        ece15=ece(probs, labels, bins=15),
        nll=nll(probs, labels),
        brier=brier(probs, labels),
        converged=solution is None or bool(solution.converged),
        iterations=0 if solution is None else int(solution.iterations),
        message="" if solution is None or solution.converged else solution.message,
        fit_seconds=fit_seconds,
        apply_seconds=apply_seconds,
    )
