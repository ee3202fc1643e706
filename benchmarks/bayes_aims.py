"""What the Bayesian methods aim at, and what was measured.

A ratio is a method's score over that of TS fitted to the same rows, averaged over draws, then over the tasks
of a data set, then over data sets. An aim is met if the ratio is at most its target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from bayes_tables import NOT_MEASURED, by_dataset, markdown, number

SMS = "probmetrics-sms"
Measure = Callable[[pd.DataFrame, int], float]


@dataclass(frozen=True)
class Aim:
    """A ratio, and at most how large it should be with each number of rows."""

    words: str
    targets: dict[int, float]
    measure: Measure


@dataclass(frozen=True)
class Finding:
    """An aim with one number of rows, measured; NaN where the scores are not there yet."""

    words: str
    size: int
    target: float
    measured: float

    @property
    def verdict(self) -> str:
        """Return whether the aim holds."""
        if np.isnan(self.measured):
            return NOT_MEASURED
        return "met" if self.measured <= self.target else "missed"


def every_size(*targets: float) -> dict[int, float]:
    """Return the targets with 20, 50, 200, 1000 and 5000 rows."""
    return dict(zip((20, 50, 200, 1000, 5000), targets, strict=True))


def of_dataset(dataset: str, metric: str = "nll") -> Measure:
    """Return the measure of bayes on one data set."""
    return lambda data, size: by_dataset(data, "bayes", size, f"{metric}_ratio").get(dataset, np.nan)


def mean_nll(data: pd.DataFrame, size: int) -> float:
    """Return the mean NLL ratio of bayes over data sets."""
    return by_dataset(data, "bayes", size).mean()


def worst_nll(data: pd.DataFrame, size: int) -> float:
    """Return the largest NLL ratio of bayes on any data set."""
    return by_dataset(data, "bayes", size).max()


def worst_over_simple(data: pd.DataFrame, size: int) -> float:
    """Return the largest NLL of bayes over the best of TS, ETS and no calibration, on any data set."""
    simple = pd.concat([by_dataset(data, method, size) for method in ("ts", "ets", "none")], axis=1)
    return (by_dataset(data, "bayes", size) / simple.min(axis=1)).max()


def mean_ece(data: pd.DataFrame, size: int) -> float:
    """Return the mean ECE ratio of bayes over data sets other than spkrverif."""
    return by_dataset(data, "bayes", size, "ece15_ratio").drop("spkrverif", errors="ignore").mean()


def pairwise(data: pd.DataFrame, method: str, other: str, size: int) -> pd.Series:
    """Return the NLL of a method over that of another, by data set; only where the other's NLL is finite."""
    part = data[data.rows == size]
    ratios = part.pivot(index=["dataset", "task"], columns="method", values="nll_ratio")
    if not {method, other} <= set(ratios.columns):
        return pd.Series(dtype=float)
    reference = ratios[other].replace(np.inf, np.nan)  # else a rival's failure would be a ratio of 0
    return (ratios[method] / reference).dropna().groupby("dataset").mean()


AIMS = (
    Aim("bayes, CIFAR-10: NLL", {200: 0.978, 1000: 0.955, 5000: 0.945}, of_dataset("cifar10")),
    Aim("bayes, CIFAR-100: NLL", {200: 0.952, 1000: 0.945, 5000: 0.942}, of_dataset("cifar100")),
    Aim("bayes, mean over data sets: NLL", every_size(0.90, 0.93, 0.91, 0.89, 0.85), mean_nll),
    Aim("bayes, worst data set: NLL", every_size(1.05, 1.03, 1.02, 1.01, 1.00), worst_nll),
    Aim(
        "bayes, worst data set: NLL over the best of TS, ETS and none",
        every_size(1.10, 1.05, 1.03, 1.02, 1.02),
        worst_over_simple,
    ),
    Aim("bayes, mean without spkrverif: ECE15", every_size(0.90, 0.90, 0.90, 0.75, 0.70), mean_ece),
    Aim(
        "bayes-bias over bayes, worst data set: NLL",
        every_size(1.02, 1.02, 1.02, 1.01, 1.00),
        lambda data, size: pairwise(data, "bayes-bias", "bayes", size).max(),
    ),
    Aim(
        "bayes-bias over SMS, mean over data sets with K <= 150: NLL",
        every_size(0.95, 0.95, 0.95, 0.95, 0.95),
        lambda data, size: pairwise(data, "bayes-bias", SMS, size).mean(),
    ),
    Aim("bayes, ImageNet: NLL", {2500: 0.985}, of_dataset("imagenet")),
    Aim("bayes, ImageNet: ECE15", {2500: 1.00}, of_dataset("imagenet", "ece15")),
    Aim("bayes, 20news: NLL", {200: 0.30, 1000: 0.30}, of_dataset("20news")),
)


def findings(data: pd.DataFrame) -> list[Finding]:
    """Return every aim with every number of rows that it has a target for."""
    return [
        Finding(aim.words, size, target, float(aim.measure(data, size)))
        for aim in AIMS
        for size, target in aim.targets.items()
    ]


def aims_table(data: pd.DataFrame) -> str:
    """Return the aims beside what was measured."""
    lines = [
        [f.words, str(f.size), f"{f.target:.3f}", number(f.measured, 4), f.verdict] for f in findings(data)
    ]
    return markdown(["aim", "N", "at most", "measured", ""], lines)


def aims_text(data: pd.DataFrame) -> str:
    """Return the aims for a terminal."""
    found = findings(data)
    lines = [
        f"{f.words:60} {f.size:>5} {f.target:8.3f} {number(f.measured, 4):>9} {f.verdict}" for f in found
    ]
    met = sum(f.verdict == "met" for f in found)
    return "\n".join([*lines, f"{met} of {len(found)} aims met", coverage(data)])


def coverage(data: pd.DataFrame) -> str:
    """Return on how many cells the methods with aims were run: the averages are over these alone."""
    cells = len(data[["task", "rows"]].drop_duplicates())
    counts = (f"{method} {(data.method == method).sum()}" for method in ("bayes", "bayes-bias", SMS))
    return f"run on, of {cells} cells: {', '.join(counts)}"
