"""Tables and summaries of a study as Markdown, as LaTeX for a paper, or as CSV for a program.

Each becomes a sheet: cells and notes for people, a data frame for programs. Markdown and LaTeX show the best
in bold, a few decimals, the ECE in percent, and notes below. CSV has all digits in natural units, the ECE as
a fraction, and no averages. LaTeX needs booktabs, multirow and graphicx. pandas writes CSV, but its other
writers support neither names in the margin nor notes.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
import pandas as pd

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison.table import INFINITY, LATEX, MARKDOWN, MINUS, MISSING, Markup
from temperance.errors import InputError
from temperance.files import check_writable, write_atomically
from temperance.study.comparisons import (
    ALPHA,
    LEVEL,
    Improvements,
    PairedScores,
    Ranks,
)
from temperance.study.results import Results
from temperance.study.tables import Kind, Table, p_value_in_words, record_of

Summary = Ranks | Improvements


class Cell(NamedTuple):
    """A cell of a table; the text in `best` comes first, in bold."""

    words: str
    best: str = ""


def _cell(markup: Markup, cell: Cell) -> str:
    best = markup.bold.format(markup.text(cell.best)) if cell.best else ""
    return best + markup.text(cell.words)


class Line(NamedTuple):
    """A line of a table, with or without a rule above it."""

    cells: list[Cell]
    ruled: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table as text: with notes for people, caption first, and with all digits for programs.

    The lines are in blocks, whose name, if any, is in the margin. The first `left` columns have text.
    """

    head: Sequence[str]
    blocks: Sequence[tuple[str, Sequence[Line]]]
    notes: Sequence[str]
    data: pd.DataFrame
    left: int = field(default=1, kw_only=True)


def _latex_line(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} " + r"\\"


def _latex_margin(name: str, height: int) -> str:
    """Return the name of a block for the margin, rotated if its lines are high enough."""
    words = LATEX.text(name)
    if height == 1:
        # In braces: otherwise a name such as [a] would be an option of the rule above it.
        return f"{{{words}}}" if words else ""
    if len(name) <= 2 * height:
        words = rf"\rotatebox[origin=c]{{90}}{{{words}}}"
    return rf"\multirow{{{height}}}{{*}}{{{words}}}"


def _sheet_of(table: Table | Summary) -> Sheet:
    """Return a table or a summary as a sheet."""
    if isinstance(table, Table):
        return _table_sheet(table)
    return _ranks_sheet(table) if isinstance(table, Ranks) else _improvements_sheet(table)


def to_markdown(table: Table | Summary) -> str:
    """Return a table as Markdown, with aligned columns, so that it is readable as text.

    Parameters
    ----------
    table : Table, Ranks or Improvements
        From `make_table`, `rank_methods` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study.tables import make_table
    >>> from temperance.study.results import example_results
    >>> print(to_markdown(make_table(example_results())).splitlines()[2])
    | cifar10  | a             |       0.8000 | **0.4000** |
    """
    sheet = _sheet_of(table)
    lines = [[MARKDOWN.text(words) for words in sheet.head]]
    for name, block in sheet.blocks:
        for i, line in enumerate(block):
            margin = [MARKDOWN.text("" if i else name)] if sheet.left == 2 else []
            lines.append([*margin, *map(partial(_cell, MARKDOWN), line.cells)])
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if i < sheet.left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    padded = [
        [c.ljust(width) if i < sheet.left else c.rjust(width) for i, (c, width) in enumerate(pairs)]
        for pairs in (zip(line, widths, strict=True) for line in lines)
    ]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in [padded[0], rule, *padded[1:]])
    return "\n\n".join([text, *map(MARKDOWN.text, sheet.notes)]) + "\n"


