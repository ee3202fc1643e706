"""`temperance adapt`: a calibrator file -> one for rows with other class frequencies."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temperance.cli import matching
from temperance.cli.inputs import (
    FILE,
    RowOptions,
    check_apart,
    force_option,
    from_probs_option,
    input_options,
)
from temperance.cli.output import Output, on_one_line, output_options
from temperance.cli.spelling import in_words
from temperance.cli.tables import frequencies_table

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile

EXAMPLES = """\b
Examples:
  temperance adapt cal.json new.npz -o adapted.json
  temperance adapt cal.json --priors 0.7,0.1,0.1,0.1 -o adapted.json

\b
For rows whose class frequencies differ from those of the calibration rows,
while the rows of each class look the same. Works best with a class bias:
temperance fit val.npz -m bayes-bias -o cal.json
"""


def _split_numbers(context: click.Context, option: click.Parameter, value: str | None) -> list[float] | None:
    if value is None:
        return None
    try:
        return [float(number) for number in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"must be numbers separated by commas; found {value!r}") from None


@click.command(epilog=EXAMPLES, short_help="Adapt a calibrator to other class frequencies.")
@click.argument("calibrator", type=FILE)
@click.argument("rows", type=FILE, required=False)
@click.option("-o", "--out", type=FILE, required=True, help="The calibrator file to write, JSON.")
@click.option(
    "--priors",
    callback=_split_numbers,
    metavar="NUMBERS",
    help="Class frequencies, separated by commas, instead of ROWS.",
)
@input_options("test", with_labels=False)
@from_probs_option
@force_option
@output_options("adapt")
def adapt(
    calibrator: Path,
    rows: Path | None,
    out: Path,
    priors: list[float] | None,
    row_options: RowOptions,
    from_probs: bool,
    force: bool,
    output: Output,
) -> None:
    """Adapt the calibrator file CALIBRATOR to the class frequencies of the rows in ROWS.

    ROWS needs no labels.
    """
    from temperance.calibrator_file.reading import load
    from temperance.calibrators.label_shift import frequency_changes
    from temperance.files import check_writable

    _check_usage(rows, priors)
    fitted = load(calibrator)
    check_apart(out, calibrator, rows)
    check_writable(out, overwrite=force)
    opened = None
    if rows is not None:
        opened = matching.open_for_calibrator(rows, row_options, fitted, output, from_probs=from_probs)
    with output.progress("Adapting") as report, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report("", 0.1)
        adapted = fitted.adapt(priors=priors) if opened is None else _adapt_to_file(fitted, opened)
    adapted.save(out, overwrite=force)
    told = in_words(caught)
    changes = frequency_changes(adapted.model_)
    if opened is not None:
        matching.say_columns(output, opened)
    output.show(*frequencies_table(changes, list(adapted.get_feature_names_out())))
    for warning in told:
        output.warn(warning)
    if opened is not None and opened.labels is not None:
        output.say(f"The labels in {on_one_line(rows)} were not used.")
    output.say(f"Saved to {on_one_line(out)}")
    output.result(
        file=None
        if opened is None
        else {"path": str(rows), "key": opened.key, "rows": opened.shape[0]}
        | matching.columns_for_json(opened),
        calibrator={"path": str(calibrator), "method": fitted.key},
        out=str(out),
        classes=[
            {"column": change.column, "at_fit": change.at_fit, "now": change.now, "error": change.error}
            for change in changes
        ],
        labels_ignored=opened is not None and opened.labels is not None,
        warnings=told,
    )


def _check_usage(rows: Path | None, priors: list[float] | None) -> None:
    from temperance.inputs.validation import InputError

    if (rows is None) == (priors is None):
        found = "neither" if rows is None else "both"
        raise InputError(f"adapt takes ROWS or --priors; found {found}. Pass one of them.")


def _adapt_to_file(fitted: Calibrator, rows: RowFile) -> Calibrator:
    logits = rows.logits()
    with rows.stored.naming_file():
        return fitted.adapt(logits)
