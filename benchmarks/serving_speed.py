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
from typing import Any

import numpy as np

from temperance import make_calibrator
from temperance.data import simulate

METHODS = ("ts", "hts", "bayes")
BATCHES = 16


def cpu_of_process(code: str, runs: int = 9) -> float:
    """Return the least CPU time of a new Python process that runs some code."""
    best = np.inf
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def least_time(call: Callable[[], Any], runs: int = 600) -> float:
    """Return the least time of a call, over many runs of four calls each."""
    best = np.inf
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(4):
            call()
        best = min(best, (time.perf_counter() - start) / 4)
    return best


def softmax(z: Any) -> Any:
    """Return a plain softmax, the unit of one row."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def throughput(call: Callable[[], Any], threads: int) -> float:
    """Return batches per second, the best of five runs."""
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda _: call(), range(BATCHES)))
        best = max(best, BATCHES / (time.perf_counter() - start))
    return best


def main() -> None:
    """Print all ratios."""
    task = simulate(n_rows=10_000, n_classes=10, random_state=0)
    logits = task.logits.astype(np.float32)
    row = logits[:1].copy()
    unit = least_time(lambda: softmax(row))
    numpy = cpu_of_process("import numpy")
    print("method  cold start / import numpy   one row / softmax   2 threads / 1   8 threads / 1")
    with tempfile.TemporaryDirectory() as folder:
        for key in METHODS:
            calibrator = make_calibrator(key).fit(logits, task.labels)
            path = Path(folder) / f"{key}.json"
            calibrator.save(path)
            code = f"from temperance import serving; serving.load({str(path)!r}).predict_proba([[0.0] * 10])"
            one, two, eight = (throughput(lambda c=calibrator: c.predict_proba(logits), n) for n in (1, 2, 8))
            start = cpu_of_process(code) / numpy
            single = least_time(lambda c=calibrator: c.predict_proba(row)) / unit
            print(f"{key:6}  {start:25.2f}  {single:18.1f}  {two / one:14.2f}  {eight / one:14.2f}")


if __name__ == "__main__":
    main()
