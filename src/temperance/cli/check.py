"""`temperance check`: a calibrator file and new rows -> is it still right, and what to do if it is not."""

from __future__ import annotations

import shlex
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from temperance.cli.spelling import as_option, in_words

if TYPE_CHECKING:
    from temperance.calibrators import Calibrator
    from temperance.data import RowFile
    from temperance.monitoring import Check

EXAMPLES = """\b
Examples:
  temperance check cal.json week42.npz
  temperance check cal.json week42.npz --history checks.jsonl
  temperance check cal.json week42.npz --history h.jsonl --report page.html

\b
With a history, check as often as you like: the probability of a false alarm
over all checks is at most 5 %. Rows without labels are compared with the
predictions at the fit; a change in accuracy can only be seen with labels.
Exit codes: 0 keep the calibrator, 3 act, 2 bad usage or input, 1 failed.
"""

ACT = 3
"""Exit code of a check that advises to act."""

MOST_PRIORS = 20  # more would not fit on a command line
WIDTH = 78


@click.command(epilog=EXAMPLES, short_help="Check whether a calibrator is still right.")
@click.argument("calibrator", type=FILE)
@click.argument("rows", type=FILE)
@click.option(
    "--history", type=FILE, help="JSON Lines file of all checks; created if missing, then appended to."
)
@click.option("--report", type=FILE, help="Write an HTML page of all checks to PATH.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 0.5),
    default=0.02,
    help="Tolerated change of confidence or class frequency: 0.02 is 2 percentage points.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    help="Probability of a false alarm over all checks.",
)
@input_options("test")
@from_probs_option
@force_option
@output_options("check")
def check(
    calibrator: Path,
    rows: Path,
    history: Path | None,
    report: Path | None,
    tolerance: float,
    alpha: float,
    row_options: RowOptions,
    from_probs: bool,
    force: bool,
    output: Output,
) -> None:
    """Check whether the calibrator file CALIBRATOR is still right on the rows in ROWS.

    Labels are used if ROWS has them.
    """
    from temperance import monitoring
    from temperance.calibrator_file.reading import load

    fitted = load(calibrator)
    _check_outputs(history, report, [calibrator, rows, row_options.labels], force)
    opened = _open(rows, row_options, fitted, output, from_probs)
    with warnings.catch_warnings(record=True) as caught, output.progress("Checking") as progress:
        warnings.simplefilter("always")
        progress("", 0.1)
        options: dict[str, Any] = {"history": history, "tolerance": tolerance, "alpha": alpha}
        logits = opened.logits()
        with opened.stored.naming_file():
            found = monitoring.check(fitted, logits, opened.labels, name=rows.name, **options)
    if report is not None:
        from temperance.report.history import write_history

        write_history(found, report, title=f"Checks of {calibrator.name}", overwrite=force)
    command = _command(found, calibrator, rows, row_options, from_probs)
    matching.say_columns(output, opened)
    output.text(_shown(found, command))
    for sentence in (told := in_words(caught)):
        output.warn(sentence)
    if report is not None:
        output.say(f"Page: {on_one_line(report)}")
    output.result(
        file={"path": str(rows), "key": opened.key, "rows": opened.shape[0]}
        | matching.columns_for_json(opened),
        calibrator={"path": str(calibrator), "method": fitted.key},
        history=None if history is None else str(history),
        report=None if report is None else str(report),
        run=command,
        warnings=told,
        **found.to_dict(),
    )
    if found.acts:
        raise click.exceptions.Exit(ACT)


def _check_outputs(history: Path | None, report: Path | None, inputs: list[Path | None], force: bool) -> None:
    """Raise before the work begins if an output cannot be written."""
    from temperance.files import check_writable

    if history is not None:
        check_apart(history, *inputs)
        check_writable(history, overwrite=True)
    if report is not None:
        check_apart(report, history, *inputs)
        check_writable(report, overwrite=force)


def _open(
    path: Path, row_options: RowOptions, fitted: Calibrator, output: Output, from_probs: bool
) -> RowFile:
    """Open the rows with their labels, or without if there are none. Invalid labels are an error."""
    from temperance.errors import InputError, Remedy

    no_labels = (Remedy("labels", ("FILE",)), Remedy("label_column", ("NAME",)))
    named = row_options.labels is not None or row_options.table.label_column is not None
    for need_labels in (True, False):
        try:
            return matching.open_for_calibrator(
                path, row_options, fitted, output, from_probs=from_probs, need_labels=need_labels
            )
        except InputError as error:
            if named or not need_labels or error.remedy not in no_labels:
                raise
    raise AssertionError("the second turn returns or raises")


def _command(
    found: Check, calibrator: Path, rows: Path, row_options: RowOptions, from_probs: bool
) -> str | None:
    """Return the command that does what the check advises, if there is one."""
    if found.action != "adapt" or found.frequencies is None:
        return None
    out = calibrator.with_name(f"{calibrator.stem}-adapted.json")
    words = ["temperance", "adapt", shlex.quote(str(calibrator))]
    if len(found.frequencies) <= MOST_PRIORS:
        words += ["--priors", ",".join(f"{frequency:.8f}" for frequency in found.frequencies)]
    else:
        words += [shlex.quote(str(rows)), *_reading(row_options, from_probs)]
    return " ".join([*words, "-o", shlex.quote(str(out))])


def _reading(row_options: RowOptions, from_probs: bool) -> list[str]:
    """Return the options with which the rows were read, except those about labels."""
    classes = row_options.table.classes
    given = {
        "part": row_options.part,
        "kind": row_options.kind,
        "label_column": row_options.table.label_column,
        "id_column": row_options.table.id_column,
        "classes": None if classes is None else list(classes),
        "length_normalised": row_options.length_normalised or None,
        "from_probs": from_probs or None,
    }
    return [as_option(name, value) for name, value in given.items() if value is not None]


def _shown(found: Check, command: str | None) -> str:
    """Return the result wrapped for a terminal. A command stays on one line, so that it can be pasted."""
    verdict, *rest = (on_one_line(sentence) for sentence in found.sentences)
    lines = textwrap.wrap(verdict, WIDTH)
    if command is not None:
        lines += ["", f"  {on_one_line(command)}"]
    lines.append("")
    for sentence in rest:
        lines += textwrap.wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)
