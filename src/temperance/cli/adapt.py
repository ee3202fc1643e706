"""`temperance adapt`: a calibrator file -> one for rows with other class frequencies."""

from __future__ import annotations

from pathlib import Path

import click

from temperance.cli import options
from temperance.cli.output import Output, new_table
from temperance.cli.rows import calibrator_for_json, file_for_json, open_for_calibrator, say_columns
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, on_one_line

EXAMPLES = """\b
Examples:
  temperance adapt cal.json new.npz -o adapted.json
  temperance adapt cal.json --priors 0.7,0.1,0.1,0.1 -o adapted.json

\b
For rows with other class frequencies than the calibration rows,
while the rows of each class look the same. Works best with a class bias:
temperance fit val.npz -m bayes-bias -o cal.json
"""

MAX_SHOWN_CLASSES = 15


@click.command(
    cls=options.Command, epilog=EXAMPLES, short_help="Adapt a calibrator to other class frequencies."
)
@click.argument("calibrator", type=options.INPUT)
@click.argument("rows", type=options.INPUT, required=False)
@click.option("-o", "--out", type=options.OUTPUT, required=True, help="The calibrator file to write, JSON.")
@click.option(
    "--priors",
    callback=options.separated(float, "numbers"),
    metavar="NUMBERS",
    help="Class frequencies, separated by commas, instead of ROWS.",
)
@options.read_options(
    without=["labels", "group_column", "by", "positive", "ignore_index"], default_part="test"
)
@options.force
@options.output_options
def adapt(
    calibrator: Path,
    rows: Path | None,
    out: Path,
    priors: list[float] | None,
    reading: ReadOptions,
    force: bool,
    output: Output,
) -> None:
    """Adapt the calibrator file CALIBRATOR to the class frequencies of the rows in ROWS.

    ROWS needs no labels.
    """
    from temperance.calibrator_file import load
    from temperance.calibrators.label_shift import frequency_changes

    if (rows is None) == (priors is None):
        found = "neither" if rows is None else "both"
        raise InputError(f"adapt takes ROWS or --priors; found {found}. Pass one of them.")
    fitted = load(calibrator)
    opened = None if rows is None else open_for_calibrator(rows, reading, fitted, output)
    ignores_labels = opened is not None and opened.has_labels
    with output.progress("Adapting"):
        if opened is None:
            adapted = fitted.adapt(priors=priors)
        else:
            logits = opened.logits()
            with opened.stored.naming_file():
                adapted = fitted.adapt(logits, from_probs=opened.from_probs)
    adapted.save(out, overwrite=force)
    changes = frequency_changes(adapted.model_)
    if opened is not None:
        say_columns(output, opened)
    names, table = adapted.get_feature_names_out(), new_table("class", "at fit", "now", "\u00b1")
    for change in changes[:MAX_SHOWN_CLASSES]:
        error = "" if change.error is None else f"{change.error:.4f}"
        table.add_row(on_one_line(names[change.column]), f"{change.at_fit:.4f}", f"{change.now:.4f}", error)
    some = f", the {table.row_count} largest changes" if len(changes) > MAX_SHOWN_CLASSES else ""
    output.show(f"frequencies of {len(changes)} classes{some}")
    output.show(table)
    if ignores_labels:
        output.say(f"The labels in {on_one_line(rows)} were not used.")
    output.say(f"Saved to {on_one_line(out)}", wrap=False)
    output.result(
        file=None if opened is None else file_for_json(opened),
        calibrator=calibrator_for_json(calibrator, fitted),
        out=str(out),
        classes=[vars(change) for change in changes],
        labels_ignored=ignores_labels,
        warnings=output.warnings,
    )
