"""The tables of `bayes_report`, computed from the lines that `bayes_evaluation` wrote.

Averages are taken first over the tasks of a data set, then over data sets. A method that fails, or gives
probability 0 to a class that occurs, has the score inf, and so have the averages that it enters.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from bayes_methods import OURS, names

METRICS = {
    "nll": "NLL",
    "brier": "Brier score",
    "ece15": "ECE, 15 bins",
    "smooth_ece": "smooth ECE",
    "classwise_ece": "class-wise ECE",
}
MAIN_METRICS = ("nll", "brier", "ece15")
MAIN_SIZES = (20, 50, 200, 1000, 5000)
NOT_MEASURED = "not measured"


def read_scores(folder: Path) -> pd.DataFrame:
    """Return the lines of a folder's scores."""
    return pd.read_csv(folder / "scores.csv.gz")


def sizes_in(data: pd.DataFrame) -> list[int]:
    """Return the main numbers of rows that were measured."""
    return [size for size in MAIN_SIZES if (data.rows == size).any()]


def methods_in_order(data: pd.DataFrame) -> list[str]:
    """Return the methods that were measured: no calibration, the package, the newer methods, the rivals."""
    known = [*names("package"), *OURS, *names("rivals")]
    measured = set(data.method)
    return [method for method in known if method in measured]


def by_dataset(data: pd.DataFrame, method: str, size: int, column: str = "nll_ratio") -> pd.Series:
    """Return a method's mean over the tasks of each data set, with one number of rows."""
    part = data[(data.method == method) & (data.rows == size)]
    return part.groupby("dataset")[column].mean()


def by_task(data: pd.DataFrame, column: str, size: int) -> pd.DataFrame:
    """Return a column of the scores, task by method, with one number of rows."""
    return data[data.rows == size].pivot(index="task", columns="method", values=column)


def over_datasets(per_task: pd.DataFrame) -> pd.Series:
    """Return, for each column, the mean over data sets of the mean over their tasks."""
    return per_task.groupby(per_task.index.str.split("__").str[0]).mean().mean()


def win_rates(scores: pd.DataFrame) -> pd.Series:
    """Return, for each method, the share of pairs (task, other method) in which its score is lower.

    `scores` is a table of tasks by methods. A tie is not a win. A method that was not run on a task (NaN)
    forms no pairs there.
    """
    rates = {}
    for method in scores.columns:
        others = scores.drop(columns=method).to_numpy()
        own = scores[method].to_numpy()[:, None]
        pairs = ~np.isnan(others) & ~np.isnan(own)
        rates[method] = (own < others)[pairs].mean() if pairs.any() else np.nan
    return pd.Series(rates)


def improvement(scores: pd.DataFrame) -> pd.Series:
    """Return, for each method, the mean over data sets of 1 - score / score without calibration."""
    return over_datasets(1 - scores.div(scores["none"], axis=0))


def accuracy_gain(accuracy: pd.DataFrame) -> pd.Series:
    """Return, for each method, the mean over data sets of the accuracy minus that without calibration."""
    return over_datasets(accuracy.sub(accuracy["none"], axis=0))


