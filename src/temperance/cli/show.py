"""`temperance methods` and `temperance show`: the table of methods, and a calibrator file, for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich import box
from rich.table import Table

from temperance.cli import options
from temperance.cli.output import Output
from temperance.cli.rows import calibrator_for_json
from temperance.errors import on_one_line

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator

METHODS_EXAMPLES = """\b
Examples:
  temperance methods
  temperance methods | grep "can change"
"""
SHOW_EXAMPLES = """\b
Examples:
  temperance show cal.json
  temperance show cal.json | grep "fitted on"
  temperance show cal.json --json
"""

NOTES = """The default of fit is bayes; fit --set NAME=VALUE sets an option.
Methods that end in -sgd are trained as in the paper, which takes much longer."""


@click.command(cls=options.Command, epilog=METHODS_EXAMPLES, short_help="List the methods.")
def methods(output: Output) -> None:
    """List the methods: what each computes, its options, and whether it can change predictions."""
    from temperance.calibrators import CALIBRATORS

    table = Table("method", "what it computes", "options", "predictions", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    plain = {method.estimator: key for key, method in CALIBRATORS.items() if not method.options}
    for key, method in CALIBRATORS.items():
        _, _, computes = method.summary.partition(": ")
        settings = [f"{name}={value}" for name, value in method().get_params().items()]
        if method.options:
            fixed = ", ".join(f"{name}={value}" for name, value in method.options.items())
            computes, settings = f"{plain[method.estimator]} with {fixed}", []
        changes = "unchanged" if method.keeps_class else "can change"
        table.add_row(key, computes, ", ".join(settings), changes)
    output.say(table)
    output.say(NOTES)


@click.command(cls=options.Command, epilog=SHOW_EXAMPLES, short_help="Describe a saved calibrator.")
@click.argument("calibrator", type=options.INPUT)
@options.output_options
def show(calibrator: Path, output: Output) -> None:
    """Describe the calibrator file CALIBRATOR: its formula, fitted numbers, rows and notes."""
    from temperance.calibrator_file import load

    fitted = load(calibrator)
    model = fitted.model_
    output.show(details_of(fitted), wrap=False)
    output.result(
        calibrator=calibrator_for_json(calibrator, fitted),
        classes=model.n_classes,
        class_names=model.record.class_names,
        rows=model.n_rows,
        options=fitted.get_params(),
        parameters={name: value.tolist() for name, value in fitted.parameters().items()},
        automation=None if model.automation is None else model.automation.to_dict(),
        metadata=fitted.metadata_,
        summary=fitted.summary(),
    )


def details_of(fitted: Calibrator) -> str:
    """Return the summary of a calibrator, and the user's own notes, one on each line."""
    notes = [f"{name}: {json.dumps(value)}" for name, value in fitted.metadata_.items()]
    return "\n".join([fitted.summary(), *map(on_one_line, notes)])
