"""`temperance check`: a calibrator file and new rows -> is it still valid, and what to do if it is not."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

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

if TYPE_CHECKING:
    from temperance.monitoring import Check

EXAMPLES = """\b
Examples:
  temperance check cal.json week42.npz
  temperance check cal.json week42.npz --history checks.jsonl
  temperance check cal.json week42.npz --history h.jsonl --report page.html
  temperance check cal.json week42.csv --group-column patient --by hospital

\b
With a history, check as often as you like: the probability of a false alarm
over all checks is at most 5%. Rows without labels are compared with the
predictions at the fit; a change in accuracy can only be seen with labels.
Exit codes: 0 keep or watch the calibrator, 3 act, 2 bad usage or input,
1 failed.
"""

ACT = 3
"""Exit code of a check that advises to act."""

MAX_PRIORS = 20  # more would not fit on a command line
_WIDTH = 78


@click.command(cls=options.Command, epilog=EXAMPLES, short_help="Check whether a calibrator is still valid.")
@click.argument("calibrator", type=options.INPUT)
@click.argument("rows", type=options.INPUT)
@click.option(
    "--history",
    type=options.LOG,
    help="JSON Lines file of all checks; created if missing, then appended to.",
)
@click.option("--report", type=options.OUTPUT, help="Write an HTML page of all checks to PATH.")
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
@options.read_options(default_part="test")
@options.force
@options.output_options
def check(
    calibrator: Path,
    rows: Path,
    history: Path | None,
    report: Path | None,
    reading: ReadOptions,
    force: bool,
    output: Output,
    **limits: Any,
) -> None:
    """Check whether the calibrator file CALIBRATOR is still valid on the rows in ROWS.

    Labels are used if ROWS has them.
    """
    from temperance import monitoring
    from temperance.calibrator_file import load

    fitted = load(calibrator)
    opened = open_for_calibrator(rows, reading, fitted, output)
    if opened.has_labels:
        opened = opened.with_labels()
    with output.progress("Checking") as progress:
        progress("", 0.1)
        logits, labels = opened.logits(), labels_for(fitted, opened)
        with opened.stored.naming_file():
            found = monitoring.check(
                fitted, logits, labels, groups=opened.groups_of(1), by=opened.by, history=history,
                name=rows.name, from_probs=opened.from_probs,
                positive=opened.named(opened.positive), **limits,
            )  # fmt: skip
    if report is not None:
        from temperance.report.history import write_history

        write_history(found, report, title=f"Checks of {calibrator.name}", overwrite=force)
    command = _command(found, calibrator, rows, reading)
    say_columns(output, opened)
    output.show(_shown(found, command), wrap=False)
    output.say_by_group(reading.by, found.by_group)
    if report is not None:
        output.say(f"Page: {on_one_line(report)}")
    by_group = None if found.by_group is None else {"by": reading.by} | found.by_group.to_dict()
    output.result(
        file=file_for_json(opened),
        calibrator=calibrator_for_json(calibrator, fitted),
        history=None if history is None else str(history),
        report=None if report is None else str(report),
        run=command,
        warnings=output.warnings,
        **found.to_dict() | {"by_group": by_group},
    )
    if found.acts:
        raise click.exceptions.Exit(ACT)


def _command(found: Check, calibrator: Path, rows: Path, reading: ReadOptions) -> str | None:
    """Return the command that does what the check advises, if there is one."""
    if found.action != "adapt" or found.frequencies is None:
        return None
    out = calibrator.with_name(f"{calibrator.stem}-adapted.json")
    if len(found.frequencies) > MAX_PRIORS:
        reading = replace(reading.for_new_rows(), labels=None)
        return options.command_line("adapt", calibrator, rows, "-o", out, reading=reading)
    priors = ",".join(f"{frequency:.8f}" for frequency in found.frequencies)
    return options.command_line("adapt", calibrator, "--priors", priors, "-o", out)


def _shown(found: Check, command: str | None) -> Text:
    """Return the result wrapped for a terminal. A command stays on one line, so that it can be pasted."""
    verdict, *rest = (on_one_line(sentence) for sentence in found.sentences)
    # Nothing green stands above a number outside its range.
    colour = {"keep": "green" if found.within else "none", "watch": "yellow", "act": "red"}[found.state]
    lines: list[str] = []
    if command is not None:
        lines += ["", f"  {command}"]
    lines.append("")
    for sentence in rest:
        lines += textwrap.wrap(sentence, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return Text.assemble((textwrap.fill(verdict, _WIDTH), f"bold {colour}"), "\n", "\n".join(lines))
