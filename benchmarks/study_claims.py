"""The paper's claims, each measured on the tasks of a study: numbers for docs/study.

Imported by `study_docs`. All scores are means over draws; ratios are of a method's to that of TS with the
same rows, then averaged over tasks.
"""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
from scipy.stats import chi2, spearmanr

from temperance.display import TemperatureDisplay
from temperance.study import Results, TaskFile
from temperance.study.methods import LABELS, UNCALIBRATED, make_method
from temperance.study.tasks import load_task

SEEDS = 3  # of PTS
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


def bad_draws(results: Results, method: str, n: int, metric: str) -> float:
    """Return the share of draws in which a method's score is 5 % above that of TS fitted to the same rows."""
    pairs = [[results.draws(task, key, n, metric) for key in (method, "ts")] for task in results.tasks]
    return float(np.mean([np.mean(ours / its > 1.05) for ours, its in pairs]))


def robustness(results: Results, n: int, metric: str) -> str:
    """Return, for each method, how it does against TS with n rows, and on how many tasks it does harm."""
    head = [f"N = {n}", *(f"{name} ({len(tasks)})" for name, tasks in groups(results).items())]
    head += ["worst task", "tasks below TS", "tasks above uncalibrated", "draws 5 % above TS"]
    rows = []
    for method in PEERS:
        to_ts = ratios(results, method, n, metric, results.tasks)
        harm = ratios(results, method, n, metric, results.tasks, UNCALIBRATED)
        means = [ratios(results, method, n, metric, tasks).mean() for tasks in groups(results).values()]
        shares = (np.mean(to_ts < 1), np.mean(harm > 1), bad_draws(results, method, n, metric))
        numbers = [f"{number:.3f}" for number in (*means, to_ts.max())]
        rows.append([LABELS[method], *numbers, *(f"{share:.0%}" for share in shares)])
    return table(head, rows)


def gain_by_classes(results: Results, n: int) -> str:
    """Return what is gained over TS by the number of classes."""
    chosen, rows, words = ("hts", "pts", "bayes"), [], []
    for low, high in ((2, 2), (3, 9), (10, 10), (26, 99), (100, 150)):
        tasks = [task for task in results.tasks if low <= task.classes <= high]
        means = [ratios(results, m, n, metric, tasks).mean() for metric in ("nll", "ece") for m in chosen]
        label = f"{low}" if low == high else f"{low} to {high}"
        rows.append([label, str(len(tasks)), *(f"{mean:.3f}" for mean in means)])
    head = [
        f"classes, N = {n}",
        "tasks",
        *(f"{name}: {LABELS[m]}" for name in ("NLL", "ECE") for m in chosen),
    ]
    classes = np.log([task.classes for task in results.tasks])
    for metric in ("nll", "ece"):
        for method in chosen:
            found = spearmanr(classes, ratios(results, method, n, metric, results.tasks))
            words.append(
                f"{metric.upper()} of {LABELS[method]} {found.statistic:+.2f} (p = {found.pvalue:.2f})"
            )
    heading = "Rank correlation of the ratio with the number of classes"
    return f"{table(head, rows)}\n\n{heading}: {', '.join(words)}."


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


def temperatures(task: TaskFile, method: str, seed: int = 0) -> np.ndarray:
    """Return T of the test rows by a method fitted to all validation rows."""
    data = load_task(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_method(method, seed).fit(data.val.logits, data.val.labels)
    return np.asarray(fitted.temperature(data.test.logits))


def same_temperatures(results: Results) -> str:
    """Return how far the temperatures of PTS go with those of HTS, and how far two of PTS with each other."""
    rows, ranks = [], []
    for task in results.tasks:
        hts = temperatures(task, "hts")
        networks = [temperatures(task, "pts", seed) for seed in range(SEEDS)]
        with_hts = [float(spearmanr(hts, pts).statistic) for pts in networks]
        among = [float(spearmanr(one, two).statistic) for one, two in combinations(networks, 2)]
        plain = float(spearmanr(hts, temperatures(task, "pts-plain")).statistic)
        ranks.append((np.mean(with_hts), plain, np.mean(among)))
        spreads = [f"{np.std(t) / np.mean(t):.1%}" for t in (hts, networks[0])]
        rows.append([task.name, *(f"{value:+.2f}" for value in ranks[-1]), *spreads])
    names = ("HTS and PTS", "HTS and PTS without its prior", "two starts of PTS")
    words = []
    for name, values in zip(names, np.array(ranks).T, strict=True):
        quartiles = " / ".join(f"{value:.2f}" for value in np.nanquantile(values, [0.25, 0.5, 0.75]))
        words.append(f"{name} {quartiles}, above 0.5 on {np.sum(values > 0.5)} of {len(values)} tasks")
    head = ["task", *names, "spread of T by HTS", "by PTS"]
    return f"Rank correlation, quartiles over tasks: {'; '.join(words)}.\n\n{table(head, rows)}"
