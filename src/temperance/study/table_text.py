"""A table of a study as Markdown, as LaTeX for a paper, or as CSV for a program.

People see the best in bold, a few decimals and an ECE in percent, with notes below. A program gets all digits
in natural units, an ECE as a fraction, and no averages. LaTeX needs booktabs, multirow and graphicx.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.study.paper import DRAWS as PAPER_DRAWS
from temperance.study.tables import Entry, Group, Row, Table, Unit
from temperance.study.tasks import TaskFile

_MINUS = "\N{MINUS SIGN}"


def to_markdown(table: Table) -> str:
    """Return a table for a page of Markdown, with its columns aligned, so that it reads well as it is.

    Parameters
    ----------
    table : Table
        From `make_table`.

    Examples
    --------
    >>> from temperance.study.tables import Entry, Group, Row
    >>> row = Row("task", "resnet", (Entry(0.55), Entry(0.43, bold=True)))
    >>> table = Table("nll", 200, ("none", "ts"), (Group("cifar10", (row,)),), None, (), False, False)
    >>> print(to_markdown(table).splitlines()[2])
    | cifar10  | resnet |       0.5500 | **0.4300** |
    """
    lines = [["Data set", "Task", *_headings(table)]]
    for group in table.groups:
        names = [_MARKDOWN.text(group.dataset)] + [""] * (len(group.rows) - 1)
        lines += [[name, *_MARKDOWN.line(table, row)] for name, row in zip(names, group.rows, strict=True)]
    if table.overall is not None:
        lines.append(["", *_MARKDOWN.line(table, table.overall)])
    notes = [_MARKDOWN.text(note) for note in _notes(table)]
    return "\n\n".join([_aligned(lines), *notes]) + "\n"


def to_latex(table: Table) -> str:
    """Return a table for a paper, laid out as those of the paper.

    Parameters
    ----------
    table : Table
        From `make_table`.

    Examples
    --------
    >>> from temperance.study.tables import Entry, Group, Row
    >>> row = Row("task", "resnet", (Entry(0.55), Entry(0.43, bold=True)))
    >>> table = Table("nll", 200, ("none", "ts"), (Group("cifar10", (row,)),), None, (), False, False)
    >>> "textbf{0.4300}" in to_latex(table)
    True
    """
    blocks = [_latex_group(table, group) for group in table.groups]
    if table.overall is not None:
        blocks.append([_latex_line(["", *_LATEX.line(table, table.overall)])])
    caption, *notes = map(_LATEX.text, _notes(table))
    lines = [
        r"% needs \usepackage{booktabs,multirow,graphicx}",
        r"\begin{table}",
        r"\centering",
        # made narrower where it is too wide, never wider
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{ll{'c' * len(table.methods)}}}",
        r"\toprule",
        _latex_line(["", "Task", *map(_LATEX.text, _headings(table))]),
        *(line for block in blocks for line in (r"\midrule", *block)),
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{caption}}}",
        *(rf"\par{{\footnotesize {note}\par}}" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Return a table for a program: a column for each method, and with errors another, as `hts_se`.

    `rows` is how many rows methods were fitted to. What is missing is empty.

    Parameters
    ----------
    table : Table
        From `make_table`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from temperance.study.tables import Entry, Group, Row
    >>> from temperance.study.tasks import TaskFile
    >>> task = TaskFile("cifar10__resnet", Path("task.npz"), "9f86", 5000, 10000, 10)
    >>> row = Row("task", "resnet", (Entry(0.55), Entry(0.43)), task)
    >>> table = Table("nll", 200, ("none", "ts"), (Group("cifar10", (row,)),), None, (), False, False)
    >>> print(to_csv(table), end="")
    dataset,model,rows,classes,none,ts
    cifar10,resnet,200,10,0.55,0.43
    """
    columns = [name for key in table.methods for name in ([key, f"{key}_se"] if table.errors else [key])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["dataset", "model", "rows", "classes", *columns])
    writer.writerows(_csv_line(table, row) for row in table.rows("task", "paper"))
    return text.getvalue()


WRITERS: dict[str, Callable[[Table], str]] = {"md": to_markdown, "latex": to_latex, "csv": to_csv}
"""By what the command line calls the format."""


