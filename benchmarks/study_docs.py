"""Tables, figures and raw results of the paper's study, from the folders of two studies.

    temperance study run TASKS --out study
    temperance study run PAPERS_TASK --out study-paper --methods ts,...,pts-ece-sgd
    python benchmarks/study_docs.py study study-paper --out build/study-docs

The first is the study; the second has the paper's own task alone, with the paper's training as well. `make
study` runs all three. The page docs/benchmarks/paper.md is written by hand from what this writes; the raw
results are kept in docs/study.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from study_claims import entropy_line, gain_by_classes, robustness, same_temperatures, table

from temperance.calibrators import method_style
from temperance.files import write_atomically
from temperance.metrics.table import Metric
from temperance.study.comparisons import mean_improvements, rank_methods
from temperance.study.figures import FIGURES, SUFFIXES, save_figure
from temperance.study.paper import DRAWS, PaperTask, paper_figures
from temperance.study.results import METRICS, Results
from temperance.study.tables import make_table, papers_task, record_of, to_csv, to_markdown

SGD = {"hts": "hts-sgd", "lts": "lts-sgd", "hnlts": "hnlts-sgd", "pts": "pts-sgd", "pts-ece": "pts-ece-sgd"}
BESIDE = ("ts", "ets-brier", "bts", "hts", "lts", "hnlts", "pts", "pts-plain", "pts-ece")


def write(path: Path, text: str) -> None:
    """Write a text file, in place of an older one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode(), overwrite=True)


def write_tables(results: Results, out: Path) -> None:
    """Write the tables of the paper's layout: for people, and for programs with standard errors."""
    for metric in METRICS:
        for n in results.sizes:
            write(out / "tables" / f"{metric}-{n}.md", to_markdown(make_table(results, metric, n)))
            write(out / "tables" / f"{metric}-{n}.csv", to_csv(make_table(results, metric, n, errors=True)))


def write_summaries(results: Results, out: Path) -> None:
    """Write ranks and improvements: one page for each metric and size."""
    for metric in METRICS:
        for n in results.sizes:
            what = (results, metric, n)
            summaries = {
                "Mean ranks": rank_methods(*what),
                "Mean ranks, each data set once": rank_methods(*what, over="datasets"),
                "Improvements over TS": mean_improvements(*what, to="ts"),
                "Improvements over the uncalibrated classifier": mean_improvements(*what, to="none"),
            }
            page = "\n".join(f"## {title}\n\n{to_markdown(found)}" for title, found in summaries.items())
            write(out / "summaries" / f"{metric}-{n}.md", page)


def write_figures(results: Results, out: Path) -> None:
    """Write all figures, each in three formats; critical differences also for each size."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in SUFFIXES:
        for name in FIGURES:
            if not name.startswith("cd_"):
                save_figure(results, name, folder / f"{name}{suffix}", overwrite=True)
                continue
            for n in results.sizes:
                save_figure(results, name, folder / f"{name}-{n}{suffix}", n=n, overwrite=True)


def beside_paper(results: Results, metric: str) -> str:
    """Return our figures for the paper's task beside the paper's, with the difference in standard errors."""
    (task,) = results.tasks
    found = papers_task(results, task)
    assert found == PaperTask("CIFAR-10", "ResNet 50"), "the second study must have the paper's task alone"
    unit, rows = record_of(metric), []
    for n in results.sizes:
        figures, summary = paper_figures(found, n, metric), results.summary(metric, n)
        for method in BESIDE:
            line = [str(n), method_style(method).label, unit.shown(figures[method])]
            for key in (method, SGD.get(method)):
                known = (task.name, key) in summary.index
                line += [*beside(summary.loc[(task.name, key)], figures[method], unit)] if known else ["", ""]
            rows.append(line)
    head = ["N", "method", "paper", "ours", "off by", "ours by SGD", "off by"]
    return f"{table(head, rows)}\n"


def beside(ours: pd.Series, paper: float, unit: Metric) -> tuple[str, str]:
    """Return a mean with its error, and what it differs by, in bold from two standard errors on.

    The paper has no standard errors: its draws are assumed to vary as ours do, so with as many draws its
    error equals ours. If ours is unknown, or rounds to zero, the rounding of the paper's number dominates,
    and the difference itself is shown.
    """
    mean, error, gap = ours["mean"], ours["error"], ours["mean"] - paper
    shown = unit.shown(mean) + (f" ± {unit.shown(error)}" if np.isfinite(error) else "")
    if not np.isfinite(gap):
        return shown, ""
    if not float(unit.shown(abs(gap))):
        return shown, "="
    if not (np.isfinite(error) and float(unit.shown(error))):
        return shown, f"{'-' if gap < 0 else '+'}{unit.shown(abs(gap))}"
    errors = gap / (error * np.sqrt(1 + ours["draws"] / DRAWS))
    return shown, f"**{errors:+.1f} se**" if abs(errors) > 2 else f"{errors:+.1f} se"


def times(*studies: Results) -> str:
    """Return what the fits of each method took."""
    rows = []
    for results in studies:
        for time in results.times().itertuples():
            if any(row[0] == method_style(time.Index).label for row in rows):
                continue
            each = [f"{1000 * seconds / time.fits:.1f}" for seconds in (time.fit_seconds, time.apply_seconds)]
            total = f"{(time.fit_seconds + time.apply_seconds) / 60:.1f}"
            ended = [str(time.failed), str(time.unconverged)]
            rows.append([method_style(time.Index).label, str(time.fits), *ended, *each, total])
    return (
        table(["method", "fits", "failed", "not converged", "fit ms", "apply ms", "all, minutes"], rows)
        + "\n"
    )


def main() -> None:
    """Write everything but the page in words."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path)
    parser.add_argument("paper", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results, paper = Results(options.study), Results(options.paper)
    write_tables(results, options.out)
    write_summaries(results, options.out)
    write_figures(results, options.out)
    write(options.out / "times.md", times(results, paper))
    for metric in ("nll", "ece", "brier"):
        write(options.out / f"paper-{metric}.md", beside_paper(paper, metric))
    for metric in ("nll", "ece"):
        text = "\n\n".join(robustness(results, n, metric) for n in results.sizes)
        write(options.out / "claims" / f"robustness-{metric}.md", f"{text}\n")
    write(options.out / "claims" / "classes.md", gain_by_classes(results, results.sizes[-1]) + "\n")
    write(options.out / "claims" / "entropy.md", entropy_line(results) + "\n")
    write(options.out / "claims" / "pts-and-hts.md", same_temperatures(results) + "\n")
    results.export(options.out / "results.csv.gz", overwrite=True)
    paper.export(options.out / "results-paper.csv.gz", overwrite=True)


if __name__ == "__main__":
    main()