def to_latex(table: Table | Summary) -> str:
    """Return a table as LaTeX, in the layout of the paper's tables.

    Parameters
    ----------
    table : Table, Ranks or Improvements
        From `make_table`, `rank_methods` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study.tables import make_table
    >>> from temperance.study.results import example_results
    >>> "textbf{0.4000}" in to_latex(make_table(example_results()))
    True
    """
    sheet = _sheet_of(table)
    caption, *others = map(LATEX.text, sheet.notes)
    columns = "l" * sheet.left + ("c" if sheet.left == 2 else "r") * (len(sheet.head) - sheet.left)
    body = []
    for name, block in sheet.blocks:
        body.append(r"\midrule")
        for i, line in enumerate(block):
            if line.ruled:
                body.append(rf"\cmidrule{{2-{len(sheet.head)}}}")
            margin = ["" if i else _latex_margin(name, len(block))] if sheet.left == 2 else []
            body.append(_latex_line([*margin, *map(partial(_cell, LATEX), line.cells)]))
    lines = [
        r"% needs \usepackage{booktabs,multirow,graphicx}",
        r"\begin{table}",
        r"\centering",
        # scaled down if it is too wide, never up
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_line(["" if sheet.left == 2 and i == 0 else LATEX.text(w) for i, w in enumerate(sheet.head)]),
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{caption}}}",
        *(rf"\par{{\footnotesize {note}\par}}" for note in others),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_csv(table: Table | Summary) -> str:
    """Return a table as CSV: one column per method, and one for its standard error, such as `hts_se`.

    `rows` is the number of rows that methods were fitted to. Missing values are empty. Ranks and improvements
    have one line per method.

    Parameters
    ----------
    table : Table, Ranks or Improvements
        From `make_table`, `rank_methods` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study.tables import make_table
    >>> from temperance.study.results import example_results
    >>> print(to_csv(make_table(example_results())), end="")
    dataset,model,rows,classes,none,ts
    cifar10,a,200,10,0.8,0.4
    cifar10,b,200,10,0.8,0.2
    """
    return _sheet_of(table).data.to_csv(index=False, lineterminator="\n")


WRITERS: dict[str, Callable[[Table | Summary], str]] = {"md": to_markdown, "latex": to_latex, "csv": to_csv}
"""Writers by the name of the format on the command line."""


def export_results(results: Results, path: str | Path, *, overwrite: bool = False) -> None:
    """Write every result, scores with all their digits; a name that ends in .csv.gz is compressed.

    A failed fit has no scores, and a message with the reason. The ECE is a fraction. Times are in seconds, to
    four digits, since further digits are noise, which does not compress.
    """
    name = Path(path).name
    if not name.endswith((".csv", ".csv.gz")):
        raise InputError(f"{path} must end in .csv or .csv.gz; found {''.join(Path(path).suffixes)!r}.")
    check_writable(path, overwrite=overwrite)
    times = {
        column: results.scores[column].map(lambda seconds: float(f"{seconds:.4g}"))
        for column in ("fit_seconds", "apply_seconds")
    }
    frame = results.scores.assign(converged=results.scores["converged"].astype(int), **times)
    content = frame.to_csv(index=False, lineterminator="\n").encode()
    # No time in the header, so that the same results give the same bytes.
    packed = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    write_atomically(path, packed, overwrite=overwrite)


# ---- tables of scores


def _table_sheet(table: Table) -> Sheet:
    blocks: list[tuple[str, list[Line]]] = []
    for i, line in table.lines.iterrows():
        if not blocks or line["dataset"] != table.lines.at[i - 1, "dataset"]:
            blocks.append((line["dataset"], []))
        in_group = line["dataset"] != ""
        short = "*" if line["kind"] == "task" and line["task"].rows < table.n else ""
        cells = [Cell(f"{line['label']}{short}"), *_cells(table, i, line["kind"])]
        blocks[-1][1].append(Line(cells, line["kind"] == "average" and in_group))
    head = ["Data set", "Task", *(method_style(key).label for key in table.methods)]
    return Sheet(head, blocks, _notes(table), _data(table), left=2)


def _cells(table: Table, line: int, kind: Kind) -> list[Cell]:
    best, cells = table.best(line), []
    for key in table.methods:
        value, error = table.value.at[line, key], table.error.at[line, key]
        if np.isnan(value):
            cells.append(Cell(MISSING if kind in ("task", "average") else ""))
        else:
            number = table.shown(value, kind) if np.isfinite(value) else INFINITY
            spread = f" ± {table.shown(error)}" if table.errors and np.isfinite(error) else ""
            cells.append(Cell(spread, number) if key in best else Cell(number + spread))
    return cells


