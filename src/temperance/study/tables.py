"""Tables of a study as Markdown, as LaTeX for a paper, or as CSV for a program.

A table of scores has the paper's layout: tasks by methods, with averages. An average is the mean over tasks
of a method's score divided by the uncalibrated score. It is shown only if all tasks have the method, since
averages over different tasks are not comparable. A task whose uncalibrated score is missing, zero or infinite
has no such ratio and is left out for all methods. There are also tables of ranks and of improvements.

Markdown and LaTeX show the best in bold, a few decimals, the ECE in percent, and notes below. CSV has all
digits in natural units, the ECE as a fraction, and no averages. LaTeX needs booktabs and graphicx. pandas
writes CSV; its other writers have no notes, and need more packages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
import pandas as pd

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison.table import INFINITY, LATEX, MARKDOWN, MINUS, MISSING, Markup
from temperance.inputs.validation import check_choice
from temperance.metrics import METRICS
from temperance.metrics.table import Metric
from temperance.study.comparisons import ALPHA, MIN_DATASETS, Improvements, PairedScores, Ranks
from temperance.study.paper import METRICS as PAPER_METRICS
from temperance.study.paper import PaperTask, check_in_paper, paper_figures, recognise
from temperance.study.results import Better, Results, better_scores
from temperance.study.tasks import TaskFile

_RECORDS: dict[str, Metric] = {
    "ece": replace(METRICS["ece"], label="ECE (50 bins)"),
    "ece15": replace(METRICS["ece"], label="ECE (15 bins)"),
    "nll": METRICS["nll"],
    "brier": METRICS["brier"],
}


def record_of(metric: str) -> Metric:
    """Return the label and format of a metric; the user's own metrics are not scaled."""
    return _RECORDS.get(metric, Metric(label=metric, help="", interval="none", range=(-math.inf, math.inf)))


