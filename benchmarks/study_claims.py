"""The paper's claims, each measured on the tasks of a study: numbers for docs/study.

Imported by `study_docs`. All scores are means over draws; ratios are of a method's to that of TS with the
same rows, then averaged over tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy.stats import chi2, spearmanr

from temperance import EntropyTemperatureScaling, make_calibrator
from temperance.display import TemperatureDisplay
from temperance.study import Results, TaskFile
from temperance.study.methods import LABELS, UNCALIBRATED
from temperance.study.tasks import load_task

PEERS = ("ets", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-ece", "bayes")


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def score(results: Results, task: TaskFile, method: str, n: int, metric: str) -> float:
    """Return the mean over draws."""
    summary = results.summary(task, method, n, metric)
    return float("nan") if summary is None else summary.mean


def ratios(
    results: Results, method: str, n: int, metric: str, tasks: list[TaskFile], to: str = "ts"
) -> np.ndarray:
    """Return a method's score over that of another, for each task."""
    return np.array([score(results, t, method, n, metric) / score(results, t, to, n, metric) for t in tasks])


def groups(results: Results) -> dict[str, list[TaskFile]]:
    """Return the tasks of the two large data sets, and all others."""
    found = {name: tasks for name, tasks in results.datasets().items() if len(tasks) > 2}
    named = {task.name for tasks in found.values() for task in tasks}
    return found | {
        "others": [task for task in results.tasks if task.name not in named],
        "all": results.tasks,
    }


def robustness(results: Results, n: int) -> str:
    """Return, for each method, how it does against TS with n rows, and on how many tasks it does harm."""
    head = [f"N = {n}", *(f"{name} ({len(tasks)})" for name, tasks in groups(results).items())]
    head += ["ECE, all", "worst task", "NLL below TS", "NLL above uncalibrated"]
    rows = []
    for method in PEERS:
        to_ts = ratios(results, method, n, "nll", results.tasks)
        harm = ratios(results, method, n, "nll", results.tasks, UNCALIBRATED)
        means = [ratios(results, method, n, "nll", tasks).mean() for tasks in groups(results).values()]
        means.append(ratios(results, method, n, "ece", results.tasks).mean())
        rows.append(
            [
                LABELS[method],
                *(f"{mean:.3f}" for mean in means),
                f"{to_ts.max():.3f}",
                f"{np.mean(to_ts < 1):.0%}",
                f"{np.mean(harm > 1):.0%}",
            ]
        )
    return table(head, rows)


def gain_by_classes(results: Results, n: int) -> str:
    """Return what is gained over TS by the number of classes."""
    rows = []
    for low, high in ((2, 2), (3, 9), (10, 10), (26, 99), (100, 150)):
        tasks = [task for task in results.tasks if low <= task.classes <= high]
        if tasks:
            gains = {m: ratios(results, m, n, "nll", tasks).mean() for m in PEERS}
            best = min(gains, key=lambda m: gains[m])
            label = f"{low}" if low == high else f"{low} to {high}"
            shown = [f"{gains[m]:.3f}" for m in ("hts", "pts", "bayes")]
            rows.append([label, str(len(tasks)), *shown, f"{LABELS[best]} {gains[best]:.3f}"])
    head = [f"classes, N = {n}", "tasks", "HTS / TS", "PTS / TS", "Bayes / TS", "best on average"]
    classes = np.log([task.classes for task in results.tasks])
    ranks = []
    for method in ("hts", "pts", "bayes"):
        found = spearmanr(classes, ratios(results, method, n, "nll", results.tasks))
        ranks.append(f"{LABELS[method]} {found.statistic:+.2f} (p = {found.pvalue:.2f})")
    words = f"Rank correlation of the ratio with the number of classes: {', '.join(ranks)}."
    return f"{table(head, rows)}\n\n{words}"


def bends(display: TemperatureDisplay, degree: int) -> tuple[float, float]:
    """Fit a polynomial to the best temperatures of bins; return p of what it leaves, and its highest term."""
    error = (np.log(display.high) - np.log(display.low)) / (2 * 1.96) * display.optimum
    sure = np.isfinite(error) & (display.high < 10 * display.low)
    x, y, w = display.centre[sure], display.optimum[sure], 1 / error[sure]
    design = np.vander(x, degree + 1) * w[:, None]
    coefficients, *_ = np.linalg.lstsq(design, y * w, rcond=None)
    left = float(np.sum((y * w - design @ coefficients) ** 2))
    return float(chi2.sf(left, max(1, len(x) - degree - 1))), float(coefficients[0])


def entropy_line(results: Results) -> str:
    """Return, for each task, whether the best temperature of bins is a constant, or a line in log entropy."""
    rows, slopes, constant, line = [], [], [], []
    for task in results.tasks:
        data = load_task(task)
        display = TemperatureDisplay.from_calibrators({}, data.test.logits, data.test.labels, bins=15)
        flat, (straight, slope) = bends(display, 0)[0], bends(display, 1)
        slopes.append(slope)
        constant.append(flat > 0.05)
        line.append(straight > 0.05)
        rows.append([task.name, str(task.classes), f"{slope:+.3f}", f"{flat:.3f}", f"{straight:.3f}"])
    count = len(rows)
    words = (
        f"The slope is positive on {sum(s > 0 for s in slopes)} of {count} tasks. A constant T is enough "
        f"(p > 0.05) on {sum(constant)}, a line on {sum(line)}."
    )
    return f"{words}\n\n{table(['task', 'classes', 'slope', 'p of a constant', 'p of a line'], rows)}"


def same_temperatures(results: Results) -> Iterator[tuple[str, float, float, float]]:
    """Yield, for each task, the rank correlation and the slope of PTS on HTS, and HTS's with the entropy."""
    for task in results.tasks:
        data = load_task(task)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pts = make_calibrator("pts").fit(data.val.logits, data.val.labels)
            hts = EntropyTemperatureScaling().fit(data.val.logits, data.val.labels)
        t_pts, t_hts = (np.asarray(cal.temperature(data.test.logits)) for cal in (pts, hts))
        rank = float(spearmanr(t_pts, t_hts).statistic)
        slope = float(np.polyfit(t_hts, t_pts, 1)[0]) if np.ptp(t_hts) > 0 else float("nan")
        yield task.name, rank, slope, float(np.std(t_hts) / np.mean(t_hts))


def same_table(results: Results) -> str:
    """Return these for all tasks."""
    found = list(same_temperatures(results))
    ranks = np.array([rank for _, rank, *_ in found])
    quartiles = ", ".join(f"{value:.2f}" for value in np.nanquantile(ranks, [0.25, 0.5, 0.75]))
    words = (
        f"Quartiles of the rank correlation: {quartiles}; above 0.5 on {np.sum(ranks > 0.5)} of {len(ranks)} "
        f"tasks, negative on {np.sum(ranks < 0)}."
    )
    rows = [[name, f"{rank:+.2f}", f"{slope:+.2f}", f"{spread:.1%}"] for name, rank, slope, spread in found]
    return (
        f"{words}\n\n{table(['task', 'rank correlation', 'slope of PTS on HTS', 'spread of T by HTS'], rows)}"
    )