def _data(table: Table) -> pd.DataFrame:
    """Return the scores of tasks, and the paper's, with one column per method and its standard error."""
    lines = table.of_kind("task", "paper")
    tasks = lines["task"]
    names = {
        "dataset": lines["dataset"],
        "model": lines["label"],
        "rows": tasks.map(lambda task: min(table.n, task.rows)),
        "classes": tasks.map(lambda task: task.classes),
    }
    numbers = {}
    for key in table.methods:
        numbers[key] = table.value.loc[lines.index, key]
        if table.errors:
            numbers[f"{key}_se"] = table.error.loc[lines.index, key]
    return pd.DataFrame(names | numbers)


def _notes(table: Table) -> list[str]:
    """Return the notes of a table, the caption first."""
    record = record_of(table.metric)
    tasks = table.of_kind("task")["task"]
    spread = ", ± its standard error" if table.errors else ""
    whole = any(task.rows <= table.n for task in tasks)
    once = "; where that is all rows, deterministic methods are fitted once" if whole else ""
    direction = "It is unknown whether lower or higher is better, so nothing is bold."
    if table.better is not None:
        direction = f"{table.better.capitalize()} is better; the best of a row is bold."
    label = record.label
    notes = [
        f"{label[:1].upper()}{label[1:]}{' in %' * (record.unit == '%')} on test rows of methods fitted to "
        f"{table.n} validation rows: mean of {_draws(table)}{spread}{once}. {direction}"
    ]
    if len(table.of_kind("average")):
        notes.append(
            "Avg. relative: mean over tasks, if all have it, of a score divided by the uncalibrated one."
        )
        if left_out := "; ".join(task.title for task in table.left_out):
            notes.append(
                f"Not in averages, as the uncalibrated score is missing, zero or infinite: {left_out}."
            )
    short = [task for task in tasks if task.rows < table.n]
    if counts := "; ".join(f"{task.title}: {task.rows}" for task in short):
        notes.append(f"* all rows, fewer than {table.n}: {counts}.")
    if table.paper and table.of_kind("paper").empty:
        notes.append("No task of the study is one of the paper's.")
    elif table.paper:
        notes.append(
            "(paper: ...): the paper's results for the same classifier, recognised by its uncalibrated ECE, "
            "NLL and Brier score. The paper's ETS minimises the Brier score: it is under ETS-Brier."
        )
    return notes


def _draws(table: Table) -> str:
    """Return the number of draws, and the methods with a different number, whose means are not comparable."""
    lines = table.of_kind("task")
    draws = table.draws.loc[lines.index].drop(columns=UNCALIBRATED)
    drawn = draws[[task.rows > table.n for task in lines["task"]]]
    if drawn.empty:  # fits to all rows: deterministic ones are made once
        usual, others = f"{np.nan_to_num(draws.max(axis=None)):.0f}", ""
    else:
        ends = np.nan_to_num([drawn.min(), drawn.max()]).T
        ranges = [f"{few:.0f} to {many:.0f}" if few < many else f"{many:.0f}" for few, many in ends]
        shown = dict(zip(drawn, ranges, strict=True)) or {"": "0"}
        usual = max(shown.values(), key=list(shown.values()).count)
        others = ", ".join(
            f"{method_style(key).label} {number}" for key, number in shown.items() if number != usual
        )
    return f"{usual} draw{'' if usual == '1' else 's'}{f' (of {others})' if others else ''}"


# ---- ranks, improvements


def _lines(rows: Sequence[Sequence[str]]) -> list[tuple[str, list[Line]]]:
    """Return rows of words as one block of lines."""
    return [("", [Line([Cell(words) for words in row]) for row in rows])]


