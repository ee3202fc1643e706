"""`temperance study table`: a folder of results -> a table of scores, ranks, win rates or improvements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from temperance.cli.options import FILE, method_names_option
from temperance.errors import InputError

EXAMPLES = """\b
Examples:
  temperance study table study --metric nll --n 200
  temperance study table study --metric ece --n 1000 --errors --paper
  temperance study table study -m ts,hts,bayes --format latex > table.tex
  temperance study table study --kind ranks --over datasets
  temperance study table study --kind wins --metric ece
  temperance study table study --kind improvements --to none --format csv

\b
  scores        a row for each task; averages are relative to the
                uncalibrated classifier
  ranks         mean ranks, Friedman test, Nemenyi's critical difference
  wins          share of tasks on which a method beats another
  improvements  geometric mean of scores relative to --to, with intervals

\b
md and latex show an ECE in percent, csv has it as a fraction, with all
digits. latex needs \\usepackage{booktabs,multirow,graphicx}.
"""

_ONLY_FOR = {
    "errors": ("scores",),
    "paper": ("scores",),
    "over": ("ranks", "wins", "improvements"),
    "to": ("improvements",),
}


@click.command(epilog=EXAMPLES, short_help="Scores, ranks, win rates, improvements.")
@click.argument("folder", metavar="DIR", type=FILE)
@click.option(
    "--kind",
    type=click.Choice(["scores", "ranks", "wins", "improvements"]),
    default="scores",
    help="Content of the table, see below.",
)
@click.option(
    "--metric",
    default="nll",
    help="nll, ece (50 bins, as in the paper), ece15, brier, or one of your own.",
)
@click.option(
    "--better",
    type=click.Choice(["lower", "higher"]),
    help="Which scores are better, for a metric of your own.",
)
@click.option("--n", "size", type=int, help="Rows fitted to.  [default: the fewest of the study]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "latex", "csv"]),
    default="md",
    help="Markdown, LaTeX, or CSV for programs.",
)
@click.option("--errors", is_flag=True, help="Add standard errors of the means over draws.")
@click.option("--paper", is_flag=True, help="Add the paper's results to the tasks that it has.")
@click.option(
    "--over",
    type=click.Choice(["tasks", "datasets"]),
    help="What means are taken over.  [default: tasks]",
)
@click.option("--to", metavar="METHOD", help="Reference method of improvements.  [default: ts]")
@method_names_option("all with results")
def table(
    folder: Path,
    kind: str,
    metric: str,
    better: str | None,
    size: int | None,
    form: str,
    methods: list[str] | None,
    **options: Any,
) -> None:
    """Print a table of the study in DIR, finished or not."""
    from temperance import study
    from temperance.study.comparisons import mean_improvements, rank_methods, win_rates
    from temperance.study.table_text import WRITERS

    makers: dict[str, Callable[..., Any]] = {
        "scores": study.make_table,
        "ranks": rank_methods,
        "wins": win_rates,
        "improvements": mean_improvements,
    }
    given = {name: value for name, value in options.items() if value}
    for name in given:
        if kind not in _ONLY_FOR[name]:
            raise InputError(
                f"--{name} is for --kind {' or '.join(_ONLY_FOR[name])}; found --kind {kind}. Leave it out."
            )
    made = makers[kind](study.Results(folder), metric, size, methods=methods, better=better, **given)
    click.echo(WRITERS[form](made), nl=False)
