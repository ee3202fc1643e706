"""The methods of a comparison side by side, lowest log loss first: as numbers, and as a table in text.

Log loss is the NLL. Its difference from the lowest one is paired over rows, with its standard error: hard
rows are hard for all methods, so differences are far more certain than the losses themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from temperance.calibrators import UNCALIBRATED
from temperance.comparison.method_result import Difference
from temperance.metrics import METRICS

if TYPE_CHECKING:
    from temperance.comparison.result import Comparison

MINUS, INFINITY, MISSING = "\N{MINUS SIGN}", "\N{INFINITY}", "\N{EM DASH}"


class Markup(NamedTuple):
    """How Markdown and LaTeX write text: names of methods and files can contain any character."""

    escapes: dict[int, str]
    bold: str

    def text(self, words: str) -> str:
        """Return escaped text."""
        return "".join(sign if sign.isprintable() else "?" for sign in words).translate(self.escapes)


MARKDOWN = Markup(
    str.maketrans({sign: f"\\{sign}" for sign in r"\|*`<"} | {INFINITY: "inf"}),
    "**{}**",
)
LATEX = Markup(
    str.maketrans(
        {sign: f"\\{sign}" for sign in "&%#$_{}"}
        | {"[": "{[}", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
        | {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", MINUS: "$-$", "+": "$+$", MISSING: "--"}
        | {INFINITY: r"$\infty$"}
    ),
    r"\textbf{{{}}}",
)


def numbers(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Return the numbers of each method by name, lowest NLL first; shares and ECE as fractions."""
    ordered, table = sorted(comparison.results.values(), key=lambda result: result.nll), {}
    for result in ordered:
        above = Difference.of_nll(result, ordered[0])
        table[result.method] = {
            "nll": result.scores["nll"].value,
            "difference": above.value,
            "error": above.error,
            "ece": result.scores["ece"].value,
            "accuracy": result.accuracy,
            "changed_share": result.changed_share,
        } | {name: result.scores[name].value for name in comparison.outside_metrics}
    return table


def cells(comparison: Comparison) -> list[list[str]]:
    """Return the headings, and then one row of text per method."""
    rows = [["method", "log loss", "above the lowest", "ECE", "changes predictions"]]
    rows[0] += comparison.outside_metrics
    for name, one in numbers(comparison).items():
        above = f"{one['difference']:.4f} ± {one['error']:.4f}" if len(rows) > 1 else MISSING
        changed = "no" if one["changed_share"] == 0 else f"{100 * one['changed_share']:.2f}%"
        shown = [METRICS["nll"].shown(one["nll"]), above, f"{100 * one['ece']:.2f}%", changed]
        outside = [f"{one[metric]:.4g}" for metric in comparison.outside_metrics]
        rows.append([name, *shown[:3], MISSING if name == UNCALIBRATED else changed, *outside])
    return rows


def to_text(comparison: Comparison) -> list[str]:
    """Return the lines of a table in a fixed-width font; an asterisk marks the recommended method."""
    rows = cells(comparison)
    for row in rows[1:]:
        row[0] += " *" * (row[0] == comparison.recommended)
    return _aligned(rows, "  ")


def to_markdown(comparison: Comparison) -> str:
    """Return the table as Markdown, aligned, the recommended method in bold."""
    head, *rows = _written(comparison, MARKDOWN)
    rule = [":--", *("--:" for _ in head[1:])]
    return "\n".join(f"| {line} |" for line in _aligned([head, rule, *rows], " | "))


def to_latex(comparison: Comparison) -> str:
    """Return the table as LaTeX, the recommended method in bold; it needs booktabs."""
    head, *rows = (" & ".join(row) + r" \\" for row in _written(comparison, LATEX))
    columns = "l" + "r" * (len(cells(comparison)[0]) - 1)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end])


def _written(comparison: Comparison, markup: Markup) -> list[list[str]]:
    head, *rows = cells(comparison)
    written = [[*map(markup.text, head)]]
    for row in rows:
        name = markup.text(row[0])
        bold = markup.bold.format(name) if row[0] == comparison.recommended else name
        written.append([bold, *map(markup.text, row[1:])])
    return written


def _aligned(rows: Sequence[Sequence[str]], between: str) -> list[str]:
    """Return the rows as lines: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        between.join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