def _ranks_sheet(ranks: Ranks) -> Sheet:
    letters = [
        "".join(letter for letter, group in zip(ascii_lowercase, ranks.groups, strict=False) if key in group)
        for key in ranks.methods
    ]
    test = (
        f"Friedman test: chi-squared = {ranks.statistic:.1f} with {len(ranks.methods) - 1} degrees of "
        f"freedom, {p_value_in_words(ranks.p_value)}. "
    )
    if ranks.p_value < ALPHA:
        test += (
            f"Nemenyi's critical difference at {ALPHA:.0%}: {ranks.critical_difference:.2f}; methods that "
            "share a letter differ by less."
        )
    else:
        test += f"It finds no difference at {ALPHA:.0%}, so all methods share a letter."
    scores = ranks.scores
    counted = _tasks(scores)
    if ranks.over == "datasets":
        counted = f"{scores.datasets} data sets, each counting once ({counted})"
    caption = f"Mean rank by {_about(scores)} over {counted}; 1 is the best."
    dependence = []
    if ranks.over == "tasks" and scores.datasets < len(scores.tasks):
        dependence.append(
            "The test assumes independent tasks. Tasks of one data set are not independent, so p is too "
            "small. Count each data set once to avoid this."
        )
    columns = {
        "method": ranks.methods,
        "mean_rank": ranks.mean,
        "groups": letters,
        "tasks": len(scores.tasks),
    }
    tests = {"friedman": ranks.statistic, "p_value": ranks.p_value}
    data = pd.DataFrame(columns | tests | {"critical_difference": ranks.critical_difference})
    return Sheet(
        ["Method", "Mean rank", "Group"],
        _lines(
            [
                [method_style(key).label, f"{mean:.2f}", words]
                for key, mean, words in zip(ranks.methods, ranks.mean, letters, strict=True)
            ]
        ),
        [caption, test, *dependence, *_left_out(scores)],
        data,
    )


def _improvements_sheet(found: Improvements) -> Sheet:
    scores, reference = found.scores, method_style(found.reference).label
    gains = found.improvement(found.table["ratio"]).drop(found.reference)
    data = found.table.loc[gains.sort_values(ascending=False, kind="stable").index]
    rows = []
    for method, line in data.iterrows():
        gain, *ends = found.improvement(line[["ratio", "low", "high"]])
        known = np.isfinite(ends).all()
        interval = " to ".join(_signed_percent(end) for end in sorted(ends)) if known else MISSING
        rows.append(
            [method_style(method).label, _signed_percent(gain), interval, f"{100 * line['better_on']:.0f}"]
        )
    data = data.reset_index()
    data.insert(1, "reference", found.reference)
    caption = (
        f"Mean improvement over {reference} in %, by {_about(scores)} over {_tasks(scores)}: "
        f"geometric mean of the ratios of scores, positive where the method is better than {reference}."
    )
    interval_note = "Interval: none, since one task has no spread."
    if found.resampled is not None:
        left_out = f"{scores.datasets} data sets, each with all its tasks"
        if found.resampled == "tasks":
            left_out = (
                f"{len(scores.tasks)} tasks, as there are too few data sets: it holds for further tasks on "
                "the same data sets"
            )
        interval_note = f"Interval: Student's, by leaving out each of the {left_out}."
    better_on = f"Better on: how often, in %, the method beats {reference}."
    return Sheet(
        ["Method", "Improvement", f"{LEVEL:.0%} interval", "Better on"],
        _lines(rows),
        [caption, interval_note, better_on, *_left_out(scores)],
        data,
    )


def _about(scores: PairedScores) -> str:
    direction = "" if scores.better == "lower" else ", higher is better,"
    return f"{record_of(scores.metric).label}{direction} with {scores.n} rows"


def _tasks(scores: PairedScores) -> str:
    tasks = f"{len(scores.tasks)} task{'s' * (len(scores.tasks) != 1)}"
    return f"{tasks} of {scores.datasets} data set{'s' * (scores.datasets != 1)}"


def _left_out(scores: PairedScores) -> list[str]:
    names = "; ".join(task.title for task in scores.left_out)
    return [f"Left out, since a score is missing or has no ratio: {names}."] if names else []


def _signed_percent(change: float) -> str:
    if np.isinf(change):
        return f"{MINUS if change < 0 else '+'}{INFINITY}"
    return MISSING if np.isnan(change) else f"{100 * change:+.1f}".replace("-", MINUS)
