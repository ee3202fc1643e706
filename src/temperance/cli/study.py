"""`temperance study`: the paper's study on a folder of tasks: run it, then make tables and figures of it.

Also `temperance study export`: a folder of results -> one CSV file.
"""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli.options import FILE, check_output_is_not_input, force_option
from temperance.cli.output import Output, output_options
from temperance.cli.study_figure import figure
from temperance.cli.study_run import run
from temperance.cli.study_table import table
from temperance.errors import on_one_line

EXAMPLES = """\b
Examples:
  temperance study run tasks/ --out study
  temperance study table study --metric nll --n 200
  temperance study figure study avg_NLL
  temperance study export study -o results.csv.gz
"""

EXPORT_EXAMPLES = """\b
Examples:
  temperance study export study -o results.csv
  temperance study export study -o results.csv.gz --force
"""


@click.group(epilog=EXAMPLES, short_help="All methods, few rows and many, on a folder of tasks.")
def study() -> None:
    """Evaluate every method on a folder of tasks, fitted to few rows and to many."""


@click.command(epilog=EXPORT_EXAMPLES, short_help="All results as one CSV file.")
@click.argument("folder", metavar="DIR", type=FILE)
@click.option("-o", "--out", type=FILE, required=True, help="A .csv file, or .csv.gz.")
@force_option
@output_options("study export", has_json=False)
def export(folder: Path, out: Path, force: bool, output: Output) -> None:
    """Write all results of the study in DIR, a line for each fit."""
    from temperance.study import Results
    from temperance.study.store import FILE_NAME
    from temperance.study.table_text import export_results

    results = Results(folder)
    check_output_is_not_input(out, folder / FILE_NAME)
    export_results(results, out, overwrite=force)
    output.say(f"{len(results.scores)} results saved to {on_one_line(out)}")


for command in (run, table, figure, export):
    study.add_command(command)
