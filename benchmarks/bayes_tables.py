"""The tables of `bayes_report`, computed from the lines that `bayes_evaluation` wrote.

Averages are taken first over the tasks of a data set, then over data sets. A method that fails, or gives
probability 0 to a class that occurs, has the score inf, and so have the averages that it enters.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from bayes_methods import OURS, names

SIZES = (20, 50, 200, 1000, 5000)
SUMMARY_SIZES = (20, 200, 1000)
SUMMARY_METHODS = {
    "ts": "temperature scaling",
    "probmetrics-svs": "probmetrics SVS",
    "probmetrics-sms": "probmetrics SMS",
    "bayes": "**`bayes`**",
    "bayes-bias": "**`bayes-bias`**",
}


def methods_in_order(data: pd.DataFrame) -> list[str]:
    """Return the methods that were measured, without `none`: the package's, the newer ones, the rivals."""
    known = [*names("package"), *OURS, *names("rivals")]
    measured = set(data.method) - {"none"}
    return [method for method in known if method in measured]


def comparable(data: pd.DataFrame) -> pd.DataFrame:
    """Return the tasks on which every method of the summary was run: SMS is too slow for many classes."""
    return data[data.classes <= data[data.method == "probmetrics-sms"].classes.max()]


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


def reduction(scores: pd.DataFrame) -> pd.Series:
    """Return, for each method, the mean over data sets of 1 - score / score without calibration."""
    return over_datasets(1 - scores.div(scores["none"], axis=0))


def percent(value: float) -> str:
    """Format a share; one that is not finite as "infinite loss", an unknown one as nothing."""
    if np.isnan(value):
        return ""
    return f"{100 * value:.0f}%" if np.isfinite(value) else "infinite loss"


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """Return a table."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def by_size(data: pd.DataFrame, metric: str, measure, sizes: tuple[int, ...], methods: dict[str, str]) -> str:
    """Return a table of methods by numbers of rows, of what `measure` makes of the scores."""
    found = {size: measure(by_task(data, metric, size)) for size in sizes}
    lines = [
        [words, *(percent(found[size].get(method, np.nan)) for size in sizes)]
        for method, words in methods.items()
    ]
    return markdown(["method", *(f"{size:,} labels" for size in sizes)], lines)


def summary_table(data: pd.DataFrame) -> str:
    """Return the mean reduction of the log loss of a few methods, with a few numbers of rows."""
    return by_size(comparable(data), "nll", reduction, SUMMARY_SIZES, SUMMARY_METHODS)


def reduction_table(data: pd.DataFrame, metric: str) -> str:
    """Return the mean reduction of a score of every method."""
    return by_size(data, metric, reduction, SIZES, {name: f"`{name}`" for name in methods_in_order(data)})


def win_rate_table(data: pd.DataFrame) -> str:
    """Return the win rates in log loss of every method."""
    return by_size(data, "nll", win_rates, SIZES, {name: f"`{name}`" for name in methods_in_order(data)})


def better_rivals(data: pd.DataFrame, method: str, size: int) -> pd.DataFrame:
    """Return the data sets on which a method outside OURS has the lower NLL, with the best one's ratio."""
    own = by_dataset(data, method, size)
    part = data[(data.rows == size) & ~data.method.isin(OURS)]
    others = part.pivot_table(index="dataset", columns="method", values="nll_ratio", aggfunc="mean")
    others = others.loc[own.index].replace(np.nan, np.inf)
    found = pd.DataFrame({"rival": others.idxmin(axis=1), "ratio": own / others.min(axis=1)})
    return found[found.ratio > 1].sort_values("ratio", ascending=False)


def lost_table(data: pd.DataFrame, method: str) -> str:
    """Return, for each number of rows, where another method's log loss is lower by 1% or more."""
    lines = []
    for size in SIZES:
        found = better_rivals(data, method, size)
        words = [
            f"{name} {line.ratio:.2f} ({line.rival})" for name, line in found.iterrows() if line.ratio >= 1.01
        ]
        total = len(by_dataset(data, method, size))
        lines.append([f"{size:,}", f"{len(words)} of {total}", ", ".join(words)])
    return markdown(["labels", "data sets", f"log loss of `{method}` over the best other method"], lines)
