"""Speed as ratios to one np.exp over the array, all in one run: `make bench`.

u is one `np.exp(z, out=buffer)` over 50000 x 1000 float32. Seconds mean little on a shared machine; ratios
of best times, taken in turns, are stable to about 10 %.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from temperance import (
    BayesianTemperatureScaling,
    EntropyTemperatureScaling,
    MonotoneScaling,
    TemperatureScaling,
)
from temperance.calibrators import Calibrator

N, K = 50_000, 1_000
REPEATS = 5


def best_seconds(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best time of each piece of work, taken in turns."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(REPEATS):
        for name, function in work.items():
            began = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def make_task(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return overconfident float32 logits, and labels drawn from their softmax at T = 2."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((n_rows, n_classes), dtype=np.float32)
    logits *= rng.uniform(2, 8, (n_rows, 1)).astype(np.float32)
    noise = rng.gumbel(size=(n_rows, n_classes)).astype(np.float32)
    return logits, (logits / 2 + noise).argmax(axis=1)


def measure(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return ratios to u of the fits and of a prediction."""
    buffer = np.zeros_like(logits)
    hts = EntropyTemperatureScaling().fit(logits, labels)
    bayes = BayesianTemperatureScaling().fit(logits, labels)
    seconds = best_seconds(
        {
            "u": lambda: np.exp(logits, out=buffer),
            "TS fit": lambda: TemperatureScaling().fit(logits, labels),
            "HTS fit": lambda: EntropyTemperatureScaling().fit(logits, labels),
            "HTS predict_proba": lambda: hts.predict_proba(logits),
            "mono fit": lambda: MonotoneScaling().fit(logits, labels),
            "bayes fit": lambda: BayesianTemperatureScaling().fit(logits, labels),
            "bayes predict_proba": lambda: bayes.predict_proba(logits),
        }
    )
    return {name: value / seconds["u"] for name, value in seconds.items() if name != "u"}


def added_memory(method: type[Calibrator], logits: np.ndarray, labels: np.ndarray) -> float:
    """Return what a fit adds to peak memory, as a share of the array's bytes."""
    method().fit(logits, labels)
    tracemalloc.start()
    method().fit(logits, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / logits.nbytes


def growth() -> list[tuple[str, float]]:
    """Return the time of an HTS fit on twice the rows, and on twice the classes, over the plain one."""
    shapes = {"base": (20_000, 500), "2 N": (40_000, 500), "2 K": (20_000, 1_000)}
    tasks = {name: make_task(*shape) for name, shape in shapes.items()}
    seconds = best_seconds(
        {name: lambda t=task: EntropyTemperatureScaling().fit(*t) for name, task in tasks.items()}
    )
    return [(name, seconds[name] / seconds["base"]) for name in ("2 N", "2 K")]


def main() -> None:
    """Print the table."""
    logits, labels = make_task(N, K)
    limits = {
        "numpy": {"TS fit": 8, "HTS fit": 14, "HTS predict_proba": 6},
        "compiled": {"TS fit": 3, "HTS fit": 6, "HTS predict_proba": 3, "bayes fit": 40},
    }
    print(f"{N} x {K} float32; u = one np.exp(z, out=buffer)\n")
    print(f"{'kernels':<10}{'work':<22}{'ratio to u':>12}{'limit':>8}")
    for kernel, wanted in limits.items():
        os.environ["TEMPERANCE_KERNEL"] = kernel
        ratios = measure(logits, labels)
        for name, ratio in ratios.items():
            print(f"{kernel:<10}{name:<22}{ratio:>12.2f}{wanted.get(name, ''):>8}")
        for name, method in (("HTS", EntropyTemperatureScaling), ("bayes", BayesianTemperatureScaling)):
            memory = 100 * added_memory(method, logits, labels)
            print(f"{kernel:<10}{name + ' fit, memory':<22}{memory:>10.1f} %{'10 %':>8}")
        for name, ratio in growth():
            print(f"{kernel:<10}{'HTS fit, ' + name:<22}{ratio:>10.2f} x{'2 x':>8}")


if __name__ == "__main__":
    main()
