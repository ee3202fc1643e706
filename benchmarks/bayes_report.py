"""Tables and figures of what `bayes_evaluation` measured.

    python benchmarks/bayes_report.py docs/bayesian            writes the pages and figures
    python benchmarks/bayes_report.py docs/bayesian --aims     prints the aims, and writes nothing

Reads FOLDER/scores.csv.gz; writes results.md, average.png and average.svg beside it, and fills the generated
blocks of the page FOLDER.md (see `generated_blocks`) with the tables of `tables`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from bayes_aims import aims_table, aims_text
from bayes_methods import LIMITS, limits_in_words
from bayes_tables import (
    MAIN_METRICS,
    MAIN_SIZES,
    METRICS,
    better_rivals_table,
    by_dataset,
    dataset_groups,
    improvement_table,
    markdown,
    ratio_table,
    read_scores,
    summary_table,
    win_rate_table,
)
from generated_blocks import fill_blocks

SHOWN = {
    "ts": ("TS", "#000000"),
    "hts": ("HTS", "#E69F00"),
    "ets": ("ETS", "#999999"),
    "pts": ("PTS", "#56B4E9"),
    "probmetrics-svs": ("SVS", "#F0E442"),
    "probmetrics-sms": ("SMS", "#D55E00"),
    "mono": ("mono", "#CC79A7"),
    "bayes": ("bayes", "#009E73"),
    "bayes-bias": ("bayes-bias", "#0072B2"),
}


def tables(data: pd.DataFrame) -> dict[str, str]:
    """Return every table by the name that a page's block asks for it."""
    return {
        "aims": aims_table(data),
        **{f"summary-{metric}": summary_table(data, metric) for metric in ("nll", "ece15")},
        **{f"improvement-{name}": improvement_table(data, name) for name in (*MAIN_METRICS, "accuracy")},
        **{f"win-rates-{metric}": win_rate_table(data, metric) for metric in MAIN_METRICS},
        **{f"ratios-{size}": ratio_table(data, size) for size in sorted(data.rows.unique())},
        **{f"beaten-{method}": better_rivals_table(data, method) for method in ("bayes", "bayes-bias")},
    }


def protocol(data: pd.DataFrame) -> str:
    """Return how the scores were measured."""
    slow = markdown(["slow method", "draws"], [[f"`{name}`", limits_in_words(name)] for name in LIMITS])
    return (
        f"Made by `make bayes-evaluation` from {data.task.nunique()} tasks of {data.dataset.nunique()} data "
        f"sets. In each of {data.draws.max()} draws, all methods are fitted to the same N validation rows "
        "and scored on at most 5000 test rows (2500 with more than 300 classes). N = 5000 means all rows of "
        "tasks with 4000 rows or more: one draw, or three draws of 5000 if there are more rows. Priors were "
        "learned without the task's family of data sets. Slow methods have fewer draws:\n\n"
        f"{slow}\n\n"
        "A ratio is a method's score over that of TS on the same rows, averaged over draws. Averages are "
        "over the tasks of a data set first, then over data sets. A method that gives probability 0 to a "
        "class that occurs has an NLL of inf. scikit-learn's methods do so for classes without calibration "
        "rows, and isotonic regression for others too. A method that cannot be fitted has inf in all scores; "
        "`sklearn-temperature` fails if all calibration rows have the same class (spkrverif)."
    )


def page(data: pd.DataFrame, named: Mapping[str, str]) -> str:
    """Return the page of results, from the scores and their tables."""
    parts = ["# Every method from 20 to 5000 rows", protocol(data), "![averages](average.png)"]
    parts += ["## Aims", named["aims"]]
    parts += [
        "## Win rates",
        "Percent of pairs (task, other method) in which the method has the lower score, as the CalArena "
        "benchmark reports them (arXiv 2605.30188). A tie is not a win. Three implementations of TS are "
        "among the methods, and often tie with each other.",
    ]
    for metric in MAIN_METRICS:
        parts += [f"### {METRICS[metric]}", named[f"win-rates-{metric}"]]
    parts += [
        "## Improvement over no calibration",
        "The mean over data sets of 1 - score / score without calibration, in percent; for the accuracy, the "
        "difference in percentage points.",
    ]
    for metric, title in {**{m: METRICS[m] for m in MAIN_METRICS}, "accuracy": "Accuracy"}.items():
        parts += [f"### Improvement: {title}", named[f"improvement-{metric}"]]
    parts += [
        "## Ratios to TS",
        "Means over the data sets on which a method was run. The lowest among the methods that were run on "
        "all data sets is in bold; means over different numbers of data sets cannot be compared.",
    ]
    for size in sorted(data.rows.unique()):
        parts += [f"### N = {size}", named[f"ratios-{size}"]]
    parts += ["## Where another method has the lower NLL", named["beaten-bayes"], named["beaten-bayes-bias"]]
    parts += ["## NLL over that of TS, by group of data sets", named["summary-nll"]]
    parts += ["## ECE15 over that of TS, by group of data sets", named["summary-ece15"]]
    return "\n\n".join(parts) + "\n"


def figure(data: pd.DataFrame, folder: Path) -> None:
    """Draw mean relative ECE against mean relative NLL, a line for each method, markers growing with N."""
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "temperance"
    from matplotlib import pyplot as plt

    groups = dataset_groups(data)
    fig, axes = plt.subplots(1, len(groups), figsize=(12, 4.4), layout="constrained")
    for ax, (title, part) in zip(axes, groups.items(), strict=True):
        draw_methods(ax, part)
        ax.set(title=title, xlabel="ECE / ECE of TS", xlim=(0.6, 1.75), ylim=(0.75, 1.2))
        ax.axhline(1, color="0.7", lw=0.8, zorder=0)
        ax.axvline(1, color="0.7", lw=0.8, zorder=0)
    axes[0].set_ylabel("NLL / NLL of TS")
    handles, labels = axes[0].get_legend_handles_labels()
    legend = fig.legend(handles, labels, loc="outside lower center", ncol=len(SHOWN), frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([60])
    sizes = ", ".join(str(size) for size in MAIN_SIZES)
    fig.suptitle(f"Mean over data sets, markers growing with N = {sizes}; lower left is better")
    fig.savefig(folder / "average.png", dpi=140)
    fig.savefig(folder / "average.svg", metadata={"Date": None})
    plt.close(fig)


def draw_methods(ax: mpl.axes.Axes, part: pd.DataFrame) -> None:
    """Draw each method as a line of points, one for each number of rows."""
    for method, (label, colour) in SHOWN.items():
        if method not in set(part.method):
            continue
        ece = [by_dataset(part, method, size, "ece15_ratio").mean() for size in MAIN_SIZES]
        nll = [by_dataset(part, method, size).mean() for size in MAIN_SIZES]
        ax.plot(ece, nll, color=colour, lw=1, alpha=0.7)
        ax.scatter(ece, nll, 12 + 26 * np.arange(len(MAIN_SIZES)), color=colour, label=label, alpha=0.85)


def main() -> None:
    """Write all tables and figures, or print the aims."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--aims", action="store_true", help="Print the aims alone.")
    options = parser.parse_args()
    data = read_scores(options.folder)
    if options.aims:
        print(aims_text(data))
        return
    named = tables(data)
    (options.folder / "results.md").write_text(page(data, named), encoding="utf-8")
    beside = options.folder.with_suffix(".md")
    if beside.exists():
        beside.write_text(fill_blocks(beside.read_text(encoding="utf-8"), named), encoding="utf-8")
    figure(data, options.folder)


if __name__ == "__main__":
    main()
