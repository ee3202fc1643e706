"""Tables and figures of what `bayes_evaluation` measured.

    python benchmarks/bayes_report.py docs/bayesian

Reads scores.csv.gz there; writes results.md, average.png and average.svg beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

GROUPS = {"CIFAR-10": ["cifar10"], "CIFAR-100": ["cifar100"], "other": None}
METRICS = {
    "nll": "NLL",
    "brier": "Brier score",
    "ece15": "ECE, 15 bins",
    "smooth_ece": "smooth ECE",
    "classwise_ece": "class-wise ECE",
}
SHOWN = {
    "ts": ("TS", "#000000"),
    "hts": ("HTS", "#E69F00"),
    "ets": ("ETS", "#999999"),
    "pts": ("PTS", "#56B4E9"),
    "hnlts": ("HnLTS", "#CC79A7"),
    "pm sms": ("SMS", "#D55E00"),
    "bayes": ("bayes", "#009E73"),
    "bayes class_bias": ("bayes, class_bias", "#0072B2"),
}


def read(folder: Path) -> pd.DataFrame:
    """Return a line for each task, number of rows and method, with the ratios to TS."""
    scores = pd.read_csv(folder / "scores.csv.gz")
    keys = ["task", "rows"]
    single = scores[scores.method == "ts"].set_index(keys)[list(METRICS)]
    joined = scores.join(single.add_suffix("_ts"), on=keys)
    for metric in METRICS:
        joined[f"{metric}_ratio"] = joined[metric] / joined[f"{metric}_ts"]
    joined["group"] = "other"
    for group, datasets in GROUPS.items():
        if datasets:
            joined.loc[joined.dataset.isin(datasets), "group"] = group
    return joined


def number(value: float) -> str:
    """Format a ratio: three decimals while that is sensible."""
    return f"{value:.3f}" if value < 10 else f"{value:.3g}"


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """Return a table."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def ratio_table(data: pd.DataFrame, metric: str, group: str) -> str:
    """Return mean ratio to TS with its standard error over tasks, and the worst task; best in bold."""
    part = data[(data.group == group) & (data.method != "ts")]
    sizes = sorted(part.rows.unique())
    means = part.pivot_table(index="method", columns="rows", values=f"{metric}_ratio", aggfunc="mean")
    best = means.drop(index="none", errors="ignore").min()
    lines = []
    for method in part.method.unique():
        cells = [method]
        for size in sizes:
            values = part[(part.method == method) & (part.rows == size)][f"{metric}_ratio"]
            finite = np.isfinite(values).all() and len(values) > 1
            error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}" if finite else ""
            mean = number(values.mean())
            mean = f"**{mean}**" if values.mean() <= best[size] + 5e-4 else mean
            cells.append(f"{mean}{error}, {number(values.max())}")
        lines.append(cells)
    return markdown(["method", *(f"N = {size}" for size in sizes)], lines)


def small_table(data: pd.DataFrame) -> str:
    """Return NLL over the better of TS and no calibration, task by task: mean, worst task."""
    lines = []
    for size in (20, 50, 100):
        nll = data[data.rows == size].pivot(index="task", columns="method", values="nll")
        for reference, single in (("TS of this package", "ts"), ("TS of probmetrics", "pm ts")):
            best = nll[[single, "none"]].min(axis=1)
            cells = [str(size), reference]
            for method in ("ts", "pm ts", "hts", "bayes", "bayes class_bias"):
                ratio = nll[method] / best
                cells.append(f"{number(ratio.mean())}, {number(ratio.max())} ({ratio.idxmax()})")
            lines.append(cells)
    return markdown(["N", "TS meant", "ts", "pm ts", "hts", "bayes", "bayes class_bias"], lines)


def by_dataset(data: pd.DataFrame, method: str, metric: str) -> pd.DataFrame:
    """Return the mean ratio of each data set, for each number of rows."""
    part = data[data.method == method]
    return part.pivot_table(index="dataset", columns="rows", values=f"{metric}_ratio", aggfunc="mean")


def dataset_table(data: pd.DataFrame) -> str:
    """Return what bayes does on each data set: NLL, ECE15 and class-wise ECE over those of TS."""
    tables = [by_dataset(data, "bayes", metric) for metric in ("nll", "ece15", "classwise_ece")]
    sizes = [size for size in (50, 200, 1000, 5000) if size in tables[0].columns]
    lines = []
    for dataset in tables[0].index:
        cells = [dataset]
        for size in sizes:
            values = [table.loc[dataset, size] for table in tables]
            cells.append("" if np.isnan(values[0]) else " / ".join(f"{value:.3f}" for value in values))
        lines.append(cells)
    return markdown(["data set", *(f"N = {size}" for size in sizes)], lines)


def bias_table(data: pd.DataFrame) -> str:
    """Return bayes with class bias beside SMS: mean NLL ratios to TS, and on how many tasks SMS wins."""
    lines = []
    for name, part in (("CIFAR", data[data.group != "other"]), ("all", data)):
        for size in sorted(part.rows.unique()):
            table = part[part.rows == size].pivot(index="task", columns="method", values="nll_ratio")
            ours, theirs = table["bayes class_bias"], table["pm sms"]
            wins = ", ".join((ours / theirs).sort_values(ascending=False).index[:2])
            won = int((theirs < ours).sum())
            cells = [name, str(size), f"{ours.mean():.4f}", f"{theirs.mean():.4f}", f"{won} of {len(table)}"]
            lines.append([*cells, wins if won else ""])
    return markdown(["tasks", "N", "bayes class_bias", "SMS", "SMS is better on", "most on"], lines)


