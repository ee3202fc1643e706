"""`temperance automate`: a calibrator file and held-out rows -> which predictions need no person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from temperance.cli import options
from temperance.cli.output import Output
from temperance.cli.rows import (
    calibrator_for_json,
    file_for_json,
    labels_for,
    open_for_calibrator,
    say_columns,
)
from temperance.data.read_options import ReadOptions
from temperance.errors import on_one_line

EXAMPLES = """\b
Examples:
  temperance automate cal.json test.npz --max-error 0.05
  temperance automate cal.json test.npz -o rule.json
  temperance automate cal.json test.npz --positive 1 --max-error 0.1

\b
ROWS must not be the rows of the fit, and must be independent unless they
have groups. The file that -o writes is the calibrator with the rule:
temperance.serving.load(path).decide then gives the class of each row, or -1,
ask a person; `temperance apply` has a column of decisions. Without a
threshold, nothing is written, and the exit code is 1. With two classes, a
rule that a constant answer replaces, or that decides most rows of a class
against it, ends with the exit code 2.
"""


@click.command(cls=options.Command, epilog=EXAMPLES, short_help="Find which predictions need no person.")
@click.argument("calibrator", type=options.INPUT)
@click.argument("rows", type=options.INPUT)
@click.option(
    "--max-error",
    type=options.share,
    default=0.02,
    help="Largest share of wrong rows among those above the threshold.",
)
@click.option("--delta", type=options.share, default=0.05, help="Probability that the promise does not hold.")
@click.option(
    "--positive", metavar="CLASS", help="Name or column of a class to decide for, instead of the top class."
)
@click.option("-o", "--out", type=options.OUTPUT, help="The calibrator file to write, with the rule, JSON.")
@options.read_options(without=["by", "positive"], default_part="test")
@options.force
@options.output_options
def automate(
    calibrator: Path,
    rows: Path,
    positive: str | None,
    out: Path | None,
    reading: ReadOptions,
    force: bool,
    output: Output,
    **promise: Any,
) -> None:
    """Find the confidence above which predictions of the calibrator file CALIBRATOR need no person.

    ROWS are held-out rows with labels.
    """
    from temperance.calibrator_file import load

    fitted = load(calibrator)
    opened = open_for_calibrator(rows, reading, fitted, output, need_labels=True)
    with output.progress("Testing thresholds"):
        logits, labels = opened.logits(), labels_for(fitted, opened)
        assert labels is not None  # they are required here
        with opened.stored.naming_file():
            automated = fitted.automate(
                logits, labels, positive=positive, groups=opened.groups_of(1),
                from_probs=opened.from_probs, **promise,
            )  # fmt: skip
    rule = automated.automation_
    saves = out is not None and rule.threshold is not None
    if out is not None and saves:
        automated.save(out, overwrite=force)
    say_columns(output, opened)
    output.show(on_one_line(rule.words), style="bold")
    if rule.error is not None:
        output.say(
            f"Of {rule.rows_in_words}, {100 * rule.error:.3g}% of those above the threshold were wrong."
        )
        output.say(rule.missed_in_words)
    if out is not None:
        output.say(f"Saved to {on_one_line(out)}" if saves else "Not saved: there is no rule.", wrap=False)
    output.result(
        file=file_for_json(opened),
        calibrator=calibrator_for_json(calibrator, fitted),
        out=str(out) if saves else None,
        warnings=output.warnings,
        **rule.to_dict(),
    )
    if out is not None and not saves:
        raise click.exceptions.Exit(1)
