"""`temperance show`: a calibrator file in words and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temperance.cli.options import FILE
from temperance.cli.output import Output
from temperance.errors import on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator

EXAMPLES = """\b
Examples:
  temperance show cal.json
  temperance show cal.json | grep "fitted on"
"""


@click.command(epilog=EXAMPLES, short_help="Describe a saved calibrator.")
@click.argument("calibrator", type=FILE)
def show(calibrator: Path) -> None:
    """Describe the calibrator file CALIBRATOR: its formula, fitted numbers, rows and notes."""
    from temperance.calibrator_file import load

    Output("show").text(details_of(load(calibrator)))


def details_of(fitted: Calibrator) -> str:
    """Return the summary of a calibrator, and the user's own notes, one on each line."""
    notes = [f"{name}: {json.dumps(value)}" for name, value in fitted.metadata_.items()]
    return "\n".join([fitted.summary(), *map(on_one_line, notes)])