def p_value_in_words(p: float) -> str:
    """Return a p-value as text, such as "p = 0.012"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


class Cell(NamedTuple):
    """A cell of a table; the text in `best` comes first, in bold."""

    words: str
    best: str = ""

    def written(self, markup: Markup) -> str:
        """Return the cell in Markdown or LaTeX."""
        best = markup.bold.format(markup.text(self.best)) if self.best else ""
        return best + markup.text(self.words)


@dataclass(frozen=True, eq=False)
class Table:
    """A table as text for people, and with all digits for programs.

    Attributes
    ----------
    head : sequence of str
        The names of the columns.
    groups : sequence of groups of lines of cells
        LaTeX has a rule between groups.
    notes : sequence of str
        What is below the table; the first is the caption.
    data : data frame
        The numbers, in natural units.
    left : int
        The first columns, so many, have words.
    """

    head: Sequence[str]
    groups: Sequence[Sequence[Sequence[Cell]]]
    notes: Sequence[str]
    data: pd.DataFrame
    left: int = 1


# ---- formats


def to_markdown(found: Table | Ranks | Improvements) -> str:
    """Return a table as Markdown, with aligned columns, so that it is readable as text.

    Parameters
    ----------
    found : Table, Ranks or Improvements
        From `make_table`, `rank_methods` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> print(to_markdown(make_table(example_results())).splitlines()[2])
    | cifar10  | a             |       0.8000 | **0.4000** |
    """
    table = _as_table(found)
    n_numbers = len(table.head) - table.left
    lines = [[MARKDOWN.text(words) for words in table.head], [":--"] * table.left + ["--:"] * n_numbers]
    lines += [[cell.written(MARKDOWN) for cell in line] for group in table.groups for line in group]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = "<" * table.left + ">" * n_numbers
    text = "\n".join(
        f"| {' | '.join(f'{c:{side}{width}}' for c, side, width in zip(line, sides, widths, strict=True))} |"
        for line in lines
    )
    return "\n\n".join([text, *map(MARKDOWN.text, table.notes)]) + "\n"


def to_latex(found: Table | Ranks | Improvements) -> str:
    """Return a table as LaTeX.

    Parameters
    ----------
    found : Table, Ranks or Improvements
        From `make_table`, `rank_methods` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> "textbf{0.4000}" in to_latex(make_table(example_results()))
    True
    """
    table = _as_table(found)
    caption, *others = map(LATEX.text, table.notes)
    body = [f"{' & '.join(map(LATEX.text, table.head))} \\\\"]
    for group in table.groups:
        body.append(r"\midrule")
        body += [f"{' & '.join(cell.written(LATEX) for cell in line)} \\\\" for line in group]
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        # scaled down if it is too wide, never up
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{'l' * table.left}{'r' * (len(table.head) - table.left)}}}",
        r"\toprule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{caption}}}",
        *(rf"\par{{\footnotesize {note}\par}}" for note in others),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_csv(found: Table | Ranks | Improvements) -> str:
    """Return a table as CSV: one column per method, and one for its standard error, such as `hts_se`.

    `rows` is the number of rows that methods were fitted to. Missing values are empty. Ranks and improvements
    have one line per method.

    Parameters
    ----------
    found : Table, Ranks or Improvements
        From `make_table`, `rank_methods` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> print(to_csv(make_table(example_results())), end="")
    dataset,model,rows,classes,none,ts
    cifar10,a,200,10,0.8,0.4
    cifar10,b,200,10,0.8,0.2
    """
    return _as_table(found).data.to_csv(index=False, lineterminator="\n")


WRITERS: dict[str, Callable[[Table | Ranks | Improvements], str]] = {
    "md": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
}
"""Writers by the name of the format on the command line."""


def _as_table(found: Table | Ranks | Improvements) -> Table:
    if isinstance(found, Table):
        return found
    return _ranks_table(found) if isinstance(found, Ranks) else _improvements_table(found)


# ---- scores


def make_table(
    results: Results,
    metric: str = "nll",
    n: int | None = None,
    *,
    methods: Sequence[str] | None = None,
    errors: bool = False,
    paper: bool = False,
    better: Better | None = None,
) -> Table:
    """Return the table of a metric.

    Parameters
    ----------
    results
        The results of a study, finished or not.
    metric : {"nll", "ece", "ece15", "brier"} or str
        Mean negative log-likelihood, ECE with 50 (as in the paper) or 15 bins, Brier score, or one of your
        own metrics.
    n : int, optional
        Rows that methods were fitted to, by default the fewest of the study.
    methods : sequence of str, optional
        By default all that have a result with this number of rows. The uncalibrated classifier always
        comes first.
    errors : bool
        Show the standard errors of means over draws.
    paper : bool
        Add the paper's results to the tasks that it has.
    better : "lower" or "higher", optional
        Which scores of your own metric are better. Without it, nothing is marked as the best.

    Examples
    --------
    >>> from temperance.study.results import example_results
    >>> make_table(example_results(), "nll", 200).data["ts"].tolist()
    [0.4, 0.2]
    """
    check_choice("metric", metric, results.metrics)
    direction, size, record = better_scores(metric, better), results.choose_size(n), record_of(metric)
    if paper:
        check_in_paper(size, metric)
    columns = [UNCALIBRATED, *results.choose_methods(metric, size, methods)]
    names = [task.name for task in results.tasks]
    summary = results.summary(metric, size).unstack("method")
    mean, error, draws = (
        summary[part].reindex(names, columns=columns) for part in ("mean", "error", "draws")
    )
    ratios = results.ratios(metric, size, to=UNCALIBRATED).reindex(columns=columns)
    blocks: list[tuple[str, list[list[Cell]]]] = []
    data: list[dict[str, object]] = []
    for dataset, tasks in results.datasets().items():
        lines: list[list[Cell]] = []
        for task in tasks:
            known = {"dataset": dataset, "model": task.model, "rows": min(size, task.rows)}
            known["classes"] = task.classes
            ours, spread = mean.loc[task.name], error.loc[task.name] if errors else None
            short = "*" if task.rows < size else ""
            lines.append([Cell(f"{task.model}{short}"), *_cells(ours, record.shown, direction, spread)])
            data.append(known | _numbers(ours, spread))
            if paper and (found := papers_task(results, task)):
                label, theirs = f"(paper: {found.model})", pd.Series(paper_figures(found, size, metric))
                theirs, unknown = theirs.reindex(columns), None if spread is None else spread * np.nan
                lines.append([Cell(label), *_cells(theirs, record.shown)])
                data.append(known | {"model": label} | _numbers(theirs, unknown))
        if len(tasks) > 1:
            lines.append(_average_line(ratios, tasks, direction))
        blocks.append((dataset, lines))
    if len(blocks) > 1:
        blocks.append(("All tasks", [_average_line(ratios, results.tasks, direction)]))
    head = ["Data set", "Task", *(method_style(key).label for key in columns)]
    groups = [[[Cell("" if i else name), *line] for i, line in enumerate(lines)] for name, lines in blocks]
    usual = int(np.nan_to_num(draws.drop(columns=UNCALIBRATED).max(axis=None)))
    notes = [
        f"{record.label[:1].upper()}{record.label[1:]}{' in %' * (record.unit == '%')} on test rows of "
        f"methods fitted to {size} validation rows: mean of up to {usual} "
        f"draw{'s' * (usual != 1)}{', ± its standard error' * errors}. {_direction_in_words(direction)}"
    ]
    if len(results.tasks) > 1:
        notes.append(
            "Avg. relative: mean over tasks, if all have it, of a score divided by the uncalibrated one."
        )
        if left_out := "; ".join(task.title for task in results.tasks if task.name not in ratios.index):
            notes.append(
                f"Not in averages, as the uncalibrated score is missing, zero or infinite: {left_out}."
            )
    if counts := "; ".join(f"{task.title}: {task.rows}" for task in results.tasks if task.rows < size):
        notes.append(f"* all rows, fewer than {size}: {counts}.")
    if len(data) > len(results.tasks):
        notes.append(
            "(paper: ...): the paper's results for the same classifier, recognised by its uncalibrated ECE, "
            "NLL and Brier score. The paper's ETS minimises the Brier score: it is under ETS-Brier."
        )
    elif paper:
        notes.append("No task of the study is one of the paper's.")
    return Table(head, groups, notes, pd.DataFrame(data), left=2)


def papers_task(results: Results, task: TaskFile) -> PaperTask | None:
    """Return the paper's task with the same uncalibrated scores, or None."""
    n = results.sizes[0]
    scores = {metric: results.means(metric, n).at[task.name, UNCALIBRATED] for metric in PAPER_METRICS}
    return None if np.isnan(list(scores.values())).any() else recognise(scores)


