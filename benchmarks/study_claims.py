"""The paper's claims, each measured on the tasks of a study: numbers for docs/study.

Imported by `study_docs`. All scores are means over draws; ratios are of a method's to that of TS with the
same rows, then averaged over tasks.
"""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
from scipy.stats import chi2, spearmanr

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, method_style
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.calibrators.single_temperature import fit_single_temperature
from temperance.core.fisher import solve
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, LogLikelihood
from temperance.core.predictors import Linear, Softplus
from temperance.study import Results
from temperance.study.tasks import TaskFile, load_task

SEEDS = 3  # of PTS
PEERS = ("ets", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-ece", "mono", "bayes")


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def ratios(
    results: Results, method: str, n: int, metric: str, tasks: list[TaskFile], to: str = "ts"
) -> np.ndarray:
    """Return a method's score over that of another, for each task."""
    return results.ratios(metric, n, to).reindex([task.name for task in tasks])[method].to_numpy()


def groups(results: Results) -> dict[str, list[TaskFile]]:
    """Return the tasks of large data sets, all others, and all."""
    return results.large_datasets() | {"all": results.tasks}


def bad_draws(results: Results, method: str, n: int, metric: str) -> float:
    """Return the share of draws in which a method's score is 5 % above that of TS fitted to the same rows."""
    draws = results.draws(metric, n).unstack("method")
    return float((draws[method] / draws["ts"] > 1.05).groupby(level="task").mean().mean())


def robustness(results: Results, n: int, metric: str) -> str:
    """Return, for each method, its ratios to TS with n rows, and on how many tasks it does harm.

    Means are over the tasks on which no draw of the method is infinite.
    """
    parts = groups(results)
    head = [f"N = {n}", *(f"{name} ({len(tasks)})" for name, tasks in parts.items())]
    head += [
        "worst task",
        "tasks left out",
        "tasks below TS",
        "tasks above uncalibrated",
        "draws 5 % above TS",
    ]
    rows = []
    for method in PEERS:
        to_ts = ratios(results, method, n, metric, results.tasks)
        harm = ratios(results, method, n, metric, results.tasks, UNCALIBRATED)
        means = [_finite_mean(ratios(results, method, n, metric, some)) for some in parts.values()]
        shares = (np.mean(to_ts < 1), np.mean(harm > 1), bad_draws(results, method, n, metric))
        numbers = [f"{number:.3f}" for number in (*means, to_ts.max())]
        numbers.append(str(np.isinf(to_ts).sum()))
        rows.append([method_style(method).label, *numbers, *(f"{share:.0%}" for share in shares)])
    return table(head, rows)


def _finite_mean(values: np.ndarray) -> float:
    return float(values[np.isfinite(values)].mean())


def gain_by_classes(results: Results, n: int) -> str:
    """Return the ratios to TS by number of classes, and their rank correlation with it."""
    chosen, rows = ("hts", "pts", "bayes"), []
    for low, high in ((2, 2), (3, 9), (10, 10), (20, 99), (100, 150), (176, 1000)):
        tasks = [task for task in results.tasks if low <= task.classes <= high]
        means = [ratios(results, m, n, metric, tasks).mean() for metric in ("nll", "ece") for m in chosen]
        label = f"{low}" if low == high else f"{low} to {high}"
        rows.append([label, str(len(tasks)), *(f"{mean:.3f}" for mean in means)])
    head = [
        f"classes, N = {n}",
        "tasks",
        *(f"{name}: {method_style(m).label}" for name in ("NLL", "ECE") for m in chosen),
    ]
    classes, tests = np.log([task.classes for task in results.tasks]), []
    for metric in ("nll", "ece"):
        for method in chosen:
            found = spearmanr(classes, ratios(results, method, n, metric, results.tasks))
            score = f"{metric.upper()} of {method_style(method).label}"
            tests.append([score, f"{found.statistic:+.2f}", f"{found.pvalue:.2f}"])
    heading = "Rank correlation of the ratio with the number of classes:"
    correlations = table(["score", "correlation", "p"], tests)
    return f"{table(head, rows)}\n\n{heading}\n\n{correlations}"


def entropy_fit(task: TaskFile, degree: int) -> tuple[float, float]:
    """Fit T = softplus(polynomial of the log entropy) to test rows; return twice the log loss, and the slope.

    The fit uses rows, not bins: a bin without an error has no best temperature, and leaving such bins out
    would bend any line through the others.
    """
    test = load_task(task).test
    rows = LogitRows(np.asarray(test.logits, np.float64), test.labels)
    entropy = log_normalised_entropy(rows)
    scaled = (entropy - entropy.mean()) / entropy.std()
    features = np.vander(scaled, degree + 1, increasing=True)
    single = fit_single_temperature(FitData(rows), exact=True).temperature
    link = Softplus(single / 10, 10 * single)
    start = np.zeros(degree + 1)
    start[0] = link.inverse(single)
    found = solve(LogLikelihood(rows, Linear(features, None), link), start, rows.n_rows)
    a = features @ found.parameters
    slope = np.polyfit(entropy, link.temperature(a), 1)[0]
    return 2 * rows.n_rows * found.value, float(slope)


def entropy_line(results: Results) -> str:
    """Return, for each task, whether T depends on the log entropy, its slope, and if a line is enough."""
    rows, found = [], []
    for task in results.tasks:
        (flat, _), (line, slope), (bent, _) = (entropy_fit(task, degree) for degree in range(3))
        seen, curved = (float(chi2.sf(max(0.0, gain), 1)) for gain in (flat - line, line - bent))
        found.append((slope > 0, min(seen, 2 * curved) < 0.05, curved < 0.05))
        rows.append([task.name, str(task.classes), f"{slope:+.3f}", f"{seen:.3f}", f"{curved:.3f}"])
    rises, related, curved = np.array(found).T
    straight, bent = related & ~curved, related & curved
    words = (
        f"T depends on the log entropy (p < 0.05) on {related.sum()} of {len(rows)} tasks. On "
        f"{straight.sum()} of them a line is enough; it rises on {(straight & rises).sum()}. On {bent.sum()} "
        f"a parabola is better; the line through it rises on {(bent & rises).sum()}. On all others one T is "
        "enough."
    )
    head = ["task", "classes", "slope of T", "p of no slope", "p of no bend"]
    return f"{words}\n\n{table(head, rows)}"


def temperatures(task: TaskFile, method: str, seed: int = 0) -> np.ndarray:
    """Return T of the test rows by a method fitted to all validation rows."""
    data = load_task(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = CALIBRATORS[method].seeded(seed).fit(data.val.logits, data.val.labels)
    return np.asarray(fitted.temperature(data.test.logits))


def same_temperatures(results: Results) -> str:
    """Return the rank correlations of the temperatures of PTS and HTS, and of two fits of PTS."""
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
    names = ("HTS and PTS", "HTS and PTS without its prior", "two random seeds of PTS")
    quartiles = []
    for name, values in zip(names, np.array(ranks).T, strict=True):
        found = [f"{value:.2f}" for value in np.nanquantile(values, [0.25, 0.5, 0.75])]
        quartiles.append([name, *found, f"{np.sum(values > 0.5)} of {len(values)}"])
    summary = table(
        ["rank correlation", "lower quartile", "median", "upper quartile", "tasks above 0.5"], quartiles
    )
    head = ["task", *names, "spread of T by HTS", "by PTS"]
    return f"{summary}\n\n{table(head, rows)}"
