"""Speed where a service waits: a cold start, one row, and several threads; all as ratios, in one run.

python benchmarks/serving_speed.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import Any

import numpy as np

from temperance import make_calibrator, serving
from temperance.data import simulate

METHODS = ("ts", "hts", "bayes")
BATCHES = 96  # many for each thread: their start is not measured
THREADS = (1, 2, 8)


def cpu_of_process(code: str, runs: int = 9) -> float:
    """Return the least CPU time of a new Python process that runs some code."""
    best = np.inf
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def least_times(calls: list[Callable[[], Any]], runs: int = 1500) -> list[float]:
    """Return the least time of each call: over many runs of four calls each, in turn."""
    best = [np.inf] * len(calls)
    for _ in range(runs):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(4):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / 4)
    return best


def softmax(z: Any) -> Any:
    """Return a plain softmax, the unit of one row."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def throughputs(call: Callable[[], Any], runs: int = 9) -> list[float]:
    """Return batches per second of one, two and eight threads: the best of several runs, in turn."""
    best = [0.0] * len(THREADS)
    for _ in range(runs):
        for i, threads in enumerate(THREADS):
            start = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda _: call() is None, range(BATCHES)))  # results are dropped, not kept
            best[i] = max(best[i], BATCHES / (time.perf_counter() - start))
    return best


def ceiling(logits: Any) -> list[float]:
    """Return the throughputs of exponentials in place: what threads of NumPy can reach on this machine."""
    gaps, room = logits - logits.max(axis=1, keepdims=True), local()

    def call() -> None:
        if not hasattr(room, "result"):
            room.result = np.empty_like(gaps)
        for _ in range(8):
            np.exp(gaps, out=room.result)

    return throughputs(call)


def show(name: str, start: str, single: str, served: str, rates: list[float]) -> None:
    """Print one line of the table."""
    ratios = "".join(f"{rate / rates[0]:15.2f}" for rate in rates[1:])
    print(f"{name:12}{start:>26}{single:>20}{served:>10}{ratios}")


def main() -> None:
    """Print all ratios."""
    task = simulate(n_rows=10_000, n_classes=10, random_state=0)
    logits = task.logits.astype(np.float32)
    row = logits[:1].copy()
    numpy = cpu_of_process("import numpy")
    print("method      cold start / import numpy   one row / softmax    served  2 threads / 1  8 threads / 1")
    show("np.exp", "", "", "", ceiling(logits))
    with tempfile.TemporaryDirectory() as folder:
        for key in METHODS:
            calibrator = make_calibrator(key).fit(logits, task.labels)
            path = Path(folder) / f"{key}.json"
            calibrator.save(path)
            code = f"from temperance import serving; serving.load({str(path)!r}).predict_proba([[0.0] * 10])"
            start = cpu_of_process(code) / numpy
            served = serving.load(path)
            unit, single, from_file = least_times(
                [
                    lambda: softmax(row),
                    lambda c=calibrator: c.predict_proba(row),
                    lambda c=served: c.predict_proba(row),
                ]
            )
            rates = throughputs(lambda c=calibrator: c.predict_proba(logits))
            show(key, f"{start:.2f}", f"{single / unit:.1f}", f"{from_file / unit:.1f}", rates)


if __name__ == "__main__":
    main()