def _average_line(ratios: pd.DataFrame, tasks: Sequence[TaskFile], better: Better | None) -> list[Cell]:
    mean = ratios[ratios.index.isin([task.name for task in tasks])].mean(skipna=False)
    return [Cell("Avg. relative"), *_cells(mean, "{:.3f}".format, better)]


def _direction_in_words(better: Better | None) -> str:
    if better is None:
        return "It is unknown whether lower or higher is better, so nothing is bold."
    return f"{better.capitalize()} is better; the best of a row is bold."


def _cells(
    values: pd.Series,
    write: Callable[[float], str],
    better: Better | None = None,
    errors: pd.Series | None = None,
) -> list[Cell]:
    """Return numbers and their standard errors; bold are the best, and all that look equal to it."""
    shown = values.map(lambda value: _shown(value, write))
    finite = values[np.isfinite(values)]
    best = None
    if better is not None and len(finite) > 1:
        best = shown[finite.idxmin() if better == "lower" else finite.idxmax()]
    cells = []
    for key, words in shown.items():
        spread = ""
        if errors is not None and np.isfinite(errors[key]):
            spread = f" ± {write(errors[key])}"
        cells.append(Cell(spread, words) if words == best else Cell(words + spread))
    return cells


def _shown(value: float, write: Callable[[float], str]) -> str:
    """Return a number as text; a missing or an infinite one as its sign."""
    if np.isnan(value):
        return MISSING
    return write(value) if np.isfinite(value) else MINUS * (value < 0) + INFINITY


def _numbers(values: pd.Series, errors: pd.Series | None) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, value in values.items():
        numbers[key] = value
        if errors is not None:
            numbers[f"{key}_se"] = errors[key]
    return numbers