@dataclass(frozen=True)
class _Style:
    """What the two formats for people do differently to a cell."""

    escapes: dict[int, str]
    bold: str
    infinite: str
    missing: str

    def text(self, words: str) -> str:
        """Return words that stand for themselves, also a file's name, which may have any sign in it."""
        return "".join(sign if sign.isprintable() else "?" for sign in words).translate(self.escapes)

    def line(self, table: Table, row: Row) -> list[str]:
        label = self.text(f"{row.label}{'*' if row.is_short else ''}")
        return [label, *(self.cell(table, row, entry) for entry in row.entries)]

    def cell(self, table: Table, row: Row, entry: Entry | None) -> str:
        if entry is None:
            return self.missing if row.kind in ("task", "average") else ""
        if row.kind == "difference":
            return self.text(shown_difference(entry, table.unit))
        if np.isinf(entry.value):
            return self.infinite
        value = table.unit.shown(entry.value, row.kind)
        value = self.bold.format(value) if entry.bold else value
        has_error = table.errors and np.isfinite(entry.error)
        return value + (self.text(f" ± {table.unit.shown(entry.error)}") if has_error else "")


_MARKDOWN = _Style(str.maketrans({sign: f"\\{sign}" for sign in r"\|*`<"}), "**{}**", "inf", "—")
_LATEX = _Style(
    str.maketrans(
        {sign: f"\\{sign}" for sign in "&%#$_{}"}
        | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
        | {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", _MINUS: "$-$", "+": "$+$", "—": "--"}
    ),
    r"\textbf{{{}}}",
    r"$\infty$",
    "--",
)


def _headings(table: Table) -> list[str]:
    return [method_style(key).label for key in table.methods]


def shown_difference(entry: Entry, unit: Unit) -> str:
    """Return a difference in its standard errors, or as it is where it has none; = if it cannot be seen."""
    if not float(unit.shown(abs(entry.value))):
        return "="
    if np.isfinite(entry.error):
        return f"{entry.value / entry.error:+.1f} se".replace("-", _MINUS)
    return f"{_MINUS if entry.value < 0 else '+'}{unit.shown(abs(entry.value))}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if i < 2 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    padded = [
        [cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(pairs)]
        for pairs in (zip(line, widths, strict=True) for line in lines)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [padded[0], rule, *padded[1:]])


def _latex_line(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} " + r"\\"


def _latex_group(table: Table, group: Group) -> list[str]:
    lines = []
    for row in group.rows:
        if row.kind == "average":
            lines.append(rf"\cmidrule{{2-{2 + len(table.methods)}}}")
        name = "" if row is not group.rows[0] else _latex_name(group)
        lines.append(_latex_line([name, *_LATEX.line(table, row)]))
    return lines


def _latex_name(group: Group) -> str:
    """Return the name of a data set for the margin, rotated unless it is longer than its rows are high."""
    name, height = _LATEX.text(group.dataset), len(group.rows)
    if height == 1:
        return f"{{{name}}}"  # in braces, or a name as [a] would be an option of the rule above it
    if len(group.dataset) <= 2 * height:
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
    """Return what a reader must know, the caption first."""
    notes = [_caption(table)]
    if table.overall is not None or table.rows("average"):
        notes.append(
            "Avg. relative: mean over tasks, if all have it, of a score divided by the uncalibrated one."
        )
        if left_out := ", ".join(map(_name, table.left_out)):
            notes.append(
                f"Not in averages, as the uncalibrated score is missing, zero or infinite: {left_out}."
            )
    short = [row.task for row in table.rows("task") if row.is_short and row.task is not None]
    if counts := ", ".join(f"{_name(task)} {task.rows}" for task in short):
        notes.append(f"* all rows, fewer than {table.n}: {counts}.")
    return notes + (_paper_notes(table) if table.paper else [])


def _caption(table: Table) -> str:
    spread = ", ± its standard error" if table.errors else ""
    whole = [row for row in table.rows("task") if row.task is not None and row.task.rows <= table.n]
    once = "; where that is all rows, deterministic methods are fitted once" if whole else ""
    return (
        f"{table.unit.title} on test rows of methods fitted to {table.n} validation rows: "
        f"mean of {_draws(table)}{spread}{once}. Lower is better, the best of a row is bold."
    )


def _draws(table: Table) -> str:
    """Return how many subsamples there are, and which methods have another number: theirs are other means."""
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
        "(paper: ...): the paper's figures for the same classifier, recognised by its uncalibrated ECE, NLL "
        "and Brier score. The paper's ETS minimises the Brier score: it is under ETS-Brier."
    ]
    if table.errors:
        notes.append(
            "(difference): ours minus the paper's, in standard errors (se) of the difference; the paper "
            f"gives none, and its {PAPER_DRAWS} draws are taken to scatter as ours. Where our error is none "
            "or rounds to zero, the difference itself; = where both figures are equal as shown."
        )
    return notes


def _name(task: TaskFile) -> str:
    return task.name if task.dataset == task.model else f"{task.dataset} {task.model}"
