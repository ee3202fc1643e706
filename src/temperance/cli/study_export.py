"""`temperance study export`: a folder of results -> one CSV file."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli.inputs import FILE, check_apart, force_option
from temperance.cli.output import Output, quiet_option
from temperance.errors import on_one_line

EXAMPLES = """\b
Examples:
  temperance study export study -o results.csv
  temperance study export study -o results.csv.gz --force
"""


@click.command(epilog=EXAMPLES, short_help="All results as one CSV file.")
@click.argument("folder", metavar="DIR", type=FILE)
@click.option("-o", "--out", type=FILE, required=True, help="A .csv file, or .csv.gz.")
@force_option
@quiet_option("study export")
def export(folder: Path, out: Path, force: bool, output: Output) -> None:
    """Write all results of the study in DIR, a line for each fit."""
    from temperance.study import Results
    from temperance.study.store import FILE_NAME
    from temperance.study.table_text import export_results

    results = Results(folder)
    check_apart(out, folder / FILE_NAME)
    export_results(results, out, overwrite=force)
    output.say(f"{len(results.scores)} results saved to {on_one_line(out)}")
