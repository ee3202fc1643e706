"""The tables and the figure of what `bayes_evaluation` measured, for the accuracy page and the README.

    python benchmarks/bayes_report.py

Reads docs/bayesian/scores.csv.gz, fills the generated blocks of the two pages (see `generated_blocks`), and
draws docs/bayesian/accuracy.svg.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from bayes_tables import by_dataset, comparable, lost_table, reduction_table, summary_table, win_rate_table
from figure_style import GREY, ON_ANY_GROUND
from generated_blocks import fill_blocks

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "bayesian"
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks" / "accuracy.md")
FIGURE_SIZES = (20, 50, 200, 1000)  # that nearly all data sets have: a line joins the same ones
FIGURE_METHODS = {
    "probmetrics-svs": ("probmetrics SVS", "#E69F00"),
    "probmetrics-sms": ("probmetrics SMS", "#D55E00"),
    "bayes": ("bayes", "#009E73"),
    "bayes-bias": ("bayes-bias", "#0072B2"),
}


def read_scores() -> pd.DataFrame:
    """Return the scores, one line per task, number of rows and method."""
    return pd.read_csv(FOLDER / "scores.csv.gz")


def tables(data: pd.DataFrame) -> dict[str, str]:
    """Return every table by the name that a page's block asks for it."""
    return {
        "summary": summary_table(data),
        **{f"reduction-{metric}": reduction_table(data, metric) for metric in ("nll", "brier", "ece15")},
        "win-rates": win_rate_table(data),
        "lost-bayes-bias": lost_table(data, "bayes-bias"),
        "lost-bayes": lost_table(data, "bayes"),
    }


def figure(data: pd.DataFrame, path: Path) -> None:
    """Draw the log loss relative to temperature scaling against the number of labels."""
    mpl.use("Agg")
    mpl.rcParams.update(ON_ANY_GROUND | {"svg.hashsalt": "temperance"})
    from matplotlib import pyplot as plt

    part = comparable(data)
    common = set.intersection(*(set(by_dataset(part, "bayes", size).index) for size in FIGURE_SIZES))
    part = part[part.dataset.isin(common)]
    fig, ax = plt.subplots(figsize=(7.2, 3.9), layout="constrained")
    ax.axhline(1, color=GREY, lw=1, label="temperature scaling")
    for name, (label, colour) in FIGURE_METHODS.items():
        means = [by_dataset(part, name, size).mean() for size in FIGURE_SIZES]
        is_ours = name.startswith("bayes")
        ax.plot(FIGURE_SIZES, means, "o-", color=colour, lw=2.2 if is_ours else 1.4, label=label)
    ax.set_xscale("log")
    ax.set_xticks(FIGURE_SIZES, [f"{size:,}" for size in FIGURE_SIZES])
    ax.minorticks_off()
    ax.set(xlabel="labelled rows", ylabel="log loss / log loss of temperature scaling")
    ax.set_title(f"Mean over {len(common)} data sets; lower is better", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def main() -> None:
    """Fill the pages and draw the figure."""
    data = read_scores()
    named = tables(data)
    for page in PAGES:
        page.write_text(fill_blocks(page.read_text(encoding="utf-8"), named), encoding="utf-8")
    figure(data, FOLDER / "accuracy.svg")


if __name__ == "__main__":
    main()