def number(value: float, decimals: int = 3) -> str:
    """Format a number; large ones with three digits, an unknown one as nothing."""
    if np.isnan(value):
        return ""
    return f"{value:.{decimals}f}" if abs(value) < 100 else f"{value:.3g}"


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """Return a table."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def best_in_bold(cells: list[str], values: list[float], best: float) -> list[str]:
    """Return the cells, with those of the best value in bold."""
    return [f"**{c}**" if v == best else c for c, v in zip(cells, values, strict=True)]


def win_rate_table(data: pd.DataFrame, metric: str) -> str:
    """Return the win rates in percent by number of rows, the best in bold."""
    columns = []
    for size in sizes_in(data):
        rates = win_rates(by_task(data, metric, size))
        values = [rates.get(method, np.nan) for method in methods_in_order(data)]
        cells = [number(100 * value, 1) for value in values]
        columns.append(best_in_bold(cells, values, np.nanmax(values)))
    lines = [list(line) for line in zip(methods_in_order(data), *columns, strict=True)]
    return markdown(["method", *(f"N = {size}" for size in sizes_in(data))], lines)


def improvement_table(data: pd.DataFrame, metric: str) -> str:
    """Return the improvement of a score over no calibration in percent; of the accuracy, in points."""
    methods = [method for method in methods_in_order(data) if method != "none"]
    columns = []
    for size in sizes_in(data):
        scores = by_task(data, metric, size)
        gains = accuracy_gain(scores) if metric == "accuracy" else improvement(scores)
        shown = {
            m: f"{100 * gain:+.2f}" if metric == "accuracy" else number(100 * gain, 1)
            for m, gain in gains.items()
        }
        columns.append([shown.get(m, "") for m in methods])
    lines = [list(line) for line in zip(methods, *columns, strict=True)]
    return markdown(["method", *(f"N = {size}" for size in sizes_in(data))], lines)


def ratio_table(data: pd.DataFrame, size: int) -> str:
    """Return the mean ratios to TS over data sets with one number of rows, and the worst task's NLL ratio."""
    part = data[data.rows == size]
    methods = methods_in_order(part)
    ratios = part.groupby(["method", "dataset"])[[f"{metric}_ratio" for metric in METRICS]].mean()
    means, counts = ratios.groupby("method").mean().loc[methods], ratios.groupby("method").size().loc[methods]
    comparable = means[counts == counts.max()]  # the others were run on easier or harder data sets
    columns = [
        best_in_bold([number(value) for value in means[name]], means[name].tolist(), comparable[name].min())
        for name in means
    ]
    lines = []
    for method, *cells in zip(methods, *columns, strict=True):
        per_task = part[part.method == method].set_index("task").nll_ratio
        worst = f"{number(per_task.max())} ({per_task.idxmax()})"
        lines.append([method, str(counts[method]), *cells, worst])
    return markdown(["method", "data sets", *METRICS.values(), "worst task, NLL"], lines)


def better_rivals(data: pd.DataFrame, method: str, size: int) -> pd.DataFrame:
    """Return the data sets on which a method outside OURS has the lower NLL, with the best one's ratio."""
    own = by_dataset(data, method, size)
    part = data[(data.rows == size) & ~data.method.isin(OURS)]
    others = part.pivot_table(index="dataset", columns="method", values="nll_ratio", aggfunc="mean")
    others = others.loc[own.index].replace(np.nan, np.inf)
    found = pd.DataFrame({"rival": others.idxmin(axis=1), "ratio": own / others.min(axis=1)})
    return found[found.ratio > 1].sort_values("ratio", ascending=False)


def better_rivals_table(data: pd.DataFrame, method: str) -> str:
    """Return, for each number of rows, where another method has the lower NLL than `method`."""
    if method not in set(data.method):
        return f"`{method}`: {NOT_MEASURED}."
    lines = []
    for size in sizes_in(data):
        found = better_rivals(data, method, size)
        words = [f"{name} {number(line.ratio)} ({line.rival})" for name, line in found.iterrows()]
        total = len(by_dataset(data, method, size))
        lines.append([str(size), f"{len(found)} of {total}", ", ".join(words)])
    return markdown(["N", "data sets", f"NLL of {method} over that of the best other method"], lines)


def summary_table(data: pd.DataFrame, metric: str) -> str:
    """Return a score over that of TS, for CIFAR-10, CIFAR-100 and the other data sets, for a few methods."""
    shown = ("hts", "ets", "probmetrics-svs", "probmetrics-sms", *OURS)
    methods = [method for method in methods_in_order(data) if method in shown]
    lines = []
    for title, part in dataset_groups(data).items():
        for size in sizes_in(part):
            means = [by_dataset(part, method, size, f"{metric}_ratio").mean() for method in methods]
            lines.append([title, str(size), *map(number, means)])
    return markdown(["data sets", "N", *methods], lines)


def dataset_groups(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the lines of CIFAR-10, of CIFAR-100 and of the other data sets."""
    groups = {"CIFAR-10": data.dataset == "cifar10", "CIFAR-100": data.dataset == "cifar100"}
    groups["others"] = ~data.dataset.isin(["cifar10", "cifar100"])
    return {title: data[chosen] for title, chosen in groups.items()}