# ---- ranks and improvements


def _ranks_table(ranks: Ranks) -> Table:
    scores, n_methods = ranks.scores, len(ranks.mean)
    letters = [
        "".join(letter for letter, group in zip(ascii_lowercase, ranks.groups, strict=False) if key in group)
        for key in ranks.mean.index
    ]
    test = (
        f"Friedman test: chi-squared = {ranks.statistic:.1f} with {n_methods - 1} degrees of freedom, "
        f"{p_value_in_words(ranks.p_value)}. "
    )
    if ranks.p_value < ALPHA:
        test += (
            f"Nemenyi's critical difference at {ALPHA:.0%}: {ranks.critical_difference:.2f}; methods that "
            "share a letter differ by less."
        )
    else:
        test += f"It finds no difference at {ALPHA:.0%}, so all methods share a letter."
    notes = [f"Mean rank by {_compared(scores)}; 1 is the best.", test]
    if ranks.over == "datasets":
        notes.append(f"Each of the {scores.datasets} data sets counts once.")
    elif scores.datasets < len(scores.tasks):
        notes.append(
            "The test assumes independent tasks. Tasks of one data set are not independent, so p is too "
            "small. Count each data set once to avoid this."
        )
    data = pd.DataFrame(
        {
            "method": ranks.mean.index,
            "mean_rank": ranks.mean.to_numpy(),
            "groups": letters,
            "tasks": len(scores.tasks),
            "friedman": ranks.statistic,
            "p_value": ranks.p_value,
            "critical_difference": ranks.critical_difference,
        }
    )
    lines = [
        [Cell(method_style(key).label), Cell(f"{mean:.2f}"), Cell(words)]
        for (key, mean), words in zip(ranks.mean.items(), letters, strict=True)
    ]
    return Table(["Method", "Mean rank", "Group"], [lines], notes + _left_out(scores), data)


def _improvements_table(found: Improvements) -> Table:
    scores, reference = found.scores, method_style(found.reference).label
    gains = found.improvement(found.table["ratio"]).drop(found.reference)
    data = found.table.loc[gains.sort_values(ascending=False, kind="stable").index]
    lines = []
    for method, line in data.iterrows():
        gain, *ends = found.improvement(line[["ratio", "low", "high"]])
        interval = MISSING
        if np.isfinite(ends).all():
            interval = " to ".join(_signed_percent(end) for end in sorted(ends))
        shown = method_style(method).label, _signed_percent(gain), interval, f"{100 * line['better_on']:.0f}"
        lines.append([Cell(words) for words in shown])
    caption = (
        f"Mean improvement over {reference} in %, by {_compared(scores)}: geometric mean of the ratios of "
        f"scores, positive where the method is better than {reference}."
    )
    interval_note = f"Interval: none, since there are fewer than {MIN_DATASETS} data sets."
    if scores.datasets >= MIN_DATASETS:
        interval_note = f"Interval: Student's, by leaving out each of the {scores.datasets} data sets."
    better_on = f"Better on: how often, in %, the method beats {reference}."
    head = ["Method", "Improvement", f"{1 - ALPHA:.0%} interval", "Better on"]
    data = data.reset_index()
    data.insert(1, "reference", found.reference)
    return Table(head, [lines], [caption, interval_note, better_on, *_left_out(scores)], data)


def _compared(scores: PairedScores) -> str:
    """Return what was compared: the metric, the number of rows, and the tasks."""
    direction = "" if scores.better == "lower" else ", higher is better,"
    tasks = f"{len(scores.tasks)} task{'s' * (len(scores.tasks) != 1)}"
    datasets = f"{scores.datasets} data set{'s' * (scores.datasets != 1)}"
    return f"{record_of(scores.metric).label}{direction} with {scores.n} rows over {tasks} of {datasets}"


def _left_out(scores: PairedScores) -> list[str]:
    names = "; ".join(task.title for task in scores.left_out)
    return [f"Left out, since a score is missing or has no ratio: {names}."] if names else []


def _signed_percent(change: float) -> str:
    return _shown(change, lambda value: f"{100 * value:+.1f}".replace("-", MINUS))
