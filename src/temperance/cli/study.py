"""`temperance study`: the paper's study on a folder of tasks: run it, then make tables and figures of it."""

from __future__ import annotations

import click

from temperance.cli.study_export import export
from temperance.cli.study_figure import figure
from temperance.cli.study_run import run
from temperance.cli.study_table import table

EXAMPLES = """\b
Examples:
  temperance study run tasks/ --out study
  temperance study table study --metric nll --n 200
  temperance study figure study avg_NLL
  temperance study export study -o results.csv.gz
"""


@click.group(epilog=EXAMPLES, short_help="All methods, few rows and many, on a folder of tasks.")
def study() -> None:
    """Evaluate every method on a folder of tasks, fitted to few rows and to many."""


for command in (run, table, figure, export):
    study.add_command(command)