def target_table(data: pd.DataFrame) -> str:
    """Return what was aimed at beside what was measured."""
    lines: list[list[str]] = []

    def aim(what: str, size: int, target: float, measured: float) -> None:
        verdict = "met" if measured <= target else "missed"
        lines.append([what, str(size), f"{target:.3f}", f"{measured:.4f}", verdict])

    ours = data[data.method == "bayes"]
    for group, targets, ece in (
        ("CIFAR-10", {200: 0.992, 1000: 0.986, 5000: 0.980}, 0.90),
        ("CIFAR-100", {200: 0.970, 1000: 0.962, 5000: 0.957}, 0.76),
    ):
        for size, target in targets.items():
            part = ours[(ours.group == group) & (ours.rows == size)]
            aim(f"{group}: mean NLL ratio", size, target, part.nll_ratio.mean())
            aim(f"{group}: mean ECE15 ratio", size, ece, part.ece15_ratio.mean())
    rest = data[data.group == "other"]
    tables = {metric: by_dataset(rest, "bayes", metric) for metric in ("nll", "ece15", "classwise_ece")}
    for size in sorted(ours.rows.unique()):
        aim("other data sets: median NLL ratio", size, 0.995, tables["nll"][size].median())
        if size >= 200:
            aim("other data sets: worst NLL ratio", size, 1.01, tables["nll"][size].max())
        aim("other data sets: median ECE15 ratio", size, 1.0, tables["ece15"][size].median())
        aim("other data sets: mean class-wise ECE ratio", size, 1.0, tables["classwise_ece"][size].mean())
    for size, target in ((20, 0.90), (50, 0.97)):
        nll = data[data.rows == size].pivot(index="task", columns="method", values="nll")
        for single in ("ts", "pm ts"):
            ratio = nll["bayes"] / nll[[single, "none"]].min(axis=1)
            aim(f"NLL over the better of {single} and none: mean", size, target, ratio.mean())
            aim(f"NLL over the better of {single} and none: worst task", size, 1.10, ratio.max())
    return markdown(["aim", "N", "at most", "measured", ""], lines)


def figure(data: pd.DataFrame, folder: Path) -> None:
    """Draw mean relative ECE against mean relative NLL, a line for each method, markers growing with N."""
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "temperance"
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    for ax, group in zip(axes, GROUPS, strict=True):
        part = data[data.group == group]
        for method, (label, colour) in SHOWN.items():
            mean = part[part.method == method].groupby("rows")[["ece15_ratio", "nll_ratio"]].mean()
            sizes = 12 + 26 * np.arange(len(mean))
            ax.plot(mean.ece15_ratio, mean.nll_ratio, color=colour, lw=1, alpha=0.7)
            ax.scatter(mean.ece15_ratio, mean.nll_ratio, sizes, color=colour, label=label, alpha=0.85)
        ax.set(title=group, xlabel="ECE / ECE of TS", xlim=(0.6, 1.5), ylim=(0.84, 1.12))
        ax.axhline(1, color="0.7", lw=0.8, zorder=0)
        ax.axvline(1, color="0.7", lw=0.8, zorder=0)
    axes[0].set_ylabel("NLL / NLL of TS")
    handles, labels = axes[0].get_legend_handles_labels()
    legend = fig.legend(handles, labels, loc="outside lower center", ncol=len(SHOWN), frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([60])
    fig.suptitle(
        "Mean over tasks, markers growing with N = 20, 50, 100, 200, 500, 1000, 5000; lower left is better"
    )
    fig.savefig(folder / "average.png", dpi=140)
    fig.savefig(folder / "average.svg", metadata={"Date": None})


def main() -> None:
    """Write all tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    data = read(folder)
    draws = int(data.draws.max())
    parts = [
        "# Every method from 20 to 5000 rows",
        f"Made by `make bayes-evaluation`: {data.task.nunique()} tasks of {data.dataset.nunique()} data "
        f"sets, {draws} draws (one where N is all rows). For `bayes` and `bayes class_bias` the prior was "
        "learned without the task's data set. `pm` methods are those of probmetrics. Cells are the mean over "
        "tasks of the ratio to TS, ± its standard error over tasks, and the ratio of the worst task.",
        "![averages](average.png)",
    ]
    parts += ["## What was aimed at", target_table(data)]
    for metric, title in METRICS.items():
        for group in GROUPS:
            count = data[data.group == group].task.nunique()
            parts += [f"## {title}: {group}, {count} tasks", ratio_table(data, metric, group)]
    parts += [
        "## Few rows: NLL over the better of TS and no calibration, task by task",
        "Mean over tasks, worst task. Plain TS sends T to 0 where no row is wrong; this package's TS has a "
        "weak prior there, and is a harder reference.",
        small_table(data),
        "## Class bias: NLL over that of TS, beside SMS",
        bias_table(data),
        "## bayes by data set: NLL / ECE15 / class-wise ECE over those of TS",
        dataset_table(data),
    ]
    (folder / "results.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    figure(data, folder)


if __name__ == "__main__":
    main()
