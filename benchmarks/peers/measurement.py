"""Time, memory and accuracy of one method on one task, in a process of its own.

Times are ratios of best times in one process. CPU time is what counts with one thread, since other programs
do not lengthen it much; with two threads it is wall time.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from adapters import Fit, Fitted

SECONDS, REPEATS = 3.0, 40
WARM_UP_ROWS = 200


def timed(work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """Return what the work returns, with CPU and wall time in seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    returned = work()
    return returned, (time.process_time() - cpu, time.perf_counter() - wall)


def peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def best(times: list[tuple[float, float]]) -> dict[str, float]:
    """Return the lowest CPU time and the lowest wall time."""
    return {"cpu": min(cpu for cpu, _ in times), "wall": min(wall for _, wall in times)}


def measure(fit: Fit, task: Path, once: bool) -> dict[str, Any]:
    """Return the times of the first and of the best fit, of predictions and of np.exp, and the added memory.

    `start` is the CPU time from the start of the process, with its imports, to the end of the first fit.

    With `once` the whole task is fitted only twice, after a fit to a few of its rows, which have all classes.
    The first of the two may compile code for arrays of this size.
    """
    with np.load(task) as file:
        logits, labels = file["logits"], file["labels"]
    if once:
        few = np.union1d(np.arange(WARM_UP_ROWS), np.unique(labels, return_index=True)[1])
        fit(logits[few], labels[few]).predict_proba(logits[few])
    before = peak_bytes()
    fitted, first = timed(lambda: fit(logits, labels))
    start = time.process_time()  # CPU time of the process so far
    added = peak_bytes() - before
    found = repeat(fit, fitted, logits, labels, first, once)
    found |= {"start": {"cpu": start}, "temperature": fitted.temperature}
    return found | {"added_bytes": added, "array_bytes": logits.nbytes}


def repeat(
    fit: Fit,
    fitted: Fitted,
    logits: np.ndarray,
    labels: np.ndarray,
    first: tuple[float, float],
    once: bool,
) -> dict[str, Any]:
    """Return the best times; the pieces of work take turns."""
    times: dict[str, list[tuple[float, float]]] = {"fit": [first], "predict": [], "exp": []}
    buffer = np.zeros_like(logits)
    began = time.perf_counter()
    while True:
        times["exp"].append(timed(lambda: np.exp(logits, out=buffer))[1])
        times["predict"].append(timed(lambda: fitted.predict_proba(logits))[1])
        enough = len(times["exp"]) > REPEATS or time.perf_counter() - began > SECONDS
        if len(times["fit"]) == 2 if once else enough:
            break
        times["fit"].append(timed(lambda: fit(logits, labels))[1])
    return {
        "first_fit": best([first]),
        **{name: best(measured) for name, measured in times.items()},
        "fits": len(times["fit"]),
    }
