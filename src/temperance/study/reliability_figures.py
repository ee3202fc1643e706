"""The reliability diagram of a task, before and after calibration: computed again from the task file.

The store of a study has only scores, so the methods are fitted again, with the rows and the random seed of
the study.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.calibrators.external_methods import find_methods, fit
from temperance.comparison.rows import predict
from temperance.core.arrays import Matrix
from temperance.display import ReliabilityDisplay
from temperance.inputs.validation import InputError
from temperance.metrics import reliability
from temperance.study.protocol import WorkUnit
from temperance.study.results import Results
from temperance.study.tasks import TaskFile, load_task

_USUAL = ("ts", "bayes")


def reliability_display(
    results: Results, task: TaskFile, methods: Sequence[str] | None = None, n: int | None = None
) -> ReliabilityDisplay:
    """Bin the test rows of a task by confidence, uncalibrated and by each method.

    Parameters
    ----------
    results : Results
        Of the study, for its random seed.
    task : TaskFile
        The task to read.
    methods : sequence of str, optional
        By default TS and Bayes, if the study has them, or else its first method.
    n : int, optional
        Rows to fit to, the study's first draw of them; by default all.
    """
    usual = [key for key in _USUAL if key in results.methods] or results.methods[:1]
    chosen = usual if methods is None else list(methods)
    size = task.rows if n is None else min(n, task.rows)
    labels = load_task(task).test.labels
    probs = {key: _predicted(results, task, key, size) for key in (UNCALIBRATED, *chosen)}
    return ReliabilityDisplay({key: reliability(values, labels) for key, values in probs.items()})


def _predicted(results: Results, task: TaskFile, method: str, n: int) -> Matrix:
    data = load_task(task)
    if method == UNCALIBRATED:
        return predict(None, data.test.logits)
    unit = WorkUnit(task, n, 0, results.seed, (method,), find_methods([method]))
    rows, calibrator = data.val.take(unit.rows()), unit.calibrator(method)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # methods warn about few rows in each fit
            fit(calibrator, rows.logits, rows.labels)
        return predict(calibrator, data.test.logits)
    except InputError as error:
        raise InputError(
            f"{method_style(method).label} cannot be fitted to {n} rows of {task.name}: {error}"
        ) from error
