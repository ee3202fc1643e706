"""What Markdown and LaTeX tables share: escaped characters, aligned columns, a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Markup:
    """How Markdown and LaTeX differ in the treatment of a cell."""

    escapes: dict[int, str]
    bold: str
    infinite: str
    missing: str

    def text(self, words: str) -> str:
        """Return escaped text; file names may contain any character."""
        return "".join(sign if sign.isprintable() else "?" for sign in words).translate(self.escapes)


MARKDOWN = Markup(str.maketrans({sign: f"\\{sign}" for sign in r"\|*`<"}), "**{}**", "inf", "—")
LATEX = Markup(
    str.maketrans(
        {sign: f"\\{sign}" for sign in "&%#$_{}"}
        | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
        | {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", MINUS: "$-$", "+": "$+$", "—": "--"}
    ),
    r"\textbf{{{}}}",
    r"$\infty$",
    "--",
)


def aligned(lines: Sequence[Sequence[str]], left: int = 2) -> str:
    """Return a Markdown table that is readable as text, with numbers aligned to the right."""
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    padded = [
        [cell.ljust(width) if i < left else cell.rjust(width) for i, (cell, width) in enumerate(pairs)]
        for pairs in (zip(line, widths, strict=True) for line in lines)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [padded[0], rule, *padded[1:]])


def latex_line(cells: Sequence[str]) -> str:
    """Return a line of a LaTeX table."""
    return f"{' & '.join(cells)} " + r"\\"


def latex_table(
    columns: str, head: Sequence[str], blocks: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """Return a LaTeX table of blocks of lines, the first note as its caption, the others below."""
    caption, *others = notes
    lines = [
        r"% needs \usepackage{booktabs,multirow,graphicx}",
        r"\begin{table}",
        r"\centering",
        # scaled down if it is too wide, never up
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        latex_line(head),
        *(line for block in blocks for line in (r"\midrule", *block)),
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{caption}}}",
        *(rf"\par{{\footnotesize {note}\par}}" for note in others),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
