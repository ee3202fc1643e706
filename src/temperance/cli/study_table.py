"""`temperance study table`: a folder of results -> a table as the paper's."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli.inputs import FILE, method_names_option

EXAMPLES = """\b
Examples:
  temperance study table study --metric nll --n 200
  temperance study table study --metric ece --n 1000 --errors --paper
  temperance study table study -m ts,hts,bayes --format latex > table.tex

\b
Each row is a task; averages are of scores divided by the uncalibrated one.
md and latex show an ECE in percent, csv has it as a fraction, with all
digits. latex needs \\usepackage{booktabs,multirow,graphicx}.
"""


@click.command(epilog=EXAMPLES, short_help="Tasks by methods, as in the paper.")
@click.argument("folder", metavar="DIR", type=FILE)
@click.option(
    "--metric",
    default="nll",
    help="nll, ece (50 bins, as the paper's), ece15, brier, or one of the study's own.",
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
@click.option("--paper", is_flag=True, help="Put the paper's figures beside the tasks it has.")
@method_names_option("all with results")
def table(
    folder: Path,
    metric: str,
    size: int | None,
    form: str,
    errors: bool,
    paper: bool,
    methods: list[str] | None,
) -> None:
    """Print a table of the study in DIR, finished or not."""
    from temperance.study import Results
    from temperance.study.table_text import WRITERS
    from temperance.study.tables import make_table

    made = make_table(Results(folder), metric, size, methods=methods, errors=errors, paper=paper)
    click.echo(WRITERS[form](made), nl=False)
