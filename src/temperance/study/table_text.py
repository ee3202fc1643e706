"""A table of a study as Markdown, as LaTeX for a paper, or as CSV for a program.

Markdown and LaTeX show the best in bold, a few decimals and an ECE in percent, with notes below. CSV has all
digits in natural units, an ECE as a fraction, and no averages. LaTeX needs booktabs, multirow and graphicx.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.study.markup import LATEX, MARKDOWN, MINUS, Markup, aligned, latex_line, latex_table
from temperance.study.names import dataset_name, model_name, task_name
from temperance.study.paper import DRAWS as PAPER_DRAWS
from temperance.study.summary_text import Summary, sheet_of
from temperance.study.tables import Entry, Group, Row, Table, Unit


def to_markdown(table: Table | Summary) -> str:
    """Return a table as Markdown, with aligned columns, so that it is readable as text.

    Parameters
    ----------
    table : Table, Ranks, WinRates or Improvements
        From `make_table`, `rank_methods`, `win_rates` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study import make_table
    >>> from temperance.study.example import example_results
    >>> print(to_markdown(make_table(example_results())).splitlines()[2])
    | CIFAR-10 | a             |       0.8000 | **0.4000** |
    """
    if not isinstance(table, Table):
        return sheet_of(table).to_markdown()
    lines = [["Data set", "Task", *_headings(table)]]
    for group in table.groups:
        names = [MARKDOWN.text(dataset_name(group.dataset))] + [""] * (len(group.rows) - 1)
        lines += [[name, *_line(MARKDOWN, table, row)] for name, row in zip(names, group.rows, strict=True)]
    if table.overall is not None:
        lines.append(["", *_line(MARKDOWN, table, table.overall)])
    notes = [MARKDOWN.text(note) for note in _notes(table)]
    return "\n\n".join([aligned(lines), *notes]) + "\n"


def to_latex(table: Table | Summary) -> str:
    """Return a table as LaTeX, in the layout of the paper's tables.

    Parameters
    ----------
    table : Table, Ranks, WinRates or Improvements
        From `make_table`, `rank_methods`, `win_rates` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study import make_table
    >>> from temperance.study.example import example_results
    >>> "textbf{0.4000}" in to_latex(make_table(example_results()))
    True
    """
    if not isinstance(table, Table):
        return sheet_of(table).to_latex()
    blocks = [_latex_group(table, group) for group in table.groups]
    if table.overall is not None:
        blocks.append([latex_line(["", *_line(LATEX, table, table.overall)])])
    head = ["", "Task", *map(LATEX.text, _headings(table))]
    return latex_table(f"ll{'c' * len(table.methods)}", head, blocks, list(map(LATEX.text, _notes(table))))


def to_csv(table: Table | Summary) -> str:
    """Return a table as CSV: a column for each method, and one for its standard error, such as `hts_se`.

    `rows` is the number of rows that methods were fitted to. Missing values are empty. Ranks and improvements
    have a line for each method, win rates one for each pair.

    Parameters
    ----------
    table : Table, Ranks, WinRates or Improvements
        From `make_table`, `rank_methods`, `win_rates` or `mean_improvements`.

    Examples
    --------
    >>> from temperance.study import make_table
    >>> from temperance.study.example import example_results
    >>> print(to_csv(make_table(example_results())), end="")
    dataset,model,rows,classes,none,ts
    cifar10,a,200,10,0.8,0.4
    cifar10,b,200,10,0.8,0.2
    """
    if not isinstance(table, Table):
        return sheet_of(table).to_csv()
    columns = [name for key in table.methods for name in ([key, f"{key}_se"] if table.errors else [key])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["dataset", "model", "rows", "classes", *columns])
    writer.writerows(_csv_line(table, row) for row in table.rows("task", "paper"))
    return text.getvalue()


WRITERS: dict[str, Callable[[Table | Summary], str]] = {"md": to_markdown, "latex": to_latex, "csv": to_csv}
"""Writers by the name of the format on the command line."""


def _line(style: Markup, table: Table, row: Row) -> list[str]:
    name = row.label if row.kind != "task" else model_name(row.label)
    label = style.text(f"{name}{'*' if row.is_short else ''}")
    return [label, *(_cell(style, table, row, entry) for entry in row.entries)]


def _cell(style: Markup, table: Table, row: Row, entry: Entry | None) -> str:
    if entry is None:
        return style.missing if row.kind in ("task", "average") else ""
    if row.kind == "difference":
        return style.text(shown_difference(entry, table.unit))
    if np.isinf(entry.value):
        return style.infinite
    value = table.unit.shown(entry.value, row.kind)
    value = style.bold.format(value) if entry.bold else value
    has_error = table.errors and np.isfinite(entry.error)
    return value + (style.text(f" ± {table.unit.shown(entry.error)}") if has_error else "")


def _headings(table: Table) -> list[str]:
    return [method_style(key).label for key in table.methods]


def shown_difference(entry: Entry, unit: Unit) -> str:
    """Return a difference in standard errors, or in units of the metric without one; = if not visible."""
    if not float(unit.shown(abs(entry.value))):
        return "="
    if np.isfinite(entry.error):
        return f"{entry.value / entry.error:+.1f} se".replace("-", MINUS)
    return f"{MINUS if entry.value < 0 else '+'}{unit.shown(abs(entry.value))}"


def _latex_group(table: Table, group: Group) -> list[str]:
    lines = []
    for row in group.rows:
        if row.kind == "average":
            lines.append(rf"\cmidrule{{2-{2 + len(table.methods)}}}")
        name = "" if row is not group.rows[0] else _latex_name(group)
        lines.append(latex_line([name, *_line(LATEX, table, row)]))
    return lines


def _latex_name(group: Group) -> str:
    """Return the name of a data set for the margin, rotated if its rows are high enough."""
    dataset, height = dataset_name(group.dataset), len(group.rows)
    name = LATEX.text(dataset)
    if height == 1:
        return f"{{{name}}}"  # in braces, or a name such as [a] would be an option of the rule above it
    if len(dataset) <= 2 * height:
        name = rf"\rotatebox[origin=c]{{90}}{{{name}}}"
    return rf"\multirow{{{height}}}{{*}}{{{name}}}"


def _csv_line(table: Table, row: Row) -> list[str]:
    assert row.task is not None  # of these kinds
    cells = [row.task.dataset, row.label, str(min(table.n, row.task.rows)), str(row.task.classes)]
    for entry in row.entries:
        cells.append("" if entry is None else repr(entry.value))
        if table.errors:
            cells.append("" if entry is None or np.isnan(entry.error) else repr(entry.error))
    return cells


def _notes(table: Table) -> list[str]:
    """Return the notes of a table, the caption first."""
    notes = [_caption(table)]
    if table.overall is not None or table.rows("average"):
        notes.append(
            "Avg. relative: mean over tasks, if all have it, of a score divided by the uncalibrated one."
        )
        if left_out := "; ".join(map(task_name, table.left_out)):
            notes.append(
                f"Not in averages, as the uncalibrated score is missing, zero or infinite: {left_out}."
            )
    short = [row.task for row in table.rows("task") if row.is_short and row.task is not None]
    if counts := "; ".join(f"{task_name(task)}: {task.rows}" for task in short):
        notes.append(f"* all rows, fewer than {table.n}: {counts}.")
    return notes + (_paper_notes(table) if table.paper else [])


def _caption(table: Table) -> str:
    spread = ", ± its standard error" if table.errors else ""
    whole = [row for row in table.rows("task") if row.task is not None and row.task.rows <= table.n]
    once = "; where that is all rows, deterministic methods are fitted once" if whole else ""
    return (
        f"{table.unit.title} on test rows of methods fitted to {table.n} validation rows: "
        f"mean of {_draws(table)}{spread}{once}. {_direction(table)}"
    )


def _direction(table: Table) -> str:
    if table.better is None:
        return "Whether lower or higher is better is not known, so nothing is bold."
    return f"{table.better.capitalize()} is better, the best of a row is bold."


def _draws(table: Table) -> str:
    """Return the number of draws, and the methods with another number, whose means are not comparable."""
    columns = dict(
        zip(table.methods, zip(*(row.entries for row in table.rows("task")), strict=True), strict=True)
    )
    del columns[UNCALIBRATED]
    drawn = [row.task is not None and row.task.rows > table.n for row in table.rows("task")]
    if not any(drawn):  # fits to all rows: deterministic ones are made once
        usual, others = _range([entry for column in columns.values() for entry in column]).split(" ")[-1], ""
    else:
        shown = {key: _range(list(compress(column, drawn))) for key, column in columns.items()} or {"": "0"}
        usual = max(shown.values(), key=list(shown.values()).count)
        others = ", ".join(
            f"{method_style(key).label} {draws}" for key, draws in shown.items() if draws != usual
        )
    return f"{usual} draw{'' if usual == '1' else 's'}{f' (of {others})' if others else ''}"


def _range(entries: Sequence[Entry | None]) -> str:
    """Return the number of draws, or the fewest and the most."""
    draws = [entry.draws for entry in entries if entry is not None] or [0]
    return f"{min(draws)} to {max(draws)}" if min(draws) < max(draws) else str(max(draws))


def _paper_notes(table: Table) -> list[str]:
    if not table.rows("paper"):
        return ["No task of the study is one of the paper's."]
    notes = [
        "(paper: ...): the paper's results for the same classifier, recognised by its uncalibrated ECE, NLL "
        "and Brier score. The paper's ETS minimises the Brier score: it is under ETS-Brier."
    ]
    if table.errors:
        notes.append(
            "(difference): ours minus the paper's, in standard errors (se) of the difference; the paper "
            f"gives no errors, and its {PAPER_DRAWS} draws are assumed to vary as ours do. If our error is "
            "missing or rounds to zero: the difference itself; = if both numbers are equal as shown."
        )
    return notes
